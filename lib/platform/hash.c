/* SPDX-License-Identifier: MIT
 * Computes hashes by means of libsodium. Keys and results are the same in all clients, and must
 * never change. */
#include "platform/hash.h"

#include "core/types.h"

#include <sodium.h>
#include <string.h>

/* Bytes of the hash that rl_hash_text() writes as hex digits. */
#define TEXT_BYTES (RL_HASH_TEXT_LEN / 2)

/* Returns the SipHash-2-4 of `len` bytes under `key`, which has 16 bytes, as a little-endian
 * number. */
static uint64_t short_hash(const unsigned char *bytes, size_t len, const unsigned char *key)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t word = 0;

    crypto_shorthash(hash, bytes, len, key);
    for (size_t i = sizeof hash; i > 0; i--)
        word = word << 8 | hash[i - 1];
    return word;
}

/* Returns the hash of a key or of a node's id. The hash of a key selects the stripe of the resource
 * and its entry in the engine's table; both hashes together give the order in which nodes are
 * preferred. */
uint64_t rl_hash_bytes(const char *bytes, size_t len)
{
    static const unsigned char key[] = "redlock fences 1";

    _Static_assert(sizeof key == crypto_shorthash_KEYBYTES + 1, "the whole key and a NUL");
    return short_hash((const unsigned char *)bytes, len, key);
}

/* Returns the score of the shard `name` for the resource whose hash tag is `bytes`; the shard with
 * the highest score has the resource. Hashes the name, a zero byte and the hash tag. */
uint64_t rl_hash_score(const char *name, size_t name_len, const char *bytes, size_t len)
{
    static const unsigned char key[] = "redlock sets v1";
    unsigned char both[RL_HASH_NAME_MAX + 1 + RL_RESOURCE_MAX];

    _Static_assert(sizeof key == crypto_shorthash_KEYBYTES, "the whole key, its NUL included");
    RL_ASSERT(name_len <= RL_HASH_NAME_MAX && len <= RL_RESOURCE_MAX);
    memcpy(both, name, name_len);
    both[name_len] = 0;
    memcpy(both + name_len + 1, bytes, len);
    return short_hash(both, name_len + 1 + len, key);
}

/* Writes the BLAKE2b of `bytes`, 16 bytes long, to `ret` as 32 hex digits and a NUL. */
void rl_hash_text(const char *bytes, size_t len, char ret[RL_HASH_TEXT_LEN + 1])
{
    unsigned char hash[TEXT_BYTES];

    crypto_generichash(hash, sizeof hash, (const unsigned char *)bytes, len, NULL, 0);
    sodium_bin2hex(ret, RL_HASH_TEXT_LEN + 1, hash, sizeof hash);
}
