/* SPDX-License-Identifier: MIT
 * A claim: one token that may be set on some nodes, under one key or several, and all that is
 * needed to remove that token there. A claim outlives the attempt that made it, until the last undo
 * is confirmed or the keys have expired. */
#ifndef RL_NODE_CLAIM_H
#define RL_NODE_CLAIM_H

#include "core/protocol.h"
#include "core/types.h"
#include "platform/memory.h"

/* One token and the keys that it may be set under. A node sets all keys of a claim or none. The
 * command of an undo is built when the undo is sent, so a pending undo needs only the claim.
 *
 * A claim is reference-counted, and is used by one thread at a time. Keys, token and lengths belong
 * to claim.c. The lock or record that made the claim sets the values that are sent, before it sends
 * a request. The nodes keep requested_ns, renewed_ns, undo_pending and maybe_executed. All instants
 * are on the boot clock. */
struct rl_claim {
    const struct rl_mem *mem; /* borrowed: allocated the claim */
    void *owner; /* object of the engine that the votes are reported to (a lock or a fence record);
                  * NULL: no vote is reported */
    uint64_t ttl_ms;        /* TTL of the request that is sent next, in milliseconds */
    uint64_t ttl_max_ms;    /* longest TTL of all requests, in milliseconds: bounds how long a key
                             * stays */
    uint64_t requested_ns;  /* when the last request was appended to a pipeline, or when the
                             * connection that it had to wait for became ready */
    uint64_t renewed_ns;    /* the latest instant at which the key may have been created, or its TTL
                             * reset, as far as known; 0: no request has done
                             * that */
    uint64_t keep_until_ns; /* instant until which the key shall stay; valid while undo_verb is
                             * RL_VERB_SHORTEN */
    uint64_t proposal;      /* with `fenced`: the fencing token that the vote proposes */
    uint64_t fence;         /* with `fenced`: the fencing token that RAISE writes */
    uint32_t refs;      /* references: the owner, each request in a pipeline, each pending undo, and
                         * each vote in the inbox hold one */
    bool undo_found;    /* set and read by rl_pipeline_has_bare_set() alone, during one call */
    uint32_t key_len;   /* bytes of the first key */
    uint32_t token_at;  /* offset of the token in `bytes` */
    uint32_t token_len; /* bytes of the token; 0: not set yet */
    rl_nodes undo_pending;   /* nodes that keep a pending undo of this claim */
    rl_nodes maybe_executed; /* nodes that may still execute a request that creates the key or
                              * resets its TTL: the connection of the node ended before the
                              * reply, and no reply has come since a later greeting */
    uint16_t stripe;         /* with `fenced`: selects the register of the fence record */
    uint16_t slot;           /* semaphore: number of the slot whose key this is; else 0 */
    uint8_t undo_verb;       /* RL_VERB_RELEASE, or RL_VERB_SHORTEN after a delayed release */
    uint8_t more_keys;       /* keys besides the first; 0 to RL_KEYS_MAX - 1 */
    uint8_t probed_key;      /* index of the key that PTTL reads; 0: the first key */
    uint16_t permits;        /* of the semaphore that the lock is for; 0: none */
    uint64_t since_ms;       /* LINE_*: when the acquisition began, in ms of Unix time */
    uint64_t victim;         /* LINE_DROP: id of the head that makes no requests */
    uint64_t victim_beat;    /* LINE_DROP: its beat */
    bool is_record; /* the key is that of a fence record; the token is the record's mark, followed
                     * by the numbers of its registers */
    bool forced;    /* with `is_record`: SEED ignores which mark the record has */
    bool fenced;    /* ACQUIRE also proposes the fencing token `proposal` */
    bool too_early; /* with `fenced`: votes do not count, because a majority of the fence records
                     * was not seen in use yet */
    bool unread;    /* with `too_early`: if all records that were not read are in use, they complete
                     * a majority */
    char bytes[]; /* the first key; then for each other key its length (uint16_t) and the key; then
                   * the token, at `token_at` */
};

/* Makes a claim on `key`, with one reference and room for a token of `token_max` bytes. Copies the
 * key. Returns NULL without memory. */
struct rl_claim *rl_claim_new(const struct rl_mem *mem, struct rl_arg key, size_t token_max);
/* Makes a claim on the `count` keys `keys` (1 to RL_KEYS_MAX); else as rl_claim_new(). */
struct rl_claim *rl_claim_new_multi(const struct rl_mem *mem, const struct rl_arg *keys,
                                    unsigned count, size_t token_max);
/* Makes a claim on the keys of `claim`; all other values are those of a new claim. Else as
 * rl_claim_new(). */
struct rl_claim *rl_claim_new_like(const struct rl_claim *claim, size_t token_max);
/* Frees a claim without references. Wipes it, because the token is the right to delete the key. */
void rl_claim_free(struct rl_claim *claim);
/* Drops one reference and frees the claim with the last one. `claim` may be NULL. */
static inline void rl_claim_drop(struct rl_claim *claim)
{
    if (claim == NULL)
        return;
    RL_ASSERT(claim->refs > 0);
    if (--claim->refs == 0)
        rl_claim_free(claim);
}

/* Copies the token into the claim. It has at most the `token_max` bytes that rl_claim_new() got. */
void rl_claim_set_token(struct rl_claim *claim, struct rl_arg token);

/* Adds a reference. Returns `claim`. */
static inline struct rl_claim *rl_claim_ref(struct rl_claim *claim)
{
    claim->refs++;
    return claim;
}

/* Returns the first key. Valid as long as the claim. */
static inline struct rl_arg rl_claim_key(const struct rl_claim *claim)
{
    return (struct rl_arg){claim->bytes, claim->key_len};
}

/* Returns the number of keys. */
static inline unsigned rl_claim_key_count(const struct rl_claim *claim)
{
    return claim->more_keys + 1u;
}
/* Stores all keys of the claim in `ret_keys`, in their order; they point into the claim. Returns
 * the number of keys. */
unsigned rl_claim_keys(const struct rl_claim *claim, struct rl_arg ret_keys[RL_KEYS_MAX]);

/* Returns the token. Valid as long as the claim. */
static inline struct rl_arg rl_claim_token(const struct rl_claim *claim)
{
    return (struct rl_arg){claim->bytes + claim->token_at, claim->token_len};
}
/* Returns true if `token` is the token of the claim. */
bool rl_claim_has_token(const struct rl_claim *claim, struct rl_arg token);

#endif
