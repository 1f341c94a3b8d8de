/* SPDX-License-Identifier: MIT
 * The reply of the script of the line (rl_script_line) as a struct, and the value of the key of a
 * line as a list of waiters.
 *
 * The line of a resource consists of its waiters in order of arrival, kept on the preferred node. A
 * head is a waiter whose turn it is, by a notification or by the reply to its own request. The
 * others make no attempt, except the last one of their call. */
#ifndef RL_CORE_LINE_H
#define RL_CORE_LINE_H

#include "core/wire.h"

/* Most heads of the line of a semaphore. More of them would search for the same free slot. */
#define RL_LINE_HEADS_MAX 4

/* What a lease knows of its place in the line. Owners: lease_line.c, and lease_head.c of `second`,
 * `absent_tries`, `pauses` and `expires`. */
struct rl_line {
    rl_nodes node;   /* the node in whose line this client is, or asks to be; 0: none */
    rl_nodes second; /* a head: a further node that it watches, because `node` is stale
                      * (rl_line_memory.stale); 0: none */
    bool head;       /* this client was a head when the node replied last */
    bool asking;     /* a JOIN, FRONT, DROP, or the LEAVE of rl_line_move(), has no reply yet */
    bool woken;      /* while `asking`: a notification has come */
    bool changed;    /* while `asking`: the key has changed, or that is unknown */
    bool moves;      /* lock of several keys: leaves the line of one key for that of another */
    bool front;      /* LINE_SERVED has left the line, but the attempt was not won: the next request
                      * joins in front */
    bool pauses;     /* a head makes no attempt before lease->next, whatever the servers notify */
    bool expires;    /* a head: lease->next is when the key expires */
    uint8_t out;     /* enum rl_line_out: the LINE_SERVED of the last attempt */
    uint8_t absent_tries; /* attempts in a row that began, or would have without the pause, because
                           * a node did not have the key */
    uint64_t idle_head;   /* the first head at the last look; 0: none */
    uint64_t idle_beat;   /* that head's beat: a number that changes with each of its requests */
    uint64_t idle_since_ns; /* boot clock: when this client first saw that head with that beat */
    uint32_t place;         /* in the line, counted from 1, by the last reply; 0: not in it */
    uint32_t length;        /* waiters in the line, by the last reply */
};

/* What has become of the LINE_SERVED that was sent with an attempt. */
enum rl_line_out {
    RL_LINE_OUT_NONE = 0, /* none was sent, or this client is still in the line */
    RL_LINE_OUT_OPEN,     /* no reply yet */
    RL_LINE_OUT_LEFT      /* this client is not in the line any more */
};

/* What this client remembers of the lines of a resource from one lock to the next. Owner:
 * lease_line.c. */
struct rl_line_memory {
    uint64_t waiter_salt;    /* rl_lease.salt of the lease that was the last to join a line; 0: it
                              * has ended, and its record is for the next one in the queue */
    uint64_t avoid_until_ns; /* until then, the lines of the nodes in `avoid` are not used */
    rl_nodes joined;         /* nodes whose line may have a record of this client */
    rl_nodes former; /* those of `joined` from whose line this client has moved, and to which
                      * it does not return: it asks to leave them until they reply */
    rl_nodes avoid;  /* nodes that have refused a request to the line, or not replied */
    rl_nodes stale;  /* nodes whose key does not show whether the lock is held. A node is
                      * added when it has denied an attempt that won, or granted one that a
                      * quorum denied. A head that gets no notification until its timer
                      * adds its node, or removes it if it was there */
};

/* What the server has replied to a request to a line. */
struct rl_line_reply {
    uint32_t place;        /* of this client in the line, counted from 1; 0: not in it */
    uint32_t length;       /* waiters in the line */
    bool is_head;          /* this client is a head */
    bool exists;           /* the key of the lock exists */
    uint64_t pttl_ms;      /* remaining TTL of that key; 0: this client is no head, or no expiry */
    uint64_t head;         /* id of the first head; 0: there is none */
    uint64_t head_beat;    /* its beat */
    uint64_t head_trip_us; /* its round trip to the server, in microseconds */
};

/* Reads a reply of `len` bytes into `*ret`. Returns false if it is anything else. */
bool rl_line_parse(const char *text, size_t len, struct rl_line_reply *ret);

/* ---- who waits: read for people only ---- */

/* Bytes of the value of a line that are read at most. */
#define RL_LINE_VALUE_MAX 65536

/* One waiter, as its record says. The record was written by that waiter, so all of it may be wrong.
 */
struct rl_line_waiter {
    char state;          /* 'w' waits, 'h' is a head, 'd' cannot be notified; or another letter */
    uint64_t since_ms;   /* when its wait began, in ms of Unix time by its wall clock; 0: unknown */
    struct rl_arg owner; /* its owner label: any bytes but '\n'; borrowed from the value */
};

/* Writes the text of a waiter's record: when its wait began, in ms of Unix time, and its owner
 * label. Writes '?' for each control byte, and leaves out what exceeds RL_LINE_TEXT_MAX. Returns
 * the length; there is no NUL. */
size_t rl_line_write_text(char text[RL_LINE_TEXT_MAX], uint64_t since_ms, struct rl_arg owner);

/* Begins to read the value of a key: sets `*ret_records` to its records. Returns false if the value
 * is not that of a line. */
bool rl_line_open(struct rl_arg value, struct rl_arg *ret_records);
/* Reads the next waiter, in the order of the line, and removes its record from `records`. Skips
 * damaged records. Returns false at the end. */
bool rl_line_next_waiter(struct rl_arg *records, struct rl_line_waiter *ret);

#endif
