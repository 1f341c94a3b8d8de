/* SPDX-License-Identifier: MIT
 * Three fake servers and one threaded client of them: the setting of the io tests. Every test says
 * first how the servers misbehave, then three_servers_connect(). */
#ifndef TEST_THREE_SERVERS_H
#define TEST_THREE_SERVERS_H

#include "fake_redis.h"
#include "fdcheck.h"

#include <check.h>
#include <redlock/redlock.h>

#define THREE_SERVERS 3
#define TIME_LIMIT_MS 10000 /* for what must happen sooner or later; scaled by REDLOCK_TEST_SLOW   \
                             */
#define TTL_MS    30000     /* longer than any wait here: what expires was not undone */
#define UNDONE_MS 5000 /* a silent server is asked anew after 2 s. With scaling, below TTL_MS */
/* Node and connect timeout; scaled. A busy machine is no silent server. */
#define NODE_TIME_MS 1000
/* The same, where a server is to be silent: longer than a pause of the machine, in which those that
 * are well do not answer either, and as short as it can be: a case waits for it. */
#define SILENT_MS     400 /* where nothing is stretched */
#define SILENT_MS_MIN 100 /* where all is */

struct three_servers {
    struct fdcheck before;
    struct fake_redis *fake[THREE_SERVERS];
    redlock_t *client;
    int admission;           /* of the next client */
    uint32_t node_time_ms;   /* of the next client; NODE_TIME_MS unless changed */
    uint32_t retry_ms;       /* of the next client: both bounds; 0: 5 to 50 */
    bool fences;             /* its locks have them; records are volatile */
    const char *const *also; /* its locks are of these, too */
    size_t also_count;
    uint32_t permits; /* its locks are permits, so many; 0: plain locks */
    uint64_t fence;   /* of the last lock acquired; 0: none */
};
extern struct three_servers three_servers;

/* Fixture: three honest servers, no client yet. */
void three_servers_setup(void);
/* Stops all and checks that no descriptor is left open. */
void three_servers_teardown(void);

/* The client. `url_rest` is put behind each address ("/3"), `user` ("name:password@") before it;
 * both may be NULL. Neither waits for the servers. */
void three_servers_connect(void);
/* The client of servers that will fail for one of these reasons (TIMEOUT: it waits less long). */
void three_servers_connect_for(unsigned causes);
void three_servers_connect_as(const char *user, const char *url_rest);
void three_servers_disconnect(void);

/* What three_servers.also and three_servers.permits say. */
void three_servers_refine(redlock_opts_t *opts);

/* One acquisition. The report is kept until the next one, and is what the checks below look at. */
int three_servers_acquire(redlock_lock_t **ret_lock, uint64_t wait_ms);
int three_servers_extend(redlock_lock_t *lock, uint64_t ttl_ms);
int three_servers_release(redlock_lock_t *lock); /* frees the lock, too */

/* Acquires and releases; fails the test unless both work. */
void three_servers_check_works(void);

/* The same, on all three servers, before it returns: no vote or undo is still under way. */
void three_servers_check_all_work(void);

/* What the last report says. */
redlock_report_info_t three_servers_info(void);
redlock_node_report_t three_servers_node(size_t index);
const char *three_servers_text(void); /* the report on all nodes, for messages */

/* All that the client has logged, at every level. */
const char *three_servers_log(void);

redlock_node_stats_t three_servers_stats(size_t index);
/* Waits until all nodes may vote. */
bool three_servers_wait_all_vote(void);
/* Waits until no server has a key. */
bool three_servers_wait_no_keys(void);

/* ---- what tests of misbehaving servers check; `name` of the case is for messages ---- */

/* What a node's failure may be called. */
enum {
    TIMEOUT = 1u << REDLOCK_CAUSE_TIMEOUT,
    LOST = 1u << REDLOCK_CAUSE_DISCONNECT,
    PROTOCOL = 1u << REDLOCK_CAUSE_PROTOCOL,
    RECORD = 1u << REDLOCK_CAUSE_FENCE_RECORD,
    ERROR_REPLY = 1u << REDLOCK_CAUSE_ERROR_REPLY
};

/* Takes all rules back. */
void three_servers_behave(void);
/* An acquisition with the budget `wait_ms` that must fail with `wanted`, and in time. */
void three_servers_check_fails(const char *name, int wanted, uint64_t wait_ms);
/* The node has failed for one of these reasons, and says so in printable text. */
void three_servers_check_failed(size_t index, const char *name, unsigned causes);
/* Takes all rules back; then all three must vote again, work, and have no key left. */
void three_servers_check_recovers(const char *name);

TCase *three_servers_add_case(Suite *suite, const char *name);

#endif
