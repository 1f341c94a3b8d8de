/* SPDX-License-Identifier: MIT
 * Structs that the user receives. */
#ifndef RL_API_STATS_H
#define RL_API_STATS_H

#include <stddef.h>

/* Fills a struct of the user, which has `size` bytes: copies what both sides know, zeroes the rest.
 * EINVAL: NULL or no size. */
int rl_copy_out(void *to, size_t size, const void *from, size_t known);

#endif
