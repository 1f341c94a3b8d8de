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
 * contention.c changes it; other files read `yield_until_ns` directly. Counters stop at their
 * largest value. */
struct rl_contention {
    const uint8_t *order; /* the ranking: the indices of all nodes, most preferred first; owned by
                           * the caller of rl_contention_init() */
    uint64_t recent_until_ns; /* until when contention is recent; 0: never noticed */
    uint64_t yield_until_ns;  /* before this time, an acquisition of this client does not begin its
                               * first attempt; 0: no limit */
    uint64_t released_ns;     /* when this client last released the resource; 0: never */
    uint64_t series_ns;       /* when the series that `in_a_row` counts began */
    uint64_t slots_held;      /* semaphore: slots that this client holds; bit i is slot i < 64 */
    uint64_t slots_released;  /* semaphore, same bits: slots that this client has released, and that
                               * rl_contention_slot() has not returned for that reason since */
    rl_nodes preferred;  /* the node asked first by the last denied attempt, if that node did not
                          * deny; 0: that node denied, or no attempt was denied yet. An attempt
                          * that does not show it leaves the field as it is */
    rl_nodes skipped;    /* nodes that are not preferred while contention is recent, because
                          * their votes were often those of a minority */
    uint32_t contenders; /* an estimate of the number of contenders, in eighths; 0: unknown. It is
                          * the smoothed number of notifications between two grants */
    uint16_t notifications; /* notifications since this client last won an attempt */
    struct rl_line line;    /* this client's place in the line; owned by lease_line.c */
    uint8_t nodes;          /* elements of `order` */
    uint8_t splits;   /* split votes since the last grant, 4 for each; a denied attempt without
                       * a split subtracts 1 */
    uint8_t misses;   /* denied attempts in a row that `preferred`, always the same node, did
                       * not deny */
    uint8_t stale;    /* won attempts in a row that the node asked first has denied */
    uint8_t in_a_row; /* acquisitions of the present series: those that this client began right
                       * after its own release, at most two round trips later */
    uint8_t contended_in_a_row;  /* the value of `in_a_row` at which the client yields while
                                  * `contended`; 0 at first and after a denied attempt; then 1,
                                  * doubled each time no contender has appeared, up to 128 */
    uint8_t request_all_backoff; /* 0 to 5: how often the probability of an attempt that asks all
                                  * nodes at once is halved, because such attempts have failed */
    bool has_split;              /* an attempt since the last grant has split the votes */
    bool contended; /* since the client has yielded last, a node has denied an attempt that won:
                     * there may be other contenders */
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

/* Notes an attempt that was denied. `split`: some node has granted the attempt. `first`: the node
 * that was asked first, if that node did not deny; it may have lost the holder's key, or be unable
 * to store one. 0: the node asked first did deny. RL_CONTENTION_UNKNOWN: the attempt does not show
 * whether it did. */
#define RL_CONTENTION_UNKNOWN (~(rl_nodes)0)
void rl_contention_note_denial(struct rl_contention *contention, bool split, rl_nodes first,
                               uint64_t now_ns);
/* Notes a notification that the key has changed. */
void rl_contention_note_notification(struct rl_contention *contention, uint64_t now_ns);
/* Returns whether the preferred node is doubtful: the last attempts were denied, but not by that
 * node, and after one more of them it is skipped. That it does not have the key shows nothing then,
 * because the holder may have won without it. */
bool rl_contention_doubts_preferred(const struct rl_contention *contention);
/* Notes the start of an acquisition, before its first attempt: continues the series of this client
 * or begins a new one. Forgets contention that is not recent. */
void rl_contention_note_start(struct rl_contention *contention, uint64_t round_trip_ns,
                              uint64_t now_ns);
/* Notes whether `first`, the node that was asked first, has granted an attempt that won. If it
 * denies several in a row, its key belongs to no holder, and it is skipped. */
void rl_contention_note_preferred(struct rl_contention *contention, rl_nodes first, bool granted);
/* Notes that an attempt has won, and adjusts the estimate of the number of contenders. */
void rl_contention_note_grant(struct rl_contention *contention);
/* Notes that some node has denied an attempt that has won; the denial may come before or after the
 * attempt is decided. */
void rl_contention_note_contender(struct rl_contention *contention);
/* Notes that this client sends a release. If contention is recent, or if this client has acquired
 * the resource many times in a row, sets `yield_until_ns`, so that another contender can acquire
 * it: otherwise the next request of this client would arrive right after the delete, before any
 * other client gets a notification. */
void rl_contention_note_release(struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random, uint64_t now_ns);

/* Returns whether the attempt after a notification should ask all nodes at once, at random. All
 * waiters get the notification; on average about one of them does so. If only one does, it wins in
 * one round trip, because the others ask the preferred node only, after rl_contention_delay_ns().
 */
bool rl_contention_requests_all(const struct rl_contention *contention, uint64_t random);
/* Notes whether an attempt that asked all nodes at once has won. */
void rl_contention_note_request_all(struct rl_contention *contention, bool won);
/* Returns the delay of an attempt after a notification that asks the preferred node first, in
 * nanoseconds. A client that has had more notifications since its last grant delays less. */
uint64_t rl_contention_delay_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random);

/* Returns how many split votes there were since the last grant, reduced by later denials without a
 * split. */
unsigned rl_contention_splits(const struct rl_contention *contention);
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

/* Notes that other clients wait in the line of the resource. */
void rl_contention_note_line(struct rl_contention *contention, uint64_t now_ns);

/* Returns the first of `candidates` in the ranking as a set of one node, empty if `candidates` is.
 * Skipped nodes count like others, so that all clients agree. */
rl_nodes rl_contention_first(const struct rl_contention *contention, rl_nodes candidates);

/* Returns the most preferred of `candidates` as a set of one node, empty if `candidates` is.
 * Skipped nodes are returned only if there are no others. */
rl_nodes rl_contention_preferred(const struct rl_contention *contention, rl_nodes candidates);

#endif
