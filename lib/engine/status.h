/* SPDX-License-Identifier: MIT
 * What the engine knows of its nodes and locks, as plain data for the api layer, which does not use
 * nodes itself. All functions require the client's mutex. `node` is the index of a node, and
 * `cause` an enum redlock_cause. Functions that write to `text` write at most `size` bytes, with a
 * NUL. */
#ifndef RL_ENGINE_STATUS_H
#define RL_ENGINE_STATUS_H

#include "engine/engine.h"

#include <redlock/redlock.h>

/* The state of one node at this moment: a copy. The texts belong to the engine and are valid until
 * the mutex is released. */
struct rl_node_status {
    const char *name;    /* address without secrets */
    const char *run_id;  /* run id of the last server that was greeted; "": unknown */
    const char *error;   /* last error of the connection, in words; "": none */
    uint8_t error_cause; /* enum redlock_cause: why the node is down or suspect; NONE: it is not */
    uint8_t cause;       /* enum redlock_cause: why its grants of new locks do not count; NONE if
                          * they do */
    bool answers;        /* connected and greeted, not suspect, can be sent a request, not a
                          * duplicate */
    bool votes;          /* `answers`, and its grants of new locks count */
    bool down;           /* not connected, and not connecting at present */
    bool closed;         /* `down`, and it will not be connected again */
    bool identified;     /* the run id is known, and the server replies to INFO */
};

/* Returns the state of one node. */
struct rl_node_status rl_engine_node_status(const struct rl_engine *engine, unsigned node);

/* Writes why the node is excluded, if `cause` is the cause of its first exclusion; a node may have
 * several. Sets the time in milliseconds after which its votes count again; 0: the operator must
 * act first. Returns false and writes nothing if the first exclusion has another cause. */
bool rl_engine_exclusion_text(const struct rl_engine *engine, unsigned node, uint8_t cause,
                              char *text, size_t size, uint64_t *ret_votes_again_ms);
/* Writes why a request to the node failed with `cause`. If the last error of its connection has
 * that cause, or the cause stands for an error reply, writes the text of that error. */
void rl_engine_failure_text(const struct rl_engine *engine, unsigned node, uint8_t cause,
                            char *text, size_t size);
/* Fills the statistics of one node, except for the fields about its shard, which are 0. */
void rl_engine_node_stats(const struct rl_engine *engine, unsigned node,
                          redlock_node_stats_t *ret_stats);

/* Returns why the client is not ready, that is, why the votes of fewer than a quorum of nodes
 * count: EAUTH or EEXCLUDED if that alone makes a quorum impossible, else ENOQUORUM. */
int rl_engine_unready_status(const struct rl_engine *engine);
/* Returns whether two configured addresses lead to one server. */
bool rl_engine_has_duplicate(const struct rl_engine *engine);

/* Notes the times to live that an inspection (`lock`) has seen on the nodes, because a TTL longer
 * than max_ttl makes quarantines longer. Returns the nodes on which the key lives longer than
 * max_ttl. */
rl_nodes rl_engine_note_ttls(struct rl_engine *engine, const struct rl_lock *lock);

/* How far the last operation on a lock has come: a copy. */
struct rl_progress {
    uint32_t attempts;     /* attempts that were begun */
    unsigned rounds;       /* rounds of the last attempt: 2 if a RAISE was needed; 0: none yet */
    uint64_t waited_ns;    /* time since the operation began (rl_lease.begun) */
    uint64_t elapsed_ns;   /* time since the last round began; 0: none yet */
    uint64_t remaining_ns; /* time until the deadline of the held lock; 0: the lock is not held */
    uint32_t line_place;   /* place in the line of the resource, from 1; 0: it waits in none */
    uint32_t line_length;  /* waiters in that line */
};

/* Returns how far the last operation on a lock has come at the time `now`. */
struct rl_progress rl_lock_progress(const struct rl_lock *lock, struct rl_now now);

/* Returns the time in milliseconds after which the keys of the lock have expired on all of `nodes`,
 * even if no undo reaches them; RL_NEVER: not known. The lock may have ended. */
uint64_t rl_engine_keys_left_ms(const struct rl_engine *engine, const struct rl_lock *lock,
                                rl_nodes nodes);

/* Returns the shortest time until the deadline of any held lock, in nanoseconds; RL_NEVER if none
 * is held. Looks at all active locks. */
uint64_t rl_engine_shortest_validity_ns(const struct rl_engine *engine);

/* Returns the names and versions of the libraries that the engine was built with. */
const char *rl_engine_libraries(void);
/* Checks that the process uses libraries compatible with those that the engine was compiled
 * against. Returns REDLOCK_OK, ELIBRARY with the reason in `text`, ENOMEM or ESYS. */
int rl_engine_check_libraries(char *text, size_t size);

#endif
