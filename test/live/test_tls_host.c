/* SPDX-License-Identifier: MIT
 * What TLS does to the program that uses the library: its error queue of OpenSSL, its children, and
 * its end while threads of clients run. Also counts handshakes, resumed sessions and blocks of
 * memory. REDLOCK_TEST_RECONNECTS=10000 sets how often the case "reconnects" connects.
 *
 * This program defines functions of OpenSSL itself, so that the calls of the library come here:
 * each is counted and passed on. It also gives OpenSSL functions for its memory.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. WAIT_UNTIL()
 * and LOOP_UNTIL() return false after a deadline. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. */
#include "live_events.h"
#include "suite.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDS           50 /* processes that end while threads of clients run */
#define ROUNDS         3
#define CLIENTS        30
#define RECONNECTS     300 /* of all nodes of all clients together */
#define LASTING_BLOCKS 100 /* that OpenSSL keeps once it was used, at most */
#define OWN_REASON     123 /* of the error in the program's own queue */

static atomic_uint calls;               /* of the functions below */
static atomic_uint handshakes, resumed; /* handshakes that succeeded, and those with a session */

static atomic_long blocks; /* of memory that OpenSSL, and clients with `allocator`, have in use */

/* Allocator that counts the blocks in use. */
static void *count_malloc(size_t size, void *userdata)
{
    void *block = malloc(size);
    (void)userdata;
    atomic_fetch_add(&blocks, block != NULL);
    return block;
}

/* The same. A block that moves stays one block. */
static void *count_realloc(void *block, size_t size, void *userdata)
{
    void *moved = realloc(block, size);
    (void)userdata;
    atomic_fetch_add(&blocks, block == NULL && moved != NULL);
    return moved;
}

/* The same. */
static void count_free(void *block, void *userdata)
{
    (void)userdata;
    atomic_fetch_sub(&blocks, block != NULL);
    free(block);
}

/* The same three functions for OpenSSL. */
static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return count_malloc(size, NULL);
}

static void *openssl_realloc(void *block, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return count_realloc(block, size, NULL);
}

static void openssl_free(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    count_free(block, NULL);
}

/* Returns the function that the program would call without this file. */
static void *next_function(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    atomic_fetch_add(&calls, 1);
    return found;
}

/* Defines a function that calls the one of OpenSSL, and `result` what it does with its value:
 * return it, or nothing. */
#define PASS_ON(result, type, name, parameters, arguments)                                         \
    type name parameters                                                                           \
    {                                                                                              \
        type(*next) parameters;                                                                    \
        *(void **)&next = next_function(#name);                                                    \
        result next arguments;                                                                     \
    }

PASS_ON(, void, SSL_free, (SSL * ssl), (ssl))
PASS_ON(, void, SSL_CTX_free, (SSL_CTX * context), (context))
PASS_ON(, void, SSL_SESSION_free, (SSL_SESSION * session), (session))
PASS_ON(, void, BIO_meth_free, (BIO_METHOD * method), (method))
PASS_ON(, void, SSL_set_shutdown, (SSL * ssl, int mode), (ssl, mode))
PASS_ON(return, int, SSL_read, (SSL * ssl, void *bytes, int size), (ssl, bytes, size))
PASS_ON(return, int, SSL_write, (SSL * ssl, const void *bytes, int len), (ssl, bytes, len))
PASS_ON(return, int, ERR_set_mark, (void), ())
PASS_ON(return, int, ERR_pop_to_mark, (void), ())

/* The same, and counts the handshakes that succeed. */
int SSL_do_handshake(SSL *ssl)
{
    int (*next)(SSL * ssl);
    *(void **)&next = next_function("SSL_do_handshake");
    const int result = next(ssl);
    atomic_fetch_add(&handshakes, result == 1);
    atomic_fetch_add(&resumed, result == 1 && SSL_session_reused(ssl) == 1);
    return result;
}

/* Ends all connections of the library, and waits until all nodes have connected again. */
static void reconnect_all(void)
{
    uint64_t before[NODES];
    for (unsigned i = 0; i < NODES; i++)
        before[i] = live_node_stats(live.client, i).reconnects;
    cluster_command_all(live.cluster, "CLIENT KILL TYPE normal SKIPME yes");
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(LOOP_UNTIL(live.client,
                             live_node_stats(live.client, i).reconnects > before[i] &&
                                 live_node_stats(live.client, i).eligible == 1,
                             TIME_LIMIT_MS));
}

/* The first connection to a server makes a session, which all later ones resume. */
START_TEST(sessions_are_resumed)
{
    atomic_store(&handshakes, 0);
    atomic_store(&resumed, 0);
    live_connect();
    ck_assert_uint_eq(atomic_load(&handshakes), NODES);
    ck_assert_uint_eq(atomic_load(&resumed), 0);
    for (unsigned i = 0; i < ROUNDS; i++)
        reconnect_all();
    ck_assert_uint_ge(atomic_load(&handshakes), (ROUNDS + 1) * NODES);
    ck_assert_uint_eq(atomic_load(&resumed), atomic_load(&handshakes) - NODES);
}
END_TEST

/* Returns how many reconnects the case makes. */
static unsigned wanted_reconnects(void)
{
    const char *text = getenv("REDLOCK_TEST_RECONNECTS");
    return text == NULL ? RECONNECTS : (unsigned)strtoul(text, NULL, 10);
}

/* Returns how often the nodes of all clients have connected again; only of those that are eligible.
 */
static unsigned count_reconnects(redlock_t *const clients[])
{
    unsigned count = 0;
    for (unsigned i = 0; i < CLIENTS * NODES; i++) {
        const redlock_node_stats_t stats = live_node_stats(clients[i / NODES], i % NODES);
        count += stats.eligible == 1 ? (unsigned)stats.reconnects : 0;
    }
    return count;
}

/* Ends all connections until there were `wanted` more reconnects. */
static void reconnect_clients(redlock_t *const clients[], unsigned wanted)
{
    for (unsigned done = 0; done < wanted; done += CLIENTS * NODES) {
        const unsigned before = count_reconnects(clients);
        cluster_command_all(live.cluster, "CLIENT KILL TYPE normal SKIPME yes");
        ck_assert(WAIT_UNTIL(count_reconnects(clients) >= before + CLIENTS * NODES, TIME_LIMIT_MS));
    }
}

/* Connecting again and again costs no memory: no reconnect leaves a block. */
START_TEST(reconnects_leak_nothing)
{
    static const redlock_allocator_t allocator = {.size = sizeof allocator,
                                                  .malloc_fn = count_malloc,
                                                  .realloc_fn = count_realloc,
                                                  .free_fn = count_free};
    redlock_t *clients[CLIENTS];
    const unsigned wanted = wanted_reconnects();
    live.allocator = &allocator;
    ck_assert_int_eq(redlock_free(live_open(live_config())), REDLOCK_OK);
    const long before = atomic_load(&blocks);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = live_open(live_config());
    reconnect_clients(clients, CLIENTS * NODES);
    const long first = atomic_load(&blocks);
    reconnect_clients(clients, wanted);
    const long last = atomic_load(&blocks);
    for (unsigned i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(redlock_free(clients[i]), REDLOCK_OK);
    printf("# %u reconnects: %ld blocks of memory before, %ld after, %ld without clients\n", wanted,
           first, last, atomic_load(&blocks) - before);
    ck_assert_msg(last - first < (long)RECONNECTS / 2, "%ld more blocks", last - first);
    ck_assert_int_lt(atomic_load(&blocks) - before, LASTING_BLOCKS);
}
END_TEST

/* Waits until the child has ended successfully. */
static void wait_for_child(pid_t child)
{
    int status = -1;
    ck_assert_int_gt(child, 0);
    ck_assert_msg(WAIT_UNTIL(waitpid(child, &status, WNOHANG) == child, TIME_LIMIT_MS),
                  "the child hangs");
    ck_assert_msg(status == 0, "the child ended with status %x", (unsigned)status);
}

/* A child that frees the client calls nothing of OpenSSL, and the parent's connections go on. _i:
 * three modes. */
START_TEST(a_child_calls_nothing_of_openssl)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    struct outcome acquired = OUTCOME, extended = OUTCOME, released = OUTCOME;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live.mode = modes[_i];
    live_connect();
    ck_assert_int_eq(redlock_acquire_start(live.client, "kept", &opts, note_done, &acquired), 0);
    CHECK_STATUS(outcome_wait(live.client, &acquired), REDLOCK_OK);
    ck_assert_uint_gt(atomic_load(&calls), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        atomic_store(&calls, 0);
        if (redlock_free(live.client) != REDLOCK_OK)
            _exit(1);
        redlock_lock_free(acquired.lock);
        _exit(atomic_load(&calls) == 0 ? 0 : 2);
    }
    wait_for_child(child);
    ck_assert_int_eq(redlock_extend_start(acquired.lock, 0, note_done, &extended), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &extended), REDLOCK_OK);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(live_node_stats(live.client, i).reconnects, 0);
    ck_assert_int_eq(redlock_release_start(acquired.lock, note_done, &released), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &released), REDLOCK_OK);
    redlock_lock_free(acquired.lock);
}
END_TEST

/* Checks that the thread's queue has the program's own error and nothing else, or (`emptied`) is
 * empty. */
static void check_own_error(bool emptied)
{
    const unsigned long code = ERR_peek_error();
    ck_assert_msg(code == ERR_peek_last_error(), "%lx and %lx", code, ERR_peek_last_error());
    ck_assert_int_eq(ERR_GET_REASON(code), emptied ? 0 : OWN_REASON);
}

/* Puts an error of the program into the queue of this thread, and nothing else. */
static void put_own_error(void)
{
    ERR_clear_error();
    ERR_put_error(ERR_LIB_USER, 0, OWN_REASON, __FILE__, __LINE__);
    check_own_error(false);
}

/* Requests, replies and the end of a connection leave the program's error queue as it is. */
START_TEST(the_error_queue_of_the_program_is_left_alone)
{
    struct outcome acquired = OUTCOME, released = OUTCOME;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live.mode = REDLOCK_MODE_EMBEDDED;
    live_connect();
    /* Session tickets arrive after the handshake; OpenSSL handles them as a part of it. */
    ck_assert_int_eq(redlock_acquire_start(live.client, "own", &opts, note_done, &acquired), 0);
    CHECK_STATUS(outcome_wait(live.client, &acquired), REDLOCK_OK);
    put_own_error();
    ck_assert_int_eq(redlock_release_start(acquired.lock, note_done, &released), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &released), REDLOCK_OK);
    check_own_error(false);
    cluster_kill(live.cluster, 0);
    ck_assert(
        LOOP_UNTIL(live.client, live_node_stats(live.client, 0).eligible == 0, TIME_LIMIT_MS));
    check_own_error(false);
    redlock_lock_free(acquired.lock);
    live_disconnect();
    check_own_error(false);
    ERR_clear_error();
}
END_TEST

/* Has servers ask clients for no certificate. */
static void heal(void)
{
    cluster_command_all(live.cluster, "CONFIG SET tls-auth-clients no");
}

/* A handshake adds nothing to the queue: OpenSSL empties it when one begins. */
START_TEST(a_handshake_leaves_no_error)
{
    live.mode = REDLOCK_MODE_EMBEDDED;
    put_own_error();
    live_connect();
    check_own_error(true);
    put_own_error();
    reconnect_all();
    check_own_error(true);
}
END_TEST

/* Nor does a refusal that arrives after the handshake, from a server that wants a certificate. */
START_TEST(a_refusal_leaves_no_error)
{
    live.heal = heal;
    live.mode = REDLOCK_MODE_EMBEDDED;
    cluster_command_all(live.cluster, "CONFIG SET tls-auth-clients yes");
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert(LOOP_UNTIL(live.client,
                             live_node_stats(live.client, i).cause == REDLOCK_CAUSE_TLS,
                             TIME_LIMIT_MS));
        check_own_error(true);
    }
}
END_TEST

/* Ends a process of its own in which the threads of two clients connect, and work. */
static _Noreturn void end_with_threads(unsigned turn)
{
    redlock_t *clients[2];
    redlock_config_t *config = NULL;
    if (redlock_config_new(&config, NULL) != REDLOCK_OK ||
        redlock_config_add_nodes(config, getenv("REDLOCK_TEST_URLS")) != REDLOCK_OK)
        _exit(1);
    for (unsigned i = 0; i < 2; i++)
        if (redlock_new(&clients[i], config) != REDLOCK_OK)
            _exit(1);
    redlock_config_free(config);
    if (turn % 2 == 0 &&
        redlock_wait_ready(clients[0], wait_scaled_ms(TIME_LIMIT_MS)) != REDLOCK_OK)
        _exit(2);
    exit(0);
}

/* The program ends while threads of clients use OpenSSL: no handler that exit() calls takes
 * anything away from them. */
START_TEST(the_process_may_end_at_any_time)
{
    char number[16];
    for (unsigned i = 0; i < ENDS; i++) {
        fflush(NULL);
        const pid_t child = fork();
        snprintf(number, sizeof number, "%u", i);
        if (child == 0) {
            setenv("REDLOCK_TEST_END", number, 1);
            setenv("REDLOCK_TEST_URLS", cluster_urls(live.cluster), 1);
            execl("/proc/self/exe", "test_live_tls_host", (char *)NULL);
            _exit(127);
        }
        wait_for_child(child);
    }
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *host_suite(void)
{
    Suite *suite = suite_create("live_tls_host");
    live_add(suite, "resumed", sessions_are_resumed);
    tcase_set_timeout(live_add_each(suite, "reconnects", reconnects_leak_nothing, 1), 3600);
    live_add_each(suite, "fork", a_child_calls_nothing_of_openssl, 3);
    live_add(suite, "errors", the_error_queue_of_the_program_is_left_alone);
    live_add(suite, "errors, handshake", a_handshake_leaves_no_error);
    live_add(suite, "errors, refusal", a_refusal_leaves_no_error);
    live_add(suite, "end", the_process_may_end_at_any_time);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without servers with TLS. With
 * REDLOCK_TEST_END, it is one of the processes of the case "end". */
int main(void)
{
    if (getenv("REDLOCK_TEST_END") != NULL)
        end_with_threads((unsigned)strtoul(getenv("REDLOCK_TEST_END"), NULL, 10));
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    if (cluster_tls_missing() != NULL)
        return suite_skip(cluster_tls_missing());
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1)
        return suite_skip("OpenSSL does not take functions for its memory");
    live_start_servers_with(&(struct cluster_opts){.tls = true});
    const int status = suite_run_nofork(host_suite());
    live_stop_servers();
    return status;
}
