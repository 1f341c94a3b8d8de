/* SPDX-License-Identifier: MIT
 * Refuses options that a command line may not have together.
 */
#ifndef TOOLS_CONFLICTS_H
#define TOOLS_CONFLICTS_H

#include "options.h"

/* Stores in options->given that the option `id` was given with this value (NULL: it takes none). An
 * option that may not be repeated is refused if it was given before with another value. Returns -1
 * on success, or EXIT_USAGE after a message. */
int conflicts_note(struct options *options, int id, const char *value);

/* Checks all pairs of options->given. Returns -1 if there is no conflict, or EXIT_USAGE after a
 * message about the first one. */
int conflicts_check(const struct options *options);

#endif
