/* SPDX-License-Identifier: MIT
 * A host that loads the library with dlopen() and unloads it while the resolution of a host name is
 * still running. The test replaces getaddrinfo(), which then waits for the test. */
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <redlock/redlock.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "suite.h"
#include "wait.h"

#define DEADLINE_MS 10000

static atomic_bool lookup_started; /* set by getaddrinfo() */
static atomic_bool lookup_may_end; /* set by the test; getaddrinfo() waits for it */

/* Replaces libc's function: waits for lookup_may_end, and then fails. A numeric address fails at
 * once, as a name that it is not. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    (void)host;
    (void)service;
    (void)ret;
    if (hints->ai_flags & AI_NUMERICHOST) /* called on the caller's thread for numeric addresses */
        return EAI_NONAME;
    atomic_store(&lookup_started, true);
    while (!atomic_load(&lookup_may_end))
        wait_pause();
    return EAI_AGAIN;
}

/* Returns the number of threads of this process. */
static unsigned count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;

    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* Stores the address of a function of the library in *function. Copies the bytes, because ISO C has
 * no conversion from an object's address to a function's. */
static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);

    ck_assert_msg(address != NULL, "%s is not exported", name);
    memcpy(function, &address, sizeof address);
}

/* Creates a client of one server with a host name, waits until its resolution begins, and frees the
 * client. */
static void create_and_free(void *library, int mode)
{
    int (*config_new)(redlock_config_t **, const redlock_allocator_t *);
    int (*add_nodes)(redlock_config_t *, const char *);
    int (*set_mode)(redlock_config_t *, int);
    int (*client_new)(redlock_t **, redlock_config_t *);
    int (*process)(redlock_t *);
    int (*client_free)(redlock_t *);
    void (*config_free)(redlock_config_t *);
    redlock_config_t *config;
    redlock_t *rl;

    find(library, "redlock_config_new", &config_new);
    find(library, "redlock_config_add_nodes", &add_nodes);
    find(library, "redlock_config_set_mode", &set_mode);
    find(library, "redlock_new", &client_new);
    find(library, "redlock_process", &process);
    find(library, "redlock_free", &client_free);
    find(library, "redlock_config_free", &config_free);
    ck_assert_int_eq(config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(add_nodes(config, "redis://server.invalid:6379"), REDLOCK_OK);
    ck_assert_int_eq(set_mode(config, mode), REDLOCK_OK);
    ck_assert_int_eq(client_new(&rl, config), REDLOCK_OK);
    config_free(config);
    if (mode == REDLOCK_MODE_EMBEDDED)
        ck_assert_int_eq(process(rl), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&lookup_started), DEADLINE_MS));
    ck_assert_int_eq(client_free(rl), REDLOCK_OK);
}

static const int MODES[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED};

/* A client is freed and the library unloaded while getaddrinfo() runs on a thread of the
 * library: the code stays until this thread has ended. _i selects the mode. */
START_TEST(resolution_outlives_dlclose)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    ck_assert_msg(library != NULL, "%s", dlerror());
    create_and_free(library, MODES[_i]);
    ck_assert_uint_eq(count_threads(), 2); /* this one and that of the resolution */
    ck_assert_int_eq(dlclose(library), 0);
    atomic_store(&lookup_may_end, true);
    ck_assert(WAIT_UNTIL(count_threads() == 1, DEADLINE_MS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unload");
    TCase *tcase = tcase_create("unload");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, resolution_outlives_dlclose, 0,
                        (int)(sizeof MODES / sizeof MODES[0]));
    return suite_run(suite);
}
