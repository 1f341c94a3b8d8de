/* SPDX-License-Identifier: MIT
 * Hashes, from libsodium. */
#include "platform/hash.h"

#include <sodium.h>

#define TEXT_BYTES (RL_HASH_TEXT_LEN / 2)

uint64_t rl_hash_word(const char *bytes, size_t len)
{
    static const unsigned char key[] = "redlock fences 1";
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t word = 0;

    _Static_assert(sizeof key == crypto_shorthash_KEYBYTES + 1, "the whole key and a NUL");
    crypto_shorthash(hash, (const unsigned char *)bytes, len, key);
    for (size_t i = sizeof hash; i > 0; i--)
        word = word << 8 | hash[i - 1];
    return word;
}

void rl_hash_text(const char *bytes, size_t len, char ret[RL_HASH_TEXT_LEN + 1])
{
    unsigned char hash[TEXT_BYTES];

    crypto_generichash(hash, sizeof hash, (const unsigned char *)bytes, len, NULL, 0);
    sodium_bin2hex(ret, RL_HASH_TEXT_LEN + 1, hash, sizeof hash);
}
