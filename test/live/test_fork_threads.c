/* SPDX-License-Identifier: MIT
 * fork() in each state of the client's threads. The child has copies of objects on which threads of
 * the parent sleep, and none of those threads. It frees the client, or frees it and uses a client
 * of its own, or ends without freeing anything, and must not hang. REDLOCK_TEST_FORKS=10 sets how
 * often each combination forks.
 *
 * This program defines getaddrinfo() itself, so that a look-up can be held up.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_release()
 * returns the status of one call. WAIT_UNTIL(condition, ms) polls and returns false after the
 * deadline. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches.
 */
#include "live_events.h"
#include "suite.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLERS_MAX 8
#define LEADING_CALLS                                                                              \
    6 /* after so many locks a caller drives the loop, and the I/O thread sleeps */
#define SLOW_HOST "slow.invalid" /* a name whose look-up waits until it is let go */

/* What the client's threads do when the process forks. */
enum state { POLLS, PARKED, WORKS, IN_CALLBACK, FORKS_IN_CALLBACK, RESOLVES, SHAKES_HANDS, STATES };

/* What the child does. */
enum child { FREES, USES_OWN_CLIENT, ENDS, CHILDREN };

static atomic_bool lookup_waits;   /* look-ups of SLOW_HOST wait while this is true */
static atomic_uint lookups;        /* of SLOW_HOST that have begun */
static atomic_bool callback_waits; /* hold_callback() waits while this is true */
static atomic_uint callbacks_ended;
static atomic_uint callbacks_begun; /* calls of hold_callback() and fork_in_callback() */
static redlock_lock_t *wanted;      /* the lock that the callers wait for */
static redlock_cancel_t *give_up;   /* ends their calls */
static pthread_t callers[CALLERS_MAX];

/* Replaces getaddrinfo() of libc for the whole program: holds up look-ups of SLOW_HOST. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node != NULL && strcmp(node, SLOW_HOST) == 0) {
        atomic_fetch_add(&lookups, 1);
        (void)WAIT_UNTIL(!atomic_load(&lookup_waits), 10 * TIME_LIMIT_MS);
        return EAI_NONAME;
    }
    return next(node, service, hints, ret);
}

/* Returns how often each combination forks. */
static unsigned repeats(void)
{
    const char *text = getenv("REDLOCK_TEST_FORKS");
    return text != NULL ? (unsigned)atoi(text) : 1;
}

/* Acquires and releases a lock with a client of the child. Returns whether both worked. */
static bool works_with_own_client(void)
{
    redlock_t *client = NULL;
    redlock_lock_t *lock = NULL;
    redlock_config_t *config = live_config();
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    if (redlock_new(&client, config) != REDLOCK_OK)
        return false;
    redlock_config_free(config);
    if (redlock_acquire(client, "own", &opts, &lock, NULL) != REDLOCK_OK)
        return false;
    const bool released = redlock_release(lock, NULL) == REDLOCK_OK;
    redlock_lock_free(lock);
    return redlock_shutdown(client, wait_scaled_ms(TIME_LIMIT_MS)) == REDLOCK_OK && released &&
           redlock_free(client) == REDLOCK_OK;
}

/* The child: does what `child` says, and ends with 0 if that worked. ENDS runs the exit handlers of
 * all libraries. */
static _Noreturn void run_child(redlock_t *client, enum child child)
{
    bool fine = true;
/* At exit LeakSanitizer would report what was on the stacks of the threads. */
#ifdef __SANITIZE_ADDRESS__
    if (child == ENDS)
        _exit(0);
#endif
    if (child == ENDS)
        exit(0);
    live_keep_report(NULL); /* the last reference to the client is the one that counts */
    fine = redlock_free(client) == REDLOCK_OK;
    if (fine && child == USES_OWN_CLIENT) {
        live.event_fn = NULL;
        fine = works_with_own_client();
    }
    _exit(fine ? 0 : 1);
}

/* Forks, and waits until the child has ended successfully. */
static void fork_and_check(redlock_t *client, enum child child)
{
    int status = -1;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        run_child(client, child);
    ck_assert_int_gt(pid, 0);
    const bool ended = WAIT_UNTIL(waitpid(pid, &status, WNOHANG) == pid, 3 * TIME_LIMIT_MS);
    if (!ended) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    ck_assert_msg(ended, "the child hangs");
    ck_assert_msg(status == 0, "the child ended with status %x", (unsigned)status);
}

/* Event function: waits until callback_waits is false. */
static void hold_callback(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)userdata;
    if (event->kind != REDLOCK_EVENT_ACQUIRED)
        return;
    atomic_fetch_add(&callbacks_begun, 1);
    (void)WAIT_UNTIL(!atomic_load(&callback_waits), 10 * TIME_LIMIT_MS);
    atomic_fetch_add(&callbacks_ended, 1);
}

/* Event function: forks; its child does what *userdata, an enum child, says. */
static void fork_in_callback(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    if (event->kind != REDLOCK_EVENT_ACQUIRED)
        return;
    fork_and_check(rl, *(const enum child *)userdata);
    atomic_fetch_add(&callbacks_begun, 1);
    atomic_fetch_add(&callbacks_ended, 1);
}

/* Thread function: waits for `wanted`, which is held, until give_up is triggered. */
static void *wait_for_lock(void *client)
{
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = give_up;
    CHECK_STATUS(redlock_acquire(client, "wanted", &opts, &lock, NULL), REDLOCK_ECANCELED);
    return NULL;
}

/* Has `count` threads wait in blocking calls for a lock that live.client holds. */
static void start_callers(unsigned count)
{
    if (count == 0)
        return;
    wanted = live_lock("wanted", LONG_TTL_MS);
    ck_assert_int_eq(redlock_cancel_new(&give_up, live.client), REDLOCK_OK);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&callers[i], NULL, wait_for_lock, live.client), 0);
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == count, TIME_LIMIT_MS));
}

/* Ends these threads, and releases the lock. */
static void end_callers(unsigned count)
{
    if (count == 0)
        return;
    redlock_cancel_trigger(give_up);
    for (unsigned i = 0; i < count; i++)
        pthread_join(callers[i], NULL);
    redlock_cancel_free(give_up);
    CHECK_STATUS(live_release(wanted), REDLOCK_OK);
}

/* Acquires and frees a lock with an event function, which runs for ACQUIRED. Waits until it has
 * begun. */
static void acquire_with(redlock_event_fn fn, enum child child)
{
    redlock_lock_t *lock = NULL;
    const unsigned before = atomic_load(&callbacks_begun); /* all of them have ended */
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.event_fn = fn;
    opts.event_userdata = &child;
    CHECK_STATUS(redlock_acquire(live.client, "events", &opts, &lock, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&callbacks_begun) > before, 10 * TIME_LIMIT_MS));
    if (fn == hold_callback)
        fork_and_check(live.client, child);
    atomic_store(&callback_waits, false);
    ck_assert(WAIT_UNTIL(atomic_load(&callbacks_ended) > before, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}

/* Forks while many operations of live.client begin and end. */
static void fork_at_work(enum child child)
{
    struct outcome outcome = OUTCOME;
    redlock_lock_t *lock = live_lock("work", LONG_TTL_MS);
    for (unsigned i = 0; i < 50; i++)
        ck_assert_int_eq(redlock_inspect_start(live.client, "work", NULL, note_done, &outcome),
                         REDLOCK_OK);
    fork_and_check(live.client, child);
    ck_assert(WAIT_UNTIL(outcome_calls(&outcome) == 50, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}

/* Creates a client of the servers `urls`, and returns it without a wait for its nodes. */
static redlock_t *open_unready(const char *urls)
{
    redlock_t *client = NULL;
    redlock_config_t *config = live_config_of(urls);
    CHECK_STATUS(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    return client;
}

/* Forks while a thread looks up names. */
static void fork_in_lookup(enum child child)
{
    const unsigned before = atomic_load(&lookups);
    atomic_store(&lookup_waits, true);
    redlock_t *client = open_unready(SLOW_HOST ":7001," SLOW_HOST ":7002");
    ck_assert(WAIT_UNTIL(atomic_load(&lookups) > before, TIME_LIMIT_MS));
    fork_and_check(client, child);
    atomic_store(&lookup_waits, false);
    live_free(client);
}

/* Opens a listening socket on a port of 127.0.0.1, which *ret_port receives. Returns it. */
static int listen_silently(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* Forks while a TLS handshake waits for a server that does not reply. */
static void fork_in_handshake(enum child child)
{
    unsigned port;
    char url[64], hello[16];
    const int listener = listen_silently(&port);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%u?verify=none", port);
    redlock_t *client = open_unready(url);
    const int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_gt(recv(peer, hello, sizeof hello, MSG_PEEK), 0); /* its first record is here */
    fork_and_check(client, child);
    close(peer);
    close(listener);
    live_free(client);
}

/* Brings the client into the state, and forks. */
static void fork_in_state(enum state state, enum child child)
{
    switch (state) {
    case PARKED:
        for (unsigned i = 0; i < LEADING_CALLS; i++)
            CHECK_STATUS(live_release(live_lock("parks", LONG_TTL_MS)), REDLOCK_OK);
        fork_and_check(live.client, child);
        break;
    case WORKS:
        fork_at_work(child);
        break;
    case IN_CALLBACK:
        atomic_store(&callback_waits, true);
        acquire_with(hold_callback, child);
        break;
    case FORKS_IN_CALLBACK:
        acquire_with(fork_in_callback, child);
        break;
    case RESOLVES:
        fork_in_lookup(child);
        break;
    case SHAKES_HANDS:
        fork_in_handshake(child);
        break;
    default:
        fork_and_check(live.client, child);
        break;
    }
}

/* _i: state, number of blocked callers (0, 1, 8). */
START_TEST(the_child_never_hangs)
{
    static const unsigned counts[] = {0, 1, CALLERS_MAX};
    const enum state state = (enum state)(_i / 3);
    if (state == SHAKES_HANDS && cluster_tls_missing() != NULL)
        return;
    live_connect();
    live.freed = true; /* by children */
    start_callers(counts[_i % 3]);
    for (unsigned i = 0; i < repeats() * CHILDREN; i++) {
        const enum child child = (enum child)(i % CHILDREN);
        /* If a thread was inside OpenSSL, a client with TLS in the child may hang (redlock.h). */
        fork_in_state(state, child == USES_OWN_CLIENT && live_is_tls() ? FREES : child);
    }
    end_callers(counts[_i % 3]);
    live_check_works();
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *fork_suite(void)
{
    Suite *suite = suite_create("fork_threads");
    live_add_each(suite, "states", the_child_never_hangs, STATES * 3);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(fork_suite());
    live_stop_servers();
    return status;
}
