/* SPDX-License-Identifier: MIT
 * The names of resources, and the keys made from them. */
#ifndef RL_API_NAMES_H
#define RL_API_NAMES_H

#include "core/types.h"
#include "engine/lock.h"

#include <redlock/redlock.h>

struct redlock_client;

/* The names of the resources of one call. Made by names.c on the caller's stack. Invariant: all are
 * different and have 1 to RL_RESOURCE_MAX bytes. */
struct rl_names {
    unsigned count;                /* 1 to RL_KEYS_MAX */
    const char *list[RL_KEYS_MAX]; /* in the order of the call; the strings are the caller's */
    uint16_t lens[RL_KEYS_MAX];    /* bytes without the NUL */
};

/* The keys of a lock, in ascending order. Made by rl_names_keys() on the caller's stack, which must
 * not copy or move it: `list` may point into `bytes`. */
struct rl_keys {
    unsigned count;                  /* 1 to RL_KEYS_MAX */
    struct rl_arg list[RL_KEYS_MAX]; /* each key with the configured prefix */
    char bytes[RL_KEY_MAX];          /* the bytes of a single key */
    char *allocated;                 /* the bytes of several keys; NULL: there is one */
};

/* Collects and checks `resource` and the `also_count` names in `also`. Returns REDLOCK_OK, or
 * REDLOCK_EINVAL if there are too many, one is empty or too long, or two are equal; then `refusal`
 * (may be NULL) receives a report. Mutex held. */
int rl_names_collect(struct redlock_client *rl, const char *resource, const char *const *also,
                     size_t also_count, struct rl_names *ret, redlock_report_t **refusal);
/* Returns REDLOCK_EINVAL, with a report in `refusal` (may be NULL), if the key of a name, or of one
 * of its slots, is the key of the fence record, because a token under that key would make fenced
 * locks impossible for all clients; or if the key of a name has the form of the key of a line,
 * because clients would write a line there. `permits`: number of slots of the single name; 0: the
 * names are the keys. */
int rl_names_check_keys(struct redlock_client *rl, const struct rl_names *names, uint32_t permits,
                        redlock_report_t **refusal);
/* Returns whether the key has the form of the key of a line. */
bool rl_names_is_line(struct rl_arg key);
/* Makes the keys of the handle's names. False: no memory. rl_names_keys_done() frees them. */
bool rl_names_keys(const struct redlock_lock *handle, struct rl_keys *ret);
/* Frees the keys. */
void rl_names_keys_done(const struct redlock_lock *handle, struct rl_keys *keys);
/* Returns the name that another client held when an attempt on several names failed; NULL: it is
 * not known which. */
const char *rl_names_taken(const struct redlock_lock *handle);

#endif
