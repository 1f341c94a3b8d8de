/* SPDX-License-Identifier: MIT
 * Whether the terminal is of a known type.
 */
#ifndef TOOLS_TERMINAL_TYPE_H
#define TOOLS_TERMINAL_TYPE_H

#include <stdbool.h>

/* Returns whether ncurses knows the type of terminal that the environment variable TERM names. */
bool terminal_type_is_known(void);

#endif
