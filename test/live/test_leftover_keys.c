/* SPDX-License-Identifier: MIT
 * After any mixture of conflicts, cancellations, timeouts and reconnects, no server has a key
 * without a holder, and no resource had two holders at once.
 *
 * Several threads, one embedded client, clients that are freed with operations in flight, and a
 * second process acquire a few resources, while servers stop and connections are cut.
 * REDLOCK_TEST_SEED repeats the choices of a run, but not its timing.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_pause(first, count) stops servers with SIGSTOP. live_voters()
 * counts the eligible nodes, live_responsive() the nodes that reply. live_turn() turns a client's
 * loop once. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. */
#include "leftover_keys.h"
#include "suite.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPERATIONS   10000      /* the case ends after at least so many calls, */
#define STOPS        40         /* so many stops of servers */
#define CUTS         80         /* and so many cut connections */
#define RUN_MS_MAX   60000      /* scaled */
#define SURVIVOR     "survivor" /* a lock that is held during the whole test */
#define LONG_STOP_MS 2300       /* the client closes a silent connection after two seconds */
#define DOWN_MS      500        /* a client may take a server for down that is silent for longer: */
                                /* two attempts to connect fail after 250 ms each, */
#define DOWN_FOR_MS 3000        /* and the next attempt comes within two seconds */
#define LAST_MAX    2           /* keys whose undo a freed client could not deliver */
#define UNSURE_MS   300         /* longer than the time limit of a release, so that it fails */

/* Returns REDLOCK_TEST_SEED, or a random seed. */
static uint64_t choose_seed(void)
{
    const char *text = getenv("REDLOCK_TEST_SEED");
    uint64_t seed = 0;
    if (text != NULL)
        return strtoull(text, NULL, 0);
    ck_assert_int_eq(getrandom(&seed, sizeof seed, 0), sizeof seed);
    return seed;
}

/* Creates the state that all actors share, and prints its seed. */
static void start_sharing(void)
{
    leftovers =
        mmap(NULL, sizeof *leftovers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(leftovers, MAP_FAILED);
    leftovers->seed = choose_seed();
    printf("# REDLOCK_TEST_SEED=%" PRIu64 "\n", leftovers->seed);
    fflush(stdout);
}

/* Prints all counts, and checks that each occurrence has been counted. */
static void print_counts(void)
{
    static const char *const words[] = {
#define X(name, text) text,
        OCCURRENCES(X)
#undef X
    };
    printf("# %6u operations\n", atomic_load(&leftovers->operations));
    for (unsigned i = 0; i < OCCURRENCE_COUNT; i++)
        printf("# %6u %s\n", atomic_load(&leftovers->occurred[i]), words[i]);
    fflush(stdout);
    for (unsigned i = 0; i < OCCURRENCE_COUNT; i++)
        ck_assert_msg(atomic_load(&leftovers->occurred[i]) > 0, "never happened: %s", words[i]);
}

/* Runs the second process, with threads on a client of its own. */
static _Noreturn void run_other_process(const char *urls)
{
    uint64_t random = random_of(300);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    redlock_t *client = leftovers_client(urls, REDLOCK_MODE_HYBRID, "process");
    struct blockers *blockers = blockers_start(client, CHILD_THREADS, 20);
    while (!atomic_load(&leftovers->stop)) {
        live_turn(client, 5);
        blockers_cancel(blockers, draw(&random, CHILD_THREADS));
    }
    blockers_join(blockers);
    await_servers(client);
    const int status = redlock_shutdown(client, wait_scaled_ms(TIME_LIMIT_MS));
    redlock_stats_t stats;
    if (redlock_get_stats(client, &stats, sizeof stats) == REDLOCK_OK && stats.acquired > 0)
        count_one(OTHER_PROCESS);
    count_client(client);
    redlock_free(client);
    _exit(status == REDLOCK_OK ? 0 : 1);
}

/* Cuts one connection of a redlock client, but none in database 1. */
static void cut_one(uint64_t *random)
{
    const unsigned node = draw(random, NODES);
    char *list = cluster_command(live.cluster, node, "CLIENT LIST TYPE normal");
    char *rest = list;
    unsigned skip = draw(random, 4);
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        uint64_t id = 0;
        if (strstr(line, " name=redlock ") == NULL || strstr(line, " db=0 ") == NULL ||
            sscanf(line, "id=%" SCNu64, &id) != 1 || skip-- > 0)
            continue;
        if (cluster_replies(live.cluster, node, "1", "CLIENT KILL ID %llu", (unsigned long long)id))
            count_one(CUT);
        break;
    }
    free(list);
}

/* Servers that are stopped now. */
struct stop {
    unsigned first, count;       /* nodes that are stopped; 0: none */
    uint64_t began_ms, until_ms; /* when they were stopped, and when they may continue */
    uint64_t down_until_ms;      /* until when clients may take a server for down */
};

/* Stops some servers for the `number`-th time. The first time is so long that the client closes
 * their connections. */
static void stop_some(struct stop *stop, uint64_t *random, unsigned number)
{
    static const unsigned counts[] = {2, 1, 3, 2, 1, 2};
    stop->count = counts[number % 6];
    stop->first = draw(random, NODES - stop->count + 1);
    const uint64_t least_ms = number == 0 ? LONG_STOP_MS : stop->count == 3 ? UNSURE_MS : 5;
    stop->until_ms = wait_now_ms() + least_ms + draw(random, 120);
    stop->began_ms = wait_now_ms();
    live_pause(stop->first, stop->count);
    count_one(STOPPED);
    if (stop->count == 3)
        count_one(THREE_STOPPED);
}

/* Lets the stopped servers continue, and waits until they reply: on a busy machine that is when
 * their silence ends. Notes until when clients may take one of them for down. */
static void end_stop(struct stop *stop)
{
    live_resume_all();
    for (unsigned i = stop->first; i < stop->first + stop->count; i++)
        ck_assert(WAIT_UNTIL(cluster_replies(live.cluster, i, "PONG", "PING"), TIME_LIMIT_MS));
    if (wait_now_ms() - stop->began_ms > DOWN_MS)
        stop->down_until_ms = wait_now_ms() + DOWN_FOR_MS;
    stop->count = 0;
}

/* Returns whether the test has run for long enough. */
static bool has_run_enough(void)
{
    return atomic_load(&leftovers->operations) >= OPERATIONS &&
           atomic_load(&leftovers->occurred[STOPPED]) >= STOPS &&
           atomic_load(&leftovers->occurred[CUT]) >= CUTS &&
           atomic_load(&leftovers->occurred[RELEASE_UNSURE]) > 0;
}

/* Causes faults and cancels calls until the test has run for long enough. */
static void disturb(struct blockers *blockers)
{
    const uint64_t end_ms = wait_now_ms() + wait_scaled_ms(RUN_MS_MAX);
    uint64_t random = random_of(400);
    struct stop stop = {.count = 0};
    unsigned stops = 0;
    while (!has_run_enough() && wait_now_ms() < end_ms) {
        wait_pause();
        if (draw(&random, 3) == 0)
            blockers_cancel(blockers, draw(&random, BLOCKERS));
        if (stop.count > 0 && wait_now_ms() >= stop.until_ms) {
            end_stop(&stop);
        } else if (stop.count == 0 && draw(&random, 30) == 0) {
            stop_some(&stop, &random, stops++);
        } else if (stop.count == 0 && draw(&random, 12) == 0) {
            cut_one(&random);
        }
    }
    if (stop.count > 0)
        end_stop(&stop);
    atomic_store(&leftovers->was_silent, wait_now_ms() < stop.down_until_ms);
}

/* Returns whether the key of the survivor is on a majority of servers, and no other key is left. */
static bool only_the_survivor(const redlock_lock_t *survivor)
{
    unsigned on = 0;
    for (unsigned i = 0; i < NODES; i++) {
        char **keys = cluster_keys(live.cluster, i);
        const bool has = keys[0] != NULL && strcmp(keys[0], SURVIVOR) == 0;
        const bool clean = keys[0] == NULL || (has && keys[1] == NULL);
        cluster_keys_free(keys);
        if (!clean || (has && !cluster_replies(live.cluster, i, redlock_lock_token(survivor),
                                               "GET %s", SURVIVOR)))
            return false;
        on += has;
    }
    return on >= QUORUM;
}

/* Writes the addresses of all nodes, with this database. */
static void write_urls(char *urls, size_t size, const char *database)
{
    const char *cacert = cluster_cacert(live.cluster);
    size_t len = 0;
    for (unsigned i = 0; i < NODES; i++)
        len += (size_t)snprintf(urls + len, size - len, "%s%s127.0.0.1:%d%s?fresh=1%s%s",
                                i == 0 ? "" : ",", cluster_scheme(live.cluster),
                                cluster_port(live.cluster, i), database,
                                cacert == NULL ? "" : "&cacert=", cacert == NULL ? "" : cacert);
}

/* Deletes the keys of database 1 and returns how many there were. redlock_free() does not wait for
 * the network: if a server writes to a connection that is closed already, as happens on a busy
 * machine, it drops the last undo on it, and the key stays for its TTL (docs/guarantees.md). With
 * TLS it drops all undos that it had not read before its first reply, however many they are. */
static uint64_t empty_database_1(void)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < NODES; i++) {
        redisContext *side = cluster_connect(live.cluster, i);
        ck_assert_ptr_nonnull(side);
        freeReplyObject(redisCommand(side, "SELECT 1"));
        redisReply *size = redisCommand(side, "DBSIZE");
        ck_assert(size != NULL && size->type == REDIS_REPLY_INTEGER);
        count += (uint64_t)size->integer;
        freeReplyObject(size);
        freeReplyObject(redisCommand(side, "FLUSHDB"));
        redisFree(side);
    }
    return count;
}

/* All actors run while servers are stopped and connections are cut. At the end no key is left,
 * no two actors have held one resource at once, each kind of occurrence has occurred, and a lock
 * that was held all the time has survived. */
START_TEST(no_key_is_left_and_no_resource_had_two_holders)
{
    char urls[1024], other_urls[1024];
    pthread_t embedded, freed;
    start_sharing();
    write_urls(urls, sizeof urls, "");
    write_urls(other_urls, sizeof other_urls, "/1");
    fflush(NULL);
    const pid_t other = fork();
    if (other == 0)
        run_other_process(urls);
    ck_assert_int_gt(other, 0);
    live_connect();
    redlock_lock_t *survivor = NULL;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = LONG_TTL_MS - LONG_TTL_MS / 10; /* every three seconds */
    CHECK_STATUS(redlock_acquire(live.client, SURVIVOR, &opts, &survivor, NULL), REDLOCK_OK);
    redlock_t *client = leftovers_client(urls, REDLOCK_MODE_THREADED, "threads");
    struct blockers *blockers = blockers_start(client, BLOCKERS, 0);
    ck_assert_int_eq(pthread_create(&embedded, NULL, run_embedded, urls), 0);
    ck_assert_int_eq(pthread_create(&freed, NULL, run_freed, other_urls), 0);

    disturb(blockers);
    atomic_store(&leftovers->stop, true);
    blockers_join(blockers);
    pthread_join(embedded, NULL);
    pthread_join(freed, NULL);
    await_servers(client);
    const int status = redlock_shutdown(client, wait_scaled_ms(TIME_LIMIT_MS));
    count_client(client);
    redlock_free(client);
    int ended = 0;
    ck_assert_int_eq(waitpid(other, &ended, 0), other);
    ck_assert_int_eq(ended, 0);
    ck_assert_int_eq(status, REDLOCK_OK);

    ck_assert_int_eq(redlock_lock_check(survivor, 0), REDLOCK_OK);
    if (!WAIT_UNTIL(only_the_survivor(survivor), TIME_LIMIT_MS)) {
        const char *left = live_keys_text(SURVIVOR);
        const uint64_t dropped = empty_database_1();
        ck_assert_msg((dropped <= LAST_MAX || live_is_tls()) && only_the_survivor(survivor),
                      "keys without a holder are left:\n%s", left);
    }
    ck_assert_uint_eq(atomic_load(&leftovers->overlaps), 0);
    ck_assert_uint_ge(atomic_load(&leftovers->operations), OPERATIONS);
    print_counts();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_release(survivor, NULL), REDLOCK_OK);
    redlock_lock_free(survivor);
    munmap(leftovers, sizeof *leftovers);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("leftover_keys");
    live_start_servers();
    live_add(suite, "leftovers", no_key_is_left_and_no_resource_had_two_holders);
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
