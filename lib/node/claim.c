/* SPDX-License-Identifier: MIT
 * Makes and frees claims, and reads and writes their keys and tokens. */
#include "node/claim.h"

#include <string.h>

/* The length in front of each key but the first in rl_claim.bytes, not aligned. */
typedef uint16_t key_length;

/* Allocates a claim with one reference, for keys that take `keys_len` bytes in rl_claim.bytes. The
 * caller writes the keys. Returns NULL without memory. */
static struct rl_claim *new_claim(const struct rl_mem *mem, size_t keys_len, size_t token_max)
{
    struct rl_claim *claim = rl_alloc(mem, sizeof *claim + keys_len + token_max);

    if (claim == NULL)
        return NULL;
    claim->mem = mem;
    claim->refs = 1;
    claim->undo_verb = RL_VERB_RELEASE;
    claim->token_at = (uint32_t)keys_len;
    return claim;
}

/* Makes a claim on one key, which is copied, with room for a token. Returns NULL without memory. */
struct rl_claim *rl_claim_new(const struct rl_mem *mem, struct rl_arg key, size_t token_max)
{
    struct rl_claim *claim = new_claim(mem, key.len, token_max);

    if (claim == NULL)
        return NULL;
    claim->key_len = (uint32_t)key.len;
    memcpy(claim->bytes, key.data, key.len);
    return claim;
}

/* Makes a claim on `count` keys, which are copied, with room for a token. Returns NULL without
 * memory. */
struct rl_claim *rl_claim_new_multi(const struct rl_mem *mem, const struct rl_arg *keys,
                                    unsigned count, size_t token_max)
{
    size_t len = keys[0].len;

    RL_ASSERT(count >= 1 && count <= RL_KEYS_MAX);
    for (unsigned i = 1; i < count; i++)
        len += sizeof(key_length) + keys[i].len;
    struct rl_claim *claim = new_claim(mem, len, token_max);
    if (claim == NULL)
        return NULL;
    claim->more_keys = (uint8_t)(count - 1);
    claim->key_len = (uint32_t)keys[0].len;
    memcpy(claim->bytes, keys[0].data, keys[0].len);
    char *at = claim->bytes + keys[0].len;
    for (unsigned i = 1; i < count; i++) {
        key_length key_len = (key_length)keys[i].len;
        RL_ASSERT(keys[i].len <= RL_KEY_MAX);
        memcpy(at, &key_len, sizeof key_len);
        memcpy(at + sizeof key_len, keys[i].data, keys[i].len);
        at += sizeof key_len + keys[i].len;
    }
    return claim;
}

/* Makes a new claim on the keys of `claim`, with room for a token. Returns NULL without memory. */
struct rl_claim *rl_claim_new_like(const struct rl_claim *claim, size_t token_max)
{
    struct rl_claim *like = new_claim(claim->mem, claim->token_at, token_max);

    if (like == NULL)
        return NULL;
    like->more_keys = claim->more_keys;
    like->key_len = claim->key_len;
    memcpy(like->bytes, claim->bytes, claim->token_at);
    return like;
}

/* Stores all keys of the claim in their order, and returns their number. */
unsigned rl_claim_keys(const struct rl_claim *claim, struct rl_arg ret_keys[RL_KEYS_MAX])
{
    const char *at = claim->bytes + claim->key_len;

    ret_keys[0] = rl_claim_key(claim);
    for (unsigned i = 1; i <= claim->more_keys; i++) {
        key_length key_len;
        memcpy(&key_len, at, sizeof key_len);
        ret_keys[i] = (struct rl_arg){at + sizeof key_len, key_len};
        at += sizeof key_len + key_len;
    }
    return rl_claim_key_count(claim);
}

/* Copies the token behind the keys. There must be room: see `token_max` of rl_claim_new(). */
void rl_claim_set_token(struct rl_claim *claim, struct rl_arg token)
{
    memcpy(claim->bytes + claim->token_at, token.data, token.len);
    claim->token_len = (uint32_t)token.len;
}

/* Returns true if `token` is the token of the claim. */
bool rl_claim_has_token(const struct rl_claim *claim, struct rl_arg token)
{
    struct rl_arg own = rl_claim_token(claim);

    return own.len == token.len && memcmp(own.data, token.data, token.len) == 0;
}

/* Wipes and frees a claim without references. */
void rl_claim_free(struct rl_claim *claim)
{
    rl_free_wiped(claim->mem, claim, sizeof *claim + claim->token_at + claim->token_len);
}
