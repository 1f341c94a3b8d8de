/* SPDX-License-Identifier: MIT
 * Evidence of an operation: a copy of what the votes were, with words for people. */
#ifndef RL_API_REPORT_H
#define RL_API_REPORT_H

#include "api/client.h"

/* `refs` tells the three kinds of reports apart: those that the user owns count their references;
 * one on the stack of a callback's caller, and the constants of rl_report_of_entry(), have none. */
struct redlock_report {
    atomic_uint refs;             /* of the user; 0: not the user's to free */
    struct redlock *rl;           /* referenced if refs > 0; NULL: a constant */
    const struct rl_shard *shard; /* of the client: names of the nodes; NULL: a refusal */
    struct rl_mem mem;
    redlock_report_info_t info;
    struct rl_round round; /* with these: */
    uint32_t rtt_us[RL_NODES_MAX];
    uint8_t cause[RL_NODES_MAX];
    uint64_t pttl_ms[RL_NODES_MAX];
    uint8_t key[RL_NODES_MAX];            /* enum redlock_key */
    uint8_t record[RL_NODES_MAX];         /* enum redlock_record */
    rl_nodes in_line;                     /* nodes that `line` names with their texts */
    uint64_t quarantine_ms[RL_NODES_MAX]; /* of barred nodes */
    char *texts;  /* one of RL_TEXT_MAX for each node; NULL: plain words do */
    char *owners; /* one of RL_OWNER_MAX + 1 for each node; NULL: none */
    char line[256];
};

/* Fills a report that lives on the caller's stack; mutex held. */
void rl_report_fill(struct redlock_report *report, struct redlock *rl,
                    const struct redlock_lock *handle, int status);
/* Frees what rl_report_fill() allocated. */
void rl_report_done(struct redlock_report *report);

/* The same as an object of its own for the user; NULL: no memory. */
redlock_report_t *rl_report_new(struct redlock *rl, const struct redlock_lock *handle, int status);

/* Returns the report of a call that could not begin: static, and never changed, because the client
 * may be gone or may belong to another process. NULL: there is none for this error. */
redlock_report_t *rl_report_of_entry(int error);

/* The words of a refused argument; NULL if `ret` is NULL. Returns `status`. */
int rl_report_refuse(struct redlock *rl, redlock_report_t **ret, int status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
