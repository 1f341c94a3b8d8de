/* SPDX-License-Identifier: MIT
 * Helpers for files: removes directories, reads files of one line, and opens missing standard
 * descriptors.
 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

/* Removes one file or empty directory; called by nftw(). */
static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

/* Removes the directory with all its contents, without following symbolic links. Errors are
 * ignored. */
void remove_tree(const char *directory)
{
    nftw(directory, remove_entry, 8 /* open descriptors */, FTW_DEPTH | FTW_PHYS);
}

/* Reads the first line from `fd`. Returns a copy without its line end, to be freed, or NULL with
 * errno; EFBIG if the line has more than 1024 bytes. */
char *read_first_line(int fd)
{
    char text[1024 + 2]; /* 1024 bytes, one more byte to see the end of the line, and NUL */
    size_t len = 0, line = 0;
    ssize_t more = 1;
    char *copy = NULL;

    while (more > 0 && len < sizeof text - 1 && line == len) {
        more = read(fd, text + len, sizeof text - 1 - len);
        len += more > 0 ? (size_t)more : 0;
        text[len] = '\0';
        line = strcspn(text, "\r\n");
    }
    if (more >= 0 && line == len && len == sizeof text - 1)
        errno = EFBIG;
    else if (more >= 0)
        copy = text_format("%.*s", (int)line, text);
    explicit_bzero(text, sizeof text);
    return copy;
}

/* Opens /dev/null for each closed one of stdin, stdout and stderr. Returns false if that fails. */
bool fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* open() returns the lowest free number, which is this one. The mode is the wrong one on
         * purpose, so that reading stdin and writing stdout and stderr fail. */
        int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", mode | O_CLOEXEC) != fd)
            return false;
    }
    return true;
}
