/* SPDX-License-Identifier: MIT
 * The lengths of TLS records: how far a server reads from a connection that has ended. */
#include "node/tls_records.h"

#include "suite.h"

/* Records with these lengths, and how many of the last `unread` bytes are in the first two records
 * of them. */
static const struct {
    const char *what;
    size_t lengths[12]; /* the oldest first; 0 ends the list */
    uint64_t unread, reach;
} CASES[] = {
    {"nothing was sent", {0}, 0, 0},
    {"all was read", {10, 20}, 0, 0},
    {"one record", {10}, 10, 10},
    {"the end of one record", {10}, 4, 4},
    {"two records", {10, 20}, 30, 30},
    {"the last of two", {10, 20}, 20, 20},
    {"two, from the middle of the first", {10, 20}, 25, 25},
    {"three, of which the last is not read", {10, 20, 30}, 60, 30},
    {"four, from the middle of the first", {10, 20, 30, 40}, 95, 25},
    {"the last five of many", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 45, 15},
    {"as many as are known", {1, 2, 3, 4, 5, 6, 7, 8, 9}, 44, 5},
    {"more than are known", {1, 2, 3, 4, 5, 6, 7, 8, 9}, 45, 0},
    {"more than was sent", {10}, 11, 0},
};

START_TEST(a_server_reads_two_records)
{
    struct rl_tls_records records = {.count = 0};

    for (unsigned i = 0; i < 12 && CASES[_i].lengths[i] != 0; i++) {
        rl_tls_records_add(&records, CASES[_i].lengths[i]);
        ck_assert_uint_eq(rl_tls_records_last(&records), CASES[_i].lengths[i]);
    }
    ck_assert_msg(rl_tls_records_reach(&records, CASES[_i].unread) == CASES[_i].reach, "%s: %llu",
                  CASES[_i].what,
                  (unsigned long long)rl_tls_records_reach(&records, CASES[_i].unread));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tls_records");
    TCase *tcase = tcase_create("records");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_server_reads_two_records, 0,
                        (int)(sizeof CASES / sizeof CASES[0]));
    return suite_run(suite);
}
