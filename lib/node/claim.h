/* SPDX-License-Identifier: MIT
 * A claim: one token that was, or may have been, set on some nodes under a key, or under several
 * (each of them has all these keys of the claim, or none). It carries all that
 * is needed to take the key back, long after the attempt that made it is forgotten. What an undo
 * has to know is kept here, before the first SET leaves; its words are formatted when it is sent,
 * and if there is no memory for that, the claim stays on the node's list until there is. */
#ifndef RL_NODE_CLAIM_H
#define RL_NODE_CLAIM_H

#include "core/protocol.h"
#include "core/types.h"
#include "platform/memory.h"

struct rl_claim {
    const struct rl_mem *mem;
    void *owner;            /* who wants the votes; NULL: nobody any more */
    uint64_t ttl_ms;        /* TTL of the request that is being sent */
    uint64_t ttl_max_ms;    /* longest TTL any node was given: how long a leftover may live */
    uint64_t requested_ns;  /* boot time of the last request: older than unsent bytes means sent */
    uint64_t renewed_ns;    /* boot time at which the key was last created or prolonged; 0: never */
    uint64_t keep_until_ns; /* SHORTEN: boot time up to which the key shall stay */
    uint64_t proposal;      /* with `fenced` */
    uint64_t fence;         /* with `fenced`: what RAISE raises to */
    uint32_t refs;          /* the owner, each request in a pipeline, each debt */
    bool mark;              /* scratch of rl_node_close() */
    uint32_t key_len;       /* of the first key */
    uint32_t token_at;      /* place of the token in `bytes` */
    uint32_t token_len;
    rl_nodes undo_pending; /* on whose lists of debts it is */
    rl_nodes
        maybe_executed; /* may still execute a request that creates or prolongs the key: its
                         * connection ended before the answer, and no greeting has come since */
    uint16_t stripe;    /* with `fenced`: which register */
    uint16_t slot;      /* of a semaphore: whose key it is */
    uint8_t undo_verb;  /* RL_VERB_RELEASE, or RL_VERB_SHORTEN after release_after */
    uint8_t more_keys;  /* keys beside the first */
    uint8_t probed_key; /* the key that PTTL asks about; from 0 on */
    bool is_record;     /* about the node's fence record: key, mark, numbers */
    bool forced;        /* with `is_record`: SEED whatever mark is there */
    bool fenced;        /* the votes carry a proposal */
    bool too_early;     /* with `fenced`: before a majority of records was seen in use ... */
    bool unread;        /* ... and so many were not read that there may be one */
    char bytes[];       /* key; each of the others behind its length; room for a token */
};

/* A claim on `key` with one reference and room for a token of `token_max` bytes. NULL: no memory.
 */
struct rl_claim *rl_claim_new(const struct rl_mem *mem, struct rl_arg key, size_t token_max);
/* On 1 to RL_KEYS_MAX keys. */
struct rl_claim *rl_claim_new_multi(const struct rl_mem *mem, const struct rl_arg *keys,
                                    unsigned count, size_t token_max);
/* On the keys of another claim. */
struct rl_claim *rl_claim_new_like(const struct rl_claim *claim, size_t token_max);
/* Frees a claim without references, and wipes the token: it is the right to delete the key. */
void rl_claim_free(struct rl_claim *claim);
/* Drops one reference, and frees the claim with the last one. `claim` may be NULL. */
static inline void rl_claim_drop(struct rl_claim *claim)
{
    if (claim == NULL)
        return;
    RL_ASSERT(claim->refs > 0);
    if (--claim->refs == 0)
        rl_claim_free(claim);
}

void rl_claim_set_token(struct rl_claim *claim, struct rl_arg token);

static inline struct rl_claim *rl_claim_ref(struct rl_claim *claim)
{
    claim->refs++;
    return claim;
}

/* The first key. */
static inline struct rl_arg rl_claim_key(const struct rl_claim *claim)
{
    return (struct rl_arg){claim->bytes, claim->key_len};
}

static inline unsigned rl_claim_key_count(const struct rl_claim *claim)
{
    return claim->more_keys + 1u;
}
/* All keys, in their order; returns how many. */
unsigned rl_claim_keys(const struct rl_claim *claim, struct rl_arg ret_keys[RL_KEYS_MAX]);

static inline struct rl_arg rl_claim_token(const struct rl_claim *claim)
{
    return (struct rl_arg){claim->bytes + claim->token_at, claim->token_len};
}
bool rl_claim_has_token(const struct rl_claim *claim, struct rl_arg token);

#endif
