/* SPDX-License-Identifier: MIT
 * A lease in virtual time: short functions for "this happened", and the effects of the last step.
 * The two clocks start at different readings, so that a test notices if they are mixed up. */
#ifndef TEST_LEASE_RIG_H
#define TEST_LEASE_RIG_H

#include "core/lease.h"

#include <redlock/redlock.h>
#include <string.h>

/* One lease with its surroundings. A test may copy a rig to continue from one state in several
 * ways. */
struct rig {
    struct rl_lease_params params; /* change before rig_start() */
    struct rl_lease lease;
    struct rl_view view;  /* nodes, clocks and random number that the next step sees */
    struct rl_effects fx; /* of the last step */
    /* The memory that the lease refers to. A copied rig uses its own from its next step on. */
    uint32_t rtt_us[RL_NODES_MAX];
    uint8_t cause[RL_NODES_MAX];
    struct rl_permit permit;
    struct rl_fence fence;
    struct rl_decided decided;
    uint32_t decided_rtt_us[RL_NODES_MAX];
    uint8_t decided_cause[RL_NODES_MAX];
};

#define RIG_TTL_NS (10 * RL_SECOND)
/* The usable time of that TTL: 10 s, less the drift (1 % and 2 ms), less the loss margin of 10 ms.
 */
#define RIG_USABLE_NS (9888 * RL_MS)

/* Sets up parameters of one attempt on `nodes` nodes, all of them connected and eligible. */
static inline void rig_init(struct rig *rig, unsigned nodes)
{
    memset(rig, 0, sizeof *rig);
    rig->params = (struct rl_lease_params){
        .terms =
            {
                .kind = RL_LEASE_ACQUIRE,
                .nodes = (uint8_t)nodes,
                .quorum = (uint8_t)(nodes / 2 + 1),
                .drift = {.ppm = 10000, .constant_us = 2000},
                .backoff = {.min_ns = 10 * RL_MS, .max_ns = 200 * RL_MS},
                .ttl_ns = RIG_TTL_NS,
                .validity_min_ns = RL_MS,
                .margin_ns = RL_SECOND,
            },
    };
    rig->view = (struct rl_view){
        .now = {.boot_ns = 5000 * RL_SECOND, .raw_ns = 700 * RL_SECOND},
        .up = rl_nodes_all(nodes),
        .eligible = rl_nodes_all(nodes),
        .random = UINT64_C(0x9e3779b97f4a7c15),
        .round_trip_ns = RL_MS,
    };
}

/* Initializes a lease with the rig's parameters, before its first event. */
static inline void rig_new_lease(struct rig *rig)
{
    const struct rl_lease_storage storage = {
        .terms = &rig->params.terms,
        .rtt_us = rig->rtt_us,
        .cause = rig->cause,
        .permit = rig->params.terms.permits != 0 ? &rig->permit : NULL,
        .fence = rl_lease_needs_fence(&rig->params) ? &rig->fence : NULL,
        .decided = rl_lease_may_be_cut(&rig->params) ? &rig->decided : NULL,
    };

    memset(rig->rtt_us, 0, sizeof rig->rtt_us);
    memset(rig->cause, 0, sizeof rig->cause);
    memset(&rig->permit, 0, sizeof rig->permit);
    memset(&rig->fence, 0, sizeof rig->fence);
    memset(&rig->decided, 0, sizeof rig->decided);
    rl_round_init(&rig->decided.round, storage.terms->nodes, storage.terms->quorum,
                  rig->decided_rtt_us, rig->decided_cause);
    rl_lease_init(&rig->lease, &rig->params, &storage);
}

/* Points the lease at the rig's own memory, because the rig may be a copy of another one. */
static inline void rig_move_in(struct rig *rig)
{
    struct rl_lease *lease = &rig->lease;

    lease->terms = &rig->params.terms;
    lease->round.rtt_us = rig->rtt_us;
    lease->round.cause = rig->cause;
    lease->permit = lease->permit != NULL ? &rig->permit : NULL;
    lease->fence = lease->fence != NULL ? &rig->fence : NULL;
    lease->decided = lease->decided != NULL ? &rig->decided : NULL;
    rig->decided.round.rtt_us = rig->decided_rtt_us;
    rig->decided.round.cause = rig->decided_cause;
}

/* Passes an event to the lease; its effects are in rig->fx afterwards. */
static inline void rig_step(struct rig *rig, const struct rl_event *event)
{
    rig_move_in(rig);
    rl_lease_step(&rig->lease, event, &rig->view, &rig->fx);
}

/* Passes an event without arguments to the lease: RL_EVENT_START, TICK, RELEASE and so on. The
 * status is for CANCEL only. */
static inline void rig_event(struct rig *rig, uint8_t kind)
{
    const struct rl_event event = {.kind = kind, .status = REDLOCK_ECANCELED};

    rig_step(rig, &event);
}

/* Initializes the lease and starts its first attempt. */
static inline void rig_start(struct rig *rig)
{
    rig_new_lease(rig);
    rig_event(rig, RL_EVENT_START);
}

/* Passes the user's request to extend to `ttl_ns`. */
static inline void rig_extend(struct rig *rig, uint64_t ttl_ns)
{
    const struct rl_event event = {.kind = RL_EVENT_EXTEND, .ttl_ns = ttl_ns};

    rig_step(rig, &event);
}

/* Passes a vote to the lease, exactly as the ballot says. */
static inline void rig_ballot(struct rig *rig, struct rl_ballot ballot)
{
    const struct rl_event event = {.kind = RL_EVENT_VOTE, .ballot = ballot};

    rig_step(rig, &event);
}

/* Passes a vote of a node in the running round to the lease: with the round's verb and number,
 * a round trip of 0.5 ms, and the cause TIMEOUT for FAILED and SUSPECT. */
static inline void rig_vote(struct rig *rig, unsigned node, enum rl_vote vote)
{
    rig_ballot(
        rig,
        (struct rl_ballot){
            .node = (uint8_t)node,
            .vote = (uint8_t)vote,
            .cause = vote == RL_VOTE_FAILED || vote == RL_VOTE_SUSPECT ? REDLOCK_CAUSE_TIMEOUT : 0,
            .verb = rig->lease.round.verb,
            .round = rig->lease.round.number,
            .rtt_us = 500,
        });
}

/* Passes a grant of the node in the running round. */
static inline void rig_grant(struct rig *rig, unsigned node)
{
    rig_vote(rig, node, RL_VOTE_GRANTED);
}

/* Passes a denial of the node in the running round. */
static inline void rig_deny(struct rig *rig, unsigned node)
{
    rig_vote(rig, node, RL_VOTE_DENIED);
}

/* Passes a failure (timeout) of the node in the running round. */
static inline void rig_fail(struct rig *rig, unsigned node)
{
    rig_vote(rig, node, RL_VOTE_FAILED);
}

/* Passes the reply to a heal of the running round to the lease. */
static inline void rig_heal_vote(struct rig *rig, unsigned node, enum rl_vote vote)
{
    rig_ballot(rig, (struct rl_ballot){
                        .node = (uint8_t)node,
                        .vote = (uint8_t)vote,
                        .verb = RL_VERB_HEAL,
                        .round = rig->lease.round.number,
                    });
}

/* Passes the reply to PTTL of one slot of a semaphore to the lease. */
static inline void rig_report_ttl(struct rig *rig, unsigned node, unsigned slot, enum rl_vote vote,
                                  uint64_t pttl_ms)
{
    rig_ballot(rig, (struct rl_ballot){
                        .node = (uint8_t)node,
                        .vote = (uint8_t)vote,
                        .verb = RL_VERB_PTTL,
                        .slot = (uint16_t)slot,
                        .round = rig->lease.round.number,
                        .pttl_ms = pttl_ms,
                    });
}

/* Passes a notification that a slot has changed to the lease. */
static inline void rig_wake(struct rig *rig, rl_nodes nodes, unsigned slot)
{
    const struct rl_event event = {.kind = RL_EVENT_WAKE, .nodes = nodes, .slot = (uint16_t)slot};

    rig_step(rig, &event);
}

/* Advances both clocks without an event. */
static inline void rig_pass(struct rig *rig, uint64_t ns)
{
    rig->view.now = rl_later(rig->view.now, ns);
}

/* Passes a TICK: the timer is due, at the time that rig_pass() has set. */
static inline void rig_tick(struct rig *rig)
{
    rig_event(rig, RL_EVENT_TICK);
}

/* Returns the remaining validity of the lease in ns; 0: none. */
static inline uint64_t rig_remaining_ns(const struct rig *rig)
{
    return rl_lease_remaining_ns(&rig->lease, rig->view.now);
}

#endif
