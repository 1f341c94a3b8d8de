/* SPDX-License-Identifier: MIT
 * Prints the help texts.
 */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include <stdbool.h>

/* Prints examples, for `redlock` without arguments. */
void help_examples(void);
/* Prints the list of subcommands, for `redlock --help`. */
void help_overview(void);
/* Prints the help of the subcommand `name`, such as "run": all options in sentences if `full`, else
 * the card of one screen. */
void help_command(const char *name, bool full);

#endif
