/* SPDX-License-Identifier: MIT
 * Invalid replies to the scripts of fences: of a wrong type, with too few or too many words or
 * invalid numbers, errors in the wording of old and new servers, silence, lost connections. If one
 * of three servers is broken, the lock is acquired with a fence all the same. If two are, the
 * caller gets the causes. Afterwards the servers behave, and the same client works with all of them
 * and has left no key.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "core/protocol.h"
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <string.h>

#define FAR_AHEAD (UINT64_C(1) << 52) /* above any clock: proposals need a second round */

#define WRAPPED   "-ERR Error running script (call to f_2a1b): @user_script:1: @user_script: 1: "

struct hostile_reply {
    const char *name;
    enum fake_fault fault;
    const char *bytes;
    unsigned causes;
    int status; /* where two servers do it */
};

#define NO_QUORUM REDLOCK_ENOQUORUM
#define HOSTILE(name, bytes)                                                                       \
    {                                                                                              \
        name, FAKE_REPLY, bytes, PROTOCOL, NO_QUORUM                                               \
    }

/* Replies of wrong types to any script. */
#define WRONG_KINDS                                                                                \
    HOSTILE("status", "+OK\r\n"), HOSTILE("integer", ":1\r\n"), HOSTILE("nil", "$-1\r\n"),         \
        HOSTILE("array", "*2\r\n$1\r\nA\r\n$1\r\n5\r\n"), HOSTILE("empty", "$0\r\n\r\n"),          \
        HOSTILE("blank", "$1\r\n \r\n"), HOSTILE("strange letter", "$5\r\nZ 5 r\r\n"),             \
        HOSTILE("word", "$6\r\nAA 5 r\r\n"), HOSTILE("small letter", "$5\r\na 5 r\r\n")

/* Error replies, and events of connections. */
#define ERRORS                                                                                     \
    {"OOM", FAKE_REPLY, "-OOM command not allowed when used memory > 'maxmemory'.\r\n",            \
     1u << REDLOCK_CAUSE_OOM, NO_QUORUM},                                                          \
        {"OOM, wrapped", FAKE_REPLY, WRAPPED "-OOM command not allowed.\r\n",                      \
         1u << REDLOCK_CAUSE_OOM, NO_QUORUM},                                                      \
        {"NOSCRIPT, wrapped", FAKE_REPLY, WRAPPED "-NOSCRIPT No matching script.\r\n",             \
         ERROR_REPLY, NO_QUORUM},                                                                  \
        {"READONLY", FAKE_REPLY, "-READONLY You can't write against a read only replica.\r\n",     \
         1u << REDLOCK_CAUSE_READONLY, REDLOCK_EEXCLUDED},                                         \
        {"READONLY, wrapped", FAKE_REPLY, WRAPPED "-READONLY You can't write.\r\n",                \
         1u << REDLOCK_CAUSE_READONLY, REDLOCK_EEXCLUDED},                                         \
        {"BUSY", FAKE_REPLY, "-BUSY Redis is busy running a script.\r\n",                          \
         1u << REDLOCK_CAUSE_BUSY, NO_QUORUM},                                                     \
        {"another kind of key", FAKE_REPLY, WRAPPED "-WRONGTYPE Operation against a key\r\n",      \
         RECORD, REDLOCK_EFENCE},                                                                  \
        {"silence", FAKE_SILENCE, NULL, TIMEOUT, NO_QUORUM},                                       \
        {"close before the answer", FAKE_CLOSE, NULL, LOST, NO_QUORUM},                            \
        {"reset", FAKE_RESET, NULL, LOST, NO_QUORUM},                                              \
    {                                                                                              \
        "close without executing", FAKE_DROP, NULL, LOST, NO_QUORUM                                \
    }

static const struct hostile_reply votes[] = {
    WRONG_KINDS,
    ERRORS,
    HOSTILE("no number", "$1\r\nA\r\n"),
    HOSTILE("nothing behind the blank", "$2\r\nA \r\n"),
    HOSTILE("two blanks", "$6\r\nA  5 r\r\n"),
    HOSTILE("no digits", "$5\r\nA x r\r\n"),
    HOSTILE("negative", "$6\r\nA -5 r\r\n"),
    HOSTILE("not whole", "$7\r\nA 5.5 r\r\n"),
    HOSTILE("exponent", "$7\r\nA 1e3 r\r\n"),
    HOSTILE("2^53 - 2", "$20\r\nA 9007199254740990 r\r\n"),
    HOSTILE("2^53", "$20\r\nG 9007199254740992 r\r\n"),
    HOSTILE("beyond 64 bits", "$24\r\nG 99999999999999999999 r\r\n"),
    HOSTILE("denied without a number", "$1\r\nD\r\n"),
    HOSTILE("denied with a strange number", "$6\r\nD x 77\r\n"),
    HOSTILE("answer to a RAISE", "$1\r\nL\r\n"),
    {"run of another", FAKE_FORGE, "$7\r\nA 5 run\r\n", RECORD, REDLOCK_EFENCE},
    {"no run", FAKE_FORGE, "$3\r\nG 5\r\n", RECORD, REDLOCK_EFENCE},
    {"garbled, but executed", FAKE_FORGE, "$3\r\nA ?\r\n", PROTOCOL, NO_QUORUM},
    {"record missing", FAKE_REPLY, "$1\r\nM\r\n", RECORD, REDLOCK_EFENCE},
    {"record of another", FAKE_REPLY, "$7\r\nR other\r\n", RECORD, REDLOCK_EFENCE},
    {"record corrupt", FAKE_REPLY, "$1\r\nC\r\n", RECORD, REDLOCK_EFENCE},
};

static const struct hostile_reply raises[] = {
    WRONG_KINDS,
    ERRORS,
    HOSTILE("grant", "$5\r\nG 5 r\r\n"),
    HOSTILE("denial", "$6\r\nD 5 77\r\n"),
    {"run of another", FAKE_FORGE, "$5\r\nA run\r\n", RECORD, REDLOCK_EFENCE},
    {"run that begins with a number", FAKE_FORGE, "$5\r\nA 5 r\r\n", RECORD, REDLOCK_EFENCE},
    {"no run", FAKE_FORGE, "$1\r\nA\r\n", RECORD, REDLOCK_EFENCE},
    {"record missing", FAKE_REPLY, "$1\r\nM\r\n", RECORD, REDLOCK_EFENCE},
    {"record of another", FAKE_REPLY, "$7\r\nR other\r\n", RECORD, REDLOCK_EFENCE},
    {"record corrupt", FAKE_REPLY, "$1\r\nC\r\n", RECORD, REDLOCK_EFENCE},
};

/* Records that are not in use and not empty, or cannot be read. */
static const struct hostile_reply reads[] = {
    WRONG_KINDS,
    ERRORS,
    HOSTILE("one line", "$3\r\na\nb\r\n"),
    HOSTILE("longer than any record", "$100000\r\n"),
    {"of another", FAKE_REPLY, "$9\r\nother\n\n5:\r\n", RECORD, REDLOCK_EFENCE},
    {"no number", FAKE_REPLY, "$5\r\n\n\n5:x\r\n", RECORD, REDLOCK_EFENCE},
    {"no stripe", FAKE_REPLY, "$4\r\n\n\n:5\r\n", RECORD, REDLOCK_EFENCE},
    {"stripe beyond the last", FAKE_REPLY, "$8\r\n\n\n1024:5\r\n", RECORD, REDLOCK_EFENCE},
    {"number beyond 2^53", FAKE_REPLY, "$20\r\n\n\n0:9007199254740993\r\n", RECORD, REDLOCK_EFENCE},
    {"rubbish behind the numbers", FAKE_REPLY, "$7\r\n\n\n0:5 x\r\n", RECORD, REDLOCK_EFENCE},
};

static const struct hostile_reply seeds[] = {
    WRONG_KINDS,
    ERRORS,
    HOSTILE("answer to a RAISE", "$1\r\nL\r\n"),
    {"somebody else's mark", FAKE_REPLY, "$1\r\nS\r\n", RECORD, REDLOCK_EFENCE},
    {"of another", FAKE_REPLY, "$7\r\nR other\r\n", RECORD, REDLOCK_EFENCE},
};

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

/* Makes the first `servers` servers reply to the script in this way. */
static void add_fault(size_t servers, enum rl_verb verb, const struct hostile_reply *hostile)
{
    struct fake_rule rule = {.command = "EVALSHA",
                             .argument = rl_protocol_script(verb, RL_FORM_SHA)->sha,
                             .fault = hostile->fault,
                             .bytes = hostile->bytes};

    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(three_servers.fake[i], rule);
    rule.command = "EVAL";
    rule.argument = rl_protocol_script(verb, RL_FORM_SHA)->text;
    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(three_servers.fake[i], rule);
}

/* Connects a client with fences to all three servers. */
static void begin(void)
{
    three_servers.fences = true;
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
}

/* Connects, and takes all three records into use. */
static void begin_in_use(void)
{
    begin();
    three_servers_check_all_work();
    ck_assert_uint_gt(three_servers.fence, 0);
}

/* Sets all registers above any clock. Returns the number. */
static uint64_t set_far_ahead(uint64_t more)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_set_numbers(three_servers.fake[i], FAR_AHEAD + more);
    return FAR_AHEAD + more;
}

/* Checks that a lock is acquired with a fence above `above`, although one server misbehaves. */
static void check_one_faulty_server(enum rl_verb verb, const struct hostile_reply *hostile,
                                    uint64_t above)
{
    redlock_lock_t *lock = NULL;

    add_fault(1, verb, hostile);
    int status = three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(status == REDLOCK_OK, "%s: %s%s", hostile->name, redlock_strerror(status),
                  three_servers_text());
    ck_assert_uint_gt(three_servers.fence, above);
    status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s: release: %s%s", hostile->name,
                  redlock_strerror(status), three_servers_text());
    three_servers_check_recovers(hostile->name);
    ck_assert_uint_gt(three_servers.fence, above + 1);
}

/* Checks that the acquisition fails for the causes of two servers, and that the client recovers. */
static void check_two_faulty_servers(enum rl_verb verb, const struct hostile_reply *hostile)
{
    add_fault(2, verb, hostile);
    three_servers_check_fails(hostile->name, hostile->status, 0);
    three_servers_check_failed(0, hostile->name, hostile->causes);
    three_servers_check_failed(1, hostile->name, hostile->causes);
    three_servers_check_recovers(hostile->name);
}

START_TEST(one_server_with_invalid_votes_is_tolerated)
{
    begin_in_use();
    check_one_faulty_server(RL_VERB_ACQUIRE, &votes[_i], three_servers.fence);
}
END_TEST

START_TEST(two_servers_with_invalid_votes_fail_the_attempt)
{
    begin_in_use();
    uint64_t before = three_servers.fence;
    check_two_faulty_servers(RL_VERB_ACQUIRE, &votes[_i]);
    ck_assert_uint_gt(three_servers.fence, before);
}
END_TEST

START_TEST(one_server_with_invalid_raises_is_tolerated)
{
    begin_in_use();
    check_one_faulty_server(RL_VERB_RAISE, &raises[_i], set_far_ahead(0));
    ck_assert_uint_gt(fake_redis_count(three_servers.fake[0], "EVAL"), 0);
}
END_TEST

START_TEST(two_servers_with_invalid_raises_fail_the_attempt)
{
    begin_in_use();
    uint64_t before = set_far_ahead(0);
    check_two_faulty_servers(RL_VERB_RAISE, &raises[_i]);
    ck_assert_uint_gt(three_servers.fence, before);
}
END_TEST

/* A first start needs all records empty. It waits for that and reports the reason to the caller.
 * Two empty records are not enough. */
START_TEST(one_server_with_an_invalid_record_delays_the_first_start)
{
    const struct hostile_reply *hostile = &reads[_i];

    begin();
    add_fault(1, RL_VERB_READ, hostile);
    three_servers_check_fails(hostile->name, REDLOCK_EFENCE, 0);
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[1], "EVALSHA seed"), 0);
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[2], "EVALSHA seed"), 0);
    three_servers_check_recovers(hostile->name);
}
END_TEST

/* Two of three records are in use, which is a majority. */
START_TEST(one_server_that_refuses_its_seed_is_tolerated)
{
    begin();
    check_one_faulty_server(RL_VERB_SEED, &seeds[_i], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_fence_replies");
    TCase *vote = three_servers_add_case(suite, "votes"),
          *raise = three_servers_add_case(suite, "raise");
    TCase *record = three_servers_add_case(suite, "record");

    tcase_add_loop_test(vote, one_server_with_invalid_votes_is_tolerated, 0, COUNT(votes));
    tcase_add_loop_test(vote, two_servers_with_invalid_votes_fail_the_attempt, 0, COUNT(votes));
    tcase_add_loop_test(raise, one_server_with_invalid_raises_is_tolerated, 0, COUNT(raises));
    tcase_add_loop_test(raise, two_servers_with_invalid_raises_fail_the_attempt, 0, COUNT(raises));
    tcase_add_loop_test(record, one_server_with_an_invalid_record_delays_the_first_start, 0,
                        COUNT(reads));
    tcase_add_loop_test(record, one_server_that_refuses_its_seed_is_tolerated, 0, COUNT(seeds));
    return suite_run(suite);
}
