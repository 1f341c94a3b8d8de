/* SPDX-License-Identifier: MIT
 * Hashes that all clients of the same servers must compute alike. They protect no secrets: the keys
 * of the hash functions are published constants. */
#ifndef RL_PLATFORM_HASH_H
#define RL_PLATFORM_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RL_HASH_TEXT_LEN 32 /* hex digits of rl_hash_text() */

/* Returns the SipHash-2-4 of `bytes` under the key "redlock fences 1", as a little-endian number.
 * It selects the stripe of a resource (its register in a fence record), its entry in the engine's
 * table, and the order in which nodes are preferred. `len`: bytes. */
uint64_t rl_hash_bytes(const char *bytes, size_t len);

#define RL_HASH_NAME_MAX 64 /* longest name of a shard in bytes, for rl_hash_score() */

/* Returns the score of a shard for a resource, by which the shard of a resource is chosen
 * (rendezvous hashing): of several shards, the one with the highest score. `name`: the name of the
 * shard, up to RL_HASH_NAME_MAX bytes. `bytes`: the hash tag of the resource, or all of its name,
 * up to RL_RESOURCE_MAX bytes. The score is the SipHash-2-4 of the two with a zero byte in between,
 * under the key "redlock sets v1\0", as a little-endian number. */
uint64_t rl_hash_score(const char *name, size_t name_len, const char *bytes, size_t len);

/* Writes the BLAKE2b of `bytes`, 16 bytes long, to `ret` as 32 hex digits and a NUL. */
void rl_hash_text(const char *bytes, size_t len, char ret[RL_HASH_TEXT_LEN + 1]);

#endif
