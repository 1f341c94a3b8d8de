/* SPDX-License-Identifier: MIT
 * Reads the state of nodes and locks for the api layer. `index` is the index of a node. Functions
 * that write to `text` write at most `size` bytes, with a NUL. */
#include "engine/status.h"

#include "core/cause.h"
#include "engine/seen.h"
#include "node/codec.h"

#include <stdio.h>
#include <string.h>

/* Returns the state of one node as it is now. */
struct rl_node_status rl_engine_node_status(const struct rl_engine *engine, unsigned index)
{
    const struct rl_node *node = &engine->nodes[index];
    bool answers = rl_node_is_responsive(node);
    bool votes = answers && (engine->view.eligible & RL_NODE(index)) != 0;
    bool down = rl_connection_state(&node->conn) == RL_NODE_DOWN;

    return (struct rl_node_status){
        .name = node->name,
        .run_id = rl_eligibility_run_id(&node->eligibility),
        .error = rl_connection_text(&node->conn),
        .error_cause = rl_connection_cause(&node->conn),
        .cause = votes ? REDLOCK_CAUSE_NONE : engine->view.cause[index],
        .answers = answers,
        .votes = votes,
        .down = down,
        .closed = rl_connection_is_closed(&node->conn),
        .identified = rl_eligibility_run_id(&node->eligibility)[0] != '\0' &&
                      !rl_eligibility_info(&node->eligibility)->refused,
    };
}

/* Writes why the node is excluded, and sets the time in milliseconds after which its votes count
 * again; 0: the operator must act. Returns false and writes nothing if `cause` is not that of the
 * node's first exclusion. */
bool rl_engine_exclusion_text(const struct rl_engine *engine, unsigned index, uint8_t cause,
                              char *text, size_t size, uint64_t *ret_votes_again_ms)
{
    const struct rl_node *node = &engine->nodes[index];
    uint64_t now_ns = engine->view.now.boot_ns;

    if (cause != rl_eligibility_cause(&node->eligibility))
        return false;
    uint64_t ns = rl_eligibility_text(&node->eligibility, now_ns, text, size);
    *ret_votes_again_ms = (ns + RL_MS - 1) / RL_MS;
    return true;
}

/* Writes why a request to the node failed with `cause`: which node a duplicate is the same server
 * as, the state of its fence record, the last error of the connection if it fits the cause, or else
 * the general text of the cause. */
void rl_engine_failure_text(const struct rl_engine *engine, unsigned index, uint8_t cause,
                            char *text, size_t size)
{
    const struct rl_node *node = &engine->nodes[index];
    bool has_text = rl_connection_text(&node->conn)[0] != '\0' &&
                    (cause == rl_connection_cause(&node->conn) || rl_cause_of(cause)->shows_reply);

    if (cause == REDLOCK_CAUSE_DUPLICATE)
        snprintf(text, size, "same server as %.120s",
                 engine->nodes[rl_eligibility_duplicate_of(&node->eligibility)].name);
    else if (cause == REDLOCK_CAUSE_FENCE_RECORD)
        rl_records_text(engine, index, text, size);
    else
        snprintf(text, size, "%s",
                 has_text ? rl_connection_text(&node->conn) : rl_cause_of(cause)->text);
}

/* Returns REDLOCK_FACT_* bits: what the server reports of itself in INFO, what the operator
 * attests, and whether connections use TLS. */
static uint32_t facts_of(const struct rl_engine *engine, const struct rl_node *node)
{
    const struct rl_info *info = rl_eligibility_info(&node->eligibility);
    const struct rl_node_spec *spec = &engine->params.specs[node->index];
    bool unverified = spec->tls && spec->tls_settings.verify == RL_TLS_VERIFY_NONE;

    return (rl_info_is_identified(info) ? REDLOCK_FACT_INFO : 0u) |
           (info->aof ? REDLOCK_FACT_AOF : 0u) |
           (info->aof && info->aof_failing ? REDLOCK_FACT_AOF_FAILING : 0u) |
           (rl_eligibility_is_durable(&node->eligibility) ? REDLOCK_FACT_DURABLE : 0u) |
           (rl_eligibility_is_fresh(&node->eligibility) ? REDLOCK_FACT_FRESH : 0u) |
           (spec->tls ? REDLOCK_FACT_TLS : 0u) | (unverified ? REDLOCK_FACT_UNVERIFIED : 0u);
}

/* Returns enum redlock_notify_state: whether the server sends notifications, or why it does not. */
static int notify_state_of(const struct rl_engine *engine, const struct rl_node *node)
{
    if (!engine->params.notifications)
        return REDLOCK_NOTIFY_OFF;
    if (rl_tracker_state(node) == RL_TRACKER_REFUSED)
        return REDLOCK_NOTIFY_REFUSED;
    if (!rl_connection_is_ready(&node->conn) || !rl_tracker_is_wanted(node))
        return REDLOCK_NOTIFY_IDLE;
    return rl_tracker_is_on(node) ? REDLOCK_NOTIFY_ON : REDLOCK_NOTIFY_PENDING;
}

/* Returns enum redlock_line_state: whether the server lets this client use lines. */
static int line_state_of(const struct rl_engine *engine, const struct rl_node *node)
{
    if (!engine->params.lines)
        return REDLOCK_LINE_OFF;
    if (rl_line_access_is_refused(node))
        return REDLOCK_LINE_REFUSED;
    return rl_tracker_hears_turns(node) ? REDLOCK_LINE_ON : REDLOCK_LINE_IDLE;
}

/* Writes to stats->text why the votes of the node do not count, and sets stats->quarantine_ms if it
 * is excluded. `answers`: as in struct rl_node_status. */
static void fill_reason(const struct rl_engine *engine, unsigned index, bool answers,
                        redlock_node_stats_t *stats)
{
    const struct rl_node *node = &engine->nodes[index];
    size_t size = sizeof stats->text;

    if (answers)
        (void)rl_engine_exclusion_text(engine, index, rl_eligibility_cause(&node->eligibility),
                                       stats->text, size, &stats->quarantine_ms);
    else if (rl_eligibility_is_duplicate(&node->eligibility))
        rl_engine_failure_text(engine, index, REDLOCK_CAUSE_DUPLICATE, stats->text, size);
    else
        snprintf(stats->text, size, "%s",
                 rl_connection_text(&node->conn)[0] != '\0' ? rl_connection_text(&node->conn)
                                                            : "not connected yet");
}

/* Fills the statistics of one node. */
void rl_engine_node_stats(const struct rl_engine *engine, unsigned index,
                          redlock_node_stats_t *ret_stats)
{
    const struct rl_node *node = &engine->nodes[index];
    const struct rl_info *info = rl_eligibility_info(&node->eligibility);
    const struct rl_node_counters *counters = &node->counters;
    const struct rl_env *env = &engine->env;
    const struct rl_node_status status = rl_engine_node_status(engine, index);
    int64_t wall_offset_us =
        (int64_t)env->wall_us(env->ctx) - (int64_t)(env->now(env->ctx).boot_ns / RL_US);

    *ret_stats = (redlock_node_stats_t){
        .node = status.name,
        .eligible = status.votes,
        .cause = status.cause,
        .requests = counters->requests,
        .granted = counters->granted,
        .denied = counters->denied,
        .errors = counters->errors,
        .timeouts = counters->timeouts,
        .replies_late = counters->replies_late,
        .reconnects = counters->reconnects,
        .rtt_us_sum = counters->rtt_us_sum,
        .rtt_us = rl_detector_srtt_ns(&node->detector) / RL_US,
        .uptime_s = info->uptime_s,
        .undos_pending = rl_node_undos_pending(node),
        .features = rl_features_supported(&node->features),
        .notify_state = notify_state_of(engine, node),
        .notifications = counters->notifications,
        .line_state = line_state_of(engine, node),
        .facts = facts_of(engine, node),
        .certificate_expiry_s = rl_connection_expiry_s(&node->conn),
        .replicas = (uint32_t)rl_min_u64(info->replicas, UINT32_MAX),
        .maxmemory = info->maxmemory,
    };
    memcpy(ret_stats->rtt_us_hist, counters->rtt_us_hist, sizeof ret_stats->rtt_us_hist);
    memcpy(ret_stats->version, info->version, sizeof ret_stats->version);
    memcpy(ret_stats->role, info->role, sizeof ret_stats->role);
    memcpy(ret_stats->policy, info->policy, sizeof ret_stats->policy);
    memcpy(ret_stats->run_id, rl_eligibility_run_id(&node->eligibility), sizeof ret_stats->run_id);
    rl_eligibility_offset_us(&node->eligibility, wall_offset_us, &ret_stats->clock_offset_us);
    if (ret_stats->notify_state == REDLOCK_NOTIFY_REFUSED) {
        ret_stats->notify_cause = rl_tracker_cause(node);
        memcpy(ret_stats->notify_text, rl_tracker_text(node), sizeof ret_stats->notify_text);
    }
    if (ret_stats->line_state == REDLOCK_LINE_REFUSED) {
        ret_stats->line_cause = node->line_access.cause;
        memcpy(ret_stats->line_text, node->line_access.text, sizeof ret_stats->line_text);
    }
    if (!status.votes)
        fill_reason(engine, index, status.answers, ret_stats);
}

/* Returns why the client is not ready. EAUTH: without the servers that refuse the login there is no
 * quorum; EEXCLUDED: without the excluded ones there is none; else ENOQUORUM. */
int rl_engine_unready_status(const struct rl_engine *engine)
{
    unsigned auth = 0, refused = 0;

    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_node *node = &engine->nodes[i];
        bool is_excluded =
            rl_connection_is_ready(&node->conn) && !rl_eligibility_may_grant(&node->eligibility);
        int status = rl_cause_of(rl_connection_cause(&node->conn))->status;
        auth += status == REDLOCK_EAUTH;
        refused += is_excluded || status == REDLOCK_EEXCLUDED;
    }
    unsigned spare = engine->count - engine->quorum; /* nodes that may be missing */
    return auth > spare ? REDLOCK_EAUTH : refused > spare ? REDLOCK_EEXCLUDED : REDLOCK_ENOQUORUM;
}

/* Returns whether two configured addresses lead to one server. */
bool rl_engine_has_duplicate(const struct rl_engine *engine)
{
    return engine->view.duplicate;
}

/* Notes the times to live that an inspection has seen, for the length of quarantines. Returns the
 * nodes on which the key lives longer than max_ttl. */
rl_nodes rl_engine_note_ttls(struct rl_engine *engine, const struct rl_lock *lock)
{
    const struct rl_seen *seen = lock->seen;
    rl_nodes longer = 0;

    for (unsigned i = 0; seen != NULL && i < engine->count; i++) {
        if (seen[i].present && rl_admission_saw_ttl(&engine->common.admission, i, seen[i].pttl_ms,
                                                    engine->view.now.boot_ns))
            longer |= RL_NODE(i);
    }
    return longer;
}

/* Returns how far the last operation on a lock has come at the time `now`. */
struct rl_progress rl_lock_progress(const struct rl_lock *lock, struct rl_now now)
{
    const struct rl_lease *lease = &lock->lease;
    bool has_round = lease->round.number != 0;
    bool raised = lease->fence != NULL && lease->fence->raising;
    bool waits = lease->state == RL_STATE_WAITING || lease->state == RL_STATE_ACQUIRING;
    uint32_t place = waits && lease->line.node != 0 ? lease->line.place : 0;

    return (struct rl_progress){
        .attempts = lease->attempts,
        .rounds = (lease->attempts != 0 || has_round ? 1u : 0u) + raised,
        .waited_ns = rl_elapsed_ns(lease->begun, now),
        .elapsed_ns = has_round ? rl_elapsed_ns(lease->round.t1, now) : 0,
        .remaining_ns = rl_lease_remaining_ns(lease, now),
        .line_place = place,
        .line_length = place != 0 ? lease->line.length : 0,
    };
}

/* Returns the time in milliseconds, rounded up, after which the keys of the lock have expired on
 * all of `nodes`, even if no undo reaches them; RL_NEVER: not known. */
uint64_t rl_engine_keys_left_ms(const struct rl_engine *engine, const struct rl_lock *lock,
                                rl_nodes nodes)
{
    uint64_t last_ns = 0;

    for (; nodes != 0; nodes &= nodes - 1) {
        const struct rl_node *node = &engine->nodes[__builtin_ctz(nodes)];
        last_ns = rl_max_u64(last_ns, rl_undos_key_expiry_ns(node, lock->claim));
    }
    if (last_ns == RL_NEVER)
        return RL_NEVER;
    return (rl_sub_sat(last_ns, engine->view.now.boot_ns) + RL_MS - 1) / RL_MS;
}

/* Returns the shortest time until the deadline of any held lock, in nanoseconds; RL_NEVER if none
 * is held. */
uint64_t rl_engine_shortest_validity_ns(const struct rl_engine *engine)
{
    uint64_t shortest_ns = RL_NEVER;
    const struct rl_lock *lock = engine->stats.held != 0 ? engine->locks : NULL;

    for (; lock != NULL; lock = lock->next) {
        if (!rl_state_is_held(lock->lease.state))
            continue;
        uint64_t left_ns = rl_lease_remaining_ns(&lock->lease, engine->view.now);
        shortest_ns = rl_min_u64(shortest_ns, left_ns);
    }
    return shortest_ns;
}

/* Returns the names and versions of the libraries that the engine was built with. */
const char *rl_engine_libraries(void)
{
    return rl_codec_libraries();
}

/* Checks that the libraries that the process uses are compatible with those that the engine was
 * compiled against. Returns REDLOCK_OK, ELIBRARY with the reason in `text`, ENOMEM or ESYS. */
int rl_engine_check_libraries(char *text, size_t size)
{
    return rl_codec_check(text, size);
}
