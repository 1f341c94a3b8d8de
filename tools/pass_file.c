/* SPDX-License-Identifier: MIT
 * A detached thread looks at the password file once a second, and reads it when it has changed. The
 * thread may hang in the file system for ever, so it is never joined, and all that it uses is
 * static or its own. A file that is no regular file, such as a pipe, is read only once, at the
 * start of the command.
 */
#include "pass_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "mask.h"
#include "say.h"

/* Time between two looks, in ms. */
#define LOOK_MS 1000

/* The one client whose login follows the file. */
static struct {
    pthread_mutex_t mutex; /* guards `rl` */
    redlock_t *rl;         /* the client; NULL: none, or left */
} followed = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* What the thread owns. It frees this at its end. */
struct follower {
    char *path, *user; /* user NULL: the default user */
    char *password;    /* the one that the client has */
    struct stat seen;  /* the file as it was read last; all zero: it was not */
};

/* Overwrites and frees a password. Accepts NULL. */
static void wipe(char *password)
{
    if (password)
        explicit_bzero(password, strlen(password));
    free(password);
}

/* Returns true if the two describe the same content of the same file. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Reads the first line of the file. Returns NULL, with errno, if that fails. */
static char *read_password(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char *password = fd < 0 ? NULL : read_first_line(fd);
    int why = errno;

    if (fd >= 0)
        close(fd);
    errno = why;
    return password;
}

/* Passes the password to the client, unless it has it or was left, and keeps it. */
static void pass_on(struct follower *follower, char *password)
{
    int error = REDLOCK_OK;
    bool differs = strcmp(password, follower->password) != 0;

    pthread_mutex_lock(&followed.mutex);
    if (differs && followed.rl)
        error = redlock_set_auth(followed.rl, follower->user, password);
    pthread_mutex_unlock(&followed.mutex);
    if (error != REDLOCK_OK)
        say(SAY_WARNING, "%s: the new password cannot be used: %s; the earlier one stays in use",
            mask_word(follower->path), redlock_strerror(error));
    else if (differs)
        say(SAY_INFO, "%s: has a new password, for the next connections",
            mask_word(follower->path));
    wipe(follower->password);
    follower->password = password;
}

/* Reads the file if it has changed since it was read last. Returns false if it is no regular file,
 * which is not read again. A file that is not there is looked for again. */
static bool look(struct follower *follower)
{
    struct stat now;

    if (stat(follower->path, &now) != 0)
        return true;
    if (!S_ISREG(now.st_mode))
        return false;
    if (is_same(&now, &follower->seen))
        return true;
    follower->seen = now;
    char *password = read_password(follower->path);
    if (password && *password) {
        pass_on(follower, password);
        return true;
    }
    say(SAY_WARNING, "%s: %s; the earlier password stays in use", mask_word(follower->path),
        password ? "the first line is empty" : strerror(errno));
    wipe(password);
    return true;
}

bool pass_file_is_followed(void)
{
    pthread_mutex_lock(&followed.mutex);
    bool is = followed.rl != NULL;
    pthread_mutex_unlock(&followed.mutex);
    return is;
}

/* The thread. */
static void *follow(void *argument)
{
    struct follower *follower = argument;

    while (pass_file_is_followed() && look(follower))
        poll(NULL, 0, LOOK_MS);
    wipe(follower->password);
    free(follower->user);
    free(follower->path);
    free(follower);
    return NULL;
}

/* Starts the thread, detached and with all signals blocked. Returns false if there is none. */
static bool start(struct follower *follower)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;

    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, follow, follower) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

void pass_file_follow(const struct settings *settings, redlock_t *rl)
{
    const struct setting *file = &settings->values[SET_PASS_FILE];
    const struct setting *password = &settings->values[SET_PASSWORD];
    const char *user = settings->values[SET_USER].text;

    if (followed.rl || !settings->password || !file->text ||
        (password->text && password->rank >= file->rank))
        return;
    struct follower *follower = must(calloc(1, sizeof *follower));
    follower->path = text_copy(file->text);
    follower->user = user ? text_copy(user) : NULL;
    follower->password = text_copy(settings->password);
    followed.rl = rl;
    if (start(follower))
        return;
    followed.rl = NULL;
    wipe(follower->password);
    free(follower->user);
    free(follower->path);
    free(follower);
}

void pass_file_leave(const redlock_t *rl)
{
    pthread_mutex_lock(&followed.mutex);
    if (followed.rl == rl)
        followed.rl = NULL;
    pthread_mutex_unlock(&followed.mutex);
}
