/* SPDX-License-Identifier: MIT
 * Finds the file of a program as execvp() does, by searching PATH, without executing anything.
 */
#include "command_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exits.h"
#include "say.h"

/* Returns 0 if the file can be executed, else EXIT_CANNOT_RUN or EXIT_NOT_FOUND. */
static int try_path(const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return errno == EACCES ? EXIT_CANNOT_RUN : EXIT_NOT_FOUND;
    if (!S_ISREG(info.st_mode) || access(path, X_OK) != 0)
        return EXIT_CANNOT_RUN;
    return 0;
}

/* Searches the directories of PATH for the program; a name with a '/' is taken as path. Returns 0
 * with *ret_path to be freed; EXIT_CANNOT_RUN if a file was found that cannot be executed; else
 * EXIT_NOT_FOUND. */
int command_resolve(const char *name, char **ret_path)
{
    const char *search = getenv("PATH");
    int worst = EXIT_NOT_FOUND;

    if (!*name)
        return EXIT_NOT_FOUND;
    if (strchr(name, '/')) {
        int result = try_path(name);
        if (result == 0)
            *ret_path = text_copy(name);
        return result;
    }
    if (!search)
        search = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        size_t len = strcspn(search, ":");
        char *path = len ? text_format("%.*s/%s", (int)len, search, name)
                         : text_format("./%s", name); /* an empty part is the current directory */
        int result = try_path(path);
        if (result == 0) {
            *ret_path = path;
            return 0;
        }
        free(path);
        if (result == EXIT_CANNOT_RUN)
            worst = result;
        if (!search[len])
            return worst;
        search += len + 1;
    }
}
