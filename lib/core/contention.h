/* SPDX-License-Identifier: MIT
 * How clients that want the same resource keep out of each other's way. Contenders that ask all
 * nodes at once split the votes: nobody gets a majority, all take theirs back, and the more they
 * are, the worse it gets. So whoever has met others at a resource asks one node first, the same for
 * all of them, and the rest only with its grant.
 *
 * What is known of one resource; it outlives single locks. All times are of the boot clock: nothing
 * here decides who holds a lock, only who asks when. */
#ifndef RL_CORE_CONTENTION_H
#define RL_CORE_CONTENTION_H

#include "core/types.h"

#define RL_CONTENTION_RECENT_NS (RL_SECOND)

struct rl_contention {
    const uint8_t *order;     /* all nodes; the first is asked first */
    uint64_t recent_until_ns; /* others were met a second before that */
    uint64_t yield_until_ns;  /* others go first until then */
    uint64_t released_ns;     /* our last release; 0: none */
    uint64_t row_ns;          /* when the row of `in_a_row` began */
    /* Of a semaphore, for its first 64 slots, bit by bit: */
    uint64_t slots_held;     /* by this client */
    uint64_t slots_released; /* let go by it, and not asked for since */
    rl_nodes preferred;      /* was asked first and did not say no, but the attempt was denied */
    rl_nodes skipped;        /* not asked first while it is hot: they had misled us */
    uint32_t contenders;     /* how many wakes it takes, smoothed, in eighths; 0: not known */
    /* Numbers: where they end they stay. */
    uint16_t notifications; /* pushes that we have answered since we got it last */
    uint8_t nodes;
    uint8_t splits;   /* attempts since our last grant that some node granted and that failed,
                       * weighed; denials by all make it less */
    uint8_t misses;   /* `preferred` is the same, so often in a row */
    uint8_t stale;    /* so often the first denied what was won all the same, never granted */
    uint8_t in_a_row; /* acquired right after our own release, so many times */
    uint8_t contended_in_a_row;  /* `contended` is believed after so many, as others did not show */
    uint8_t request_all_backoff; /* going ahead has failed: not so often, by this power of two */
    bool has_split; /* some attempt has split the votes since our last grant: it does not go
                     * ahead */
    bool contended; /* some node had denied what we got: others are there */
};

/* Ranks the nodes by their scores for this resource, the highest first (rendezvous hashing: clients
 * that list the same nodes in another order, or some other nodes, agree on the order of those that
 * they share). `order` is written here, an element for each node, and stays the owner's. */
void rl_contention_init(struct rl_contention *contention, uint8_t *order, unsigned nodes,
                        const uint64_t *scores);

/* Others were met within the last second. */
bool rl_contention_is_recent(const struct rl_contention *contention, uint64_t now_ns);

/* An attempt was denied; `split`: some node had granted it. `preferred`: is asked first, and did
 * not deny it: maybe it has lost the holder's key, or cannot store any. 0: it did;
 * RL_CONTENTION_UNKNOWN: the attempt did not show that. */
#define RL_CONTENTION_UNKNOWN (~(rl_nodes)0)
void rl_contention_note_denial(struct rl_contention *contention, bool split, rl_nodes first,
                               uint64_t now_ns);
/* A server told that the key has changed. */
void rl_contention_note_notification(struct rl_contention *contention, uint64_t now_ns);
/* The node that is asked first has misled us more than once in a row, and will be passed over if it
 * does so again: that the key is not there says nothing. Maybe the holder has won without it. */
bool rl_contention_doubts_preferred(const struct rl_contention *contention);
/* An attempt begins that no denial came before. */
void rl_contention_note_start(struct rl_contention *contention, uint64_t round_trip_ns,
                              uint64_t now_ns);
/* An attempt has won although the node that is asked first had denied it (`granted` false), or with
 * its grant. If it denies again and again what others grant, and never grants, its key is nobody's.
 */
void rl_contention_note_preferred(struct rl_contention *contention, rl_nodes first, bool granted);
/* An attempt has won. */
void rl_contention_note_grant(struct rl_contention *contention);
/* Some node has denied it, before it was won or later. */
void rl_contention_note_contender(struct rl_contention *contention);
/* Our own release is on its way. Where others are waiting, or when this client has taken the
 * resource many times without a pause, the next one to take it is not to be this client: its SET
 * would sit right behind its own delete, before anybody has heard of it. */
void rl_contention_note_release(struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random, uint64_t now_ns);

/* Woken by a push, with many others: is this client to ask all nodes at once? Of as many as there
 * are, one does on average. Who is alone in that wins in one round trip, whatever the others do;
 * these ask the first node only, a little later. */
bool rl_contention_requests_all(const struct rl_contention *contention, uint64_t random);
/* What became of that. */
void rl_contention_note_request_all(struct rl_contention *contention, bool won);
/* How much later: who was woken more often since it got it last is sooner than others. */
uint64_t rl_contention_delay_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random);

/* So many attempts have split the votes, and not too many others were made since. */
unsigned rl_contention_splits(const struct rl_contention *contention);
/* How long to stay away after an attempt that split the votes, however loudly the servers call:
 * from its end on, and once. Whoever pauses at every word of a release after that is behind all
 * others each time, and goes on splitting votes. */
uint64_t rl_contention_pause_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random);

/* Of `count` slots one to begin with: one that this client let go, if nobody else seems to want
 * any, else any that it does not hold. */
unsigned rl_contention_slot(struct rl_contention *contention, unsigned count, uint64_t random,
                            uint64_t now_ns);
/* This client holds the slot from now on, or no more. */
void rl_contention_slot_held(struct rl_contention *contention, unsigned slot, bool held);

/* The first of `candidates` by rank, without those that misled us; none if there are none. */
rl_nodes rl_contention_preferred(const struct rl_contention *contention, rl_nodes candidates);

#endif
