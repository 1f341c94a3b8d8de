/* SPDX-License-Identifier: MIT
 * A lease among contenders: the order of requests, notifications, and virtual time. */
#ifndef TEST_CONTENTION_RIG_H
#define TEST_CONTENTION_RIG_H

#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

#define ALL   0x1fu
#define FIRST 2 /* the preferred node; the order of the nodes is 2, 4, 0, 3, 1 */

static struct rig rig;
static struct rl_contention contention;
static uint8_t ranks[5]; /* memory of contention.order */

/* Prepares a lease on five nodes, all of which send notifications. It may wait for a minute. */
static inline void setup(void)
{
    static const uint64_t scores[] = {30, 10, 50, 20, 40};

    rl_contention_init(&contention, ranks, 5, scores);
    rig_init(&rig, 5);
    rig.params.wait_ns = 60 * RL_SECOND;
    rig.view.notifying = ALL;
}

/* Sends the event `kind` to a new lease that shares the contention state of the resource. */
static inline void begin(uint8_t kind)
{
    rig_new_lease(&rig);
    rig.lease.contention = &contention;
    rig_event(&rig, kind);
}

/* Starts a lease on a resource that is known to be contended. */
static inline void begin_hot(void)
{
    rl_contention_note(&contention, rig.view.now.boot_ns);
    begin(RL_EVENT_START);
}

/* Passes a notification of these nodes to the lease; 0: a release by this client. */
static inline void wake(rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_WAKE, .nodes = nodes};

    rig_step(&rig, &event);
}

/* Passes the reply to a probe for the key to the lease. `pttl_ms`: the remaining TTL, 0: no key. */
static inline void report_ttl(unsigned node, uint64_t pttl_ms)
{
    rig_ballot(&rig, (struct rl_ballot){
                         .node = (uint8_t)node,
                         .vote = pttl_ms == 0 ? RL_VOTE_DENIED : RL_VOTE_GRANTED,
                         .verb = RL_VERB_PTTL,
                         .round = rig.lease.round.number,
                         .pttl_ms = pttl_ms,
                     });
}

/* Advances time until the lease starts its next attempt. Returns the time that passed, in ns. */
static inline uint64_t sleep_until_next_attempt(void)
{
    uint64_t begun_ns = rig.view.now.boot_ns;

    for (unsigned i = 0; rig.lease.state == RL_STATE_WAITING; i++) {
        ck_assert_uint_lt(i, 100);
        rig_pass(&rig, rl_sub_sat(rig.lease.wake_ns, rig.view.now.boot_ns));
        rig_tick(&rig);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    return rig.view.now.boot_ns - begun_ns;
}

#endif
