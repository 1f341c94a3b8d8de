/* SPDX-License-Identifier: MIT
 * A cancel that is triggered in a signal handler changes no errno, whatever its wake-up meets. */
#include "api/client.h"

#include <errno.h>
#include <unistd.h>

#include "suite.h"

/* The counter of the eventfd is full (1), so that the write of the wake-up fails, or it is not (0).
 */
START_TEST(a_trigger_keeps_errno)
{
    const uint64_t most = UINT64_MAX - 1;
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    redlock_cancel_t *cancel = NULL;

    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_mode(config, REDLOCK_MODE_EMBEDDED), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, "unix:///nowhere/at/all"), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert_int_eq(redlock_cancel_new(&cancel, client), REDLOCK_OK);
    if (_i == 1) {
        uint64_t count;
        (void)!read(client->wake_fd, &count, sizeof count);
        ck_assert_int_eq(write(client->wake_fd, &most, sizeof most), sizeof most);
    }
    errno = ENOTTY;
    redlock_cancel_trigger(cancel);
    ck_assert_int_eq(errno, ENOTTY);
    redlock_cancel_free(cancel);
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_cancel");
    TCase *tcase = tcase_create("cancel");

    tcase_add_loop_test(tcase, a_trigger_keeps_errno, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
