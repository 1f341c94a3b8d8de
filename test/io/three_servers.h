/* SPDX-License-Identifier: MIT
 * Three fake servers and one threaded client of them: the setting of the io tests. Each test first
 * sets the faults of the servers and then calls three_servers_connect(). */
#ifndef TEST_THREE_SERVERS_H
#define TEST_THREE_SERVERS_H

#include "fake_redis.h"
#include "fdcheck.h"

#include <check.h>
#include <redlock/redlock.h>

#define THREE_SERVERS 3
#define TIME_LIMIT_MS 10000 /* for what must happen at some time; scaled by REDLOCK_TEST_SLOW */
#define TTL_MS        30000 /* longer than any wait here: a key that disappears was undone */
#define UNDONE_MS                                                                                  \
    5000 /* limit for undos: a silent server gets a new request after 2 s; scaled,                 \
          * below TTL_MS */
/* Node timeout and connect timeout; scaled. Long enough for a busy machine not to look like a
 * silent server. */
#define NODE_TIME_MS 1000
/* The same for tests with a silent server. It must be longer than a pause of the machine, in which
 * healthy servers do not reply either. It must be short as well, because each case waits for it. */
#define SILENT_MS     400 /* where nothing is stretched */
#define SILENT_MS_MIN 100 /* where everything is stretched */

/* The servers, the client and the settings of the running test. three_servers_setup() resets the
 * settings. */
struct three_servers {
    struct fdcheck before; /* descriptors that were open before the test */
    struct fake_redis *fake[THREE_SERVERS];
    redlock_t *client;     /* NULL: not connected */
    int admission;         /* of the next client: REDLOCK_ADMISSION_*; 0: the default */
    uint32_t node_time_ms; /* node timeout of the next client; NODE_TIME_MS unless changed */
    uint32_t retry_ms;     /* pause between attempts of the next client, both bounds; 0: 5 to 50 */
    bool fences;           /* its locks have fencing tokens; the records are volatile */
    const char *const *also; /* more resources that its locks cover; NULL: none */
    size_t also_count;
    uint32_t permits; /* number of permits of the semaphore whose permits it acquires; 0: plain
                       * locks */
    uint64_t fence;   /* fencing token of the last lock acquired; 0: none */
};
extern struct three_servers three_servers;

/* Fixture: starts three servers without faults, and no client. */
void three_servers_setup(void);
/* Fixture: stops everything and checks that no descriptor is left open. */
void three_servers_teardown(void);

/* Create the client. `url_rest` ("/3") is appended to each address, `user` ("name:password@")
 * precedes it; both may be NULL. The functions do not wait for the servers. */
void three_servers_connect(void);
/* Creates the client for servers that will fail for one of these reasons; with TIMEOUT its node
 * timeout is short. */
void three_servers_connect_for(unsigned causes);
void three_servers_connect_as(const char *user, const char *url_rest);
void three_servers_disconnect(void);

/* Sets in *opts what three_servers.also and three_servers.permits say. */
void three_servers_refine(redlock_opts_t *opts);

/* Try one acquisition, extension or release. The report is kept until the next call and is what the
 * checks below read. */
int three_servers_acquire(redlock_lock_t **ret_lock, uint64_t wait_ms);
int three_servers_extend(redlock_lock_t *lock, uint64_t ttl_ms);
int three_servers_release(redlock_lock_t *lock); /* frees the lock, too */

/* Acquires and releases. Fails the test unless both work. */
void three_servers_check_works(void);

/* Acquires and releases on all three servers. When it returns, no vote and no undo is under way. */
void three_servers_check_all_work(void);

/* Return the last report and its part about one node. */
redlock_report_info_t three_servers_info(void);
redlock_node_report_t three_servers_node(size_t index);
const char *three_servers_text(void); /* the report on all nodes, for messages */

/* Returns the client's log, at every level. */
const char *three_servers_log(void);

redlock_node_stats_t three_servers_stats(size_t index);
/* Waits until all nodes are eligible. */
bool three_servers_wait_all_vote(void);
/* Waits until no server has a key. */
bool three_servers_wait_no_keys(void);

/* ---- checks of tests with misbehaving servers; `name` of the case is for messages ---- */

/* The causes that a node's failure may have. */
enum {
    TIMEOUT = 1u << REDLOCK_CAUSE_TIMEOUT,
    LOST = 1u << REDLOCK_CAUSE_DISCONNECT,
    PROTOCOL = 1u << REDLOCK_CAUSE_PROTOCOL,
    RECORD = 1u << REDLOCK_CAUSE_FENCE_RECORD,
    ERROR_REPLY = 1u << REDLOCK_CAUSE_ERROR_REPLY
};

/* Removes all rules. */
void three_servers_behave(void);
/* Tries an acquisition with the budget `wait_ms`, which must fail with the status `wanted`, and in
 * time. */
void three_servers_check_fails(const char *name, int wanted, uint64_t wait_ms);
/* Checks that the node has failed for one of these reasons, and that its text is printable. */
void three_servers_check_failed(size_t index, const char *name, unsigned causes);
/* Removes all rules. Then all three nodes must become eligible, locks must be granted, and no key
 * may be left.
 */
void three_servers_check_recovers(const char *name);

TCase *three_servers_add_case(Suite *suite, const char *name);

#endif
