/* SPDX-License-Identifier: MIT
 * The header of a report: machine, kernel, versions. */
#include "environment.h"

#include <hiredis/hiredis.h>
#include <redlock/redlock.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_cpu(char *cpu, size_t size)
{
    char line[256];
    snprintf(cpu, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(cpu, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    fclose(file);
}

void environment_read(struct environment *ret_environment, const struct servers *servers)
{
    struct environment *env = ret_environment;
    struct utsname name;
    uint32_t version = redlock_version_number();
    memset(env, 0, sizeof *env);
    read_cpu(env->cpu, sizeof env->cpu);
    env->cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (uname(&name) == 0)
        snprintf(env->kernel, sizeof env->kernel, "%.20s %.60s %.20s", name.sysname, name.release,
                 name.machine);
    snprintf(env->compiler, sizeof env->compiler, "%s", __VERSION__);
    snprintf(env->redlock, sizeof env->redlock, "%u.%u.%u", version >> 16, version >> 8 & 255,
             version & 255);
    snprintf(env->hiredis, sizeof env->hiredis, "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR,
             HIREDIS_PATCH);
    snprintf(env->libsodium, sizeof env->libsodium, "%s", sodium_version_string());
    servers_version(&servers->list[0], env->server, sizeof env->server);
    env->servers = servers->count;
}
