/* SPDX-License-Identifier: MIT
 * What an inspection or a verification has seen on the nodes. An inspection reads the key, its time
 * to live and, if the client uses lines, who waits in the line of the resource. */
#ifndef RL_ENGINE_SEEN_H
#define RL_ENGINE_SEEN_H

#include "engine/lock.h"

/* What an inspection or a verification saw on one node. All zero: nothing yet. Owner: seen.c. */
struct rl_seen {
    bool present;      /* the key existed; with several keys: all of them had the token */
    bool foreign_kind; /* inspection: the key exists and is not a string, is longer than a token can
                        * be, or has the value of a line */
    bool ours;         /* verification: the key had the token; with several keys: all of them */
    char *value;       /* inspection: the key's value, allocated; NULL: none */
    size_t len;        /* bytes of `value` */
    int64_t pttl_ms;   /* time to live in milliseconds; -1: no expiry, or not asked; -2: there was
                        * no key */
    bool knows_line;   /* inspection: the node has said whether there is a line */
    bool of_permits;   /* `line` is that of the semaphore whose first slot the key is */
    char *line;        /* inspection: the value of the line's key, up to RL_LINE_VALUE_MAX bytes,
                        * allocated; NULL: none */
    size_t line_len;   /* bytes of `line` */
};

/* Notes in lock->seen what a node has replied to GET or PTTL; or that it has not, if the vote is
 * FAILED or SUSPECT. Returns whether the vote of the node is complete; `ballot` is then the vote of
 * all its replies, with the verb GET, which is that of the round. */
bool rl_seen_note_key(struct rl_engine *engine, struct rl_lock *lock, struct rl_ballot *ballot,
                      const struct rl_reply *reply);
/* Notes in lock->seen what a node has replied to LINE_LIST or LINE_PERMITS (`verb`); NULL: nothing.
 * It is no vote. */
void rl_seen_note_line(struct rl_engine *engine, struct rl_lock *lock, unsigned node,
                       enum rl_verb verb, const struct rl_reply *reply);

/* Returns the line of the resource that an inspection has seen on the most preferred node that has
 * one: the value of its key, for rl_line_open(). Of a semaphore's first slot: the line of the
 * semaphore, or that of the slot if there is none. Empty: there is none. It belongs to the lock. */
struct rl_arg rl_seen_line(const struct rl_engine *engine, const struct rl_lock *lock);
/* Returns whether two nodes showed the same value. False if one of them showed none. */
bool rl_seen_same(const struct rl_seen *a, const struct rl_seen *b);
/* Frees lock->seen and wipes the values, because a value is a token. */
void rl_seen_free(struct rl_engine *engine, struct rl_lock *lock);

#endif
