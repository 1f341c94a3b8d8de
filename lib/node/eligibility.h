/* SPDX-License-Identifier: MIT
 * Whether the votes of a node count: which server its connection leads to, what that server has
 * said about itself, and what excludes it. The rules are in admission.h. */
#ifndef RL_NODE_ELIGIBILITY_H
#define RL_NODE_ELIGIBILITY_H

#include "node/admission.h"
#include "node/info.h"

struct rl_node;

/* What is known of the server behind a node. Owner: eligibility.c. All of it survives connections;
 * `info` is emptied when one is opened. `exclusions` is what `admission` said at the last review.
 */
struct rl_eligibility {
    struct rl_admission admission; /* what is known of the server, and the rules */
    uint32_t exclusions;           /* enum rl_exclusion; 0: none */
    bool duplicate;                /* another node of the client shows the same server */
    uint8_t duplicate_of;          /* index of that node; valid while `duplicate` */
    char run_id[48];     /* of the last server that completed a greeting; empty: unknown */
    struct rl_info info; /* what the server has said about itself on this connection */
};

/* Clock of the server, as TIME in the greeting has shown it. */
struct rl_server_time {
    uint64_t time_us;     /* since 1970 */
    uint64_t received_ns; /* boot clock: when the reply was read; 0: there was no reply */
};

/* Prepares the eligibility of a node. `durable` and `fresh` are what the operator attests. */
void rl_eligibility_init(struct rl_eligibility *eligibility, const struct rl_admission_rules *rules,
                         bool durable, bool fresh);

/* Returns true if the votes for a new lock count. */
static inline bool rl_eligibility_may_grant(const struct rl_eligibility *eligibility)
{
    return (eligibility->exclusions & RL_EXCLUSIONS_ACQUIRE) == 0;
}

/* Returns true if the votes for an extension count. */
static inline bool rl_eligibility_may_extend(const struct rl_eligibility *eligibility)
{
    return (eligibility->exclusions & RL_EXCLUSIONS_EXTEND) == 0;
}

/* Returns true if the node is excluded for a reason that only its operator can remove. */
static inline bool rl_eligibility_needs_repair(const struct rl_eligibility *eligibility)
{
    return (eligibility->exclusions & ~(uint32_t)RL_EXCLUSIONS_TIMED) != 0;
}

/* Returns when the first exclusion ends by itself (boot clock); RL_NEVER: none does. */
static inline uint64_t rl_eligibility_due_ns(const struct rl_eligibility *eligibility)
{
    return eligibility->exclusions == 0
               ? RL_NEVER
               : rl_admission_due_ns(&eligibility->admission, eligibility->exclusions);
}

/* Returns true if another node of the client shows the same server. */
static inline bool rl_eligibility_is_duplicate(const struct rl_eligibility *eligibility)
{
    return eligibility->duplicate;
}

/* Returns the index of that other node. Valid only for a duplicate. */
static inline unsigned rl_eligibility_duplicate_of(const struct rl_eligibility *eligibility)
{
    return eligibility->duplicate_of;
}

/* Returns the run id of the last server that completed a greeting; empty: unknown. */
static inline const char *rl_eligibility_run_id(const struct rl_eligibility *eligibility)
{
    return eligibility->run_id;
}

/* Returns what the server has said of itself on this connection. */
static inline const struct rl_info *rl_eligibility_info(const struct rl_eligibility *eligibility)
{
    return &eligibility->info;
}

/* Returns true if the operator attests that the server keeps its keys over a restart. */
static inline bool rl_eligibility_is_durable(const struct rl_eligibility *eligibility)
{
    return eligibility->admission.durable;
}

/* Returns true if the operator attests that the server held no lock at first contact. */
static inline bool rl_eligibility_is_fresh(const struct rl_eligibility *eligibility)
{
    return eligibility->admission.fresh;
}

/* Returns enum redlock_cause: that of the first exclusion, or REDLOCK_CAUSE_NONE. */
uint8_t rl_eligibility_cause(const struct rl_eligibility *eligibility);

/* Writes why the first exclusion holds. Returns how long exclusions last in nanoseconds; 0: there
 * is none, or its operator must remove it. */
uint64_t rl_eligibility_text(const struct rl_eligibility *eligibility, uint64_t now_ns, char *text,
                             size_t size);

/* Computes the server's wall clock minus ours; see rl_admission_offset_us(). */
bool rl_eligibility_offset_us(const struct rl_eligibility *eligibility, int64_t wall_offset_us,
                              int64_t *ret_us);

/* Forgets what the server has said of itself, because a new connection was opened. */
void rl_eligibility_opened(struct rl_eligibility *eligibility);

/* Adds one section of INFO from the greeting. */
void rl_eligibility_add_info(struct rl_eligibility *eligibility, const char *text, size_t len);

/* Notes that the server refuses to answer INFO. */
void rl_eligibility_refuse_info(struct rl_eligibility *eligibility);

/* Judges the server after a complete greeting that was sent at `sent_ns`. Returns 0, or the enum
 * redlock_cause for which the connection must be closed, with `*ret_text`. Sets `*ret_stepped` if
 * its clock has jumped since the last connection; then rl_eligibility_note_step() reports it. */
int rl_eligibility_greeted(struct rl_node *node, const struct rl_server_time *time,
                           uint64_t sent_ns, const char **ret_text, bool *ret_stepped,
                           uint64_t now_ns);

/* Reports a clock that has jumped forward to the engine. A jump back is not reported: keys then
 * only expire later, and no lock is lost. */
void rl_eligibility_note_step(const struct rl_node *node);

/* Takes the reply to TIME (microseconds since 1970) in a heartbeat that was sent at `sent_ns`. */
void rl_eligibility_take_time(struct rl_node *node, uint64_t time_us, uint64_t sent_ns,
                              uint64_t now_ns);

/* Takes what a heartbeat has learned. `is_identified`: INFO was not refused and shows a run id. */
void rl_eligibility_take_info(struct rl_node *node, const struct rl_info *info, bool is_identified,
                              uint64_t now_ns);

/* Returns true if `run_id` shows another server than the one that was greeted. */
bool rl_eligibility_run_differs(const struct rl_eligibility *eligibility, const char *run_id);

/* Marks the node as a duplicate of the node with index `first`. */
void rl_eligibility_set_duplicate(struct rl_eligibility *eligibility, uint8_t first);

/* Notes that no other node shows the same server. */
void rl_eligibility_clear_duplicate(struct rl_eligibility *eligibility);

/* Computes the exclusions again, because time has passed or something was learned, and reports a
 * change to the engine. */
void rl_eligibility_review(struct rl_node *node, uint64_t now_ns);

#endif
