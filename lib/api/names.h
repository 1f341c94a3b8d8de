/* SPDX-License-Identifier: MIT
 * The names of what is locked, and the keys that they become. */
#ifndef RL_API_NAMES_H
#define RL_API_NAMES_H

#include "core/types.h"
#include "engine/lock.h"

#include <redlock/redlock.h>

struct redlock;

struct rl_names {
    unsigned count;
    const char *list[RL_KEYS_MAX]; /* as the caller named them */
    uint16_t lens[RL_KEYS_MAX];
};

/* The keys of a lock, in ascending order. */
struct rl_keys {
    unsigned count;
    struct rl_arg list[RL_KEYS_MAX];
    char bytes[RL_KEY_MAX]; /* of a single one */
    char *allocated;        /* of several */
};

/* EINVAL if there are too many, or one cannot be a name, or is there twice; `refusal` (may be NULL)
 * says so. */
int rl_names_collect(struct redlock *rl, const char *resource, const char *const *also,
                     size_t also_count, struct rl_names *ret, redlock_report_t **refusal);
/* Refuses names whose keys, or the keys of whose slots, are the fence record's: a token under that
 * key makes fenced locks impossible for all clients. permits: 0 where the names are the keys. */
int rl_names_check_record(struct redlock *rl, const struct rl_names *names, uint32_t permits,
                          redlock_report_t **refusal);
/* Makes the keys of the lock's names. false: no memory. */
bool rl_names_keys(const struct redlock_lock *handle, struct rl_keys *ret);
void rl_names_keys_done(const struct redlock_lock *handle, struct rl_keys *keys);
/* Returns the name that was taken when an attempt on several failed; NULL: unknown. */
const char *rl_names_taken(const struct redlock_lock *handle);

#endif
