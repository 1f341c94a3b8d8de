/* SPDX-License-Identifier: MIT
 * A chaos run: five servers, client processes of all kinds, faults for a number of seconds, then a
 * time without faults, an orderly end, and a check for leftover keys. It does not judge: everything
 * that happens is logged, and checker.py judges.
 *
 *     chaos SECONDS PACE_MS SEED DIRECTORY plain|fenced PROGRAMS REDLOCK [FOREIGN]
 *
 * PACE_MS: time between faults. FOREIGN: a script for node. The exit status is 0 if the run took
 * place. */
#include "chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "history.h"
#include "wait.h"

#define PEACE_MS     (3 * MAX_TTL_MS)  /* at least, and until each client has acquired a lock */
#define PEACE_MAX_MS (30 * MAX_TTL_MS) /* which takes long on a busy machine */
#define LEFT_MS      (3 * MAX_TTL_MS)

struct chaos chaos;

unsigned chance(unsigned below)
{
    chaos.random ^= chaos.random << 13;
    chaos.random ^= chaos.random >> 7;
    chaos.random ^= chaos.random << 17;
    return (unsigned)((chaos.random >> 11) % below);
}

static void start_servers(void)
{
    const char *missing = network_missing();
    chaos.network = missing == NULL;
    const struct cluster_opts opts = {.nodes = NODES,
                                      .clocks = true,
                                      .keep_data = true,
                                      .network = chaos.network,
                                      .guarded = true};
    if (missing != NULL)
        history_write(history_now_ns(), "skip links: %s", missing);
    chaos.cluster = cluster_start_with(&opts);
}

static void disturb(uint64_t seconds, uint64_t pace_ms)
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

static void keep_peace(void)
{
    const uint64_t start_ms = wait_now_ms();
    history_write(history_now_ns(), "peace");
    clients_mark();
    for (uint64_t passed_ms = 0; passed_ms < PEACE_MAX_MS;) {
        clients_check();
        for (int i = 0; i < 50; i++)
            wait_pause();
        passed_ms = wait_now_ms() - start_ms;
        if (passed_ms >= PEACE_MS && clients_served())
            break;
    }
}

/* Logs all keys of the servers. `word` is "key" right after the end, and "left" when they should
 * have expired. */
static size_t note_keys(const char *word)
{
    size_t count = 0;
    for (unsigned i = 0; i < NODES; i++) {
        char **keys = cluster_keys(chaos.cluster, i);
        for (char **key = keys; *key != NULL; key++) {
            if (strcmp(*key, "redlock:fence") == 0)
                continue;
            char *value = cluster_command(chaos.cluster, i, "GET %s", *key);
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

static bool only_fences(void)
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
    if (argc < 8 || argc > 9)
        return 64;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    chaos.random = strtoull(argv[3], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    chaos.dir = argv[4];
    chaos.fences = argv[5];
    chaos.programs = argv[6];
    chaos.redlock = argv[7];
    chaos.node = argc > 8 ? argv[8] : NULL;
    snprintf(log, sizeof log, "%s/faults.log", chaos.dir);
    if (!history_open(log))
        return 73;
    start_servers();
    clients_start_all();
    disturb(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    keep_peace();
    clients_end_all();
    note_keys("key");
    if (!WAIT_UNTIL(only_fences(), LEFT_MS))
        note_keys("left");
    history_write(history_now_ns(), "over");
    cluster_stop(chaos.cluster);
    return 0;
}
