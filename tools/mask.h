/* SPDX-License-Identifier: MIT
 * Removes secrets from addresses before they are shown.
 */
#ifndef TOOLS_MASK_H
#define TOOLS_MASK_H

/* Returns a copy of a list of addresses with "***" for each password. A list that the library
 * refuses becomes "***" as a whole, because the place of its passwords is not known. To be
 * freed. */
char *mask_addresses(const char *list);

/* Returns `word`, or "***" if it contains '@' or "://": it may be an address, with a password, in a
 * wrong place. Borrows `word`. */
const char *mask_word(const char *word);

#endif
