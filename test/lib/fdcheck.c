/* SPDX-License-Identifier: MIT
 * Open descriptors of this process, compared before and after. */
#include "fdcheck.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wait.h"

static char leak_text[2048];

/* By its name, not by fstat(): a thread that is about to end may close it in this moment, which is
 * what is waited for here, and the thread sanitizer would take the two for a race. */
static bool look_at(int fd, struct stat *ret_status)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return stat(path, ret_status) == 0;
}

void fdcheck_begin(struct fdcheck *before)
{
    memset(before, 0, sizeof *before);
    for (int fd = 0; fd < FDCHECK_MAX; fd++) {
        struct stat status;
        if (!look_at(fd, &status))
            continue;
        before->open[fd] = 1;
        before->device[fd] = (uint64_t)status.st_dev;
        before->inode[fd] = (uint64_t)status.st_ino;
        before->count++;
    }
}

size_t fdcheck_count(void)
{
    size_t count = 0;
    for (int fd = 0; fd < FDCHECK_MAX; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void find_target(int fd, char *ret_target, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, ret_target, size - 1);
    ret_target[length < 0 ? 0 : length] = '\0';
}

/* Check opens its message file anew between a fixture and a case. */
static bool belongs_to_check(int fd, const struct stat *status)
{
    char target[256];
    if (!S_ISREG(status->st_mode) || status->st_nlink != 0)
        return false;
    find_target(fd, target, sizeof target);
    return strstr(target, "/check_") != NULL;
}

/* Is fd open now without having been open, as the same file, before? */
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

static void append_descriptor(int fd)
{
    char target[256];
    find_target(fd, target, sizeof target);
    const size_t used = strlen(leak_text);
    snprintf(leak_text + used, sizeof leak_text - used, "%s%d -> %s", used == 0 ? "" : ", ", fd,
             target);
}

static bool nothing_new(const struct fdcheck *before)
{
    for (int fd = 0; fd < FDCHECK_MAX; fd++)
        if (is_new(before, fd))
            return false;
    return true;
}

const char *fdcheck_leaked(const struct fdcheck *before, uint64_t deadline_ms)
{
    if (WAIT_UNTIL(nothing_new(before), deadline_ms))
        return NULL;
    leak_text[0] = '\0';
    for (int fd = 0; fd < FDCHECK_MAX; fd++)
        if (is_new(before, fd))
            append_descriptor(fd);
    return leak_text[0] == '\0' ? NULL : leak_text;
}

const char *fdcheck_inherited(const struct fdcheck *before)
{
    leak_text[0] = '\0';
    for (int fd = 0; fd < FDCHECK_MAX; fd++)
        if (is_new(before, fd) && (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0)
            append_descriptor(fd);
    return leak_text[0] == '\0' ? NULL : leak_text;
}
