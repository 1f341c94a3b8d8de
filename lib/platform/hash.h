/* SPDX-License-Identifier: MIT
 * Hashes that all clients of the same servers must compute alike. Not for secrets: the keys of the
 * hash functions are published constants. */
#ifndef RL_PLATFORM_HASH_H
#define RL_PLATFORM_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RL_HASH_TEXT_LEN 32 /* hex digits of rl_hash_text() */

/* Returns the SipHash-2-4 of `bytes` under the key "redlock fences 1", as a little-endian number.
 * Selects the stripe of a resource, its entry in the engine's table, and the order of nodes. */
uint64_t rl_hash_bytes(const char *bytes, size_t len);

/* Returns the score of a pair, for rendezvous hashing: the name of a shard, and the hash tag of
 * a resource in `bytes`. The score is the SipHash-2-4 of the two with a zero byte in between, under
 * the key "redlock sets v1\0", as a little-endian number. Of several names, the one with the
 * highest score is chosen. name_len <= RL_HASH_NAME_MAX, len <= RL_RESOURCE_MAX. */
#define RL_HASH_NAME_MAX 64
uint64_t rl_hash_score(const char *name, size_t name_len, const char *bytes, size_t len);

/* Writes the BLAKE2b of `bytes`, 16 bytes long, to `ret` as 32 hex digits and a NUL. */
void rl_hash_text(const char *bytes, size_t len, char ret[RL_HASH_TEXT_LEN + 1]);

#endif
