/* SPDX-License-Identifier: MIT
 * Restores the terminal when a program that draws on it ends by a fault.
 */
#ifndef TOOLS_TERMINAL_GUARD_H
#define TOOLS_TERMINAL_GUARD_H

/* Remembers the settings of the terminal on stdin. From now on they are restored, and the ordinary
 * screen is shown, if a fault (SEGV, BUS, FPE, ILL, TRAP, ABRT) or a lack of memory ends the
 * process. Messages of say() are dropped, because they would be drawn over. */
void terminal_guard_begin(void);
/* Ends that. */
void terminal_guard_end(void);

#endif
