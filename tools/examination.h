/* SPDX-License-Identifier: MIT
 * Examines the servers of a shard: makes findings, with cause and advice, from what the library
 * knows of each server and from what the probes have found.
 */
#ifndef TOOLS_EXAMINATION_H
#define TOOLS_EXAMINATION_H

#include <stdbool.h>

#include "exits.h"
#include "redlock/redlock.h"

/* Upper bounds of the number of findings: about one server, and of one shard (8 more are about the
 * shard as a whole). FINDING_TEXT_MAX: size of a text in bytes, with its NUL. */
#define FINDINGS_PER_NODE 17
#define FINDINGS_MAX      (REDLOCK_NODES_MAX * FINDINGS_PER_NODE + 8)
#define FINDING_TEXT_MAX  240
/* Size of the text of a verdict. */
#define VERDICT_TEXT_MAX FINDING_TEXT_MAX

/* How bad a finding is. NOTE: nothing needs to be done. WARN: should be repaired, but locks can
 * be acquired. CRIT: no lock can be acquired, now or soon, or exclusion is at risk. */
enum severity { FINDING_NOTE = 0, FINDING_WARN = 1, FINDING_CRIT = 2 };

/* One finding about a server or about the whole shard. */
struct finding {
    enum severity severity;      /* how bad it is */
    int node;                    /* index of the server in the shard; -1: the whole shard */
    const char *code;            /* stable name for programs, such as "restarted" */
    char text[FINDING_TEXT_MAX]; /* what is wrong, for people */
    const char *advice;          /* what to do, for people */
};

/* The first failure of a server in a probe: in acquiring, extending or releasing a lock that only
 * serves to test the server, or in acquiring a fenced lock. */
struct trouble {
    int cause;                   /* enum redlock_cause; 0: none */
    bool unchecked;              /* no client could be started: nothing is known of the server */
    int record;                  /* enum redlock_record, if cause is REDLOCK_CAUSE_FENCE_RECORD */
    char text[FINDING_TEXT_MAX]; /* what failed, for people; valid if cause is not 0 */
};

/* Whether a server sends notifications when a key changes. NOTIFY_UNKNOWN: not tested, or without a
 * result. NOTIFY_ON: a notification arrived. NOTIFY_REFUSED: the server refused CLIENT TRACKING.
 * NOTIFY_NOT_RECEIVED: it accepted CLIENT TRACKING, but no notification arrived.
 * NOTIFY_NOT_CONNECTED: a client that holds a lock is connected, but a waiter's connection, or its
 * second one for notifications, was not established. */
enum notify_result {
    NOTIFY_UNKNOWN = 0,
    NOTIFY_ON,
    NOTIFY_REFUSED,
    NOTIFY_NOT_RECEIVED,
    NOTIFY_NOT_CONNECTED
};

/* The result of the probe for notifications. `line_state`, `line_cause` and `line_text` are the
 * fields of redlock_node_stats_t with these names, which say whether the server keeps lines; valid
 * if `state` is NOTIFY_ON or NOTIFY_NOT_RECEIVED. */
struct notify_check {
    enum notify_result state; /* whether notifications arrive */
    int cause;                /* enum redlock_cause, if state is NOTIFY_REFUSED */
    char text[96];            /* the server's error message, if state is NOTIFY_REFUSED */
    int line_state;           /* enum redlock_line_state */
    int line_cause;           /* enum redlock_cause, if line_state is REDLOCK_LINE_REFUSED */
    char line_text[96]; /* the server's error message, if line_state is REDLOCK_LINE_REFUSED */
};

/* Size of a path of struct client_files, with its NUL. A longer path is cut. */
#define CLIENT_FILE_MAX 100

/* The files with which this client connects to a server with TLS. A path is "" if no file is named;
 * a time is Unix time, 0: not known. */
struct client_files {
    char readable_key[CLIENT_FILE_MAX]; /* private key that every user can read; "": there is none
                                         */
    char certificate[CLIENT_FILE_MAX];  /* certificate of the client */
    int64_t certificate_from_s;         /* when it becomes valid */
    int64_t certificate_expiry_s;       /* when it expires */
    bool not_for_clients;               /* it is not meant for clients */
    char issuers[CLIENT_FILE_MAX];      /* trusted issuers */
    int64_t issuers_expiry_s;           /* when the last of them expires */
};

/* Another shard in which the same server is listed. */
struct elsewhere {
    const char *node;  /* address of the server there, borrowed; NULL: it is in no other shard */
    const char *shard; /* name of the other shard, borrowed; NULL if `node` is NULL */
};

/* Whether a server has a fence record. RECORD_UNKNOWN: it was not inspected, or did not reply.
 * RECORD_MISSING: it has none. RECORD_THERE: it has one, whatever the record contains. */
enum record_seen { RECORD_UNKNOWN = 0, RECORD_MISSING, RECORD_THERE };

/* All that is known about the servers of one shard. cmd_nodes.c owns it and fills in the
 * servers; nodes_probe.c, nodes_notify.c, nodes_tls.c and nodes_fence.c fill in what they found;
 * examination.c fills in the rest, and findings_server.c, findings_shard.c and findings_fence.c add
 * the findings. Arrays have one entry for each of the `count` servers, in the order of the list. */
struct examination {
    const char *shard_name; /* "" if it is the only one; borrowed from the client */
    size_t shard;           /* index of the shard */
    size_t first;           /* index of its first server among the servers of all shards */
    size_t count;           /* number of servers in the shard */
    size_t quorum;          /* number of servers that a quorum needs */
    size_t eligible;        /* number of eligible servers */
    /* number of eligible servers that granted, extended and released the probe's lock */
    size_t useful;
    uint64_t max_ttl_ms; /* the largest TTL, as configured */
    bool incomplete;     /* this process could not check a server: nothing is known of it */
    redlock_node_stats_t nodes[REDLOCK_NODES_MAX]; /* what the library knows of each server */
    struct trouble troubles[REDLOCK_NODES_MAX];    /* failures of the probe of nodes_probe() */
    struct notify_check notify[REDLOCK_NODES_MAX]; /* results of the probe for notifications */
    struct client_files files[REDLOCK_NODES_MAX];  /* results of nodes_tls() */
    bool fences;                                   /* the servers are examined for fences as well */
    bool durable_records;                          /* fence-records = durable is configured */
    enum record_seen records[REDLOCK_NODES_MAX];   /* results of nodes_fence() */
    struct trouble fence_troubles[REDLOCK_NODES_MAX]; /* failures of the probe of nodes_fence() */
    uint64_t rtt_us[REDLOCK_NODES_MAX];               /* median round trip; 0: no reply */
    int duplicate_of[REDLOCK_NODES_MAX];           /* earlier index of the same server; -1: none */
    struct elsewhere elsewhere[REDLOCK_NODES_MAX]; /* the same server in another shard */
    struct finding findings[FINDINGS_MAX];         /* worst first */
    size_t finding_count;                          /* number of findings */
    enum health_exit health; /* the worst finding as exit code; UNKNOWN if incomplete */
};

/* Fills in `elsewhere` of all servers in an array of one examination for each shard. The caller has
 * filled in the field `nodes` of all of them. */
void examination_compare(struct examination *exams, size_t shards);

/* Records in `trouble` that a server could not be checked because this process could not start a
 * client: redlock_new() returned `error`, for the reason `why` (may be NULL). */
void trouble_incomplete(struct trouble *trouble, int error, const char *why);

/* Fills in quorum, eligible, useful, incomplete, duplicate_of, findings, finding_count and health.
 * The caller has filled in all other fields. */
void examination_judge(struct examination *exam);

/* Sorts the `count` values in place and returns the middle one; 0 if there are none. */
uint64_t median_of(uint64_t *values, size_t count);

/* Returns the finding that is the verdict about the whole shard: the first critical one about no
 * single server; NULL if there is none, or if the check is incomplete. Borrowed from `exam`. */
const struct finding *examination_verdict_finding(const struct examination *exam);

/* Writes one line about the whole shard to `text` of `size` bytes, such as "4 of 5 servers are
 * eligible, 3 required". */
void examination_verdict(const struct examination *exam, char *text, size_t size);

/* Returns "note", "warn" or "crit". */
const char *severity_name(enum severity severity);

#endif
