/* SPDX-License-Identifier: MIT
 * Splits lists of servers that name shards, such as "east=a,b,c;west=d,e,f".
 */
#ifndef TOOLS_SHARDS_H
#define TOOLS_SHARDS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the list names shards, that is, if it begins with "name=". */
bool shards_are_named(const char *list);

/* Returns the characters that separate the entries of this list. */
const char *shards_separators(const char *list);

/* Returns the addresses of the shard with this index, in the order of the list, each followed by
 * a comma. For a list without shards, returns all addresses. To be freed; may contain passwords. */
char *shards_addresses(const char *list, size_t index);

#endif
