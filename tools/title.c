/* SPDX-License-Identifier: MIT
 * Changes the name of a process: its comm, which is a short name in the kernel that ps and pkill
 * show, and its command line, which is the memory of the strings of argv.
 */
#include "title.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

/* The memory of main()'s arguments: their strings, one after the other, without gaps. */
static char *arguments;       /* NULL before title_remember() */
static size_t arguments_size; /* in bytes, with all NULs; 0 before title_remember() */

/* Stores where the strings of argv begin and how many bytes they take, for title_set(). */
void title_remember(int argc, char **argv)
{
    if (argc < 1)
        return;
    arguments = argv[0];
    char *end = argv[0];
    /* The kernel stores the arguments without gaps. */
    for (int i = 0; i < argc && argv[i] == end; i++)
        end = argv[i] + strlen(argv[i]) + 1;
    arguments_size = (size_t)(end - arguments);
}

/* Sets the comm of this process, and overwrites the strings of argv with `title`, cut to their
 * length. Without title_remember(), only the comm changes. */
void title_set(const char *title)
{
    prctl(PR_SET_NAME, title);
    if (arguments_size == 0)
        return;
    memset(arguments, 0, arguments_size);
    snprintf(arguments, arguments_size, "%s", title);
}
