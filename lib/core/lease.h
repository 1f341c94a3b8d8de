/* SPDX-License-Identifier: MIT
 * The life of one lock: attempts and retries, holding and extending, loss, release. A pure step
 * function: an event and the state of the world go in, effects come out. It never calls out, and
 * knows no clock, memory, thread or socket.
 *
 *   QUEUE   QUEUED: behind another lock of this client, until its TURN
 *            START, TURN      won                    release            decided
 *     NEW ----------> ASKING -----> HELD <--> EXTENDING ----> RELEASING -----> ENDED
 *                      |  ^           \__________\______________________________^
 *               failed v  | due          lost, detached
 *                     WAITING ------------------------------------------------> ENDED
 *                                      budget used up, cancelled
 */
#ifndef RL_CORE_LEASE_H
#define RL_CORE_LEASE_H

#include "core/backoff.h"
#include "core/contention.h"
#include "core/drift.h"
#include "core/fence.h"
#include "core/quorum.h"

enum rl_lease_kind {
    RL_LEASE_ACQUIRE = 1, /* a new lock with a fresh token for every attempt */
    RL_LEASE_ADOPT = 2,   /* a lock that somebody else acquired; held from its own extension on */
    RL_LEASE_RELEASE = 3, /* release by token, nothing is held */
    RL_LEASE_INSPECT = 4, /* look only */
    RL_LEASE_VERIFY = 5   /* asks whether a lock that another lease holds is still there */
};

enum rl_lease_state {
    RL_STATE_NEW = 0,
    RL_STATE_ACQUIRING = 1,
    RL_STATE_WAITING = 2,
    RL_STATE_HELD = 3,
    RL_STATE_EXTENDING = 4,
    RL_STATE_RELEASING = 5,
    RL_STATE_ENDED = 6,
    RL_STATE_QUEUED = 7 /* another lock of this client asks for the same resource */
};

/* What the caller asked for; it does not change over the life of a lease. */
struct rl_lease_terms {
    uint8_t kind; /* enum rl_lease_kind */
    uint8_t nodes, quorum;
    bool auto_extend;
    bool fence;           /* ACQUIRE: with a fence */
    uint16_t permits;     /* ACQUIRE: one of so many slots; 0: the resource itself */
    uint32_t extends_max; /* 0: no limit */
    struct rl_drift drift;
    struct rl_backoff backoff;
    uint64_t ttl_ns;
    uint64_t validity_min_ns; /* > 0 */
    uint64_t extend_at_ns;    /* 0: two thirds of the validity */
    uint64_t hold_max_ns;     /* 0: no limit */
    uint64_t margin_ns;       /* ENDANGERED this long before the deadline */
    uint64_t wall_slack_us;   /* the wall clock may jump ahead so far; 0: it is not looked at */
};

struct rl_lease_params {
    struct rl_lease_terms terms;
    uint8_t keys;      /* resources, all or none; 0: one */
    uint64_t wait_ns;  /* 0: one attempt; RL_NEVER: for ever */
    uint64_t fence;    /* ADOPT: that of the giver; 0: none */
    rl_nodes unproven; /* VERIFY: nodes whose key proves nothing; see rl_lease_unproven() */
    uint64_t salt;     /* keeps the retries of several leases of one tick apart */
    bool confirms;     /* the owner says CONFIRM before it believes a grant */
};

/* Between two attempts: what is known of the key. */
struct rl_wait {
    rl_nodes tracked;   /* was asked whether it is there, and tells when that changes */
    rl_nodes preferred; /* was asked before the others in the last attempt */
    rl_nodes probed;    /* and, in the same breath, whether the key is there, and to tell */
    bool notified;      /* did tell, before its answer was here */
    uint8_t key;        /* which one, of several */
    bool free;          /* it said that the key is not there, or that it has changed */
    bool request_all;   /* then all nodes are asked at once */
    bool is_guess;      /* another node than the first said so, where it may never have been */
    bool tried;         /* the last attempt was made on such a hunch */
    uint64_t start_ns;  /* boot clock: not before */
};

#define RL_SLOT_ANY UINT16_MAX

/* The search for a permit: L keys, each an ordinary lock, of which one that is free is wanted. Up
 * to 64 of them are looked at together; bit i of a set is the slot i places behind `start`, in a
 * ring.
 */
struct rl_permit {
    uint16_t slot;       /* of the present attempt, or of what is held */
    uint16_t origin;     /* where the search began */
    uint16_t start;      /* of the window */
    uint16_t expires;    /* the slot that expires first, as far as is known */
    bool searching;      /* goes on without a pause: not all of the window is known to be taken */
    uint32_t turn;       /* windows opened after the first one */
    uint32_t turns;      /* the search goes on without a pause up to this turn */
    rl_nodes other_node; /* the node that the search asks; 0: the preferred one */
    rl_nodes requested;  /* nodes that were asked about slots during this call */
    rl_nodes replied;    /* of these: have answered */
    uint64_t tried;      /* asked for since the window was opened */
    uint64_t open;       /* free, as far as is known, or worth a try */
    uint64_t probed;     /* the first node was asked whether they are free, and has not answered */
    uint64_t tracked;    /* it tells when these change */
    uint64_t expires_ns;
    struct rl_now probe_until;
};

/* The last attempt that came to a decision: what a call reports whose budget ends during a later
 * attempt. */
struct rl_decided {
    struct rl_round round;
    int32_t status; /* 0: there was none */
    bool reported;  /* the call has ended with it */
};

/* What a lease needs beside itself. All of it is its owner's, zero at first but for the terms, and
 * stays where it is as long as there is the lease. */
struct rl_lease_storage {
    const struct rl_lease_terms *terms;
    uint32_t *rtt_us;           /* an element for each node */
    uint8_t *cause;             /* the same */
    struct rl_permit *permit;   /* for a permit, else NULL */
    struct rl_fence *fence;     /* where a fence is wanted or brought along, else NULL */
    struct rl_decided *decided; /* where rl_lease_may_be_cut(), else NULL; its arrays are set */
};

struct rl_lease {
    const struct rl_lease_terms *terms;
    struct rl_contention
        *contention;          /* shared by all locks of this client on the resource; may be NULL */
    struct rl_permit *permit; /* NULL: it is none */
    struct rl_fence *fence;   /* NULL: it has none */
    struct rl_decided *decided; /* NULL: no attempt is cut short */
    struct rl_wait wait;
    struct rl_round round;
    uint8_t state;   /* enum rl_lease_state */
    uint8_t keys;    /* resources, all or none; 0: one */
    uint8_t taken;   /* of them: what stood in the way last, from 1 on; 0: unknown */
    bool manual;     /* the extension in flight was asked for by the caller */
    bool endangered; /* has been announced for this deadline */
    bool lost;
    bool adopted;     /* by the last round: who did not agree in it may have had the key, or not */
    bool unconfirmed; /* a grant waits for its CONFIRM: if it ends before, the attempt has failed */
    uint32_t attempts, failures, extends;
    int32_t status;     /* why the last attempt or extension failed */
    rl_nodes ours;      /* our key is, or may come to be, on these; of several keys: all */
    rl_nodes remnants;  /* some of our keys may be left on these, but not all are there */
    rl_nodes backing;   /* carry `deadline`: their keys do not expire before it */
    rl_nodes fresh;     /* key made at an unknown time, or after the present round began */
    rl_nodes confirmed; /* of `fresh`: seen to exist */
    rl_nodes probation; /* existed when the round began; counts once a round succeeds without it */
    uint64_t extend_ttl_ns;
    uint64_t wait_ns; /* from `begun` on */
    uint64_t salt;
    struct rl_now begun;
    struct rl_now hold_end;
    struct rl_now deadline; /* of what is held */
    int64_t wall_us;        /* rl_view.wall_us at its T1 */
    struct rl_now next;     /* next attempt or extension */
    uint64_t wake_ns; /* on the boot clock: when to send the next TICK; RL_NEVER: not at all */
};

/* It is the user's: granted, and not given back, lost or ended since. */
static inline bool rl_state_is_held(uint8_t state)
{
    return state == RL_STATE_HELD || state == RL_STATE_EXTENDING;
}

static inline bool rl_lease_is_held(const struct rl_lease *lease)
{
    return rl_state_is_held(lease->state);
}

enum rl_event_kind {
    RL_EVENT_START = 1,
    RL_EVENT_VOTE,    /* ballot */
    RL_EVENT_TICK,    /* wake_ns has come */
    RL_EVENT_CANCEL,  /* ends an operation that waits; status: ECANCELED or ECLOSED */
    RL_EVENT_CONFIRM, /* right before the caller is told of a grant */
    RL_EVENT_EXTEND,  /* ttl_ns */
    RL_EVENT_RELEASE,
    RL_EVENT_SHORTEN, /* release_after */
    RL_EVENT_DETACH,
    RL_EVENT_INVALIDATE, /* nodes: keys that were set there before may be gone before their time */
    RL_EVENT_QUEUE,      /* instead of START: it is another lock's turn */
    RL_EVENT_TURN,       /* begins, if it is QUEUED */
    RL_EVENT_WAKE        /* nodes: they tell that the key has changed; 0: this client let it go */
};

struct rl_event {
    uint8_t kind; /* enum rl_event_kind */
    int32_t status;
    uint64_t ttl_ns;
    rl_nodes nodes;
    uint16_t slot; /* WAKE, of a semaphore: which key has changed; RL_SLOT_ANY: maybe all */
    struct rl_ballot ballot;
};

#define RL_FX_ATTEMPT       (1u << 0) /* a fresh token first, and rl_fence_begin(), then `request` */
#define RL_FX_DONE          (1u << 1) /* the caller's operation ended with `status` */
#define RL_FX_HELD          (1u << 2) /* with DONE: the lock is now held */
#define RL_FX_WAITING       (1u << 3) /* an attempt failed with `status`, or it is another's turn */
#define RL_FX_EXTENDED      (1u << 4)
#define RL_FX_EXTEND_FAILED (1u << 5) /* with `status`; the lock may still be valid */
#define RL_FX_ENDANGERED    (1u << 6)
#define RL_FX_LOST          (1u << 7)
#define RL_FX_DEADLINE      (1u << 8) /* `lease->deadline` has changed */
#define RL_FX_ENDED         (1u << 9) /* no event means anything to this lease any more */
#define RL_FX_SKIPPED                                                                              \
    (1u << 10) /* an attempt failed with `status`, and the search for a permit goes on */

struct rl_effects {
    uint32_t flags;
    int32_t status;
    rl_nodes request; /* send round.verb under round.chosen; `round.t1` is its T1 */
    rl_nodes undo;    /* compare and delete the token, now or on reconnect */
    rl_nodes heal;    /* SET NX again under round.chosen */
    rl_nodes raise;   /* RAISE to fence.chosen under round.chosen */
    rl_nodes track;   /* these should tell when a key changes */
    rl_nodes probe;   /* is the key there? PTTL under round.chosen, behind what is asked */
    uint64_t slots;   /* with `probe`: the keys of these slots, see struct rl_permit */
};

/* `params->terms` are not looked at: those of the room hold. */
void rl_lease_init(struct rl_lease *lease, const struct rl_lease_params *params,
                   const struct rl_lease_storage *storage);

/* Whether a lease has numbers to keep. */
static inline bool rl_lease_needs_fence(const struct rl_lease_params *params)
{
    return params->terms.fence || params->fence != 0;
}

/* Whether the end of a budget may cut an attempt short. */
static inline bool rl_lease_may_be_cut(const struct rl_lease_params *params)
{
    return params->wait_ns != 0 && params->wait_ns != RL_NEVER;
}

/* One event in, its effects out (`effects` is overwritten). Order of the effects: undo, ATTEMPT,
 * ask, heal, then the announcements. */
void rl_lease_step(struct rl_lease *lease, const struct rl_event *event, const struct rl_view *view,
                   struct rl_effects *effects);

/* The slot that bit `bit` of a set means. */
uint16_t rl_permit_slot(const struct rl_lease *lease, unsigned bit);

/* The round that shows why the last operation came out as it did. */
static inline const struct rl_round *rl_lease_evidence(const struct rl_lease *lease)
{
    bool before = lease->decided != NULL && lease->decided->reported;

    return before ? &lease->decided->round : &lease->round;
}

/* The number of the present attempt, or of what is held; 0: none yet, or it has none. */
static inline uint64_t rl_lease_fence_chosen(const struct rl_lease *lease)
{
    return lease->fence != NULL ? lease->fence->chosen : 0;
}

/* Of a semaphore: the slot of the present attempt, or of what is held; 0 otherwise. */
static inline uint16_t rl_lease_slot(const struct rl_lease *lease)
{
    return lease->permit != NULL ? lease->permit->slot : 0;
}

/* Of a lease that is held: the nodes whose key was put back or made at an unknown time, and those
 * that are known not to have it. Another client may have held the lock before such a key was made.
 */
static inline rl_nodes rl_lease_unproven(const struct rl_lease *lease)
{
    return lease->fresh | lease->probation | ~lease->ours;
}

/* Time left until the deadline of what is held; 0 when nothing is. */
uint64_t rl_lease_remaining_ns(const struct rl_lease *lease, struct rl_now now);

#endif
