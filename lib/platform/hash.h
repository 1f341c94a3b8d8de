/* SPDX-License-Identifier: MIT
 * Hashes that all clients of a lock must compute alike. Not for secrets: the keys are published. */
#ifndef RL_PLATFORM_HASH_H
#define RL_PLATFORM_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RL_HASH_TEXT_LEN 32

/* SipHash-2-4 under the key "redlock fences 1", read as a little-endian number. */
uint64_t rl_hash_bytes(const char *bytes, size_t len);

/* SipHash-2-4 of both with a zero byte in between, under the key "redlock sets v1\0", read as a
 * little-endian number: how much a set wants a resource. name_len <= RL_HASH_NAME_MAX; of `bytes`
 * there may be RL_RESOURCE_MAX. */
#define RL_HASH_NAME_MAX 64
uint64_t rl_hash_score(const char *name, size_t name_len, const char *bytes, size_t len);

/* BLAKE2b, 16 bytes, as 32 hex digits and a NUL. */
void rl_hash_text(const char *bytes, size_t len, char ret[RL_HASH_TEXT_LEN + 1]);

#endif
