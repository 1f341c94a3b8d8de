/* SPDX-License-Identifier: MIT
 * Claims: counted references, used by one thread at a time. */
#include "node/claim.h"

#include <string.h>

struct rl_claim *rl_claim_new(const struct rl_mem *mem, struct rl_arg key, size_t token_max)
{
    struct rl_claim *claim = rl_alloc(mem, sizeof *claim + key.len + token_max);

    if (claim == NULL)
        return NULL;
    claim->mem = mem;
    claim->refs = 1;
    claim->undo_verb = RL_VERB_RELEASE;
    claim->key_len = (uint32_t)key.len;
    memcpy(claim->bytes, key.data, key.len);
    return claim;
}

void rl_claim_set_token(struct rl_claim *claim, struct rl_arg token)
{
    memcpy(claim->bytes + claim->key_len, token.data, token.len);
    claim->token_len = (uint32_t)token.len;
}

void rl_claim_drop(struct rl_claim *claim)
{
    if (claim == NULL)
        return;
    RL_ASSERT(claim->refs > 0);
    if (--claim->refs > 0)
        return;
    rl_free_wiped(claim->mem, claim, sizeof *claim + claim->key_len + claim->token_len);
}
