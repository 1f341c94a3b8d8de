/* SPDX-License-Identifier: MIT
 * Nodes with host names: system calls fail while a name is resolved on its thread, and while its
 * addresses are tried in turn. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "call_fail.h"
#include "rig.h"

#define WAIT_MS 4000 /* wait budget of the acquisition */

static redlock_opts_t opts; /* of the acquisition */

/* Returns the addresses with a host name in the place of each 127.0.0.1, which is as long. The
 * caller frees the text. */
static char *with_names(const char *urls)
{
    static const char number[] = "127.0.0.1", name[] = "localhost";
    char *copy = strdup(urls);

    ck_assert_ptr_nonnull(copy);
    for (char *at = copy; (at = strstr(at, number)) != NULL;)
        memcpy(at, name, sizeof name - 1);
    return copy;
}

/* Prepares the configuration of a client of named servers. */
static void configure(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    char *urls = with_names(cluster_urls(rig.cluster));
    rig_new_config_for(REDLOCK_MODE_EMBEDDED, urls);
    free(urls);
}

/* Connects, acquires and releases a lock. */
static void acquire_and_release(void)
{
    opts.wait_ms = rig.starve ? 0 : wait_scaled_ms(WAIT_MS);
    if (!rig_take(&opts))
        return;
    rig_release(2, rig.lock);
    rig_finish();
}

/* Checks that only a failure for the whole client leaves no client, and one failure no harm. */
static void judge(void)
{
    const bool whole_client = rig.fault != NULL && rig.fault->call == CALL_FCNTL && rig.k == 0;

    if (rig.client == NULL) {
        ck_assert_msg(rig.hit && whole_client, "there is no client");
        ck_assert_int_eq(rig.call[0].started, REDLOCK_ESYS);
        return;
    }
    RIG_EXPECT(1, REDLOCK_OK, REDLOCK_ENOQUORUM, REDLOCK_ETOOSLOW);
    if (!rig.starve || !rig.hit || rig.fault->harmless)
        ck_assert_msg(rig.lock != NULL, "acquire: %s", rig.call[1].text);
    if (rig.lock != NULL)
        RIG_EXPECT(2, REDLOCK_OK, REDLOCK_ENOQUORUM);
}

START_TEST(failing_calls_with_host_names)
{
    rig_sweep_calls(&(struct scenario){.name = "named nodes",
                                       .prepare = configure,
                                       .act = acquire_and_release,
                                       .judge = judge,
                                       .bare = true,
                                       .kept = 2 * RIG_NODES,
                                       .calls = 1u << CALL_SOCKET | 1u << CALL_CONNECT |
                                                1u << CALL_GETSOCKOPT | 1u << CALL_FCNTL |
                                                1u << CALL_THREAD | 1u << CALL_GETADDRINFO});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_syscalls_resolver");
    TCase *tcase = tcase_create("names");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, failing_calls_with_host_names);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
