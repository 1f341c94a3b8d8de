/* SPDX-License-Identifier: MIT
 * Users without the rights that lines need: their waiters do without a line, and no caller sees an
 * error.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open(live_config()) returns a client.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS() compares two
 * REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done()
 * stores the result of an asynchronous call in a struct outcome, and outcome_wait() waits for it
 * and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rights that locks and notifications need, and in `lines` those that lines need, too. */
#define RIGHTS                                                                                     \
    "resetkeys ~* resetchannels &__redis__:invalidate -@all +set +get +del +pttl +pexpire "        \
    "+evalsha +eval +script +info +time +client +subscribe"
#define LINES_RIGHTS " &redlock:q:* +getex +publish"

/* One user, and what the server says of a missing right, as far as its text names it; NULL: none is
 * missing. */
static const struct {
    const char *rights, *text;
} USERS[] = {
    {RIGHTS LINES_RIGHTS, NULL},
    {RIGHTS, ""}, /* the user of an earlier version */
    {RIGHTS " +getex +publish", "channel"},
    {RIGHTS " &redlock:q:* +publish", ""},
    {RIGHTS " &redlock:q:* +getex", ""},
};
#define USERS_COUNT (sizeof USERS / sizeof USERS[0])

static struct outcome outcomes[2];

/* Returns a client of the limited user. */
static redlock_t *open_limited(void)
{
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_auth(config, "waiter", "pw"), REDLOCK_OK);
    return live_open(config);
}

/* Makes the limited user of this case on all servers. */
static void make_user(unsigned user)
{
    char command[400];

    snprintf(command, sizeof command, "ACL SETUSER waiter reset on >pw %s", USERS[user].rights);
    cluster_command_all(live.cluster, command);
    cluster_command_all(live.cluster, "ACL LOG RESET");
}

/* Starts an acquisition of "busy". */
static void wait_for_busy(redlock_t *client, struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    *outcome = (struct outcome)OUTCOME;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_acquire_start(client, "busy", &opts, note_done, outcome), REDLOCK_OK);
}

/* Returns the number of nodes whose lines are in this state for the client. */
static unsigned nodes_in(redlock_t *client, int line_state)
{
    unsigned count = 0;

    for (unsigned i = 0; i < NODES; i++)
        count += live_node_stats(client, i).line_state == line_state;
    return count;
}

/* Checks what the client says of the nodes that have refused lines, and that this was no error of a
 * lock. */
static void check_reasons(redlock_t *client, const char *text)
{
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_stats_t stats = live_node_stats(client, i);
        ck_assert_uint_eq(stats.errors, 0);
        ck_assert(stats.eligible);
        if (stats.line_state != REDLOCK_LINE_REFUSED) {
            ck_assert_str_eq(stats.line_text, "");
            continue;
        }
        ck_assert_ptr_nonnull(text);
        ck_assert_int_eq(stats.line_cause, REDLOCK_CAUSE_NOPERM);
        ck_assert_msg(strcasestr(stats.line_text, text) != NULL, "%s", stats.line_text);
    }
}

/* Two waiters of the user wait for a foreign client. They get the lock one after the other, with or
 * without a line, and leave nothing on the servers. */
START_TEST(waiters_of_the_user_are_served)
{
    make_user((unsigned)_i);
    live.client = open_limited();
    redlock_t *clients[2] = {live.client, open_limited()};
    const int expected = USERS[_i].text == NULL ? REDLOCK_LINE_ON : REDLOCK_LINE_REFUSED;

    cluster_command_all(live.cluster, "SET busy another PX 600000");
    for (unsigned i = 0; i < 2; i++) {
        wait_for_busy(clients[i], &outcomes[i]);
        ck_assert(WAIT_UNTIL(nodes_in(clients[i], expected) > 0, TIME_LIMIT_MS));
    }
    cluster_command_all(live.cluster, "DEL busy");
    ck_assert(
        WAIT_UNTIL(outcome_calls(&outcomes[0]) + outcome_calls(&outcomes[1]) == 1, TIME_LIMIT_MS));
    const unsigned first = outcome_calls(&outcomes[0]) == 1 ? 0 : 1;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned at = i == 0 ? first : 1 - first;
        CHECK_STATUS(outcome_wait(clients[at], &outcomes[at]), REDLOCK_OK);
        check_reasons(clients[at], USERS[_i].text);
        CHECK_STATUS(live_release(outcomes[at].lock), REDLOCK_OK);
    }
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_free(clients[1]), REDLOCK_OK);
    live_disconnect();
    cluster_command_all(live.cluster, "ACL DELUSER waiter");
}
END_TEST

/* Servers without GETEX, as before Redis 6.2: the same. */
START_TEST(servers_without_getex_keep_no_line)
{
    live.client = live_open(live_config());
    cluster_command_all(live.cluster, "SET busy another PX 600000");
    wait_for_busy(live.client, &outcomes[0]);
    ck_assert(WAIT_UNTIL(nodes_in(live.client, REDLOCK_LINE_REFUSED) > 0, TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL busy");
    CHECK_STATUS(outcome_wait(live.client, &outcomes[0]), REDLOCK_OK);
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_stats_t stats = live_node_stats(live.client, i);
        ck_assert_uint_eq(stats.errors, 0);
        ck_assert(stats.line_state != REDLOCK_LINE_REFUSED ||
                  stats.line_cause == REDLOCK_CAUSE_ERROR_REPLY);
    }
    CHECK_STATUS(live_release(outcomes[0].lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Starts servers that have no GETEX. */
static void start_old_servers(void)
{
    static const char *const args[] = {"--rename-command", "GETEX", "", NULL};

    live_start_servers_with(&(struct cluster_opts){.args = args});
}

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_line_rights");
    live_add_each(suite, "rights", waiters_of_the_user_are_served, USERS_COUNT);
    live_add_with(suite, "old", servers_without_getex_keep_no_line, start_old_servers);
    live_start_servers();
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
