/* SPDX-License-Identifier: MIT
 * What came out of an operation, node by node, and events. Part of redlock.h. */
#ifndef REDLOCK_REPORT_H
#define REDLOCK_REPORT_H

#include "redlock/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reports */

enum redlock_vote {
    REDLOCK_VOTE_NONE = 0,      /* not asked, or not answered when the round or the call ended */
    REDLOCK_VOTE_GRANTED = 1,   /* set, extended, deleted, (verify) ours is there, or (inspect) a
                                 * key is there */
    REDLOCK_VOTE_DENIED = 2,    /* another holder, ours is gone, or (inspect) no key is there */
    REDLOCK_VOTE_UNCOUNTED = 3, /* granted, but may not be counted: see cause */
    REDLOCK_VOTE_FAILED = 4     /* no valid answer: see cause */
};
/* Numbers never change; new ones are appended. */
enum redlock_cause {
    REDLOCK_CAUSE_NONE = 0,
    REDLOCK_CAUSE_TIMEOUT = 1,
    REDLOCK_CAUSE_RESOLVE = 2,
    REDLOCK_CAUSE_CONNECT = 3,
    REDLOCK_CAUSE_DISCONNECT = 4,
    REDLOCK_CAUSE_PROTOCOL = 5,
    REDLOCK_CAUSE_AUTH = 6,
    REDLOCK_CAUSE_NOPERM = 7,
    REDLOCK_CAUSE_READONLY = 8,
    REDLOCK_CAUSE_OOM = 9,
    REDLOCK_CAUSE_BUSY = 10,
    REDLOCK_CAUSE_WRONGTYPE = 11,
    REDLOCK_CAUSE_ERROR_REPLY = 12, /* any other error reply: see text */
    REDLOCK_CAUSE_RESTARTED = 13,   /* may have lost keys: not counted for a while */
    REDLOCK_CAUSE_REPLICA = 14,
    REDLOCK_CAUSE_LOADING = 15,
    REDLOCK_CAUSE_PROMOTED = 16, /* has another master's data: not counted for a while */
    REDLOCK_CAUSE_EVICTING = 17, /* maxmemory with a policy that removes keys */
    REDLOCK_CAUSE_DUPLICATE = 18,
    REDLOCK_CAUSE_CLOCK_STEP = 19,   /* its clock jumped: not counted for a while */
    REDLOCK_CAUSE_NO_INFO = 20,      /* does not tell who it is */
    REDLOCK_CAUSE_FENCE_RECORD = 21, /* its fence record is not usable: see text */
    REDLOCK_CAUSE_NO_MEMORY = 22,
    REDLOCK_CAUSE_CLUSTER = 23,
    REDLOCK_CAUSE_HEALED = 24, /* put back, counts after a round without it */
    REDLOCK_CAUSE_FENCE_RECORDS_UNREAD =
        25,                      /* granted, but of too few nodes the fence records were read */
    REDLOCK_CAUSE_NO_SOCKET = 26 /* this process could not make a socket. Since 0.2.0 */
};
/* Returns the name of a cause, for example "REDLOCK_CAUSE_TIMEOUT". Static, never NULL;
 * "REDLOCK_CAUSE_UNKNOWN" for a number that is none. Since 0.2.0. [any thread] */
REDLOCK_API const char *redlock_cause_name(int cause);
/* Returns how many causes the library knows, REDLOCK_CAUSE_NONE among them: their numbers are 0 up
 * to this, without a gap. Since 0.2.0. [any thread] */
REDLOCK_API size_t redlock_cause_count(void);
enum redlock_state { REDLOCK_STATE_UNKNOWN = 0, REDLOCK_STATE_FREE = 1, REDLOCK_STATE_HELD = 2 };

typedef struct redlock_report_info {
    int32_t status, state;           /* result; of an inspection: enum redlock_state */
    uint32_t nodes, quorum, granted; /* configured nodes, votes needed, votes counted */
    uint32_t attempts, rounds;       /* attempts in all, rounds of the last one; no attempts: it
                                      * ended behind another lock of this client, and the nodes'
                                      * words, if there are any, are what they said to that one */
    uint64_t waited_us, elapsed_us;  /* since the call; of the last attempt */
    uint64_t validity_ms;            /* left when this was written, 0 if none */
    const char *shard;               /* which set of nodes this is about (redlock_shard_name()); the
                                      * report's; NULL: refused arguments */
    uint32_t node_first;             /* the first of its nodes, as redlock_get_node_stats() counts
                                      * them: the index of a node there is this plus its index here */
} redlock_report_info_t;

/* What a node has under the key. Since 0.2.0. */
enum redlock_key {
    REDLOCK_KEY_UNKNOWN = 0,    /* not looked at, or no answer */
    REDLOCK_KEY_ABSENT = 1,     /* no key */
    REDLOCK_KEY_EXPIRES = 2,    /* a lock with a time to live, see pttl_ms */
    REDLOCK_KEY_PERSISTENT = 3, /* a lock that never expires: no Redlock client makes one */
    REDLOCK_KEY_FOREIGN = 4     /* something that is not a plain lock */
};
/* State of a node's fence record. Since 0.2.0. */
enum redlock_record {
    REDLOCK_RECORD_UNKNOWN = 0,
    REDLOCK_RECORD_IN_USE = 1,    /* it is, but those of too few other nodes are */
    REDLOCK_RECORD_MISSING = 2,   /* new, lost, or of an earlier run of the server */
    REDLOCK_RECORD_FOREIGN = 3,   /* made for another configuration */
    REDLOCK_RECORD_CORRUPT = 4,   /* holds what is not a fence */
    REDLOCK_RECORD_UNATTESTED = 5 /* must survive restarts, and the address does not attest it */
};

typedef struct redlock_node_report {
    const char *node;    /* address, no secrets; all strings here are the report's */
    int32_t vote, cause; /* enum redlock_vote, enum redlock_cause */
    uint64_t rtt_us;     /* 0: no answer */
    uint64_t pttl_ms;  /* inspect, verify: until the key expires; UINT64_MAX: not known or never */
    const char *owner; /* inspect: holder's label, or "" */
    const char *text;  /* for people: "connection refused", "held, expires in 9120 ms" */
    uint64_t quarantine_ms; /* restart and clock guards: from when the report was written; else 0 */
    int32_t key;            /* inspect, verify: enum redlock_key; else 0. Since 0.2.0 */
    int32_t record;  /* of REDLOCK_CAUSE_FENCE_RECORD: enum redlock_record; else 0. Since 0.2.0 */
    int32_t in_text; /* 1: redlock_report_text() has `node` and `text`; else 0. Since 0.2.0 */
} redlock_node_report_t;

/* A report belongs to who received it and never changes; it may be read after redlock_free().
 * `size` is the size of the struct that is filled. EINVAL: index past the last node, or a report
 * of refused arguments, which has no nodes. [any thread] */
REDLOCK_API int redlock_report_get_info(const redlock_report_t *report,
                                        redlock_report_info_t *ret_info, size_t size);
REDLOCK_API int redlock_report_get_node(const redlock_report_t *report, size_t index,
                                        redlock_node_report_t *ret_node, size_t size);
/* One line: what came out, and what stood in the way (in a callback after a success: only what came
 * out); of refused arguments what to do. "" for NULL; borrowed until the report ends. [any thread]
 */
REDLOCK_API const char *redlock_report_text(const redlock_report_t *report);
/* Returns a reference to a report, so that it can be kept: most of all one that a callback was
 * given, which is borrowed for the call. The reference may be another pointer than `report`: of a
 * borrowed report it is a copy. report: owned by the caller, or borrowed in the callback that was
 * given it. Returns NULL if `report` is NULL or there is no memory. The caller frees each reference
 * with redlock_report_free(), from any thread, also after redlock_free(). Since 0.2.0.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD redlock_report_t *redlock_report_ref(const redlock_report_t *report);
/* Gives a reference back; the last one frees the report. NULL, and a report that a callback was
 * given, are left alone. [any thread] */
REDLOCK_API void redlock_report_free(redlock_report_t *report);

/* Events: of a lock (opts.event_fn) and of a client with all its locks */

enum redlock_event_kind {
    REDLOCK_EVENT_ACQUIRED = 1,
    REDLOCK_EVENT_EXTENDED = 2,
    REDLOCK_EVENT_EXTEND_FAILED = 3, /* a round failed (status says why); automatic: again */
    REDLOCK_EVENT_RELEASED = 4,
    REDLOCK_EVENT_ENDANGERED = 5, /* margin_ms before the deadline: stop starting new work */
    REDLOCK_EVENT_LOST = 6,       /* at the deadline at the latest; once, not after a release */
    REDLOCK_EVENT_WAITING = 7,    /* an attempt failed (status says why), the next one follows */
    REDLOCK_EVENT_NODE_UP = 8,
    REDLOCK_EVENT_NODE_DOWN = 9,
    REDLOCK_EVENT_NODE_EXCLUDED = 10,  /* answers, but may not vote */
    REDLOCK_EVENT_TTL_EXCEEDS_MAX = 11 /* of a node: a key was seen that outlives max_ttl */
};
typedef struct redlock_event {
    size_t size;
    int32_t kind, status;           /* enum redlock_event_kind, error code */
    redlock_lock_t *lock;           /* NULL if there is none (yet), or its handle was freed */
    const char *resource, *node;    /* of a lock, of a node; else NULL */
    const redlock_report_t *report; /* of a lock; else NULL */
    uint64_t remaining_ms;
} redlock_event_t;

/* Runs where callbacks run (enum redlock_mode); all that it is given is borrowed for the call. It
 * may start, cancel and free; it should not wait: other callbacks wait for it. */
typedef void (*redlock_event_fn)(redlock_t *rl, const redlock_event_t *event, void *userdata);

/* Tells that a lock's event function and its userdata are not used any more (opts.event_end_fn).
 * userdata: opts.event_userdata, which may be freed here. The function may start, cancel and free,
 * as an event function may; it should not wait. Since 0.2.0. */
typedef void (*redlock_event_end_fn)(void *userdata);

#ifdef __cplusplus
}
#endif
#endif
