/* SPDX-License-Identifier: MIT
 * What is wrong with a set of servers: findings with a cause and with advice, from what the library
 * knows of each of them.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>

#include "exits.h"
#include "redlock/redlock.h"

#define FINDINGS_PER_NODE 10
#define FINDINGS_MAX      (REDLOCK_NODES_MAX * FINDINGS_PER_NODE + 8)
#define FINDING_TEXT_MAX  200

enum severity { FINDING_NOTE = 0, FINDING_WARN = 1, FINDING_CRIT = 2 };

struct finding {
    enum severity severity;
    int node;         /* index; -1: of the whole set */
    const char *code; /* a word that does not change: "restarted" */
    char cause[FINDING_TEXT_MAX];
    const char *advice;
};

/* What a server did not do when it was asked for a lock. */
struct trouble {
    int cause;  /* enum redlock_cause; 0: none */
    int record; /* REDLOCK_CAUSE_FENCE_RECORD: enum redlock_record */
    char text[FINDING_TEXT_MAX];
};

/* Does it tell those who wait when a lock is given back? */
enum notify_result { NOTIFY_UNKNOWN = 0, NOTIFY_ON, NOTIFY_REFUSED, NOTIFY_NOT_RECEIVED };

struct notify_check {
    enum notify_result state;
    int cause;     /* refused: enum redlock_cause, ... */
    char text[96]; /* ... and the server's words */
};

/* Where else a server is listed. */
struct elsewhere {
    const char *node, *shard; /* borrowed; NULL: nowhere */
};

enum record_seen { RECORD_UNKNOWN = 0, RECORD_MISSING, RECORD_THERE };

/* Of one set of servers; most clients have only one. */
struct examination {
    const char *shard_name; /* "" if it is the only one */
    size_t shard, first;    /* its index; its first server among those of all sets */
    size_t count, quorum, eligible;
    size_t useful; /* of those that may vote: they grant, extend and release */
    redlock_node_stats_t nodes[REDLOCK_NODES_MAX];
    struct trouble troubles[REDLOCK_NODES_MAX];
    struct notify_check notify[REDLOCK_NODES_MAX];
    bool fences;          /* are they fit for fences, too? */
    bool durable_records; /* the kind of records that is configured */
    enum record_seen records[REDLOCK_NODES_MAX];
    struct trouble fence_troubles[REDLOCK_NODES_MAX];
    uint64_t rtt_us[REDLOCK_NODES_MAX]; /* 0: no answer */
    int twin[REDLOCK_NODES_MAX];        /* the earlier address of the same server, -1: none */
    struct elsewhere elsewhere[REDLOCK_NODES_MAX]; /* in another set */
    struct finding findings[FINDINGS_MAX];
    size_t finding_count;
    enum health_exit health;
};

/* Fills in elsewhere, of all sets of a client. Their nodes are set. */
void doctor_compare(struct examination *exams, size_t sets);

/* Fills in quorum, twins, findings (worst first) and health. count, nodes, elsewhere, troubles
 * and rtt_us are set. */
void doctor_judge(struct examination *exam);

/* Sorts the values, and returns the middle one; 0 of none. */
uint64_t doctor_median(uint64_t *values, size_t count);

/* One line about the whole: "4 of 5 servers may vote, 3 are needed". */
void doctor_verdict(const struct examination *exam, char *text, size_t size);

const char *severity_name(enum severity severity);

#endif
