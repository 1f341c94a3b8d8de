/* SPDX-License-Identifier: MIT
 * Applies what greetings and heartbeats learn of a server to the admission of its node. */
#include "node/eligibility.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

/* Prepares the eligibility of a node whose server is not known yet; `durable` and `fresh` are what
 * the operator attests. */
void rl_eligibility_init(struct rl_eligibility *eligibility, const struct rl_admission_rules *rules,
                         bool durable, bool fresh)
{
    rl_admission_init(&eligibility->admission, rules, durable, fresh);
}

/* Returns the enum redlock_cause of the lowest exclusion; REDLOCK_CAUSE_NONE: there is none. */
uint8_t rl_eligibility_cause(const struct rl_eligibility *eligibility)
{
    return rl_admission_cause(eligibility->exclusions);
}

/* Writes why the lowest exclusion holds. Returns the nanoseconds until all exclusions have ended;
 * 0: there is none, or the operator must remove one. */
uint64_t rl_eligibility_text(const struct rl_eligibility *eligibility, uint64_t now_ns, char *text,
                             size_t size)
{
    rl_admission_text(&eligibility->admission, eligibility->exclusions, now_ns, text, size);
    return rl_admission_quarantine_left_ns(&eligibility->admission, eligibility->exclusions,
                                           now_ns);
}

/* Stores the server's wall clock minus ours in `*ret_us`. Returns false if no reply to TIME was
 * judged. */
bool rl_eligibility_offset_us(const struct rl_eligibility *eligibility, int64_t wall_offset_us,
                              int64_t *ret_us)
{
    return rl_admission_offset_us(&eligibility->admission, wall_offset_us, ret_us);
}

/* Forgets what the server has said of itself, because a new connection was opened. */
void rl_eligibility_opened(struct rl_eligibility *eligibility)
{
    eligibility->info = (struct rl_info){.run_id = ""};
}

/* Adds what one section of INFO in the greeting shows. */
void rl_eligibility_add_info(struct rl_eligibility *eligibility, const char *text, size_t len)
{
    rl_info_parse(&eligibility->info, text, len);
}

/* Notes that the server has refused INFO, and why. */
void rl_eligibility_refuse_info(struct rl_eligibility *eligibility, int cause)
{
    eligibility->info.refused = true;
    eligibility->info.unknown = cause != REDLOCK_CAUSE_NOPERM;
}

/* Copies the run id from `info`: the server that showed it is the one that the node has now. */
static void identify(struct rl_eligibility *eligibility)
{
    memcpy(eligibility->run_id, eligibility->info.run_id, sizeof eligibility->run_id);
}

/* Judges the server after a complete greeting. Returns 0, or the enum redlock_cause for which it
 * cannot be used, with `*ret_text`. With 0, stores in `*ret_stepped` whether its clock has jumped.
 */
int rl_eligibility_greeted(struct rl_node *node, const struct rl_server_time *time,
                           uint64_t sent_ns, const char **ret_text, bool *ret_stepped,
                           uint64_t now_ns)
{
    struct rl_eligibility *eligibility = &node->eligibility;
    const struct rl_info *info = &eligibility->info;

    identify(eligibility);
    if (rl_info_is_replica(info)) {
        *ret_text = "server is a replica";
        return REDLOCK_CAUSE_REPLICA;
    }
    if (info->loading) {
        *ret_text = "server is loading its data";
        return REDLOCK_CAUSE_LOADING;
    }
    if (rl_info_has_mode(info, "cluster")) {
        *ret_text = "server runs in cluster mode, where keys can move to another server";
        return REDLOCK_CAUSE_CLUSTER;
    }
    rl_admission_greet(&eligibility->admission, info, rl_node_clock_ns(node));
    *ret_stepped =
        time->received_ns != 0 &&
        rl_admission_time(&eligibility->admission, time->time_us, sent_ns, time->received_ns);
    eligibility->exclusions = rl_admission_exclusions(&eligibility->admission, now_ns);
    return REDLOCK_CAUSE_NONE;
}

/* Reports to the engine that the server's clock has jumped, if the jump was forward. */
void rl_eligibility_note_step(const struct rl_node *node)
{
    if (node->eligibility.admission.step_us > 0)
        rl_inbox_note(&node->common->inbox, RL_INBOX_STEPPED, node->index);
}

/* Judges the reply to TIME in a heartbeat. If the clock has jumped, computes the exclusions again
 * and reports the jump. */
void rl_eligibility_take_time(struct rl_node *node, uint64_t time_us, uint64_t sent_ns,
                              uint64_t now_ns)
{
    if (!rl_admission_time(&node->eligibility.admission, time_us, sent_ns, rl_node_clock_ns(node)))
        return;
    rl_eligibility_review(node, now_ns);
    rl_eligibility_note_step(node);
}

/* Judges what INFO has shown in a complete heartbeat, and computes the exclusions again. Reports a
 * run id that is new. */
void rl_eligibility_take_info(struct rl_node *node, const struct rl_info *info, bool is_identified,
                              uint64_t now_ns)
{
    struct rl_eligibility *eligibility = &node->eligibility;
    bool is_new_run = is_identified && strcmp(info->run_id, eligibility->run_id) != 0;

    rl_admission_greet(&eligibility->admission, info, rl_node_clock_ns(node));
    if (is_identified)
        eligibility->info = *info;
    else
        rl_eligibility_refuse_info(eligibility, info->unknown ? REDLOCK_CAUSE_ERROR_REPLY
                                                              : REDLOCK_CAUSE_NOPERM);
    identify(eligibility);
    rl_eligibility_review(node, now_ns);
    if (is_new_run) /* another node may show the same server */
        rl_node_notify_changed(node);
}

/* Returns true if both run ids are known and differ: another server replies. */
bool rl_eligibility_run_differs(const struct rl_eligibility *eligibility, const char *run_id)
{
    return run_id[0] != '\0' && eligibility->run_id[0] != '\0' &&
           strcmp(run_id, eligibility->run_id) != 0;
}

/* Marks the node as a duplicate of the node with index `first`. */
void rl_eligibility_set_duplicate(struct rl_eligibility *eligibility, uint8_t first)
{
    eligibility->duplicate = true;
    eligibility->duplicate_of = first;
}

/* Notes that no other node has the same server. */
void rl_eligibility_clear_duplicate(struct rl_eligibility *eligibility)
{
    eligibility->duplicate = false;
}

/* Computes the exclusions at `now_ns` again, and reports a change to the engine. */
void rl_eligibility_review(struct rl_node *node, uint64_t now_ns)
{
    struct rl_eligibility *eligibility = &node->eligibility;
    uint32_t exclusions = rl_admission_exclusions(&eligibility->admission, now_ns);

    if (exclusions == eligibility->exclusions)
        return;
    eligibility->exclusions = exclusions;
    rl_node_notify_changed(node);
}
