/* SPDX-License-Identifier: MIT
 * Asks the server program for its version. */
#include "server.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the program with --version under the name of the server, and stores what it prints in `ret`,
 * terminated. Returns false if that failed. */
static bool read_version(const char *program, char *ret, size_t size)
{
    char name[] = "redis-server", option[] = "--version";
    char *const args[] = {name, option, NULL};
    int ends[2], status;
    posix_spawn_file_actions_t actions;
    pid_t pid;

    if (pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0)
        return false;
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int error = posix_spawn(&pid, program, &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    const ssize_t len = error == 0 ? read(ends[0], ret, size - 1) : -1;
    close(ends[0]);
    ret[len > 0 ? len : 0] = '\0';
    return error == 0 && waitpid(pid, &status, 0) == pid && status == 0 && len > 0;
}

/* Returns the major version of the server program: 6 or more of Redis, 7 or more of Valkey. Returns
 * 0 if there is none, or if it does not print its version. */
int server_major(void)
{
    const char *program = server_program();
    char text[256];

    if (program == NULL || !read_version(program, text, sizeof text))
        return 0;
    const char *version = strstr(text, " v=");
    return version != NULL ? atoi(version + 3) : 0;
}
