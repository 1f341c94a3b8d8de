/* SPDX-License-Identifier: MIT
 * Preloaded into the command to stop it at a chosen point, as if the machine were very busy, so
 * that a test can inspect what was done before. PROCSTALL names a directory: the guardian creates
 * the file `reached` there, and waits for the file `go`, when it is about to list the directory
 * PROCSTALL_AT (/proc: the processes that it kills; /proc/self/fd: it has just started).
 *
 * With PROCSTALL_AT=command the wrapper waits in the same way, right before it starts the command.
 * With PROCSTALL_AT=stop the wrapper waits in the same way, right before it stops itself after the
 * other processes of its group; its child that is to continue it waits for `go`, too, before it
 * looks who has the terminal.
 *
 * With PROCSTALL_AT=note the wrapper gets a SIGTERM right after a callback of the library has run,
 * such as the one for an acquired lock.
 *
 * If the directory has a file `hidden` with the name of an entry of /proc, the guardian does not
 * find this entry in its first two listings, as if its parent had ended in the middle of each. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIVE_UP_MS      30000 /* a stall ends after it if the test does not end it */

#define HIDDEN_LISTINGS 2 /* number of listings of /proc from which an entry is hidden */

typedef DIR *(*opendir_fn)(const char *path);
typedef struct dirent *(*readdir_fn)(DIR *dir);

static unsigned listings; /* number of times that the guardian has listed /proc */
static char hidden[32];   /* name of the entry that the present listing does not show; or "" */

static bool is_guardian(void)
{
    char name[16] = "";

    return prctl(PR_GET_NAME, name) == 0 && strcmp(name, "rl-guardian") == 0;
}

/* Waits for the file `go`. */
static void await_go(const char *directory)
{
    char path[512];

    snprintf(path, sizeof path, "%s/go", directory);
    for (unsigned i = 0; i < GIVE_UP_MS && access(path, F_OK) != 0; i++)
        (void)poll(NULL, 0, 1);
}

/* Creates the file `reached` and waits for the file `go`. */
static void stall(const char *directory)
{
    char path[512];

    snprintf(path, sizeof path, "%s/reached", directory);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    await_go(directory);
}

/* Waits as described above: the wrapper calls it first between the lock and its command. */
char *ctermid(char *name)
{
    const char *directory = getenv("PROCSTALL"), *at = getenv("PROCSTALL_AT");
    char *(*next)(char *) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "ctermid");

    memcpy(&next, &symbol, sizeof next);
    if (directory != NULL && at != NULL && strcmp(at, "command") == 0)
        stall(directory);
    return next(name);
}

/* Returns the directory named by PROCSTALL with PROCSTALL_AT=stop; else NULL. */
static const char *stop_directory(void)
{
    const char *at = getenv("PROCSTALL_AT");

    return at != NULL && strcmp(at, "stop") == 0 ? getenv("PROCSTALL") : NULL;
}

/* Waits as described above before a SIGSTOP. */
int raise(int sig)
{
    int (*next)(int) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "raise");

    memcpy(&next, &symbol, sizeof next);
    if (sig == SIGSTOP && stop_directory() != NULL)
        stall(stop_directory());
    return next(sig);
}

/* Waits as described above in the child of the wrapper: the wrapper itself calls it before. */
pid_t tcgetpgrp(int fd)
{
    static pid_t wrapper;
    pid_t (*next)(int) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "tcgetpgrp");

    memcpy(&next, &symbol, sizeof next);
    if (wrapper == 0)
        wrapper = getpid();
    if (wrapper == getppid() && stop_directory() != NULL)
        await_go(stop_directory());
    return next(fd);
}

/* Sends the SIGTERM: the wrapper reads a pointer from a pipe after each callback. */
ssize_t read(int fd, void *buffer, size_t len)
{
    const char *at = getenv("PROCSTALL_AT");
    ssize_t (*next)(int, void *, size_t) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "read");

    memcpy(&next, &symbol, sizeof next);
    ssize_t done = next(fd, buffer, len);
    struct stat info;
    if (at != NULL && strcmp(at, "note") == 0 && done == (ssize_t)sizeof(void *) &&
        fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode))
        kill(getpid(), SIGTERM);
    return done;
}

/* Counts a listing of /proc and reads which entry it hides. Counts without a lock, because the
 * guardian has one thread. */
static void begin_listing(const char *directory)
{
    char path[512];

    snprintf(path, sizeof path, "%s/hidden", directory);
    FILE *file = ++listings > HIDDEN_LISTINGS ? NULL : fopen(path, "re");
    if (file == NULL || fscanf(file, "%31s", hidden) != 1)
        hidden[0] = '\0';
    if (file != NULL)
        fclose(file);
}

/* Skips the hidden entry. */
struct dirent *readdir(DIR *dir)
{
    readdir_fn next = NULL;
    void *symbol = dlsym(RTLD_NEXT, sizeof(off_t) == 8 ? "readdir64" : "readdir");
    struct dirent *entry;

    memcpy(&next, &symbol, sizeof next);
    do
        entry = next(dir);
    while (entry != NULL && hidden[0] != '\0' && strcmp(entry->d_name, hidden) == 0);
    return entry;
}

/* Waits as described above when the guardian lists a directory. */
DIR *opendir(const char *path)
{
    const char *directory = getenv("PROCSTALL"), *at = getenv("PROCSTALL_AT");
    opendir_fn next = NULL;
    void *symbol = dlsym(RTLD_NEXT, "opendir");

    memcpy(&next, &symbol, sizeof next);
    if (directory != NULL && at != NULL && strcmp(path, at) == 0 && is_guardian())
        stall(directory);
    if (directory != NULL && strcmp(path, "/proc") == 0 && is_guardian())
        begin_listing(directory);
    return next(path);
}
