/* SPDX-License-Identifier: MIT
 * Shared by the exhaustive walks: a record of the nodes' replies that shares no code with the
 * library, verdicts found by trying all ways in which a round can still go on, and the path that
 * led to a failure. */
#ifndef TEST_EXHAUSTIVE_WALK_H
#define TEST_EXHAUSTIVE_WALK_H

#include "lease_rig.h"

#define WALK_NODES_MAX 5

/* A node's answer to the request of a round. */
enum answer {
    SILENT = 0, /* none yet */
    GRANTED,
    DENIED,
    TIMED_OUT,
    ERROR_REPLY,
    UNSENT, /* failed, and no byte of the request was sent */
    ANSWERS
};

/* The record of one round. The walks change it; walk.c evaluates it. */
struct truth {
    unsigned nodes, quorum;
    rl_nodes asked;  /* nodes that got the request */
    rl_nodes counts; /* nodes whose grant counts */
    rl_nodes absent; /* release: nodes known before not to have the key */
    uint8_t answer[WALK_NODES_MAX];
};

enum verdict { UNDECIDED, CERTAIN, IMPOSSIBLE, PROVEN_GONE };

/* Return the nodes with that answer, with any failure, and without an answer. */
rl_nodes truth_with(const struct truth *truth, enum answer answer);
rl_nodes truth_failed(const struct truth *truth);
rl_nodes truth_silent(const struct truth *truth);
/* Returns whether a majority of grants (acquire, extend) is certain or impossible, whatever the
 * other nodes answer. */
enum verdict truth_majority(const struct truth *truth);
/* Returns whether a release has certainly succeeded, can no longer succeed, or has proven that the
 * key was gone. */
enum verdict truth_release(const struct truth *truth);
/* Returns the REDLOCK_E* for a round that failed without a majority. */
int truth_status(const struct truth *truth);

/* Passes a node's answer in the running round to the rig and records it in the truth. */
void walk_answer(struct rig *rig, struct truth *truth, unsigned node, enum answer answer);
/* Checks that old, duplicate and future votes change no bit of the lease and have no effect. */
void walk_noise(const struct rig *rig, const struct truth *truth);
/* Checks that the sets of the round agree with the truth and are disjoint. */
void walk_check_round(const struct rig *rig, const struct truth *truth);
/* Checks that the last step had no effect. */
void walk_check_no_effect(const struct rig *rig);
/* Checks that a pending timer is in the future, and that there is none where none is needed. */
void walk_check_wake(const struct rig *rig);

/* Enter and leave a step of the path, which a failure prints. */
void walk_enter(char what, unsigned node, unsigned detail);
void walk_leave(void);
/* Prints the failed condition with the path and ends the program. */
_Noreturn void walk_wrong(const char *file, int line, const char *condition, const char *format,
                          ...) __attribute__((format(printf, 4, 5)));

/* Replaces Check's own macros, which write a mark for each assertion: too slow for a hundred
 * million of them. */
#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            walk_wrong(__FILE__, __LINE__, #condition, __VA_ARGS__);                               \
    } while (0)

/* Number of different sequences of votes that were walked, and of all steps. */
struct tally {
    unsigned long long sequences, steps;
};
extern struct tally walk_tally;

/* Walk through all orders and answers for that many nodes. */
void walk_acquire(unsigned nodes);
void walk_release(unsigned nodes);
void walk_extend(unsigned nodes);
void walk_fence(unsigned nodes);
/* The limits of a search through a world of servers (restored_keys.c): how often each event may
 * happen. */
struct world_limits {
    unsigned nodes, flushes, visits, failures, rounds, foreign;
    bool orphans; /* a request whose vote failed may be executed at any later time */
};
struct world_tally {
    unsigned long long states, extended, lost, found_out, races;
};
struct world_tally walk_world(const struct world_limits *limits);

#endif
