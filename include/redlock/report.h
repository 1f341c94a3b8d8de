/* SPDX-License-Identifier: MIT
 * Reports of operations, node by node, and events. Part of redlock.h. */
#ifndef REDLOCK_REPORT_H
#define REDLOCK_REPORT_H

#include "redlock/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reports */

/* What one node's reply means for the last round of an operation. */
enum redlock_vote {
    /* The server was not asked, or it had not replied when the round or the call ended. `cause` may
     * say why its vote would not have counted. */
    REDLOCK_VOTE_NONE = 0,
    /* Acquire, extend, release: the server did what was requested. Verify: the server has the key
     * of the lock. Inspect: the server has a key. */
    REDLOCK_VOTE_GRANTED = 1,
    /* Acquire: another token is there. Extend, release, verify: the key of the lock is not there.
     * Inspect: no key is there. */
    REDLOCK_VOTE_DENIED = 2,
    /* The server did what was requested, but the vote does not count; `cause` says why. */
    REDLOCK_VOTE_UNCOUNTED = 3,
    /* No valid reply came; `cause` says why. */
    REDLOCK_VOTE_FAILED = 4
};

/* Why a node gave no vote, or why its vote does not count. The numbers never change; new ones are
 * appended. */
enum redlock_cause {
    REDLOCK_CAUSE_NONE = 0,          /* there is no reason: the vote counts, or none was needed */
    REDLOCK_CAUSE_TIMEOUT = 1,       /* no reply in time */
    REDLOCK_CAUSE_RESOLVE = 2,       /* host name not found */
    REDLOCK_CAUSE_CONNECT = 3,       /* connection refused or not possible */
    REDLOCK_CAUSE_DISCONNECT = 4,    /* connection lost */
    REDLOCK_CAUSE_PROTOCOL = 5,      /* the reply is not valid Redis protocol */
    REDLOCK_CAUSE_AUTH = 6,          /* the server refused user or password */
    REDLOCK_CAUSE_NOPERM = 7,        /* the user may not run this command on this key */
    REDLOCK_CAUSE_READONLY = 8,      /* the server is read-only */
    REDLOCK_CAUSE_OOM = 9,           /* the server is out of memory */
    REDLOCK_CAUSE_BUSY = 10,         /* the server is running a script */
    REDLOCK_CAUSE_WRONGTYPE = 11,    /* the key is not a string */
    REDLOCK_CAUSE_ERROR_REPLY = 12,  /* any other error reply: see `text` */
    REDLOCK_CAUSE_RESTARTED = 13,    /* restarted, may have lost keys: quarantine */
    REDLOCK_CAUSE_REPLICA = 14,      /* the server is a replica */
    REDLOCK_CAUSE_LOADING = 15,      /* the server is loading its data */
    REDLOCK_CAUSE_PROMOTED = 16,     /* has the data of another server: quarantine */
    REDLOCK_CAUSE_EVICTING = 17,     /* the server evicts keys when its memory is full */
    REDLOCK_CAUSE_DUPLICATE = 18,    /* same server as another address of the client */
    REDLOCK_CAUSE_CLOCK_STEP = 19,   /* the server's clock jumped: quarantine */
    REDLOCK_CAUSE_NO_INFO = 20,      /* the server does not identify itself (INFO) */
    REDLOCK_CAUSE_FENCE_RECORD = 21, /* its fence record cannot be used: see `text`, `record` */
    REDLOCK_CAUSE_NO_MEMORY = 22,    /* this process is out of memory */
    REDLOCK_CAUSE_CLUSTER = 23,      /* the server is part of a Redis Cluster */
    REDLOCK_CAUSE_HEALED = 24,       /* key set again, counts after a round without it */
    REDLOCK_CAUSE_FENCE_RECORDS_UNREAD = 25, /* granted, but too few fence records were read */
    REDLOCK_CAUSE_NO_SOCKET = 26,            /* this process cannot create a socket. Since 0.2.0 */
    REDLOCK_CAUSE_TLS = 27,       /* an error of TLS, or a certificate was refused: see `text`. A
                                   * handshake that ends without a reason is TIMEOUT, CONNECT or
                                   * DISCONNECT; if only one side speaks TLS, that depends on what the
                                   * server replies. Since 0.2.0 */
    REDLOCK_CAUSE_PROTECTED = 28, /* the server is in protected mode. Since 0.2.0 */
    REDLOCK_CAUSE_SENTINEL = 29,  /* it is a Sentinel, not a server that holds keys. Since 0.2.0 */
    REDLOCK_CAUSE_NO_SCRIPTS = 30 /* the server does not know EVAL. Since 0.2.0 */
};

/* Returns the name of a cause, for example "REDLOCK_CAUSE_TIMEOUT". Static, never NULL.
 *
 * cause: enum redlock_cause; for any other number the name is "REDLOCK_CAUSE_UNKNOWN".
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API const char *redlock_cause_name(int cause);

/* Returns how many causes the library knows, with REDLOCK_CAUSE_NONE: their numbers are 0 to one
 * less than this.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API size_t redlock_cause_count(void);

/* Result of an inspection. */
enum redlock_state {
    REDLOCK_STATE_UNKNOWN = 0, /* too few servers replied to tell */
    REDLOCK_STATE_FREE = 1,    /* no token can be on a majority of the servers */
    REDLOCK_STATE_HELD = 2     /* one token is on a majority of the servers */
};

/* Outcome of an operation as a whole. */
typedef struct redlock_report_info {
    int32_t status;       /* result of the operation: enum redlock_error */
    int32_t state;        /* of an inspection: enum redlock_state; else 0 */
    uint32_t nodes;       /* servers of the shard; 0: the call was refused before it started */
    uint32_t quorum;      /* votes required */
    uint32_t granted;     /* grants that count */
    uint32_t attempts;    /* attempts of the acquisition. 0: it ended in the queue of this client,
                           * and the votes, if any, are those of the lock ahead of it */
    uint32_t rounds;      /* rounds of the last attempt */
    uint64_t waited_us;   /* microseconds since the call; extend, release: since the lock's
                           * acquisition began */
    uint64_t elapsed_us;  /* microseconds since the last round began; 0: no server was asked */
    uint64_t validity_ms; /* validity left when the report was made; 0: none */
    const char *shard;    /* name of the shard, "" for the only one; NULL: `nodes` is 0. Belongs to
                           * the report */
    uint32_t node_first;  /* index of the shard's first node for redlock_get_node_stats() */
    uint32_t line_place;  /* REDLOCK_EVENT_WAITING: this client's place in the line of the resource,
                           * from 1, as a server said last; 0: none, or not known. Since 0.2.0 */
    uint32_t line_length; /* REDLOCK_EVENT_WAITING: with line_place: clients in that line. Inspect:
                           * waiters that redlock_report_get_waiter() returns. Since 0.2.0 */
    uint32_t line_more;   /* inspect: 1: more clients wait, which were not read. Since 0.2.0 */
    uint32_t line_servers; /* inspect: servers that have said who is in the line. 0: who waits is
                            * not known, because the client uses no lines, its user may not read
                            * them, or memory is missing. Since 0.2.0 */
} redlock_report_info_t;

/* What an inspection or a verification found on a server. Since 0.2.0. */
enum redlock_key {
    REDLOCK_KEY_UNKNOWN = 0,    /* another operation, or no reply */
    REDLOCK_KEY_ABSENT = 1,     /* no key */
    REDLOCK_KEY_EXPIRES = 2,    /* a lock with a TTL: see pttl_ms */
    REDLOCK_KEY_PERSISTENT = 3, /* a lock without a TTL, which no Redlock client sets */
    REDLOCK_KEY_FOREIGN = 4     /* not a plain lock */
};

/* State of a server's fence record: the largest fencing tokens that it has seen. Since 0.2.0. */
enum redlock_record {
    REDLOCK_RECORD_UNKNOWN = 0,   /* not read yet, or the report is not about it */
    REDLOCK_RECORD_IN_USE = 1,    /* in use, but the records of too few other servers are */
    REDLOCK_RECORD_MISSING = 2,   /* new, lost, or from before a restart of the server */
    REDLOCK_RECORD_FOREIGN = 3,   /* written for another configuration */
    REDLOCK_RECORD_CORRUPT = 4,   /* contains something that is not a fencing token */
    REDLOCK_RECORD_UNATTESTED = 5 /* must be durable, but the address lacks durable=1 */
};

/* What an operation learned of one node. All strings belong to the report. */
typedef struct redlock_node_report {
    const char *node;  /* address, without secrets */
    int32_t vote;      /* enum redlock_vote */
    int32_t cause;     /* enum redlock_cause */
    uint64_t rtt_us;   /* round trip in microseconds; 0: no reply */
    uint64_t pttl_ms;  /* inspect, verify: milliseconds until the key expires. UINT64_MAX: another
                        * operation, no key, a key that never expires, or not known */
    const char *owner; /* inspect: label of the holder, or ""; else "" */
    const char *text;  /* for people, for example "held, expires in 9120 ms"; never NULL */
    uint64_t quarantine_ms; /* time until the quarantine ends, counted from the report; else 0 */
    int32_t key;            /* inspect, verify: enum redlock_key; else 0. Since 0.2.0 */
    int32_t record;         /* of REDLOCK_CAUSE_FENCE_RECORD: enum redlock_record; else 0. Since
                             * 0.2.0 */
    int32_t in_text;        /* 1: redlock_report_text() contains `text`, with `node` or "all N
                             * servers" before it; else 0. Since 0.2.0 */
} redlock_node_report_t;

/* Copies the outcome of an operation into *ret_info. The strings in *ret_info live as long as the
 * report.
 *
 * report: owned, or borrowed in the callback that was given it.
 * size: bytes of *ret_info, not 0.
 * EINVAL: an argument is NULL, or size is 0; nothing was written.
 * [any thread] */
REDLOCK_API int redlock_report_get_info(const redlock_report_t *report,
                                        redlock_report_info_t *ret_info, size_t size);

/* Copies what was learned of one node into *ret_node. The strings in *ret_node live as long as the
 * report.
 *
 * report: owned, or borrowed in the callback that was given it.
 * index: 0 to redlock_report_info_t.nodes - 1.
 * size: bytes of *ret_node, not 0.
 * EINVAL: an argument is NULL, size is 0, or index is past the last node; nothing was written.
 * [any thread] */
REDLOCK_API int redlock_report_get_node(const redlock_report_t *report, size_t index,
                                        redlock_node_report_t *ret_node, size_t size);

/* A client in the line of a resource, as it has described itself. Since 0.2.0. */
typedef struct redlock_waiter {
    const char *owner; /* its owner label, or ""; belongs to the report */
    uint64_t since_ms; /* when its wait began, in milliseconds of Unix time by its own wall clock;
                        * 0: not known */
} redlock_waiter_t;

/* Copies what an inspection has learned of one waiter into *ret_waiter. The line is kept on the
 * server that the resource's contenders prefer, and says who is served next. It is advisory: only
 * the votes decide who holds a lock. Clients without lines wait, too, and are not in it. The report
 * on the first slot of a semaphore (redlock_slot_name()) has the waiters for its permits.
 *
 * report: of redlock_inspect(); owned, or borrowed in the callback that was given it.
 * index: 0, for the waiter in front, to redlock_report_info_t.line_length - 1.
 * size: bytes of *ret_waiter, not 0.
 * EINVAL: an argument is NULL, size is 0, or there is no such waiter; nothing was written.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API int redlock_report_get_waiter(const redlock_report_t *report, size_t index,
                                          redlock_waiter_t *ret_waiter, size_t size);

/* Returns the report as one line for people: the outcome, and each server that stood in the way. Of
 * a release that succeeded, it counts the servers that are known not to have the lock any more, and
 * says when the key expires on the others, if that is known. Of a call that was refused, the line
 * says what is wrong and what to do. In a callback after a success it is the outcome alone. Returns
 * "" if report is NULL. The string belongs to the report.
 * [any thread] */
REDLOCK_API const char *redlock_report_text(const redlock_report_t *report);

/* Returns a reference to a report, so that the caller can keep it. Returns NULL if report is NULL
 * or memory is missing. The caller frees each reference with redlock_report_free().
 *
 * report: owned by the caller, or borrowed in the callback that was given it; a borrowed report is
 *   copied, so the pointer may differ.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD redlock_report_t *redlock_report_ref(const redlock_report_t *report);

/* Drops a reference to a report; the last one frees it. Allowed after redlock_free().
 *
 * report: from a ret_report or from redlock_report_ref(). NULL and reports that a callback borrows
 *   are left alone.
 * [any thread] */
REDLOCK_API void redlock_report_free(redlock_report_t *report);

/* Events */

/* What happened. `status` is REDLOCK_OK unless noted. */
enum redlock_event_kind {
    REDLOCK_EVENT_ACQUIRED = 1,        /* the lock is held from now on */
    REDLOCK_EVENT_EXTENDED = 2,        /* the lock has a later deadline */
    REDLOCK_EVENT_EXTEND_FAILED = 3,   /* a round of an extension failed; `status`: why. Automatic
                                        * extension tries again */
    REDLOCK_EVENT_RELEASED = 4,        /* the lock was released; `status`: result of the release */
    REDLOCK_EVENT_ENDANGERED = 5,      /* the margin before the deadline began: start no new work */
    REDLOCK_EVENT_LOST = 6,            /* the lock is not held any more; `status`: ELOST. At most
                                        * once, never after a release; due at the deadline
                                        * or before */
    REDLOCK_EVENT_WAITING = 7,         /* the lock is waited for; `status`: why the last attempt
                                        * failed, or ECONTENDED. Sent after each failed attempt, and
                                        * when a server has said the place in the line */
    REDLOCK_EVENT_NODE_UP = 8,         /* a server is connected, and its votes count */
    REDLOCK_EVENT_NODE_DOWN = 9,       /* a server whose votes counted does not reply any more */
    REDLOCK_EVENT_NODE_EXCLUDED = 10,  /* a server can be reached, but its votes do not count */
    REDLOCK_EVENT_TTL_EXCEEDS_MAX = 11 /* a server has a key that outlives max_ttl: clients
                                        * disagree about max_ttl, or a clock was set back */
};

/* One event of a lock or of a node. Everything in it is borrowed for the call of the function. */
typedef struct redlock_event {
    size_t size;          /* bytes of this struct in the library */
    int32_t kind;         /* enum redlock_event_kind */
    int32_t status;       /* enum redlock_error */
    redlock_lock_t *lock; /* NULL: event of a node, not acquired yet, or its handle was freed */
    const char *resource; /* name of the lock, the first one of several; NULL: event of a node */
    const char *node;     /* address of the node; NULL: event of a lock */
    const redlock_report_t *report; /* state of the lock; NULL: event of a node */
    uint64_t remaining_ms;          /* validity left; 0: none, or event of a node */
} redlock_event_t;

/* Receives events: of one lock (opts.event_fn), or of a client and all its locks
 * (redlock_config_set_event()). Runs where callbacks run (enum redlock_mode). It may start, cancel
 * and free; it should not wait, because other callbacks wait for it.
 *
 * rl, event: borrowed for the call.
 * userdata: as given with the function. */
typedef void (*redlock_event_fn)(redlock_t *rl, const redlock_event_t *event, void *userdata);

/* Ends the use of a lock's event function and its userdata (opts.event_end_fn). It may start,
 * cancel and free; it should not wait, because other callbacks wait for it.
 *
 * userdata: opts.event_userdata; the function may free what it points to.
 * Since 0.2.0. */
typedef void (*redlock_event_end_fn)(void *userdata);

#ifdef __cplusplus
}
#endif
#endif
