/* SPDX-License-Identifier: MIT
 * Asks the server program for its version, and whether it was built with TLS. */
#include "server.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the program with these arguments, and stores the beginning of what it prints in `ret`,
 * terminated. Returns its wait status, or -1 if it did not run or printed nothing. */
static int read_output(const char *program, char *const args[], char *ret, size_t size)
{
    int ends[2], status = -1;
    posix_spawn_file_actions_t actions;
    pid_t pid;

    if (pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int error = posix_spawn(&pid, program, &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t len = 0;
    for (ssize_t got = 1; error == 0 && got > 0 && len<size - 1; len += got> 0 ? (size_t)got : 0)
        got = read(ends[0], ret + len, size - 1 - len);
    close(ends[0]);
    ret[len] = '\0';
    return error == 0 && waitpid(pid, &status, 0) == pid && len > 0 ? status : -1;
}

/* Returns the major version of the server program: 6 or more of Redis, 7 or more of Valkey. Returns
 * 0 if there is none, or if it does not print its version. */
int server_major(void)
{
    char name[] = "redis-server", option[] = "--version";
    char *const args[] = {name, option, NULL};
    const char *program = server_program();
    char text[256];

    if (program == NULL || read_output(program, args, text, sizeof text) != 0)
        return 0;
    const char *version = strstr(text, " v=");
    return version != NULL ? atoi(version + 3) : 0;
}

/* Returns whether the server program was built with TLS: it then knows the option, and ends because
 * it has nothing to listen on. */
bool server_is_tls_built(void)
{
    char name[] = "redis-server", port[] = "--port", tls_port[] = "--tls-port", none[] = "0";
    char *const args[] = {name, port, none, tls_port, none, NULL};
    const char *program = server_program();
    char text[4096];

    return program != NULL && read_output(program, args, text, sizeof text) > 0 &&
           strstr(text, "Bad directive") == NULL;
}
