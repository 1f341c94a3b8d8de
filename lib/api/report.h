/* SPDX-License-Identifier: MIT
 * Reports: the evidence of one operation, which is a copy of its votes with texts for operators. */
#ifndef RL_API_REPORT_H
#define RL_API_REPORT_H

#include "api/client.h"

/* One report (redlock_report_t). Owned by report.c. There are three kinds:
 * - A report that the user owns has `refs` > 0. The last reference frees it.
 * - A report on the stack of the thread that runs a callback has no references. It ends after the
 *   callback; redlock_report_ref() copies it.
 * - A constant of rl_report_of_entry() has no references and no client.
 * Invariant: a report does not change after it was filled, apart from `refs`. */
struct redlock_report {
    atomic_uint refs;              /* 0: the user may not free it */
    struct redlock_client *rl;     /* referenced if refs > 0; NULL: a constant */
    const struct rl_shard *shard;  /* the shard of `rl` that knows the names of the nodes; NULL: the
                                    * call was refused, and there are no votes */
    struct rl_mem mem;             /* copy of the client's, to free the report with */
    redlock_report_info_t info;    /* the outcome; redlock_report_get_info() copies it */
    struct rl_round round;         /* the votes; uses the next two arrays */
    uint32_t rtt_us[RL_NODES_MAX]; /* round trips in microseconds */
    uint8_t cause[RL_NODES_MAX];   /* enum redlock_cause */
    uint64_t pttl_ms[RL_NODES_MAX];       /* time to live of the key; UINT64_MAX: none or unknown */
    uint8_t key[RL_NODES_MAX];            /* enum redlock_key */
    uint8_t record[RL_NODES_MAX];         /* enum redlock_record; 0 unless the vote has failed */
    bool has_seen;                        /* pttl_ms and key are set: an inspection, verification */
    rl_nodes in_line;                     /* set of the nodes whose texts `line` contains */
    uint64_t quarantine_ms[RL_NODES_MAX]; /* set with `texts`: time until the votes of an excluded
                                           * node count again; 0: not excluded, or an operator must
                                           * act */
    char *texts;  /* RL_TEXT_MAX bytes for each node; NULL: constant texts are used instead */
    char *owners; /* RL_OWNER_MAX + 1 bytes for each node; NULL: none */
    struct rl_report_waiter *waiters; /* report_line.c: info.line_length elements, and their labels;
                                       * NULL: none */
    size_t waiters_size;              /* bytes of `waiters` */
    const char *success;              /* the whole result, a constant; NULL: it is in `line` */
    char line[512];                   /* the whole result in one line */
};

/* Fills a report on the caller's stack with the evidence of the operation that ended on `handle`,
 * while handle->op still describes it. `success`: the text of a report on an event with REDLOCK_OK,
 * a constant; NULL: that of the operation. rl_report_done() frees what it allocates. Mutex held. */
void rl_report_fill(struct redlock_report *report, struct redlock_client *rl,
                    const struct redlock_lock *handle, int status, const char *success);
/* Frees what rl_report_fill() allocated. */
void rl_report_done(struct redlock_report *report);

/* Creates a report that the user owns, for the operation that ended on `handle`. NULL: no memory.
 * Mutex held. */
redlock_report_t *rl_report_new(struct redlock_client *rl, const struct redlock_lock *handle,
                                int status);

/* Returns the report of a call that could not enter the client. It is a constant, because the
 * client may be closed or belong to another process. NULL: there is none for this error. */
redlock_report_t *rl_report_of_entry(int error);

/* Refuses a call: creates a report with this text, which the user owns, in `*ret`; NULL without
 * memory. If `ret` is NULL, an EINVAL is logged instead. Returns `status`. Mutex held. */
int rl_report_refuse(struct redlock_client *rl, redlock_report_t **ret, int status, const char *fmt,
                     ...) __attribute__((format(printf, 4, 5)));

#endif
