/* SPDX-License-Identifier: MIT
 * Memory runs out in TLS: while certificates are read, in the handshake, and in the life of one
 * lock. Every allocation of the process fails, those of OpenSSL included, because they come through
 * malloc(). A server whose certificate must not be accepted is accepted in no run.
 *
 * Each case is one piece of code, act(), with one server. A run is one execution of it, in which
 * allocation number k fails: alone, or with all later ones (`starve`). Unlike rig_sweep() the cases
 * let OpenSSL keep some blocks, and count those of the library's allocator apart: none may stay. Of
 * rig.h the cases use the client, its operations and its loop. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc_fail.h"
#include "certificates.h"
#include "fdcheck.h"
#include "rig.h"

#define CONNECT_MS      2000  /* time limit of one attempt to connect; none takes that long */
#define RECOVER_MS      10000 /* a client that has lacked memory connects within that time */
#define RECOVERIES_MAX  5     /* so often that is tried in a case */
#define COMMAND_BYTES   256   /* for commands of the harness */
#define ALWAYS          5     /* this many first allocations are tried in every build */
#define MISSES_MAX      3     /* the number of allocations may vary by this many */
#define ALLOCATIONS_MAX 20000 /* more than a run makes: a larger k is an error */
#define COVERED_STEP    7     /* distance of allocations where another case tries each */
#define STARVE_STEP     49    /* the same for runs in which all later allocations fail as well */
#define TAIL            100   /* allocations that are tried again behind the covered ones */
#define WARM_UPS        3     /* runs after which OpenSSL has what it keeps */
#define KEPT_MAX        50    /* blocks that OpenSSL may keep after a run: texts of errors */
#define KEPT_SUM_MAX    100   /* the same for all runs of a case */
#define RELOAD_STEP     29    /* distance of allocations while files are read anew */
#define UNCLEAR_MAX     20    /* runs in which OpenSSL hides that memory was what it lacked */
#define DESCRIPTORS_AT  16    /* every such k, open descriptors are compared: that takes long */

/* The servers of the cases, in their order. */
static const struct server_case {
    const char *name;   /* in messages */
    const char *issuer; /* of its certificate; the client trusts "ca" only */
    const char *names;  /* in its certificate; the client expects 127.0.0.1 */
    bool good;          /* it must be accepted */
    bool covered;       /* most allocations are tried in the first case already */
} servers[] = {
    {"TLS, wrong name", "ca", "IP:127.0.0.2,DNS:localhost", false, false},
    {"TLS, unknown issuer", "other", "IP:127.0.0.1", false, true},
    {"TLS", "ca", "IP:127.0.0.1", true, true},
};
#define SERVERS (sizeof servers / sizeof servers[0])

static unsigned at;          /* index of the server of the running case */
static uint64_t covered;     /* allocations of the first case */
static int64_t own_blocks;   /* blocks of the library's allocator that are in use */
static int64_t kept;         /* blocks of OpenSSL since the beginning of the case */
static unsigned recoveries;  /* runs of the case after which the client has connected once more */
static unsigned unclear;     /* runs of the case in which redlock_new() has returned EINVAL */
static int created;          /* result of redlock_new() in the last run */
static char error_text[256]; /* of the configuration after that */
static bool accepted;        /* the client has sent a command in the last run */

/* What the client has logged about files that have changed, in the last run. */
static unsigned read_lines;   /* they were read */
static unsigned lacked_lines; /* could not be read for lack of memory */
static unsigned bad_lines;    /* they cannot be used */
static bool reload_hit;       /* an allocation failed before the first of these lines */

/* Allocator of the library that counts its blocks. */
static void *count_malloc(size_t size, void *userdata)
{
    void *block = malloc(size);
    (void)userdata;
    own_blocks += block != NULL;
    return block;
}

/* The same. A block that moves stays one block. */
static void *count_realloc(void *block, size_t size, void *userdata)
{
    void *moved = realloc(block, size);
    (void)userdata;
    own_blocks += block == NULL && moved != NULL;
    return moved;
}

/* The same. */
static void count_free(void *block, void *userdata)
{
    (void)userdata;
    own_blocks -= block != NULL;
    free(block);
}

/* Starts the servers and gives each its certificate. */
static void start_servers(void)
{
    const struct cluster_opts opts = {.nodes = SERVERS, .tls = true, .lasting = true};
    rig.cluster = cluster_start_with(&opts);
    const char *dir = cluster_dir(rig.cluster);
    certificate_make(dir, NULL, &(struct certificate_terms){.subject = "other", .is_issuer = true});
    for (unsigned i = 0; i < SERVERS; i++) {
        char name[24], command[COMMAND_BYTES];
        snprintf(name, sizeof name, "server%u", i);
        certificate_make(dir, servers[i].issuer,
                         &(struct certificate_terms){.subject = name, .names = servers[i].names});
        snprintf(command, sizeof command, "CONFIG SET tls-cert-file %s/%s.pem", dir, name);
        ck_assert(cluster_replies(rig.cluster, i, "OK", command));
    }
}

/* Stops the servers. */
static void stop_servers(void)
{
    cluster_stop(rig.cluster);
    rig.cluster = NULL;
}

/* Creates rig.config for a client of one server in embedded mode. */
static void configure(void)
{
    const redlock_allocator_t allocator = {
        .size = sizeof allocator,
        .malloc_fn = count_malloc,
        .realloc_fn = count_realloc,
        .free_fn = count_free,
    };
    const uint32_t limit_ms = (uint32_t)wait_scaled_ms(CONNECT_MS);
    ck_assert_int_eq(redlock_config_new(&rig.config, &allocator), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(rig.config, cluster_url(rig.cluster, at)),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_mode(rig.config, REDLOCK_MODE_EMBEDDED), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_fence_records(rig.config, REDLOCK_FENCE_RECORDS_VOLATILE),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(rig.config, limit_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(rig.config, limit_ms), REDLOCK_OK);
}

/* Returns the statistics of the server. */
static redlock_node_stats_t server_stats(void)
{
    redlock_node_stats_t stats;
    if (redlock_get_node_stats(rig.client, 0, &stats, sizeof stats) != REDLOCK_OK)
        rig_die("no statistics");
    return stats;
}

/* Returns whether the server can be used, or the first attempt to connect has failed. */
static bool has_tried(void)
{
    const redlock_node_stats_t stats = server_stats();
    return stats.eligible == 1 || strcmp(stats.text, "not connected yet") != 0;
}

/* Returns whether the server can be used. */
static bool is_eligible(void)
{
    return server_stats().eligible == 1;
}

/* Acquires a lock (call 0) and releases it (call 1). */
static void lock_once(void)
{
    const redlock_opts_t opts = redlock_opts(RIG_TTL_MS);
    rig_acquire(0, "resource", &opts);
    rig_finish();
    rig.lock = rig.call[0].lock;
    if (rig.lock == NULL)
        return;
    rig_release(1, rig.lock);
    rig_finish();
}

/* Creates a client, lets it connect once, and locks once if it could. The client stays. */
static void act(void)
{
    created = redlock_new(&rig.client, rig.config);
    snprintf(error_text, sizeof error_text, "%s", redlock_config_error(rig.config));
    if (created != REDLOCK_OK)
        return;
    if (!rig_drive(has_tried, 2 * CONNECT_MS))
        rig_die("an attempt to connect does not end");
    if (is_eligible())
        lock_once();
}

/* Returns whether the client has sent a command to the server since the last call that has
 * returned true. */
static bool server_was_used(void)
{
    char *counts = cluster_command(rig.cluster, at, "INFO commandstats");
    ck_assert_ptr_nonnull(counts);
    const bool used =
        strstr(counts, "cmdstat_client|setname") != NULL || strstr(counts, "cmdstat_hello") != NULL;
    free(counts);
    if (used)
        ck_assert(cluster_replies(rig.cluster, at, "OK", "CONFIG RESETSTAT"));
    return used;
}

/* Checks the results of act(). `hit`: an allocation has failed in it. */
static void judge(bool hit)
{
    accepted = created == REDLOCK_OK && server_was_used();
    ck_assert_msg(servers[at].good || !accepted, "the server is accepted");
    if (hit) {
        ck_assert_msg(created == REDLOCK_OK || created == REDLOCK_ENOMEM ||
                          (created == REDLOCK_EINVAL && strncmp(error_text, "TLS: ", 5) == 0),
                      "%s: %s", redlock_error_name(created), error_text);
        unclear += created == REDLOCK_EINVAL;
        if (created == REDLOCK_ENOMEM)
            ck_assert_msg(strstr(error_text, "memory") != NULL, "\"%s\"", error_text);
        return;
    }
    ck_assert_msg(created == REDLOCK_OK, "%s", error_text);
    ck_assert_int_eq(accepted, servers[at].good);
    if (servers[at].good) {
        RIG_EXPECT(0, REDLOCK_OK);
        RIG_EXPECT(1, REDLOCK_OK);
    } else {
        const redlock_node_stats_t stats = server_stats();
        ck_assert_msg(stats.cause == REDLOCK_CAUSE_TLS, "%s", stats.text);
    }
}

/* Checks that a client can connect which could not, because OpenSSL has not noticed that it lacked
 * memory when it read the files. */
static void recover(void)
{
    static const char untrusted[] = "the certificate is not from an issuer that is trusted";

    if (created != REDLOCK_OK || !servers[at].good || recoveries == RECOVERIES_MAX ||
        strncmp(server_stats().text, untrusted, strlen(untrusted)) != 0)
        return;
    ck_assert_msg(rig_drive(is_eligible, RECOVER_MS), "no connection: %s", server_stats().text);
    recoveries++;
}

/* Frees all that a run has left, and removes keys that could not be undone. */
static void clean_up(void)
{
    redlock_lock_free(rig.lock);
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    redlock_config_free(rig.config);
    struct cluster *cluster = rig.cluster;
    memset(&rig, 0, sizeof rig);
    rig.cluster = cluster;
    if (accepted)
        free(cluster_command(cluster, at, "DEL resource"));
}

/* Runs act() once, with allocation `k` failing (`starve`: and each later one), and checks that the
 * library keeps nothing, and OpenSSL little. Returns true if an allocation failed. */
static bool run(bool starve, uint64_t k)
{
    static struct fdcheck descriptors;
    const bool compare = k % DESCRIPTORS_AT == 0;

    rig_note(servers[at].name, starve, k);
    if (compare)
        fdcheck_begin(&descriptors);
    const int64_t live = alloc_fail_live(), own = own_blocks;
    configure();
    rig.starve = starve;
    rig.k = k;
    if (starve)
        alloc_fail_from(k, ALLOC_FAIL_ALL_THREADS);
    else
        alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
    act();
    const bool hit = alloc_fail_stop();
    rig.hit = hit;
    judge(hit);
    recover();
    clean_up();
    ck_assert_msg(own_blocks == own, "%" PRId64 " blocks of the library are not freed",
                  own_blocks - own);
    /* A thread that reads the files again may not have ended yet. */
    if (hit)
        (void)WAIT_UNTIL(alloc_fail_live() - live <= KEPT_MAX, RECOVER_MS);
    const int64_t more = alloc_fail_live() - live;
    ck_assert_msg(!hit || more <= KEPT_MAX, "%" PRId64 " blocks are not freed", more);
    kept += more;
    const char *open = compare ? fdcheck_leaked(&descriptors, 1000) : NULL;
    ck_assert_msg(open == NULL, "descriptors stay open: %s", open);
    rig_end_note();
    return hit;
}

/* Returns the last error in this thread's queue of OpenSSL, 0 if there is none. Finds the function
 * by its name, because this file is compiled without OpenSSL, too. */
static unsigned long last_error(void)
{
    unsigned long (*peek)(void);
    *(void **)&peek = dlsym(RTLD_DEFAULT, "ERR_peek_last_error");
    return peek != NULL ? peek() : 0;
}

/* Returns the distance between two allocations, of those that this build tries in each case. */
static unsigned build_step(void)
{
    const unsigned step = rig_step();
    return step == 1 ? 1 : step == 3 ? 7 : 29;
}

/* Runs act() for each k of one kind: up to `sparse_end` with the distance `sparse`, then with that
 * of the build. Returns how many runs met a failure, and the number of allocations in *ret_end. */
static unsigned sweep(bool starve, uint64_t sparse_end, unsigned sparse, uint64_t *ret_end)
{
    unsigned hits = 0, misses = 0;
    uint64_t k = 0;

    *ret_end = 0;
    while (misses < MISSES_MAX) {
        const unsigned long before = last_error();
        const bool hit = run(starve, k);
        ck_assert_msg(last_error() == before, "allocation %" PRIu64 ": an error stays in the queue",
                      k);
        misses = hit ? 0 : misses + 1;
        hits += hit;
        if (hit)
            *ret_end = k + 1;
        ck_assert_msg(k < ALLOCATIONS_MAX, "no end of allocations");
        k += k < ALWAYS ? 1 : (k < sparse_end ? sparse : 1) * build_step();
    }
    return hits;
}

/* Each allocation fails, alone or with all later ones. */
START_TEST(tls_without_memory)
{
    const uint64_t begin = wait_now_ms();
    uint64_t end, starved_end;

    at = (unsigned)_i;
    for (unsigned i = 0; i < WARM_UPS; i++)
        run(false, UINT64_MAX);
    kept = 0;
    unclear = recoveries = 0;
    const uint64_t sparse_end = !servers[at].covered                 ? 0
                                : servers[at].good && covered > TAIL ? covered - TAIL
                                                                     : UINT64_MAX;
    const unsigned once = sweep(false, sparse_end, COVERED_STEP, &end);
    const unsigned starved = sweep(true, UINT64_MAX, STARVE_STEP, &starved_end);
    if (!servers[at].covered)
        covered = end;
    printf("# %s: %u and %u failures of %" PRIu64
           " allocations, %u unclear, %u recoveries, %" PRId64 " blocks kept, %" PRIu64 " ms\n",
           servers[at].name, once, starved, end, unclear, recoveries, kept, wait_now_ms() - begin);
    fflush(stdout);
    ck_assert_uint_gt(once, 50 / build_step());
    ck_assert_uint_gt(starved, ALWAYS);
    ck_assert_uint_le(unclear, UNCLEAR_MAX);
    ck_assert_msg(kept <= KEPT_SUM_MAX, "%" PRId64 " blocks are not freed", kept);
}
END_TEST

/* Counts the log lines about files that have changed, and ends the failures with the first one. */
static void count_line(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    if (strstr(message, "certificate files have changed") == NULL)
        return;
    if (read_lines + lacked_lines + bad_lines == 0)
        reload_hit = alloc_fail_stop();
    read_lines += strstr(message, "and were read") != NULL;
    lacked_lines += strstr(message, "could not be read") != NULL;
    bad_lines += strstr(message, "cannot be used") != NULL;
}

static uint64_t reconnects_before; /* connections before the present call of reconnect() */

/* Returns whether the client has made a new connection, which can be used; or does not trust the
 * issuer of the server any more: OpenSSL does not always notice that it could not read one. */
static bool has_reconnected(void)
{
    const redlock_node_stats_t stats = server_stats();
    return strstr(stats.text, "issuer") != NULL ||
           (stats.reconnects > reconnects_before && stats.eligible == 1);
}

/* Ends the connections of the client and waits until it has connected again. */
static void reconnect(void)
{
    reconnects_before = server_stats().reconnects;
    rig_command(at, "CLIENT KILL TYPE normal SKIPME yes");
    if (!rig_drive(has_reconnected, 2 * CONNECT_MS))
        rig_die("the client does not connect again");
}

/* Changes what stat() says about the file of issuers. Its content stays. */
static void touch_issuers(uint64_t k)
{
    ck_assert_int_eq(chmod(cluster_cacert(rig.cluster), k % 2 == 0 ? 0600 : 0644), 0);
}

/* Has a connected client read its files anew, with allocation `k` failing, and checks that it uses
 * them at the latest with the next connection. Returns true if an allocation failed. */
static bool run_reload(uint64_t k)
{
    rig_note("TLS, changed files", false, k);
    const int64_t live = alloc_fail_live(), own = own_blocks;
    configure();
    ck_assert_int_eq(redlock_config_set_log(rig.config, REDLOCK_LOG_INFO, count_line, NULL),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    ck_assert(rig_drive(is_eligible, 2 * CONNECT_MS));
    read_lines = lacked_lines = bad_lines = 0;
    touch_issuers(k);
    alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
    reconnect();
    const bool hit = alloc_fail_stop() && (reload_hit || read_lines == 0);
    if (read_lines == 0)
        reconnect();
    ck_assert_uint_le(lacked_lines + bad_lines, hit);
    ck_assert_msg(read_lines == 1 || bad_lines == 1, "the files are not read again");
    unclear += bad_lines;
    accepted = true;
    clean_up();
    ck_assert_msg(own_blocks == own, "%" PRId64 " blocks of the library are not freed",
                  own_blocks - own);
    /* The thread that reads the files frees its memory when it ends. */
    ck_assert_msg(WAIT_UNTIL(!hit || alloc_fail_live() - live <= KEPT_MAX, CONNECT_MS),
                  "%" PRId64 " blocks are not freed", alloc_fail_live() - live);
    rig_end_note();
    return hit;
}

/* Files that have changed and were not read for lack of memory are read before the next connection.
 */
START_TEST(changed_files_without_memory)
{
    const uint64_t begin = wait_now_ms();
    unsigned hits = 0, misses = 0, lacked = 0;

    at = SERVERS - 1;
    unclear = 0;
    run_reload(UINT64_MAX);
    for (uint64_t k = 0; misses < MISSES_MAX; k += k < ALWAYS ? 1 : RELOAD_STEP * build_step()) {
        const bool hit = run_reload(k);
        misses = hit ? 0 : misses + 1;
        hits += hit;
        lacked += lacked_lines;
        ck_assert_msg(k < ALLOCATIONS_MAX, "no end of allocations");
    }
    printf("# TLS, changed files: %u failures, %u unclear, %u told, %" PRIu64 " ms\n", hits,
           unclear, lacked, wait_now_ms() - begin);
    fflush(stdout);
    ck_assert_msg(build_step() > 1 || lacked > 0, "no run has lacked memory for the files");
    ck_assert_uint_le(unclear, UNCLEAR_MAX);
}
END_TEST

static Suite *tls_suite(void)
{
    Suite *suite = suite_create("oom_tls");
    TCase *tcase = tcase_create("tls");
    tcase_add_unchecked_fixture(tcase, start_servers, stop_servers);
    tcase_add_checked_fixture(tcase, NULL, rig_after);
    tcase_set_timeout(tcase, 0); /* none, because each run has its own */
    tcase_add_loop_test(tcase, tls_without_memory, 0, (int)SERVERS);
    tcase_add_test(tcase, changed_files_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    if (cluster_tls_missing() != NULL)
        return suite_skip(cluster_tls_missing());
    return suite_run_nofork(tls_suite());
}
