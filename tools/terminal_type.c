/* SPDX-License-Identifier: MIT
 * Asks ncurses whether it knows the terminal. A file of its own, because term.h defines short names
 * such as `lines` as macros.
 */
#include "terminal_type.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

/* Looks up the type of the terminal without preparing the screen: newterm() of ncurses 6.4 does not
 * free its memory when the type is unknown. */
bool terminal_type_is_known(void)
{
    int found;

    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}
