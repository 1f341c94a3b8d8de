/* SPDX-License-Identifier: MIT
 * One round: which nodes get the request, whose vote counts, when it is decided, and why it failed.
 * test/exhaustive walks through all votes in all orders. */
#include "core/quorum.h"

#include <redlock/redlock.h>
#include <string.h>

#include "suite.h"

/* The memory of the one round that a test has. */
static uint32_t rtt_us[RL_NODES_MAX];
static uint8_t causes[RL_NODES_MAX];

/* Returns a new round of `nodes` nodes. */
static struct rl_round round_of(unsigned nodes)
{
    struct rl_round round;

    memset(rtt_us, 0, sizeof rtt_us);
    memset(causes, 0, sizeof causes);
    rl_round_init(&round, nodes, nodes / 2 + 1, rtt_us, causes);
    return round;
}

/* Returns a view in which the nodes `up` are connected and eligible. */
static struct rl_view view_of(rl_nodes up)
{
    struct rl_view view = {.now = {.boot_ns = 70, .raw_ns = 7}, .up = up, .eligible = up};

    for (unsigned i = 0; i < RL_NODES_MAX; i++)
        view.cause[i] = REDLOCK_CAUSE_CONNECT;
    return view;
}

/* Counts a vote in the round. Returns false if the round ignores it. */
static bool cast(struct rl_round *round, unsigned node, enum rl_vote vote, int cause)
{
    const struct rl_ballot ballot = {
        .node = (uint8_t)node,
        .vote = (uint8_t)vote,
        .cause = (uint8_t)cause,
        .round = round->number,
        .rtt_us = 40 + node,
    };
    return rl_round_count(round, &ballot);
}

/* Returns a round with these votes, one letter for each node: g granted, d denied, f failed,
 * s suspect, '.' no vote, '-' not asked. */
static struct rl_round round_with(enum rl_verb verb, const char *votes, rl_nodes excluded)
{
    unsigned nodes = (unsigned)strlen(votes);
    struct rl_round round = round_of(nodes);
    struct rl_view view = view_of(rl_nodes_all(nodes));
    rl_nodes ask = 0;

    for (unsigned i = 0; i < nodes; i++)
        ask |= votes[i] != '-' ? RL_NODE(i) : 0;
    rl_round_open(&round, verb, ask, excluded, &view);
    for (unsigned i = 0; i < nodes; i++) {
        if (votes[i] == 'g')
            cast(&round, i, RL_VOTE_GRANTED, 0);
        else if (votes[i] == 'd')
            cast(&round, i, RL_VOTE_DENIED, 0);
        else if (votes[i] == 'f')
            cast(&round, i, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT);
        else if (votes[i] == 's')
            cast(&round, i, RL_VOTE_SUSPECT, REDLOCK_CAUSE_TIMEOUT);
    }
    return round;
}

START_TEST(connected_nodes_are_asked_and_others_fail)
{
    struct rl_round round = round_of(5);
    struct rl_view view = view_of(0x15);

    view.cause[1] = REDLOCK_CAUSE_TIMEOUT;
    view.cause[4] = REDLOCK_CAUSE_DUPLICATE;
    rl_round_open(&round, RL_VERB_ACQUIRE, 0x1f, 0x10, &view);
    ck_assert_uint_eq(round.number, 1);
    ck_assert_uint_eq(round.requested, 0x15);
    ck_assert_uint_eq(round.failed, 0x0a);
    ck_assert_uint_eq(round.absent, 0);
    ck_assert_uint_eq(round.excluded, 0x10);
    ck_assert_uint_eq(round.cause[0], REDLOCK_CAUSE_NONE);
    ck_assert_uint_eq(round.cause[1], REDLOCK_CAUSE_TIMEOUT);
    ck_assert_uint_eq(round.cause[3], REDLOCK_CAUSE_CONNECT);
    ck_assert_uint_eq(round.cause[4], REDLOCK_CAUSE_DUPLICATE);
    ck_assert_uint_eq(round.t1.boot_ns, 70);
    ck_assert_uint_eq(round.t1.raw_ns, 7);
    ck_assert_uint_eq(rl_round_pending(&round), 0x15);

    /* The next round starts without votes. Nodes that are not asked are not failures. */
    cast(&round, 0, RL_VOTE_GRANTED, 0);
    rl_round_open(&round, RL_VERB_RELEASE, 0x07, ~(rl_nodes)0, &view);
    ck_assert_uint_eq(round.number, 2);
    ck_assert_uint_eq(round.requested, 0x05);
    ck_assert_uint_eq(round.failed, 0x02);
    ck_assert_uint_eq(round.absent, 0x18);
    ck_assert_uint_eq(round.excluded, 0x1f); /* bits of nodes that do not exist are dropped */
    ck_assert_uint_eq(round.granted | round.denied, 0);
    ck_assert_uint_eq(round.rtt_us[0], 0);
}
END_TEST

START_TEST(a_vote_counts_once)
{
    struct rl_round round = round_of(3);
    struct rl_view view = view_of(0x3);

    rl_round_open(&round, RL_VERB_ACQUIRE, 0x7, 0, &view);
    ck_assert(cast(&round, 0, RL_VOTE_DENIED, 0));
    ck_assert(!cast(&round, 0, RL_VOTE_GRANTED, 0)); /* second reply */
    ck_assert(!cast(&round, 2, RL_VOTE_GRANTED, 0)); /* was not asked */
    round.number++;
    struct rl_ballot old = {.node = 1, .vote = RL_VOTE_GRANTED, .round = 1};
    ck_assert(!rl_round_count(&round, &old));
    round.number--;
    ck_assert_uint_eq(round.granted, 0);
    ck_assert_uint_eq(round.denied, 0x1);
    ck_assert(rl_round_count(&round, &old));
    ck_assert_uint_eq(round.granted, 0x2);
    ck_assert_uint_eq(round.rtt_us[0], 40);
}
END_TEST

/* The grant of an excluded node is kept for the report, with the cause why it does not count. */
START_TEST(grants_of_excluded_nodes_do_not_count)
{
    struct rl_round round = round_of(3);
    struct rl_view view = view_of(0x7);

    view.cause[2] = REDLOCK_CAUSE_HEALED;
    rl_round_open(&round, RL_VERB_EXTEND, 0x7, 0x4, &view);
    cast(&round, 2, RL_VOTE_GRANTED, 0);
    ck_assert_uint_eq(round.granted, 0x4);
    ck_assert_uint_eq(rl_round_counted(&round), 0);
    ck_assert_uint_eq(round.cause[2], REDLOCK_CAUSE_HEALED);
    cast(&round, 0, RL_VOTE_GRANTED, 0);
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_OPEN);
    cast(&round, 1, RL_VOTE_FAILED, REDLOCK_CAUSE_BUSY);
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_FAILED);

    rl_round_open(&round, RL_VERB_EXTEND, 0x7, 0x4, &view);
    cast(&round, 2, RL_VOTE_FAILED, REDLOCK_CAUSE_BUSY); /* the failure replaces the cause */
    ck_assert_uint_eq(round.cause[2], REDLOCK_CAUSE_BUSY);
}
END_TEST

/* The votes of a round, in the letters of round_with(), and the outcome that they decide. */
struct judged {
    enum rl_verb verb;
    const char *votes;
    rl_nodes excluded;
    enum rl_outcome outcome;
};

#define A RL_VERB_ACQUIRE
#define E RL_VERB_EXTEND
#define R RL_VERB_RELEASE
#define S RL_VERB_SHORTEN
#define G RL_VERB_GET

static const struct judged JUDGED[] = {
    {A, ".", 0, RL_OUTCOME_OPEN},
    {A, "g", 0, RL_OUTCOME_WON},
    {A, "d", 0, RL_OUTCOME_FAILED},
    {A, "g.", 0, RL_OUTCOME_OPEN}, /* of two nodes both are needed */
    {A, "gg", 0, RL_OUTCOME_WON},
    {A, "gd", 0, RL_OUTCOME_FAILED},
    {A, "gg.", 0, RL_OUTCOME_WON},
    {A, "gd.", 0, RL_OUTCOME_OPEN},
    {A, "gdf", 0, RL_OUTCOME_FAILED},
    {A, "df.", 0, RL_OUTCOME_FAILED},
    {A, "gg..", 0, RL_OUTCOME_OPEN}, /* of four nodes three are needed */
    {A, "ggg.", 0, RL_OUTCOME_WON},
    {A, "ggdd", 0, RL_OUTCOME_FAILED},
    {A, "ggdd.", 0, RL_OUTCOME_OPEN},
    {A, "ddd..", 0, RL_OUTCOME_FAILED},
    {A, "gg-..", 0, RL_OUTCOME_OPEN},
    {A, "gg---", 0, RL_OUTCOME_FAILED}, /* the quorum counts all configured nodes */
    {A, "ggg..", 0x1, RL_OUTCOME_OPEN},
    {A, "ggg..", 0x19, RL_OUTCOME_FAILED}, /* the pending nodes are excluded, too */
    {A, "ggs", 0, RL_OUTCOME_WON},
    {A, "gss", 0, RL_OUTCOME_OPEN},   /* suspect nodes may still reply */
    {A, "gds", 0, RL_OUTCOME_FAILED}, /* after a denial they are not waited for */
    {A, "gds..", 0, RL_OUTCOME_OPEN},
    {A, "gdss.", 0, RL_OUTCOME_FAILED},
    {E, "gds", 0, RL_OUTCOME_OPEN}, /* an extension does wait for them */
    {E, "gg.", 0, RL_OUTCOME_WON},
    {E, "dd.", 0, RL_OUTCOME_FAILED},
    {R, "gg.", 0, RL_OUTCOME_WON},
    {R, "gd.", 0, RL_OUTCOME_WON}, /* a majority has no key any more */
    {R, "dd.", 0, RL_OUTCOME_LOST},
    {R, "d-.", 0, RL_OUTCOME_LOST},
    {R, "d..", 0, RL_OUTCOME_OPEN},
    {R, "g-.", 0, RL_OUTCOME_WON},
    {R, "ff.", 0, RL_OUTCOME_FAILED},
    {R, "gf.", 0, RL_OUTCOME_OPEN},
    {R, "gss", 0, RL_OUTCOME_OPEN},
    {R, "gff", 0, RL_OUTCOME_FAILED},
    {R, "dff", 0, RL_OUTCOME_FAILED},
    {R, "gg.", 0x3, RL_OUTCOME_WON}, /* a release counts on excluded nodes */
    {R, "dd", 0, RL_OUTCOME_LOST},
    {R, "d.", 0, RL_OUTCOME_LOST}, /* a lock on two nodes needs both keys */
    {R, "--", 0, RL_OUTCOME_LOST},
    {S, "ggd..", 0, RL_OUTCOME_WON},
    {S, "gddd.", 0, RL_OUTCOME_LOST},
    {S, "gdfff", 0, RL_OUTCOME_FAILED},
    {G, "gd.", 0, RL_OUTCOME_OPEN}, /* an inspection waits for all nodes */
    {G, "gdf", 0, RL_OUTCOME_WON},
    {G, "ddd", 0, RL_OUTCOME_WON},
    {G, "gff", 0, RL_OUTCOME_FAILED},
    {G, "gds", 0, RL_OUTCOME_WON}, /* but not for suspect ones */
    {G, "gss", 0, RL_OUTCOME_OPEN},
};
#define JUDGED_COUNT (sizeof JUDGED / sizeof JUDGED[0])

START_TEST(votes_decide_the_outcome)
{
    const struct judged *row = &JUDGED[_i];
    struct rl_round round = round_with(row->verb, row->votes, row->excluded);

    ck_assert_msg(rl_round_judge(&round) == row->outcome, "%s excluded %x: %d, expected %d",
                  row->votes, row->excluded, round.outcome, row->outcome);
}
END_TEST

START_TEST(late_votes_do_not_change_the_outcome)
{
    struct rl_round round = round_with(A, "gg.", 0);

    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_WON);
    cast(&round, 2, RL_VOTE_DENIED, 0);
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_WON);
    round = round_with(R, "gd.", 0);
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_WON);
    cast(&round, 2, RL_VOTE_DENIED, 0);
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_WON);
}
END_TEST

/* For every number of nodes: the q-th grant wins and no earlier one; the (n - q + 1)-th denial
 * fails and no earlier one. */
START_TEST(the_majority_is_exact)
{
    unsigned nodes = (unsigned)_i, quorum = nodes / 2 + 1;

    for (int denials = 0; denials <= 1; denials++) {
        struct rl_round round = round_of(nodes);
        struct rl_view view = view_of(rl_nodes_all(nodes));
        unsigned needed = denials ? nodes - quorum + 1 : quorum;
        rl_round_open(&round, A, rl_nodes_all(nodes), 0, &view);
        for (unsigned i = 0; i < needed; i++) {
            ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_OPEN);
            ck_assert(cast(&round, nodes - 1 - i, denials ? RL_VOTE_DENIED : RL_VOTE_GRANTED, 0));
        }
        ck_assert_int_eq(rl_round_judge(&round), denials ? RL_OUTCOME_FAILED : RL_OUTCOME_WON);
    }
}
END_TEST

/* A pending vote counts as obtainable once the round has failed: then the denial means that another
 * client holds the lock. */
START_TEST(pending_nodes_count_only_when_the_round_has_failed)
{
    struct rl_round round = round_with(A, "gd...", 0);

    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_OPEN);
    ck_assert_int_eq(rl_round_status(&round), REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(round.failed, 0);
    round.outcome = RL_OUTCOME_FAILED;
    ck_assert_int_eq(rl_round_status(&round), REDLOCK_ECONTENDED);
}
END_TEST

/* A later round that asked all nodes adds its votes to a round that its first node decided. */
START_TEST(a_later_round_completes_the_votes)
{
    struct rl_round round = round_with(A, "d....", 0);
    uint32_t own_rtt_us[5] = {40};
    uint8_t own_cause[5] = {0};

    round.rtt_us = own_rtt_us;
    round.cause = own_cause;
    rl_round_defer(&round, 0x1e);
    struct rl_round later = round_with(A, "ggdf.", 0);
    rl_round_complete(&round, &later);
    ck_assert_uint_eq(round.denied, 0x5);
    ck_assert_uint_eq(round.granted, 0x2);
    ck_assert_uint_eq(round.failed, 0x8);
    ck_assert_uint_eq(round.cause[3], REDLOCK_CAUSE_TIMEOUT);
    ck_assert_uint_eq(round.rtt_us[2], 42);
    ck_assert_uint_eq(round.deferred, 0);
    ck_assert_uint_eq(rl_round_pending(&round), 0x10);
}
END_TEST

struct failed {
    unsigned nodes;
    const char *votes; /* 'g', 'd', 's' as in round_with(), else a failure with cause_of(letter) */
    rl_nodes excluded;
    int status;
};

/* A uth, N operm, M emory, R eplica, U duplicate, L oading, O readonly, T imeout */
static const struct failed FAILED[] = {
    {3, "gdd", 0, REDLOCK_ECONTENDED},
    {3, "gdT", 0, REDLOCK_ECONTENDED}, /* a majority has replied, and another client has a key */
    {3, "dTT", 0, REDLOCK_ENOQUORUM},
    {3, "gds", 0, REDLOCK_ECONTENDED}, /* the suspect node is not waited for */
    {3, "dss", 0, REDLOCK_ENOQUORUM},
    {3, "gTT", 0, REDLOCK_ENOQUORUM},
    {3, "gAA", 0, REDLOCK_EAUTH},
    {3, "gAN", 0, REDLOCK_EAUTH},
    {3, "gAT", 0, REDLOCK_ENOQUORUM},
    {3, "gRL", 0, REDLOCK_EEXCLUDED},
    {3, "gUO", 0, REDLOCK_EEXCLUDED},
    {3, "gUA", 0, REDLOCK_ENOQUORUM},
    {3, "MMg", 0, REDLOCK_ENOMEM},
    {3, "MTg", 0, REDLOCK_ENOQUORUM},
    {5, "ddgTT", 0, REDLOCK_ECONTENDED},
    {5, "ggTTT", 0, REDLOCK_ENOQUORUM},
    {5, "AAATT", 0, REDLOCK_EAUTH},
    {5, "AARRR", 0, REDLOCK_EEXCLUDED},
    {5, "AARRT", 0, REDLOCK_ENOQUORUM},
    {5, "MMMAA", 0, REDLOCK_ENOMEM},
    {1, "d", 0, REDLOCK_ECONTENDED},
    {1, "A", 0, REDLOCK_EAUTH},
    {2, "gT", 0, REDLOCK_ENOQUORUM},
    {2, "gd", 0, REDLOCK_ECONTENDED},
    {3, "ggd", 0x3, REDLOCK_ENOQUORUM}, /* the grants of excluded nodes are no votes */
    {3, "ddd", 0x7, REDLOCK_ECONTENDED},
};
#define FAILED_COUNT (sizeof FAILED / sizeof FAILED[0])

/* Returns the cause of a failure that `letter` stands for. */
static int cause_of(char letter)
{
    static const struct {
        char letter;
        int cause;
    } table[] = {
        {'A', REDLOCK_CAUSE_AUTH},      {'N', REDLOCK_CAUSE_NOPERM},
        {'M', REDLOCK_CAUSE_NO_MEMORY}, {'R', REDLOCK_CAUSE_REPLICA},
        {'U', REDLOCK_CAUSE_DUPLICATE}, {'L', REDLOCK_CAUSE_LOADING},
        {'O', REDLOCK_CAUSE_READONLY},  {'T', REDLOCK_CAUSE_TIMEOUT},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].letter == letter)
            return table[i].cause;
    return -1;
}

START_TEST(failed_rounds_have_their_status)
{
    const struct failed *row = &FAILED[_i];
    struct rl_round round = round_of(row->nodes);
    struct rl_view view = view_of(rl_nodes_all(row->nodes));

    rl_round_open(&round, A, rl_nodes_all(row->nodes), row->excluded, &view);
    for (unsigned i = 0; i < row->nodes; i++) {
        char letter = row->votes[i];
        if (letter == 'g' || letter == 'd')
            cast(&round, i, letter == 'g' ? RL_VOTE_GRANTED : RL_VOTE_DENIED, 0);
        else if (letter == 's')
            cast(&round, i, RL_VOTE_SUSPECT, REDLOCK_CAUSE_TIMEOUT);
        else
            cast(&round, i, RL_VOTE_FAILED, cause_of(letter));
    }
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_FAILED);
    ck_assert_msg(rl_round_status(&round) == row->status, "%s: %d, expected %d", row->votes,
                  rl_round_status(&round), row->status);
}
END_TEST

/* A suspect node gets the request to release, but the round does not wait for it. */
START_TEST(suspect_nodes_are_asked_to_release)
{
    struct rl_round round = round_of(3);
    struct rl_view view = view_of(0x3);

    view.suspect = 0x4;
    view.cause[2] = REDLOCK_CAUSE_TIMEOUT;
    rl_round_open(&round, RL_VERB_ACQUIRE, 0x7, 0, &view);
    ck_assert_uint_eq(round.requested, 0x3);
    ck_assert_uint_eq(round.failed, 0x4);
    rl_round_open(&round, RL_VERB_SHORTEN, 0x7, 0, &view);
    ck_assert_uint_eq(round.requested, 0x7);
    ck_assert_uint_eq(round.failed, 0);
    ck_assert_uint_eq(round.suspect, 0x4);
    ck_assert_uint_eq(round.cause[2], REDLOCK_CAUSE_TIMEOUT);
    ck_assert(cast(&round, 2, RL_VOTE_GRANTED, 0));
    ck_assert_uint_eq(round.cause[2], 0);
}
END_TEST

/* A copy has all votes of the round. Later votes change only the original. */
START_TEST(a_copied_round_is_independent)
{
    struct rl_round round = round_with(A, "gdf.s", 0x2), copy;
    uint32_t copied_us[5] = {0};
    uint8_t copied_cause[5] = {0};

    rl_round_init(&copy, 5, 3, copied_us, copied_cause);
    rl_round_copy(&copy, &round);
    ck_assert_uint_eq(copy.number, round.number);
    ck_assert_uint_eq(copy.granted, 0x1);
    ck_assert_uint_eq(copy.denied, 0x2);
    ck_assert_uint_eq(copy.failed, 0x4);
    ck_assert_uint_eq(copy.excluded, 0x2);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(copy.rtt_us[i], round.rtt_us[i]);
        ck_assert_uint_eq(copy.cause[i], round.cause[i]);
    }
    ck_assert_uint_eq(copy.rtt_us[1], 41);
    ck_assert_uint_eq(copy.cause[2], REDLOCK_CAUSE_TIMEOUT);
    cast(&round, 3, RL_VOTE_FAILED, REDLOCK_CAUSE_BUSY);
    ck_assert_uint_eq(round.cause[3], REDLOCK_CAUSE_BUSY);
    ck_assert_uint_eq(copy.cause[3], REDLOCK_CAUSE_NONE);
    ck_assert_uint_eq(copy.rtt_us[3], 0);
}
END_TEST

/* If the connected nodes are no majority without the suspect ones, the suspect ones are asked and
 * waited for. */
START_TEST(suspect_nodes_are_asked_if_needed_for_a_quorum)
{
    static const struct {
        rl_nodes up, suspect_nodes, excluded, asked;
    } rows[] = {
        {0x07, 0x18, 0x00, 0x07}, {0x03, 0x1c, 0x00, 0x1f}, {0x03, 0x0c, 0x00, 0x0f},
        {0x00, 0x1f, 0x00, 0x1f}, {0x07, 0x18, 0x01, 0x1f}, {0x0f, 0x10, 0x01, 0x0f},
    };
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_EXTEND, RL_VERB_GET};
    struct rl_round round = round_of(5);
    struct rl_view view = view_of(rows[_i].up);
    rl_nodes late = rows[_i].asked & rows[_i].suspect_nodes;

    view.suspect = rows[_i].suspect_nodes;
    memset(view.cause, REDLOCK_CAUSE_TIMEOUT, sizeof view.cause);
    for (unsigned v = 0; v < 3; v++) {
        rl_round_open(&round, verbs[v], 0x1f, rows[_i].excluded, &view);
        ck_assert_uint_eq(round.requested, rows[_i].asked);
        ck_assert_uint_eq(round.failed, 0x1f & ~rows[_i].asked);
        ck_assert_uint_eq(round.suspect, late);
        ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_OPEN);
    }
    /* The same holds if one node is asked first and the others after its grant. */
    rl_nodes first = rows[_i].asked & ~(rows[_i].asked - 1);
    rl_round_open(&round, RL_VERB_ACQUIRE, 0x1f, rows[_i].excluded, &view);
    rl_round_defer(&round, ~first);
    ck_assert(cast(&round, (unsigned)__builtin_ctz(first), RL_VOTE_GRANTED, 0));
    ck_assert_uint_eq(rl_round_take_deferred(&round, &view), rows[_i].asked & ~first);
    ck_assert_uint_eq(round.suspect & ~first, late & ~first);
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_OPEN);
    for (unsigned i = 0; i < 5; i++)
        cast(&round, i, RL_VOTE_GRANTED, 0);
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_WON);
}
END_TEST

/* Other contenders wait for the votes that a denied attempt has, so it ends without waiting for
 * suspect nodes. */
START_TEST(a_denied_attempt_does_not_wait_for_suspect_nodes)
{
    struct rl_round round = round_of(5);
    struct rl_view view = view_of(0x3);

    view.suspect = 0x1c;
    rl_round_open(&round, RL_VERB_ACQUIRE, 0x1f, 0, &view);
    ck_assert(cast(&round, 0, RL_VOTE_GRANTED, 0));
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_OPEN);
    ck_assert(cast(&round, 1, RL_VOTE_DENIED, 0));
    ck_assert_int_eq(rl_round_judge(&round), RL_OUTCOME_FAILED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_quorum");
    TCase *tcase = tcase_create("quorum");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, connected_nodes_are_asked_and_others_fail);
    tcase_add_test(tcase, a_vote_counts_once);
    tcase_add_test(tcase, grants_of_excluded_nodes_do_not_count);
    tcase_add_loop_test(tcase, votes_decide_the_outcome, 0, (int)JUDGED_COUNT);
    tcase_add_test(tcase, late_votes_do_not_change_the_outcome);
    tcase_add_loop_test(tcase, the_majority_is_exact, 1, RL_NODES_MAX + 1);
    tcase_add_test(tcase, pending_nodes_count_only_when_the_round_has_failed);
    tcase_add_test(tcase, a_later_round_completes_the_votes);
    tcase_add_test(tcase, suspect_nodes_are_asked_to_release);
    tcase_add_test(tcase, a_copied_round_is_independent);
    tcase_add_loop_test(tcase, suspect_nodes_are_asked_if_needed_for_a_quorum, 0, 6);
    tcase_add_test(tcase, a_denied_attempt_does_not_wait_for_suspect_nodes);
    tcase_add_loop_test(tcase, failed_rounds_have_their_status, 0, (int)FAILED_COUNT);
    return suite_run(suite);
}
