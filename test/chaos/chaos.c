/* SPDX-License-Identifier: MIT
 * A chaos run: five servers, client processes of all kinds, faults for a number of seconds, then a
 * time without faults, the end of all clients, and a check for leftover keys. It only logs what
 * happens; checker.py finds violations in the logs.
 *
 *     chaos SECONDS PACE_MS SEED DIRECTORY plain|fenced tls|tcp PROGRAMS REDLOCK [FOREIGN]
 *
 * PACE_MS: average time between faults. tls: half of the clients use TLS, if possible. FOREIGN: the
 * script of the node-redlock client. The exit status is 0 if the run took place. */
#include "chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "history.h"
#include "tls.h"
#include "wait.h"

/* The time without faults lasts at least QUIET_MS and ends when each client has acquired a lock; on
 * a busy machine this takes long. */
#define QUIET_MS     (3 * MAX_TTL_MS)
#define QUIET_MAX_MS (30 * MAX_TTL_MS)
#define LINE_SUFFIX  "{#q}" /* what the key of a line has behind the key of the lock */
/* After it every key of a lock should have expired, and every line: it does 10 s after its last
 * use.
 */
#define LEFT_MS (10000 + 3 * MAX_TTL_MS)

struct chaos chaos;

/* Returns a random number below `below`, from the seed of the run (xorshift). */
unsigned chance(unsigned below)
{
    chaos.random ^= chaos.random << 13;
    chaos.random ^= chaos.random >> 7;
    chaos.random ^= chaos.random << 17;
    return (unsigned)((chaos.random >> 11) % below);
}

/* Decides whether clients use TLS, and logs why this run is without. */
static void choose_tls(void)
{
    const char *missing = tls_missing(chaos.network);
    chaos.tls = missing == NULL;
    if (missing != NULL)
        history_write(history_now_ns(), "skip TLS: %s", missing);
}

/* Starts the servers: with links if the machine can have them, with clocks of their own, and with
 * `tls`, if possible, with ports for TLS. */
static void start_servers(bool tls)
{
    const char *missing = network_missing();
    chaos.network = missing == NULL;
    if (tls)
        choose_tls();
    const struct cluster_opts opts = {.nodes = NODES,
                                      .clocks = true,
                                      .keep_data = true,
                                      .network = chaos.network,
                                      .guarded = true,
                                      .args = chaos.tls ? tls_server_arguments() : NULL};
    if (missing != NULL)
        history_write(history_now_ns(), "skip links: %s", missing);
    chaos.cluster = cluster_start_with(&opts);
    snprintf(chaos.urls, sizeof chaos.urls, "%s", cluster_urls(chaos.cluster));
    if (chaos.tls) {
        tls_write_urls(chaos.urls, sizeof chaos.urls, false);
        tls_write_urls(chaos.tls_urls, sizeof chaos.tls_urls, true);
    }
}

/* Begins and ends faults for `seconds`, with `pace_ms` between them on average, and restarts
 * clients that end. Ends all faults before it returns. */
static void inject_faults(uint64_t seconds, uint64_t pace_ms)
{
    const uint64_t end_ms = wait_now_ms() + seconds * 1000;
    uint64_t next_ms = wait_now_ms();
    while (wait_now_ms() < end_ms) {
        wait_pause();
        faults_end_due();
        clients_check();
        if (wait_now_ms() < next_ms)
            continue;
        faults_begin_one();
        next_ms = wait_now_ms() + pace_ms / 2 + chance((unsigned)pace_ms);
    }
    faults_end_all();
}

/* Waits until each client has acquired a lock without faults, within the limits above. */
static void wait_without_faults(void)
{
    const uint64_t start_ms = wait_now_ms();
    history_write(history_now_ns(), "peace");
    clients_mark();
    for (uint64_t passed_ms = 0; passed_ms < QUIET_MAX_MS;) {
        clients_check();
        for (int i = 0; i < 50; i++)
            wait_pause();
        passed_ms = wait_now_ms() - start_ms;
        if (passed_ms >= QUIET_MS && clients_served())
            break;
    }
}

/* Returns whether the key is that of a line of waiters, whose value has one line for each. */
static bool is_line(const char *key)
{
    const size_t len = strlen(key), end = sizeof LINE_SUFFIX - 1;
    return len >= end && strcmp(key + len - end, LINE_SUFFIX) == 0;
}

/* Logs all keys of the servers but fence records, with value and remaining TTL. The value of a line
 * is "line", because each of its waiters has its own owner. `word` is "key" right after the
 * clients' end, and "left" when keys should have expired. Returns the number of keys. */
static size_t log_keys(const char *word)
{
    size_t count = 0;
    for (unsigned i = 0; i < NODES; i++) {
        char **keys = cluster_keys(chaos.cluster, i);
        for (char **key = keys; *key != NULL; key++) {
            if (strcmp(*key, "redlock:fence") == 0)
                continue;
            char *value =
                is_line(*key) ? strdup("line") : cluster_command(chaos.cluster, i, "GET %s", *key);
            char *pttl = cluster_command(chaos.cluster, i, "PTTL %s", *key);
            history_write(history_now_ns(), "%s %u %s %s %s", word, i, *key,
                          value != NULL ? value : "?", pttl != NULL ? pttl : "?");
            free(value);
            free(pttl);
            count++;
        }
        cluster_keys_free(keys);
    }
    return count;
}

/* Returns whether the servers have no keys but fence records. */
static bool has_no_lock_keys(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        char **keys = cluster_keys(chaos.cluster, i);
        bool others = false;
        for (char **key = keys; *key != NULL; key++)
            others = others || strcmp(*key, "redlock:fence") != 0;
        cluster_keys_free(keys);
        if (others)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    char log[512];
    if (argc < 9 || argc > 10)
        return 64;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    chaos.random = strtoull(argv[3], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    chaos.dir = argv[4];
    chaos.fences = argv[5];
    chaos.programs = argv[7];
    chaos.redlock = argv[8];
    chaos.foreign = argc > 9 ? argv[9] : NULL;
    snprintf(log, sizeof log, "%s/faults.log", chaos.dir);
    if (!history_open(log))
        return 73;
    start_servers(strcmp(argv[6], "tls") == 0);
    clients_start_all();
    inject_faults(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    wait_without_faults();
    clients_end_all();
    log_keys("key");
    if (!WAIT_UNTIL(has_no_lock_keys(), LEFT_MS))
        log_keys("left");
    history_write(history_now_ns(), "over");
    cluster_stop(chaos.cluster);
    return 0;
}
