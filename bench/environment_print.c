/* SPDX-License-Identifier: MIT
 * Prints the environment for people and for programs. */
#include "environment.h"

/* Prints the environment as lines that begin with `start`. */
void environment_print(const struct environment *env, const char *start)
{
    printf("%smachine  %s, %ld CPUs, %s\n", start, env->cpu, env->cpus, env->kernel);
    printf("%sload     %.2f %.2f %.2f (1, 5, 15 minutes, before)\n", start, env->load[0],
           env->load[1], env->load[2]);
    printf("%sservers  %zu x %s\n", start, env->servers, env->server);
    printf("%slibrary  redlock %s, hiredis %s, libsodium %s\n", start, env->redlock, env->hiredis,
           env->libsodium);
    printf("%scompiler %s, %s\n", start, env->compiler, env->flags);
}

/* Returns the environment as a JSON object, owned by the caller. */
json_t *environment_json(const struct environment *env)
{
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:[f, f, f]}", "cpu",
                     env->cpu, "cpus", (json_int_t)env->cpus, "kernel", env->kernel, "compiler",
                     env->compiler, "flags", env->flags, "redlock", env->redlock, "hiredis",
                     env->hiredis, "libsodium", env->libsodium, "server", env->server, "servers",
                     (json_int_t)env->servers, "load", env->load[0], env->load[1], env->load[2]);
}
