/* SPDX-License-Identifier: MIT
 * Computes hashes by means of libsodium. */
#include "platform/hash.h"

#include "core/types.h"

#include <sodium.h>
#include <string.h>

#define TEXT_BYTES (RL_HASH_TEXT_LEN / 2)

/* Returns the SipHash-2-4 of `bytes` under `key`, which has 16 bytes, as a little-endian number. */
static uint64_t short_hash(const unsigned char *bytes, size_t len, const unsigned char *key)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t word = 0;

    crypto_shorthash(hash, bytes, len, key);
    for (size_t i = sizeof hash; i > 0; i--)
        word = word << 8 | hash[i - 1];
    return word;
}

uint64_t rl_hash_bytes(const char *bytes, size_t len)
{
    static const unsigned char key[] = "redlock fences 1";

    _Static_assert(sizeof key == crypto_shorthash_KEYBYTES + 1, "the whole key and a NUL");
    return short_hash((const unsigned char *)bytes, len, key);
}

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

void rl_hash_text(const char *bytes, size_t len, char ret[RL_HASH_TEXT_LEN + 1])
{
    unsigned char hash[TEXT_BYTES];

    crypto_generichash(hash, sizeof hash, (const unsigned char *)bytes, len, NULL, 0);
    sodium_bin2hex(ret, RL_HASH_TEXT_LEN + 1, hash, sizeof hash);
}
