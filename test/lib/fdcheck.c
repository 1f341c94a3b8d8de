/* SPDX-License-Identifier: MIT
 * Compares the open descriptors of this process before and after. */
#include "fdcheck.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wait.h"

static char leak_text[2048];

/* Reads the status of a descriptor. Uses its name in /proc instead of fstat(), because a thread
 * that is about to end may close the descriptor at this moment, and the thread sanitizer would
 * report the two as a race. Returns false if it is closed. */
static bool look_at(int fd, struct stat *ret_status)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return stat(path, ret_status) == 0;
}

/* Lists the open descriptors, lowest first. Reads /proc, because asking for each possible number
 * takes longer than most of the code between two calls. */
static size_t list_open(int *ret_numbers, size_t max)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    size_t count = 0;

    if (directory == NULL) {
        perror("/proc/self/fd");
        abort();
    }
    while ((entry = readdir(directory)) != NULL) {
        const long fd = strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] == '.' || fd == dirfd(directory) || fd >= FDCHECK_MAX)
            continue;
        if (count < max)
            ret_numbers[count++] = (int)fd;
    }
    closedir(directory);
    return count;
}

/* Records the descriptors that are open now. */
void fdcheck_begin(struct fdcheck *before)
{
    int numbers[FDCHECK_MAX];
    const size_t count = list_open(numbers, FDCHECK_MAX);

    memset(before, 0, sizeof *before);
    for (size_t i = 0; i < count; i++) {
        const int fd = numbers[i];
        struct stat status;
        if (!look_at(fd, &status))
            continue;
        before->open[fd] = 1;
        before->device[fd] = (uint64_t)status.st_dev;
        before->inode[fd] = (uint64_t)status.st_ino;
        before->count++;
    }
}

/* Returns the number of open descriptors. */
size_t fdcheck_count(void)
{
    int numbers[FDCHECK_MAX];

    return list_open(numbers, FDCHECK_MAX);
}

/* Writes what a descriptor refers to, such as "socket:[123]"; empty if it is closed. */
static void find_target(int fd, char *ret_target, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, ret_target, size - 1);
    ret_target[length < 0 ? 0 : length] = '\0';
}

/* Returns whether fd is Check's message file, which Check opens anew between a fixture and a case.
 */
static bool belongs_to_check(int fd, const struct stat *status)
{
    char target[256];
    if (!S_ISREG(status->st_mode) || status->st_nlink != 0)
        return false;
    find_target(fd, target, sizeof target);
    return strstr(target, "/check_") != NULL;
}

/* Returns whether fd is open now and was not open before as the same file. */
static bool is_new(const struct fdcheck *before, int fd)
{
    struct stat status;
    if (!look_at(fd, &status))
        return false;
    if (before->open[fd] && before->device[fd] == (uint64_t)status.st_dev &&
        before->inode[fd] == (uint64_t)status.st_ino)
        return false;
    return !belongs_to_check(fd, &status);
}

/* Appends "number -> target" of a descriptor to leak_text. */
static void append_descriptor(int fd)
{
    char target[256];
    find_target(fd, target, sizeof target);
    const size_t used = strlen(leak_text);
    snprintf(leak_text + used, sizeof leak_text - used, "%s%d -> %s", used == 0 ? "" : ", ", fd,
             target);
}

/* Lists the descriptors that were opened since. Returns their number. */
static size_t list_new(const struct fdcheck *before, int *ret_numbers)
{
    const size_t count = list_open(ret_numbers, FDCHECK_MAX);
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        if (is_new(before, ret_numbers[i]))
            ret_numbers[found++] = ret_numbers[i];
    return found;
}

static const char *tell(void)
{
    return leak_text[0] == '\0' ? NULL : leak_text;
}

/* Returns NULL if no descriptor is open that was not open before, otherwise a text that lists
 * each one. Waits up to `deadline_ms` (scaled) for a thread that is still closing. The next
 * call overwrites the text. */
const char *fdcheck_leaked(const struct fdcheck *before, uint64_t deadline_ms)
{
    int numbers[FDCHECK_MAX];

    if (WAIT_UNTIL(list_new(before, numbers) == 0, deadline_ms))
        return NULL;
    leak_text[0] = '\0';
    const size_t count = list_new(before, numbers);
    for (size_t i = 0; i < count; i++)
        append_descriptor(numbers[i]);
    return tell();
}

/* Returns NULL if each descriptor that was opened since is close-on-exec, otherwise a list of
 * the others. The next call overwrites the text. */
const char *fdcheck_inherited(const struct fdcheck *before)
{
    int numbers[FDCHECK_MAX];
    const size_t count = list_new(before, numbers);

    leak_text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        if ((fcntl(numbers[i], F_GETFD) & FD_CLOEXEC) == 0)
            append_descriptor(numbers[i]);
    return tell();
}
