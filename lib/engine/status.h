/* SPDX-License-Identifier: MIT
 * What the engine knows of its nodes and locks, as plain data for the floor above, which sees no
 * node itself. The client's mutex is held throughout. */
#ifndef RL_ENGINE_STATUS_H
#define RL_ENGINE_STATUS_H

#include "engine/engine.h"

#include <redlock/redlock.h>

/* One node at this moment. Texts belong to the engine and are valid until the mutex is released. */
struct rl_node_status {
    const char *name;
    const char *run_id;  /* of the last server that was greeted; "": unknown */
    const char *error;   /* the last error in words; "": none */
    uint8_t error_cause; /* enum redlock_cause of `error` */
    uint8_t cause;       /* enum redlock_cause: why its votes do not count; NONE if they do */
    bool answers;        /* connected and greeted, not suspect, no duplicate */
    bool votes;          /* answers, and its grants of new locks count */
    bool down;           /* has no connection and makes none */
    bool closed;         /* down, and will not be connected again */
    bool identified;     /* INFO tells which server it is */
};

struct rl_node_status rl_engine_node_status(const struct rl_engine *engine, unsigned node);

/* Writes why the node is excluded, if `cause` is the first reason for that now. Sets the time after
 * which its votes count again; 0 if that needs an operator. Returns false, and writes nothing, if
 * the reason is another one. */
bool rl_engine_exclusion_text(const struct rl_engine *engine, unsigned node, uint8_t cause,
                              char *text, size_t size, uint64_t *ret_votes_again_ms);
/* Writes why a request to the node failed with `cause`, in the node's own words if it has any. */
void rl_engine_failure_text(const struct rl_engine *engine, unsigned node, uint8_t cause,
                            char *text, size_t size);
/* Fills all of the statistics but the shard. */
void rl_engine_node_stats(const struct rl_engine *engine, unsigned node,
                          redlock_node_stats_t *ret_stats);

/* Returns why too few nodes may vote: EAUTH, EEXCLUDED or ENOQUORUM. */
int rl_engine_unready_status(const struct rl_engine *engine);
/* Returns whether two addresses lead to one server. */
bool rl_engine_has_duplicate(const struct rl_engine *engine);

/* Takes note of the TTLs that an inspection has seen. Returns the nodes on which the key lives
 * longer than max_ttl. */
rl_nodes rl_engine_note_ttls(struct rl_engine *engine, const struct rl_lock *lock);

/* How far the operation that ran last on a lock has come. */
struct rl_progress {
    uint32_t attempts;
    unsigned rounds; /* of the last attempt */
    uint64_t waited_ns;
    uint64_t elapsed_ns;   /* of the last attempt */
    uint64_t remaining_ns; /* until the deadline of what is held; 0: nothing is */
};

struct rl_progress rl_lock_progress(const struct rl_lock *lock, struct rl_now now);

/* Returns the libraries that the engine was built with, and their versions. */
const char *rl_engine_libraries(void);
/* Checks that the process has bound the libraries that the engine was compiled against: 0,
 * ELIBRARY with the reason in `text`, ENOMEM or ESYS. */
int rl_engine_check_libraries(char *text, size_t size);

#endif
