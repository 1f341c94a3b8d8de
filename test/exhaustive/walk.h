/* SPDX-License-Identifier: MIT
 * What the exhaustive walks share: a record of what the nodes answered that knows nothing of the
 * code under test, verdicts found by trying all ways in which a round can still go on, and the path
 * that led to a failure. */
#ifndef TEST_EXHAUSTIVE_WALK_H
#define TEST_EXHAUSTIVE_WALK_H

#include "lease_rig.h"

#define WALK_NODES_MAX 5

/* What one node did with the request of a round. */
enum answer {
    SILENT = 0, /* nothing yet */
    GRANTED,
    DENIED,
    TIMED_OUT,
    ERROR_REPLY,
    UNSENT, /* failed, and no byte of the request had left */
    ANSWERS
};

struct truth {
    unsigned nodes, quorum;
    rl_nodes asked;  /* these got the request */
    rl_nodes counts; /* a grant of theirs counts */
    rl_nodes absent; /* release: known before not to have the key */
    uint8_t answer[WALK_NODES_MAX];
};

enum verdict { UNDECIDED, CERTAIN, IMPOSSIBLE, PROVEN_GONE };

rl_nodes truth_with(const struct truth *truth, enum answer answer);
rl_nodes truth_failed(const struct truth *truth);
rl_nodes truth_silent(const struct truth *truth);
/* Acquire, extend: is a majority of grants certain, or impossible, whatever the others say? */
enum verdict truth_majority(const struct truth *truth);
enum verdict truth_release(const struct truth *truth);
/* Why a round without a majority failed, in the words of the public header. */
int truth_status(const struct truth *truth);

/* The present round of the rig gets this answer of a node; the truth notes it. */
void walk_answer(struct rig *rig, struct truth *truth, unsigned node, enum answer answer);
/* Old, duplicate and future votes: none of them may change a bit of the lease or have an effect. */
void walk_noise(const struct rig *rig, const struct truth *truth);
/* The sets of the round are those of the truth, and disjoint. */
void walk_check_round(const struct rig *rig, const struct truth *truth);
/* The last step had no effect at all. */
void walk_check_no_effect(const struct rig *rig);
/* A pending timer lies ahead, or there is none where none is needed. */
void walk_check_wake(const struct rig *rig);

/* Steps of a path, for the message of a failure. */
void walk_enter(char what, unsigned node, unsigned detail);
void walk_leave(void);
_Noreturn void walk_wrong(const char *file, int line, const char *condition, const char *format,
                          ...) __attribute__((format(printf, 4, 5)));

/* Check's own macros write a mark for each assertion: too slow for a hundred million of them. */
#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            walk_wrong(__FILE__, __LINE__, #condition, __VA_ARGS__);                               \
    } while (0)

/* Sequences of votes that were walked to a distinct point, and steps taken in all. */
struct tally {
    unsigned long long sequences, steps;
};
extern struct tally walk_tally;

void walk_acquire(unsigned nodes);
void walk_release(unsigned nodes);
void walk_extend(unsigned nodes);
void walk_fence(unsigned nodes);
/* The limits of a search through a world of servers (restored_keys.c). */
struct world_limits {
    unsigned nodes, flushes, visits, failures, rounds, foreign;
    bool orphans; /* a request whose vote failed may be executed at any later time */
};
struct world_tally {
    unsigned long long states, extended, lost, found_out, races;
};
struct world_tally walk_world(const struct world_limits *limits);

#endif
