/* SPDX-License-Identifier: MIT
 * The fixture of the live tests: five real servers that run as long as the program, and a client
 * for each case. After each case all servers must be healthy again, and no key and no descriptor
 * may be left. */
#ifndef TEST_LIVE_H
#define TEST_LIVE_H

#include "cluster.h"
#include "fdcheck.h"
#include "wait.h"

#include <check.h>
#include <redlock/redlock.h>

#define NODES         5
#define QUORUM        3
#define TIME_LIMIT_MS 10000 /* deadline of what is waited for; scaled by REDLOCK_TEST_SLOW */
/* Deadline for nodes that become eligible: on a busy machine a handshake or heartbeat may be too
 * late several times. Scaled as well. */
#define ELIGIBLE_LIMIT_MS (3 * TIME_LIMIT_MS)
#define LONG_TTL_MS       30000 /* longer than any wait here: a key that disappears was deleted */
#define NODE_TIME_MS      1000  /* node and connect timeout unless a case sets another; scaled */
#define SILENCE_MS        400 /* the same for cases that wait until servers count as unresponsive */

/* The running case. live_setup() resets everything but the servers; a case changes the settings
 * before it creates a client. */
struct live {
    struct fdcheck before;
    struct cluster *cluster;
    redlock_t *client;
    int mode;                             /* enum redlock_mode; 0: threaded */
    bool silence;                         /* node timeout is live_unresponsive_ms() */
    uint32_t node_time_ms;                /* scaled; 0: NODE_TIME_MS */
    uint32_t connect_time_ms;             /* scaled; 0: NODE_TIME_MS */
    uint64_t max_ttl_ms;                  /* not scaled; 0: LONG_TTL_MS */
    unsigned heartbeat_ms;                /* not scaled; 0: the default */
    int admission;                        /* enum redlock_admission; 0: strict */
    const redlock_allocator_t *allocator; /* NULL: that of libc */
    bool durable;                         /* servers may be restarted and are eligible at once: no
                                           * quarantine */
    redlock_event_fn event_fn;
    void *event_userdata;
    bool freed;         /* a client was freed without a shutdown that has succeeded */
    void (*heal)(void); /* undoes changes of the servers' settings; also called after a failure */
};
extern struct live live;

/* Unchecked fixture: starts the servers (five, plain) of all cases of a program. */
void live_start_servers(void);
void live_start_servers_with(const struct cluster_opts *opts);
void live_stop_servers(void);

/* Checked fixture around each case. */
void live_setup(void);
void live_teardown(void);
/* Adds a case with that fixture; the second function runs it for _i = 0 … times - 1. */
void live_add(Suite *suite, const char *name, const TTest *test);
TCase *live_add_each(Suite *suite, const char *name, const TTest *test, unsigned times);
/* Adds a case with servers of its own, which `start` starts. */
void live_add_with(Suite *suite, const char *name, const TTest *test, void (*start)(void));

/* Returns whether the servers have TLS. Addresses that a case writes itself begin with
 * cluster_scheme(); their issuer comes from live_config_of(). */
bool live_is_tls(void);

/* Returns a configuration of all nodes with the settings in `live`. The caller frees it or passes
 * it to live_open(), which frees it, creates a client and waits until all nodes are eligible. */
redlock_config_t *live_config(void);
/* Returns a node timeout for unresponsive servers. It is longer than a pause of the whole machine,
 * in which healthy servers do not reply either, and as short as possible, because a case waits for
 * it. */
uint32_t live_unresponsive_ms(void);
/* Returns a TTL that a case waits for, or a part of one. It is `ms`, which must be longer than a
 * pause of the machine, and is stretched only where everything is slow by a factor of more than
 * three. */
uint64_t live_brief_ms(uint64_t ms);
redlock_config_t *live_config_of(const char *urls);
redlock_t *live_open(redlock_config_t *config);
/* Sets live.client = live_open(live_config()). */
void live_connect(void);
/* Shuts the client down, then frees it. redlock_free() alone does not wait for the network: a key
 * stays until its TTL on nodes that are not connected then, and on a busy machine the kernel may
 * reset a connection before the server has read the last deletes. */
void live_leave(void);
void live_disconnect(void);
/* Frees another client of the case without shutting it down. */
void live_free(redlock_t *client);

/* Make a call of the API with live.client: one attempt without waiting, or with a wait budget. The
 * report is kept until the next call that sends requests, and is what the checks below read. */
int live_acquire(const char *resource, uint64_t ttl_ms, uint64_t wait_ms, redlock_lock_t **ret);
int live_extend(redlock_lock_t *lock, uint64_t ttl_ms);
int live_release(redlock_lock_t *lock); /* frees the lock, too */
int live_inspect(const char *resource);
/* Keeps the report of a call that a case makes itself. */
void live_keep_report(redlock_report_t *report);

/* Acquires a lock, which must be granted. */
redlock_lock_t *live_lock(const char *resource, uint64_t ttl_ms);
/* Acquires, extends and releases a lock. Fails the case unless all three work. */
void live_check_works(void);

/* Return the last report and its part about one node. */
redlock_report_info_t live_info(void);
redlock_node_report_t live_node(unsigned node);
const char *live_text(void); /* line and nodes of the report, for messages */

redlock_stats_t live_stats(redlock_t *client);
redlock_node_stats_t live_node_stats(redlock_t *client, unsigned node);
/* Return the number of eligible nodes, and of nodes that reply: a restarted server replies before
 * it is eligible. */
unsigned live_voters(redlock_t *client);
unsigned live_responsive(redlock_t *client);
bool live_is_responsive(redlock_t *client, unsigned node);

/* ---- the servers ---- */
void live_pause(unsigned first, unsigned count);
void live_resume_all(void);
void live_restart_dead(void);
bool live_has_key(unsigned node, const char *key);
unsigned live_nodes_with(const char *key);
void live_set_line(unsigned node, const char *key, const char *label);
/* Returns a few keys of each running server but the key `except` (NULL: none), for messages; valid
 * until the next call. */
const char *live_keys_text(const char *except);
/* Waits until no running server has a key. Prints the keys and returns false after the deadline. */
bool live_wait_no_keys(uint64_t deadline_ms);
/* With TLS, deletes the keys that a client which was freed without a shutdown has left on servers
 * that were stopped or slow. Without TLS there must be none. */
void live_delete_leftovers(void);
/* Returns the number of calls of a command since the server's start or CONFIG RESETSTAT. */
uint64_t live_calls(unsigned node, const char *command);

/* Turns the loop of a client in embedded or hybrid mode once, after at most timeout_ms. In threaded
 * mode only waits for a moment. */
void live_turn(redlock_t *client, int timeout_ms);
/* Does so until the condition holds. Returns false if it does not hold by the deadline. */
#define LOOP_UNTIL(client, expression, deadline_ms)                                                \
    __extension__({                                                                                \
        const uint64_t loop_end_ = wait_now_ms() + wait_scaled_ms(deadline_ms);                    \
        bool loop_true_ = (expression);                                                            \
        while (!loop_true_ && wait_now_ms() < loop_end_) {                                         \
            live_turn(client, 5);                                                                  \
            loop_true_ = (expression);                                                             \
        }                                                                                          \
        loop_true_;                                                                                \
    })

#define CHECK_STATUS(expression, expected)                                                         \
    do {                                                                                           \
        const int status_ = (expression);                                                          \
        ck_assert_msg(status_ == (expected), "%s: %s instead of %s; %s", #expression,              \
                      redlock_error_name(status_), redlock_error_name(expected), live_text());     \
    } while (0)

#endif
