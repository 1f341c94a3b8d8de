/* SPDX-License-Identifier: MIT
 * Removes a directory with all in it.
 */
#include "files.h"

#include <ftw.h>
#include <stdio.h>

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

void remove_tree(const char *directory)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
