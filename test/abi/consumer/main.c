/* SPDX-License-Identifier: MIT
 * A program that uses the installed library. Valid C99, C11 and C++. It needs no server: with nodes
 * that do not reply, an acquisition must end with REDLOCK_ENOQUORUM and a report. */
#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

/* Prints what has failed, with the text of the error (REDLOCK_*). Returns 1, for main(). */
static int fail(const char *what, int error)
{
    fprintf(stderr, "consumer: %s: %s\n", what, redlock_strerror(error));
    return 1;
}

/* Acquires a lock with a client whose nodes do not exist: it must end with ENOQUORUM and a report.
 * Returns 0, or 1 after another result. */
static int refused_lock(redlock_t *rl)
{
    redlock_opts_t opts = redlock_opts(1000);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    const int error = redlock_acquire(rl, "consumer", &opts, &lock, &report);
    if (error != REDLOCK_ENOQUORUM || lock != NULL || report == NULL)
        return fail("acquire without a server", error);
    printf("%s: %s\n", redlock_error_name(error), redlock_report_text(report));
    redlock_report_free(report);
    return 0;
}

/* Creates a client, with TLS if the library has it, compares the versions of header and library,
 * and tries to acquire a lock. Returns 0 if all results are as expected. */
int main(void)
{
    /* Nothing listens at these ports of loopback. */
    const char *servers = strstr(redlock_build_text(), "openssl") != NULL
                              ? "redis://127.0.0.1:1,rediss://127.0.0.1:2?verify=none"
                              : "redis://127.0.0.1:1";
    redlock_t *rl = NULL;
    redlock_config_t *config = NULL;
    int error = redlock_config_new(&config, NULL);
    if (error != REDLOCK_OK)
        return fail("config", error);
    error = redlock_config_add_nodes(config, servers);
    if (error == REDLOCK_OK)
        error = redlock_new(&rl, config);
    redlock_config_free(config);
    if (error != REDLOCK_OK)
        return fail("new", error);
    if (redlock_version_number() != REDLOCK_VERSION_NUMBER)
        return fail("version", REDLOCK_EINVAL);
    printf("header %s, library %s\n", REDLOCK_VERSION_STRING, redlock_version_string());
    if (strncmp(redlock_build_text(), "hiredis ", 8) != 0)
        return fail("build text", REDLOCK_EINVAL);
    const int status = refused_lock(rl);
    redlock_free(rl);
    return status;
}
