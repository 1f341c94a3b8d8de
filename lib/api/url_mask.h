/* SPDX-License-Identifier: MIT
 * Shows addresses in messages without their secrets. No other file shows an address as the user has
 * written it. */
#ifndef RL_API_URL_MASK_H
#define RL_API_URL_MASK_H

#include <stdbool.h>
#include <stddef.h>

#define RL_URL_SHOWN_MAX 96 /* bytes of a shown address, with its NUL */

/* Writes `entry`, a part of `list`, to `out` without secrets. The entry may be wrong in any way.
 * Shown are a known scheme, a host, a port, a database and a path; "***" replaces the rest, '?' a
 * control byte in a path, and "..." the end of a long entry. The whole list is needed because an
 * unencoded comma or blank cuts a password into several entries. */
void rl_url_mask(const char *list, const char *entry, size_t len, char out[RL_URL_SHOWN_MAX]);

/* Returns the length of "scheme://" (or "unix:") at the start of an entry; 0 if there is none. */
size_t rl_url_scheme_len(const char *entry, size_t len);

/* Returns whether `byte` separates the entries of a list. */
bool rl_url_is_separator(char byte);

/* Returns whether some entry of the list has an '@' but no known scheme. Such an entry is probably
 * the end of a password that contains a separator. Then no '@' of the list reliably ends a
 * password. */
bool rl_url_is_torn(const char *list);

#endif
