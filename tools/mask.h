/* SPDX-License-Identifier: MIT
 * Addresses without the secrets in them.
 */
#ifndef TOOLS_MASK_H
#define TOOLS_MASK_H

/* A copy of a list of addresses with each password, and whatever may be one, as "***". */
char *mask_addresses(const char *list);

#endif
