/* SPDX-License-Identifier: MIT
 * The one place that prints an address as it was typed: without its secrets. */
#ifndef RL_API_URL_MASK_H
#define RL_API_URL_MASK_H

#include <stdbool.h>
#include <stddef.h>

#define RL_URL_SHOWN_MAX 96 /* bytes of a shown address, with its NUL */

/* Shows `entry`, a part of `list`, which may be wrong in any way. Only what is understood is shown:
 * a known scheme, a host, a port, a database, a path. "***" stands for the rest; control bytes in
 * a path are shown as '?'; what is long is cut. The whole list is needed because an unencoded comma
 * or blank tears a password into several entries. */
void rl_url_mask(const char *list, const char *entry, size_t len, char out[RL_URL_SHOWN_MAX]);

/* The length of "scheme://" (or "unix:") at the start of an entry; 0 if there is none. */
size_t rl_url_scheme_len(const char *entry, size_t len);

/* Whether `byte` separates the entries of a list. */
bool rl_url_is_separator(char byte);

/* Whether some entry has an '@' and no known scheme: then it is likely the end of a password that
 * contained a separator, and no '@' of the list can be trusted to end one. */
bool rl_url_is_torn(const char *list);

#endif
