/* SPDX-License-Identifier: MIT
 * Decides whether the votes of a node count, which depends on the server that its connection leads
 * to and on what that server has said about itself. Keeps the result; the rules are in admission.h.
 */
#ifndef RL_NODE_ELIGIBILITY_H
#define RL_NODE_ELIGIBILITY_H

#include "node/admission.h"
#include "node/info.h"

struct rl_node;

/* What is known of the server behind a node. Owner: eligibility.c. The struct is kept from one
 * connection to the next, except that `info` is emptied when a connection is opened. */
struct rl_eligibility {
    struct rl_admission admission; /* the facts by which the votes count or not */
    uint32_t exclusions;           /* set of enum rl_exclusion, as of the last review; 0: none */
    bool duplicate;                /* another node of the client shows the same server */
    uint8_t duplicate_of;          /* index of that other node; valid while `duplicate` */
    char run_id[48];     /* run id that the last greeting or heartbeat has shown; empty: unknown */
    struct rl_info info; /* what the server has said about itself on this connection */
};

/* What TIME in a greeting has shown. */
struct rl_server_time {
    uint64_t time_us;     /* the server's wall clock, in microseconds since 1970 */
    uint64_t received_ns; /* boot clock: when the reply was read; 0: there was no valid reply */
};

/* Prepares the eligibility of a node whose server is not known yet. Borrows `rules`. `durable` and
 * `fresh` are what the operator attests: see struct rl_admission. */
void rl_eligibility_init(struct rl_eligibility *eligibility, const struct rl_admission_rules *rules,
                         bool durable, bool fresh);

/* Returns true if the votes of the node for a new lock count. */
static inline bool rl_eligibility_may_grant(const struct rl_eligibility *eligibility)
{
    return (eligibility->exclusions & RL_EXCLUSIONS_ACQUIRE) == 0;
}

/* Returns true if the votes of the node for an extension count. */
static inline bool rl_eligibility_may_extend(const struct rl_eligibility *eligibility)
{
    return (eligibility->exclusions & RL_EXCLUSIONS_EXTEND) == 0;
}

/* Returns true if the node is excluded for a reason that only its operator can remove. */
static inline bool rl_eligibility_needs_repair(const struct rl_eligibility *eligibility)
{
    return (eligibility->exclusions & ~(uint32_t)RL_EXCLUSIONS_TIMED) != 0;
}

/* Returns when the first of the exclusions ends by itself (boot clock); RL_NEVER: none does. */
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

/* Returns the index of the other node that shows the same server. Called only for a duplicate. */
static inline unsigned rl_eligibility_duplicate_of(const struct rl_eligibility *eligibility)
{
    return eligibility->duplicate_of;
}

/* Returns the run id that the last greeting or heartbeat has shown; empty: unknown. */
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

/* Returns the enum redlock_cause of the lowest exclusion; REDLOCK_CAUSE_NONE: there is none. */
uint8_t rl_eligibility_cause(const struct rl_eligibility *eligibility);

/* Writes why the lowest exclusion holds into `text` of `size` bytes; "": there is none. Returns the
 * nanoseconds until all exclusions have ended; 0: there is none, or the operator must remove one.
 */
uint64_t rl_eligibility_text(const struct rl_eligibility *eligibility, uint64_t now_ns, char *text,
                             size_t size);

/* Stores the server's wall clock minus ours in `*ret_us`, in microseconds. `wall_offset_us`: our
 * wall clock minus our boot clock. Returns false if no reply to TIME was judged. */
bool rl_eligibility_offset_us(const struct rl_eligibility *eligibility, int64_t wall_offset_us,
                              int64_t *ret_us);

/* Forgets what the server has said of itself, because a new connection was opened. */
void rl_eligibility_opened(struct rl_eligibility *eligibility);

/* Adds what one section of INFO shows, a text of `len` bytes from the greeting. */
void rl_eligibility_add_info(struct rl_eligibility *eligibility, const char *text, size_t len);

/* Notes that the server has refused INFO, or one section of it, with this enum redlock_cause. */
void rl_eligibility_refuse_info(struct rl_eligibility *eligibility, int cause);

/* Judges the server after a complete greeting that was sent at `sent_ns`. Returns 0, or the enum
 * redlock_cause for which the connection must be closed, with `*ret_text`. Sets `*ret_stepped` to
 * whether its clock has jumped since the last connection; the caller then reports that with
 * rl_eligibility_note_step(). The two results are set only where they are needed: `*ret_text` with
 * a cause, `*ret_stepped` with 0. */
int rl_eligibility_greeted(struct rl_node *node, const struct rl_server_time *time,
                           uint64_t sent_ns, const char **ret_text, bool *ret_stepped,
                           uint64_t now_ns);

/* Reports a clock that has jumped forward to the engine. A jump back is not reported: keys then
 * only expire later, and no lock is lost. */
void rl_eligibility_note_step(const struct rl_node *node);

/* Judges the reply to TIME (`time_us` since 1970) in a heartbeat that was sent at `sent_ns`.
 * Reports a clock step. */
void rl_eligibility_take_time(struct rl_node *node, uint64_t time_us, uint64_t sent_ns,
                              uint64_t now_ns);

/* Judges what INFO has shown in a complete heartbeat. `is_identified`: INFO was not refused and
 * shows a run id. */
void rl_eligibility_take_info(struct rl_node *node, const struct rl_info *info, bool is_identified,
                              uint64_t now_ns);

/* Returns true if both `run_id` and the run id of the node are known, and differ: another server
 * replies. */
bool rl_eligibility_run_differs(const struct rl_eligibility *eligibility, const char *run_id);

/* Marks the node as a duplicate of the node with index `first`. */
void rl_eligibility_set_duplicate(struct rl_eligibility *eligibility, uint8_t first);

/* Notes that no other node shows the same server. */
void rl_eligibility_clear_duplicate(struct rl_eligibility *eligibility);

/* Computes the exclusions at `now_ns` again, because time has passed or something was learned.
 * Reports to the engine if they have changed. */
void rl_eligibility_review(struct rl_node *node, uint64_t now_ns);

#endif
