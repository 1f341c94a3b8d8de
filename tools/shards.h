/* SPDX-License-Identifier: MIT
 * Lists of servers that name sets, "east=a,b,c;west=d,e,f", where the command needs them in parts.
 */
#ifndef TOOLS_SETS_H
#define TOOLS_SETS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a list names sets. */
bool shards_are_named(const char *list);

/* Returns the bytes that separate the entries of this list. */
const char *shards_separators(const char *list);

/* The addresses of the set with this index, in the order of the list, each followed by a comma; of
 * a list without sets all of them. Passwords may be in there. */
char *shards_addresses(const char *list, size_t index);

#endif
