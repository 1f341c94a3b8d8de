/* SPDX-License-Identifier: MIT
 * Copies structs, such as statistics, to the user. The user's program may be compiled with an older
 * or newer header, in which the struct has fewer or more fields at its end. */
#ifndef RL_API_STATS_H
#define RL_API_STATS_H

#include <stddef.h>

/* Copies the first bytes of `from`, which has `known` bytes, to the user's struct of `size` bytes,
 * and zeroes the rest of that. Returns REDLOCK_OK, or REDLOCK_EINVAL if `to` is NULL or `size` is
 * 0. */
int rl_copy_out(void *to, size_t size, const void *from, size_t known);

#endif
