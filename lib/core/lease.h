/* SPDX-License-Identifier: MIT
 * The lease: the state machine of one lock, from the first attempt to the release or the loss. It
 * is a pure step function. The engine calls rl_lease_step() with an event and with a view of the
 * nodes and clocks. The step changes the lease and returns effects: what the engine must send and
 * report. The lease calls nothing outside of lib/core, and knows no clock, memory, thread or
 * socket.
 *
 * A call is what the caller of the library waits for: an acquisition, an extension or a release. An
 * acquisition makes one attempt or several. Between two attempts the lease pauses. The wait budget
 * (wait_ns) is the time that an acquisition may take; an attempt that runs at its end is abandoned.
 *
 *   QUEUE   QUEUED: behind another lock of this client, until its TURN
 *            START, TURN        won                    release            decided
 *     NEW ----------> ACQUIRING -----> HELD <--> EXTENDING ----> RELEASING -----> ENDED
 *                      |  ^             \__________\______________________________^
 *               failed v  | due            lost, detached
 *                     WAITING --------------------------------------------------> ENDED
 *                                      budget used up, cancelled
 */
#ifndef RL_CORE_LEASE_H
#define RL_CORE_LEASE_H

#include "core/backoff.h"
#include "core/contention.h"
#include "core/drift.h"
#include "core/fence.h"
#include "core/line.h"
#include "core/quorum.h"

/* What a lease is for. */
enum rl_lease_kind {
    RL_LEASE_ACQUIRE = 1, /* acquires a lock, with a fresh token for each attempt */
    RL_LEASE_ADOPT = 2,   /* adopts a lock by its token; held once its first extension has won */
    RL_LEASE_RELEASE = 3, /* releases a lock by its token; never held */
    RL_LEASE_INSPECT = 4, /* reads who holds a lock */
    RL_LEASE_VERIFY = 5 /* asks the servers whether they still have a lock held by another lease */
};

/* The states of a lease; see the diagram above. */
enum rl_lease_state {
    RL_STATE_NEW = 0,       /* before the first event */
    RL_STATE_ACQUIRING = 1, /* an attempt, an inspection or a verification is in progress */
    RL_STATE_WAITING = 2,   /* between two attempts, or before the first one */
    RL_STATE_HELD = 3,      /* the lock is held, and no extension is in progress */
    RL_STATE_EXTENDING = 4, /* the lock is held, and a round of EXTEND requests is in progress */
    RL_STATE_RELEASING = 5, /* RELEASE or SHORTEN was sent; the votes are undecided */
    RL_STATE_ENDED = 6,     /* released, lost, detached or failed: no event may follow */
    RL_STATE_QUEUED = 7     /* in the client's queue: another lock of this client comes first */
};

/* The settings of a lease. They never change while the lease exists. */
struct rl_lease_terms {
    uint8_t kind;              /* enum rl_lease_kind */
    uint8_t nodes;             /* nodes of the shard, 1 to RL_NODES_MAX */
    uint8_t quorum;            /* votes that a decision needs */
    bool auto_extend;          /* extends the lock without being asked */
    bool fence;                /* ACQUIRE: with a fencing token */
    uint16_t permits;          /* ACQUIRE: permits of the semaphore; 0: an ordinary lock */
    uint32_t extends_max;      /* automatic extensions of one lock; 0: no limit */
    struct rl_drift drift;     /* tolerated difference of the clocks */
    struct rl_backoff backoff; /* bounds of the pauses after failures */
    uint64_t ttl_ns;           /* TTL of the keys that attempts and automatic extensions ask for */
    uint64_t validity_min_ns;  /* least validity of a lock that is granted; > 0 */
    uint64_t extend_at_ns;  /* extends when only this much validity is left; 0: when two thirds of
                             * it are left */
    uint64_t hold_max_ns;   /* longest time that the lock may be held; 0: no limit */
    uint64_t margin_ns;     /* reports ENDANGERED this long before the deadline */
    uint64_t wall_slack_us; /* if the wall clock jumps ahead by more than this, the lock is lost;
                             * 0: the wall clock is not compared */
};

/* The parameters of a new lease. */
struct rl_lease_params {
    struct rl_lease_terms terms; /* the settings; see rl_lease_init() */
    uint8_t keys;                /* resources that are locked together; 0 or 1: one */
    uint64_t wait_ns;  /* wait budget: how long an acquisition may take, from START or QUEUE on.
                        * 0: one attempt (of a permit: one search); RL_NEVER: no limit */
    uint64_t fence;    /* ADOPT: the fence of the adopted lock; 0: none */
    rl_nodes unproven; /* VERIFY: nodes whose grant does not count, from rl_lease_unproven() */
    uint64_t salt;     /* differs between leases, so that their random pauses differ */
    bool confirms;     /* the engine sends CONFIRM before it reports a grant to the caller */
};

/* What a lease knows between two attempts about the key that it waits for. Owner: lease_wait.c;
 * lease_attempt.c and lease_permit.c set some fields. The sets have at most one node each. */
struct rl_wait {
    rl_nodes tracked;   /* the node that was last sent a probe for the key; 0: none. If the call may
                         * wait, its server also tracks the key. WAKEs of other nodes are ignored */
    rl_nodes preferred; /* the node that was asked before the others in the last attempt; 0: all
                         * were asked at once */
    uint8_t key;        /* lock of several keys: index of the key that is probed, from 0 */
    bool free;          /* a node reported that the key does not exist or has changed, so an attempt
                         * is due at `start_ns` */
    uint64_t start_ns;  /* boot clock: an attempt that is due because of `free`, or for an open slot
                         * of a semaphore, does not begin earlier; 0: no bound */
};

/* The search for a permit of a semaphore. Owner: lease_permit.c, whose header comment describes the
 * search. It works on the window: up to 64 consecutive slots, counted cyclically. A slot set is a
 * 64-bit word: bit i stands for slot number (start + i) modulo the number of permits. All slot sets
 * are emptied when the window moves. */
struct rl_permit {
    uint16_t slot;   /* slot of the present or last attempt, or of the permit that is held */
    uint16_t origin; /* slot of the first attempt of the call; the first window begins there */
    uint16_t start;  /* first slot of the window */
    uint16_t expires_slot; /* slot whose key expires first, of those whose probes were replied to;
                            * meaningless while `expires_ns` is RL_NEVER */
    bool searching;        /* a search is under way: probes are in flight, or an open slot is tried
                            * next. false: an attempt is running, or the lease pauses */
    uint32_t turn;         /* how often the window was moved on during this call */
    uint32_t turn_end;     /* value of `turn` at which the search has reached its last window */
    rl_nodes other_node;   /* the one node that is probed instead of the preferred one, because the
                            * call is about to end; 0: the preferred node is probed */
    rl_nodes requested;    /* nodes that were sent probes during this call */
    rl_nodes replied;      /* of `requested`: nodes that have replied to a probe */
    uint64_t tried;        /* slot set: slots for which an attempt was made */
    uint64_t missed;     /* slot set: slots that a quorum holds although the preferred node does not
                          * have the key, so that its reply to a probe shows nothing */
    uint64_t open;       /* slot set: slots worth an attempt, because their keys do not exist or
                          * have changed, or because no node says more about an untried slot */
    uint64_t probed;     /* slot set: slots whose probe has no reply yet */
    uint64_t known;      /* slot set: slots that need no new probe, because the node of
                          * rl_wait.tracked was sent one and no change of their keys was noted
                          * since */
    uint64_t expires_ns; /* boot clock: when the key of `expires_slot` expires; RL_NEVER: unknown */
    uint64_t in_turn_ns; /* boot clock: when an attempt for a slot chosen in turn is due, whatever
                          * the preferred node says; 0: none is planned */
    struct rl_now probe_until; /* end of the wait for the replies to the probes in `probed` */
};

/* The last attempt that was decided. If the wait budget ends during a later attempt, the call
 * reports this one, because it has more votes. */
struct rl_decided {
    struct rl_round round; /* a copy of the round of that attempt */
    int32_t status;        /* error of that attempt; 0: no attempt was decided yet */
    bool reported;         /* the call has ended with this attempt */
};

/* The memory that a lease needs beside its struct. The engine owns it (engine/storage.c) and keeps
 * it in place as long as the lease exists. Only the terms are filled in, the rest is zero. */
struct rl_lease_storage {
    const struct rl_lease_terms *terms; /* the settings, which the lease keeps using */
    uint32_t *rtt_us;                   /* `nodes` elements, for rl_round.rtt_us */
    uint8_t *cause;                     /* `nodes` elements, for rl_round.cause */
    struct rl_permit *permit;           /* NULL unless the lease is for a permit */
    struct rl_fence *fence;             /* NULL unless rl_lease_needs_fence() */
    struct rl_decided *decided; /* NULL unless rl_lease_may_be_cut(); its round has its arrays */
};

/* One lease: all that the core keeps about one lock. Only core/lease*.c change it, except for
 * `contention`, which the engine sets; the engine and the api layer read it.
 *
 * Invariants, as long as the lock is held:
 *   - `deadline`, `backing` and `wall_us` belong to the same round, the last one that has won;
 *   - the grants of nodes in `fresh` or `probation`, or not in `ours`, when a round of extensions
 *     begins do not count in that round;
 *   - the lock is lost as soon as `ours` is known to be smaller than the quorum, or as soon as an
 *     INVALIDATE makes `backing` smaller than the quorum. */
struct rl_lease {
    const struct rl_lease_terms
        *terms;                       /* the settings; owned by the engine, see rl_lease_storage */
    struct rl_contention *contention; /* what the client remembers of the resource, shared by all
                                       * its locks on it; NULL: nothing. Of a lock of several
                                       * keys: that of the key which it waits for */
    struct rl_contention **memories;  /* lock of several keys: the memory of each; else NULL */
    struct rl_permit *permit;         /* NULL: not for a permit */
    struct rl_fence *fence;           /* NULL: without a fence */
    struct rl_decided *decided;       /* NULL: the wait budget cannot end during an attempt */
    struct rl_wait wait;              /* what is known of the key between two attempts */
    struct rl_line line;              /* its place in the line of waiters */
    struct rl_round round;            /* the last round; a late vote may still belong to it */
    uint8_t state;                    /* enum rl_lease_state */
    uint8_t keys;                     /* resources that are locked together; 0 or 1: one */
    uint8_t taken;     /* lock of several keys: the one that existed in the last attempt, counted
                        * from 1; 0: unknown */
    bool manual;       /* the extension in flight was requested by the caller, who waits for it;
                        * false: it is automatic, or none is in flight */
    bool endangered;   /* ENDANGERED was reported, and `deadline` has not changed since */
    bool lost;         /* the lease has ended because the lock was lost */
    bool adopted;      /* held by adoption, and no extension has begun since: nodes that did not
                        * grant may or may not have the key */
    bool unconfirmed;  /* a grant needs CONFIRM; until then a loss is a failed attempt */
    uint32_t attempts; /* attempts that were begun by this lease */
    uint32_t failures; /* failed attempts or extensions in a row; makes the next pause longer */
    uint32_t extends;  /* automatic extensions of the held lock that have won */
    int32_t status;    /* enum redlock_error: of the last failed attempt or extension, or the result
                        * of the call that has ended the lease. ECONTENDED before the first attempt
                        * while the lease is queued or yields. 0: no failure so far */
    rl_nodes ours;     /* nodes on which our keys (those with the token of this lease) exist, or
                        * may come to exist; all keys of a lock of several */
    rl_nodes remnants; /* lock of several keys: nodes on which some of our keys may be left, but
                        * not all */
    rl_nodes backing;  /* nodes whose keys do not expire before `deadline` */
    rl_nodes fresh;    /* nodes whose key was made at an unknown time, or after the present round
                        * began */
    rl_nodes confirmed; /* of `fresh`: a reply has shown that the key exists */
    rl_nodes probation; /* nodes whose key existed when the round began, with unknown history; it
                         * counts once a round has won without it */
    uint64_t extend_ttl_ns; /* TTL that the present attempt or extension asks for */
    uint64_t wait_ns;       /* wait budget from `begun` on; see struct rl_lease_params */
    uint64_t salt;          /* see struct rl_lease_params */
    struct rl_now begun;    /* when START or QUEUE came */
    struct rl_now hold_end; /* latest deadline that hold_max_ns allows; RL_NEVER: no limit */
    struct rl_now deadline; /* of the held lock; 0: nothing is held */
    int64_t wall_us;        /* rl_view.wall_us at T1 of the round that set `deadline` */
    struct rl_now next;     /* WAITING: the next attempt at the latest; HELD: the next extension */
    uint64_t wake_ns;       /* boot clock: when the engine sends the next TICK; RL_NEVER: never */
};

/* Returns whether the caller holds a lock in this state: granted, and not released, lost or
 * detached since. */
static inline bool rl_state_is_held(uint8_t state)
{
    return state == RL_STATE_HELD || state == RL_STATE_EXTENDING;
}

/* Returns whether the caller holds the lock. */
static inline bool rl_lease_is_held(const struct rl_lease *lease)
{
    return rl_state_is_held(lease->state);
}

/* What an event means. Events are the inputs of rl_lease_step(). (An event of the public interface
 * is another thing: a report to the caller.) */
enum rl_event_kind {
    RL_EVENT_START = 1,  /* begins what the lease is for, see enum rl_lease_kind */
    RL_EVENT_VOTE,       /* a vote has come; in `ballot` */
    RL_EVENT_TICK,       /* lease.wake_ns has come */
    RL_EVENT_CANCEL,     /* ends a call that waits, with `status`: ECANCELED or ECLOSED */
    RL_EVENT_CONFIRM,    /* sent right before a grant is reported to the caller: checks the validity
                          * once more, because time has passed since the deciding vote */
    RL_EVENT_EXTEND,     /* the caller extends the lock, by `ttl_ns` */
    RL_EVENT_RELEASE,    /* the caller releases the lock */
    RL_EVENT_SHORTEN,    /* the caller lets the keys expire after a delay (release_after) */
    RL_EVENT_DETACH,     /* stops relying on the lock and leaves its keys alone */
    RL_EVENT_INVALIDATE, /* keys set on `nodes` before now may be gone before their TTL ends */
    RL_EVENT_QUEUE,      /* instead of START: another lock of this client comes first */
    RL_EVENT_TURN,       /* a QUEUED lease may begin its first attempt */
    RL_EVENT_WAKE /* a wake-up: the node of `nodes` sent a notification, or can track the key from
                   * now on; 0: another lock of this client has released the resource. Sent only to
                   * a lease whose `contention` is not NULL */
};

/* One event. Fields that its kind does not name are 0. */
struct rl_event {
    uint8_t kind;    /* enum rl_event_kind */
    int32_t status;  /* CANCEL: enum redlock_error */
    uint64_t ttl_ns; /* EXTEND: TTL to ask for; 0: that of the terms */
    rl_nodes nodes;  /* INVALIDATE, WAKE */
    uint16_t slot;   /* WAKE of a semaphore: the slot whose key has changed; RL_SLOT_ANY: any of
                      * the keys may have changed */
    bool turn;       /* WAKE: not a change, but this client's turn in the line of the resource */
    struct rl_ballot ballot;          /* VOTE */
    const struct rl_line_reply *line; /* VOTE on LINE_*: what the reply says; NULL: there is none */
};

/* Bits of rl_effects.flags. */
#define RL_FX_ATTEMPT  (1u << 0) /* an attempt begins: make its token, and propose its fence */
#define RL_FX_DONE     (1u << 1) /* the call has ended, with `status` */
#define RL_FX_HELD     (1u << 2) /* with DONE: the lock is now held */
#define RL_FX_WAITING  (1u << 3) /* it waits: an attempt failed with `status`, queued, in a line */
#define RL_FX_EXTENDED (1u << 4) /* an extension has won */
#define RL_FX_EXTEND_FAILED                                                                        \
    (1u << 5)                      /* an extension failed; the lock is still held unless LOST      \
                                    */
#define RL_FX_ENDANGERED (1u << 6) /* the margin before the deadline has begun: report it */
#define RL_FX_LOST       (1u << 7) /* the lock is lost: report it */
#define RL_FX_DEADLINE   (1u << 8) /* lease.deadline has changed */
#define RL_FX_ENDED      (1u << 9) /* the lease has ended: send it no further event */
/* In place of WAITING: an attempt failed with `status`, and the search for a permit goes on. */
#define RL_FX_SKIPPED (1u << 10)

/* What the statistics of lines count. */
#define RL_COUNT_JOIN  (1u << 0) /* the lease asks to join a line */
#define RL_COUNT_ALONE (1u << 1) /* a denied lease waits without a line */

/* What the engine must do after a step. */
struct rl_effects {
    uint32_t flags;   /* RL_FX_* */
    int32_t status;   /* enum redlock_error, for the flags that name it */
    rl_nodes request; /* send round.verb to these nodes; the token is that of the attempt */
    rl_nodes undo;    /* undo what the token may have set on these nodes; on those that are not
                       * connected, once they are */
    rl_nodes heal;    /* send HEAL to these nodes */
    rl_nodes raise;   /* send RAISE, with fence.chosen, to these nodes */
    rl_nodes track; /* prepare these nodes for notifications; a WAKE follows when a node is ready */
    rl_nodes probe; /* send a probe (PTTL) for the key to these nodes, after `request` */
    uint8_t line;   /* enum rl_verb: send this request (LINE_*) to the line, after all others */
    uint8_t line_key;     /* with `line`, lock of several keys: index of the key whose line it is */
    rl_nodes line_node;   /* with `line`: to these nodes */
    uint64_t line_victim; /* with LINE_DROP: id of the head to be removed */
    uint64_t line_victim_beat; /* with LINE_DROP: its beat */
    uint8_t counts;            /* RL_COUNT_*: for the statistics of lines */
    uint64_t slots; /* with `probe`, for a permit: the slots to probe, see struct rl_permit */
};

/* Returns whether there is anything that the engine must do. */
static inline bool rl_effects_exist(const struct rl_effects *fx)
{
    return (fx->flags | fx->request | fx->undo | fx->heal | fx->raise | fx->track | fx->probe |
            fx->line) != 0;
}

/* Makes a lease in state NEW. The terms are those of `storage`; params->terms is not read. */
void rl_lease_init(struct rl_lease *lease, const struct rl_lease_params *params,
                   const struct rl_lease_storage *storage);

/* Returns whether a lease with these parameters needs a struct rl_fence. */
static inline bool rl_lease_needs_fence(const struct rl_lease_params *params)
{
    return params->terms.fence || params->fence != 0;
}

/* Returns whether the wait budget of a lease with these parameters is a time limit, so that it can
 * end during an attempt. */
static inline bool rl_lease_may_be_cut(const struct rl_lease_params *params)
{
    return params->wait_ns != 0 && params->wait_ns != RL_NEVER;
}

/* Processes one event and overwrites `effects` with what the engine must do. The engine executes
 * effects in this order: undo, ATTEMPT, request, heal, raise, track, probe, then the reports to the
 * caller. `view` is the engine's view of this tick. */
void rl_lease_step(struct rl_lease *lease, const struct rl_event *event, const struct rl_view *view,
                   struct rl_effects *effects);

/* Returns the slot that bit `bit` of a slot set stands for; see struct rl_permit. */
uint16_t rl_permit_slot(const struct rl_lease *lease, unsigned bit);

/* Returns the round that explains the result of the last call, for the report: that of
 * lease->decided, if the call has ended with it, else the last round. */
static inline const struct rl_round *rl_lease_evidence(const struct rl_lease *lease)
{
    bool before = lease->decided != NULL && lease->decided->reported;

    return before ? &lease->decided->round : &lease->round;
}

/* Returns the fence of the present attempt or of the held lock; 0: none, or not chosen yet. */
static inline uint64_t rl_lease_fence_chosen(const struct rl_lease *lease)
{
    return lease->fence != NULL ? lease->fence->chosen : 0;
}

/* Returns the slot of the present attempt or of the held permit; 0 if it is not a permit. */
static inline uint16_t rl_lease_slot(const struct rl_lease *lease)
{
    return lease->permit != NULL ? lease->permit->slot : 0;
}

/* Returns the nodes whose key does not prove that a held lock was held without a break: those whose
 * key was healed, was made or may yet be made at an unknown time, and those that do not have it.
 * Another client may have held the lock before such a key was made. */
rl_nodes rl_lease_unproven(const struct rl_lease *lease);

/* Returns whether the deadline of a held lock has passed, or the wall clock has jumped ahead,
 * so that the time until the deadline is unknown. A TICK then ends the lease. */
bool rl_lease_is_expired(const struct rl_lease *lease, const struct rl_view *view);
/* Returns the time until the deadline of the held lock in nanoseconds; 0 if none is held. */
uint64_t rl_lease_remaining_ns(const struct rl_lease *lease, struct rl_now now);

#endif
