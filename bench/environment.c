/* SPDX-License-Identifier: MIT
 * Reads the properties of the machine, the compiler and the servers. */
#include "environment.h"

#include <hiredis/hiredis.h>
#include <redlock/redlock.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Writes the model of the processor, or "unknown". */
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

/* Writes the version of the servers, and "TLS" if the measured connections use it. If the versions
 * differ, writes each once. Separates all by commas. */
static void read_versions(char *text, size_t size, const struct servers *servers)
{
    text[0] = '\0';
    for (size_t i = 0; i < servers->count; i++) {
        char version[64];
        size_t len = strlen(text);
        servers_version(&servers->list[i], version, sizeof version);
        if (strstr(text, version) == NULL)
            snprintf(text + len, size - len, "%s%s", len == 0 ? "" : ", ", version);
    }
    if (servers->tls)
        snprintf(text + strlen(text), size - strlen(text), ", TLS");
}

/* Fills in all fields for this machine, the library and the servers. */
void environment_read(struct environment *ret_environment, const struct servers *servers)
{
    struct environment *env = ret_environment;
    struct utsname name;
    memset(env, 0, sizeof *env);
    read_cpu(env->cpu, sizeof env->cpu);
    env->cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (uname(&name) == 0)
        snprintf(env->kernel, sizeof env->kernel, "%.20s %.60s %.20s", name.sysname, name.release,
                 name.machine);
#ifdef __clang__
    snprintf(env->compiler, sizeof env->compiler, "%s", __VERSION__);
#else
    snprintf(env->compiler, sizeof env->compiler, "gcc %s", __VERSION__);
#endif
    snprintf(env->flags, sizeof env->flags, "%s", BENCH_FLAGS);
    if (getloadavg(env->load, 3) != 3)
        memset(env->load, 0, sizeof env->load);
    snprintf(env->redlock, sizeof env->redlock, "%s", redlock_version_string());
    snprintf(env->hiredis, sizeof env->hiredis, "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR,
             HIREDIS_PATCH);
    snprintf(env->libsodium, sizeof env->libsodium, "%s", sodium_version_string());
    read_versions(env->server, sizeof env->server, servers);
    env->servers = servers->count;
}
