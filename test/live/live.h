/* SPDX-License-Identifier: MIT
 * The setting of the live tests: five real servers that live as long as the program, and a client
 * for each case. After each case all servers are healthy again, and no key and no descriptor is
 * left. */
#ifndef TEST_LIVE_H
#define TEST_LIVE_H

#include "cluster.h"
#include "fdcheck.h"
#include "wait.h"

#include <check.h>
#include <redlock/redlock.h>

#define NODES         5
#define QUORUM        3
#define TIME_LIMIT_MS 10000 /* for what must happen sooner or later; scaled by REDLOCK_TEST_SLOW   \
                             */
#define LONG_TTL_MS  30000  /* longer than any wait here: what expires was not deleted */
#define NODE_TIME_MS 1000   /* node and connect timeout unless a case says otherwise; scaled */
#define SILENCE_MS   400    /* the same of cases that wait until servers are taken for silent */

struct live {
    struct fdcheck before;
    struct cluster *cluster;
    redlock_t *client;
    int mode;                             /* enum redlock_mode; 0: threaded */
    bool silence;                         /* node timeout: live_unresponsive_ms() */
    uint32_t node_time_ms;                /* scaled; 0: NODE_TIME_MS */
    uint32_t connect_time_ms;             /* scaled; 0: NODE_TIME_MS */
    uint64_t max_ttl_ms;                  /* not scaled; 0: LONG_TTL_MS */
    unsigned heartbeat_ms;                /* not scaled; 0: as usual */
    int admission;                        /* enum redlock_admission; 0: strict */
    const redlock_allocator_t *allocator; /* NULL: that of libc */
    bool durable;                         /* servers may be restarted, and vote at once: no guard */
    redlock_event_fn event_fn;
    void *event_userdata;
    void (*heal)(void); /* what else the case did to the servers; also called when it failed */
};
extern struct live live;

/* Unchecked fixture: the servers (five, plain) of all cases of a program. */
void live_start_servers(void);
void live_start_servers_with(const struct cluster_opts *opts);
void live_stop_servers(void);

/* Checked fixture around each case. */
void live_setup(void);
void live_teardown(void);
/* Adds a case with that fixture; the second one runs it for _i = 0 … times - 1. */
void live_add(Suite *suite, const char *name, const TTest *test);
TCase *live_add_each(Suite *suite, const char *name, const TTest *test, unsigned times);
/* A case with servers of its own, that `start` starts. */
void live_add_with(Suite *suite, const char *name, const TTest *test, void (*start)(void));

/* A configuration of all nodes after the fields of `live`; the caller frees it, or gives it to
 * live_open(), which does, makes a client of it and waits until all nodes may vote. */
redlock_config_t *live_config(void);
/* Longer than a pause of the whole machine, in which those that are well do not answer either, and
 * as short as it can be: a case waits for it. */
uint32_t live_unresponsive_ms(void);
/* For lives of locks that a case waits for, and their parts: as long as it says, which is longer
 * than a pause of the machine, and stretched only where everything is slow by a factor of more than
 * three. */
uint64_t live_brief_ms(uint64_t ms);
redlock_config_t *live_config_of(const char *urls);
redlock_t *live_open(redlock_config_t *config);
/* live.client = live_open(live_config()) */
void live_connect(void);
/* Shuts the client down, then frees it. redlock_free() alone does not wait for the network: what is
 * held stays until its TTL on nodes that are not connected just then, and on a busy machine the
 * kernel may reset a connection before the server has read the last deletes. */
void live_leave(void);
void live_disconnect(void);

/* One attempt without waiting, or with a wait budget; the report is kept until the next call that
 * asks the nodes, and is what the checks below look at. */
int live_acquire(const char *resource, uint64_t ttl_ms, uint64_t wait_ms, redlock_lock_t **ret);
int live_extend(redlock_lock_t *lock, uint64_t ttl_ms);
int live_release(redlock_lock_t *lock); /* frees the lock, too */
int live_inspect(const char *resource);
/* Takes the report of a call that a case makes itself. */
void live_keep_report(redlock_report_t *report);

/* A lock that must be granted. */
redlock_lock_t *live_lock(const char *resource, uint64_t ttl_ms);
/* Takes and gives back a lock; fails the case unless both work. */
void live_check_works(void);

/* What the last report says. */
redlock_report_info_t live_info(void);
redlock_node_report_t live_node(unsigned node);
const char *live_text(void); /* line and nodes of the report, for messages */

redlock_stats_t live_stats(redlock_t *client);
redlock_node_stats_t live_node_stats(redlock_t *client, unsigned node);
/* How many nodes may vote now, and how many answer: a restarted one does, and does not vote. */
unsigned live_voters(redlock_t *client);
unsigned live_responsive(redlock_t *client);
bool live_is_responsive(redlock_t *client, unsigned node);

/* Servers. */
void live_pause(unsigned first, unsigned count);
void live_resume_all(void);
void live_restart_dead(void);
bool live_has_key(unsigned node, const char *key);
unsigned live_nodes_with(const char *key);
/* Waits until no running server has a key; false with the keys printed. */
bool live_wait_no_keys(uint64_t deadline_ms);
/* Calls of one command since the server's start or CONFIG RESETSTAT. */
uint64_t live_calls(unsigned node, const char *command);

/* Runs the loop of a client in embedded or hybrid mode until the condition holds. */
void live_turn(redlock_t *client, int timeout_ms);
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
