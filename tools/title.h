/* SPDX-License-Identifier: MIT
 * The name of a process, as ps and pkill see it.
 */
#ifndef TOOLS_TITLE_H
#define TOOLS_TITLE_H

/* Remembers where the arguments of main() are. Without it, title_set() leaves them as they are. */
void title_remember(int argc, char **argv);

/* Names the calling process: its comm (at most 15 bytes), and instead of all of its arguments. The
 * strings of argv are overwritten and must not be used afterwards. For forked processes. */
void title_set(const char *title);

#endif
