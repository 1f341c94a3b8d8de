/* SPDX-License-Identifier: MIT
 * Replaces a file of figures at once, with a temporary file in the same directory and rename().
 */
#include "figures_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "figures.h"
#include "say.h"

/* Longest line, in bytes, that figures_file_number() compares as a whole. */
#define LINE_MAX_BYTES 4096

/* Locks the directory of `path`, which needs no file of its own. Returns the descriptor of the
 * directory, or -1. */
int figures_file_begin(const char *path)
{
    char *copy = text_copy(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    free(copy);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

/* Unlocks the directory. */
void figures_file_end(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Writes all `len` bytes to `fd` and sets its mode. Returns false with errno on an error. */
static bool fill(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, text, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        text += done;
        len -= (size_t)done;
    }
    return fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) == 0;
}

/* Writes a temporary file beside `path` and renames it. Its name does not end in ".prom", so that
 * node_exporter does not read it. Returns false with errno on an error. */
bool figures_file_write(const char *path, const char *text, size_t len)
{
    struct stat info;
    char *temporary = text_format("%s.XXXXXX", path);

    /* rename() would replace a device or a pipe. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        free(temporary);
        errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        int error = errno;
        free(temporary);
        errno = error;
        return false;
    }
    bool done = fill(fd, text, len);
    done = close(fd) == 0 && done;
    done = done && rename(temporary, path) == 0;
    int error = errno;
    if (!done)
        unlink(temporary);
    free(temporary);
    errno = error;
    return done;
}

/* Searches the file for a line that begins with `start` and a blank. Returns the number that
 * follows, or 0. */
double figures_file_number(const char *path, const char *start)
{
    char line[LINE_MAX_BYTES];
    size_t len = strlen(start);
    double number = 0;
    struct stat info;
    /* Opening a pipe would block, and reading a device may have effects. */
    int fd =
        stat(path, &info) == 0 && S_ISREG(info.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, start, len) && line[len] == ' ')
            number = strtod(line + len, NULL);
    if (file)
        fclose(file);
    return number;
}

/* Returns the file's name without its directory, as value of a label. To be freed. */
char *figures_file_label(const char *path)
{
    const char *slash = strrchr(path, '/');

    return figures_label_value(slash ? slash + 1 : path);
}

/* Returns the text of errno, with what to do. To be freed. */
char *figures_file_error(int error)
{
    const char *what = error == EINVAL ? "not a regular file" : strerror(error);
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO;

    return text_format("%s; %s", what,
                       full
                           ? "repair that, or name a file on another disk"
                           : "name a file in a directory that exists and that this user may write");
}

/* Warns if the name does not end in ".prom". */
void figures_file_warn_name(const char *command, const char *path)
{
    size_t len = strlen(path);

    if (len < 5 || strcmp(path + len - 5, ".prom") != 0)
        say(SAY_WARNING,
            "%s: --metrics-file %s: node_exporter reads only files whose names end in .prom; "
            "rename it",
            command, path);
}
