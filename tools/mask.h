/* SPDX-License-Identifier: MIT
 * Addresses without the secrets in them.
 */
#ifndef TOOLS_MASK_H
#define TOOLS_MASK_H

/* Returns a copy of a list of addresses with "***" for each password. A list that the library
 * refuses is "***" as a whole: where its passwords begin and end is not known. To be freed. */
char *mask_addresses(const char *list);

/* Returns `word`, or "***" if it looks like an address that was put in a wrong place. */
const char *mask_word(const char *word);

#endif
