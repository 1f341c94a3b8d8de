/* SPDX-License-Identifier: MIT
 * The name of a process, as ps and pkill show it.
 */
#ifndef TOOLS_TITLE_H
#define TOOLS_TITLE_H

/* Stores the addresses of main()'s arguments. Without this call, title_set() leaves them
 * unchanged. */
void title_remember(int argc, char **argv);

/* Changes the name of the calling process: its comm (at most 15 bytes) and its command line.
 * Overwrites the strings of argv, which must not be used afterwards. Meant for forked processes. */
void title_set(const char *title);

#endif
