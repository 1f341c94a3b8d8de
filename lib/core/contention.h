/* SPDX-License-Identifier: MIT
 * What a client remembers about the contention for one resource, and what follows from it: which
 * node an attempt asks first, how long the client waits before an attempt, and whether it leaves
 * the resource to other contenders after a release.
 *
 * Contenders that ask all nodes at once split the votes: none gets a quorum, and the more
 * contenders there are, the more often that happens. So a client that has noticed other contenders
 * asks the preferred node first, which is the same for all of them, and the other nodes after its
 * grant.
 *
 * All times are readings of the boot clock in nanoseconds. `round_trip_ns` is the usual round trip
 * of the servers, `random` a random word. Nothing here decides whether a lock is held, only when
 * nodes are asked. A series is a number of acquisitions in a row that this client begins right
 * after its own releases.
 */
#ifndef RL_CORE_CONTENTION_H
#define RL_CORE_CONTENTION_H

#include "core/line.h"

/* How long contention counts as recent after the client has noticed other contenders. */
#define RL_CONTENTION_RECENT_NS (RL_SECOND)

/* The memory of one resource. It is part of the resource state and outlives single locks. Only
 * contention.c changes it, except for `line` and `followers` (resource.c); other files read
 * `yield_until_ns` directly. Counters stop at their largest value. */
struct rl_contention {
    const uint8_t *order; /* the ranking: the indices of all nodes, most preferred first; owned by
                           * the caller of rl_contention_init() */
    uint64_t recent_until_ns; /* until when contention is recent; 0: never noticed */
    uint64_t yield_until_ns;  /* before this time, an acquisition of this client does not begin its
                               * first attempt, unless it waits in the line; 0: no limit */
    uint64_t released_ns;     /* when this client last released the resource; 0: never */
    uint64_t series_ns;       /* when the series that `in_a_row` counts began */
    uint64_t slots_held;      /* semaphore: slots that this client holds; bit i is slot i < 64 */
    uint64_t slots_released;  /* semaphore, same bits: slots that this client has released, and that
                               * rl_contention_slot() has not returned for that reason since */
    struct rl_line_memory line; /* what is remembered of its lines; owner: lease_line.c */
    uint32_t followers;         /* locks of this resource alone in the queue of this client */
    uint8_t nodes;              /* elements of `order` */
    uint8_t splits;             /* split votes since the last grant */
    uint8_t in_a_row;           /* acquisitions of the present series: those that this client began
                                 * right after its own release, at most two round trips later */
};

/* Initializes the memory, with nothing noted, and ranks the nodes by their scores for this
 * resource, the highest first. `scores` has `nodes` elements, 1 to RL_NODES_MAX; the ranking is
 * written to `order`, which has as many and is borrowed. The scores are hashes of node and resource
 * (rendezvous hashing), so clients with different lists of servers rank those that they share in
 * the same order. */
void rl_contention_init(struct rl_contention *contention, uint8_t *order, unsigned nodes,
                        const uint64_t *scores);

/* Returns whether contention is recent: other contenders were noticed, by a denial or a
 * notification, within the last RL_CONTENTION_RECENT_NS. */
bool rl_contention_is_recent(const struct rl_contention *contention, uint64_t now_ns);

/* Notes other contenders: a notification has come, or there is a line of waiters. */
void rl_contention_note(struct rl_contention *contention, uint64_t now_ns);
/* Notes an attempt that was denied. `split`: some node has granted the attempt. */
void rl_contention_note_denial(struct rl_contention *contention, bool split, uint64_t now_ns);
/* Notes the start of an acquisition, before its first attempt: continues the series of this client
 * or begins a new one. If contention is not recent, forgets the split votes. */
void rl_contention_note_start(struct rl_contention *contention, uint64_t round_trip_ns,
                              uint64_t now_ns);
/* Returns whether this acquisition also asks how many clients wait in the line: in a series, the
 * 1st, 8th and 64th after the first one. */
bool rl_contention_counts_waiters(const struct rl_contention *contention);
/* Notes that an attempt has won. */
void rl_contention_note_grant(struct rl_contention *contention);
/* Notes that this client sends a release. If contention is recent, or if this client has acquired
 * the resource many times in a row, sets `yield_until_ns`, so that another contender can acquire
 * it: otherwise the next request of this client would arrive right after the delete, before any
 * other client gets a notification. */
void rl_contention_note_release(struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random, uint64_t now_ns);

/* Returns the random delay of an attempt after a notification that all waiters have got, in
 * nanoseconds. */
uint64_t rl_contention_delay_ns(uint64_t round_trip_ns, uint64_t random);
/* Returns the random pause after an attempt that has split the votes, in nanoseconds; 0 without
 * one. The caller counts the pause from the end of the attempt, regardless of notifications. A
 * pause after each notification would let all other contenders go first each time. */
uint64_t rl_contention_pause_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random);

/* Returns the slot at which a search among `count` > 0 slots begins: one that this client has
 * released, if contention is not recent; else a random one that it does not hold, if it knows any.
 */
unsigned rl_contention_slot(struct rl_contention *contention, unsigned count, uint64_t random,
                            uint64_t now_ns);
/* Notes that this client has acquired (`held`) or released the slot. */
void rl_contention_slot_held(struct rl_contention *contention, unsigned slot, bool held);

/* Returns the first of `candidates` in the ranking, as a set of one node; 0: there is none. */
rl_nodes rl_contention_preferred(const struct rl_contention *contention, rl_nodes candidates);

#endif
