/* SPDX-License-Identifier: MIT
 * Sends heartbeats and judges their replies: whether the server is still the one that was greeted,
 * whether it was promoted, and whether its clock has stepped. That a connection stays open does not
 * prove these. Behind a proxy another server may reply on the same connection. A server can also
 * become a replica and a master again, with the data of another server, while the connection stays.
 *
 * An idle client sends no heartbeats. A heartbeat that is due is sent in front of the next ACQUIRE:
 * its replies arrive before the vote, and cost no round trip. */
#include "node/heartbeat.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

/* Longest interval between two heartbeats while the node is excluded for a reason that its operator
 * must remove. */
#define REPAIR_NS RL_SECOND
/* Each FULL_HEARTBEAT-th heartbeat reads all sections of INFO. The others read only the first
 * SHORT_HEARTBEAT of rl_info_sections: identity, replication, eviction policy. While the node is
 * excluded for a reason that its operator must remove, every heartbeat reads all sections. */
#define FULL_HEARTBEAT  8
#define SHORT_HEARTBEAT 3

/* Returns when the next heartbeat is due (boot clock). RL_NEVER: the node is not ready or is
 * suspect, a heartbeat is under way, or none is needed. */
uint64_t rl_heartbeat_due_ns(const struct rl_node *node)
{
    uint64_t interval_ns = node->common->heartbeat_ns;
    bool needs_repair = rl_eligibility_needs_repair(&node->eligibility);

    if (!rl_connection_is_ready(&node->conn) || rl_detector_is_suspect(&node->detector) ||
        node->heartbeat.pending != 0 || (!needs_repair && !node->common->active))
        return RL_NEVER;
    if (needs_repair)
        interval_ns = rl_min_u64(interval_ns, REPAIR_NS);
    return rl_add_sat(node->heartbeat.last_ns, interval_ns);
}

/* Appends TIME, or INFO of the section with index `section` (TIME: 0), to the pipeline. The request
 * carries that index in its field `form`. Returns false without memory. */
static bool send_request(struct rl_node *node, enum rl_verb verb, uint8_t section, uint64_t now_ns)
{
    struct rl_request request = {
        .sent_ns = now_ns,
        .verb = (uint8_t)verb,
        .form = section,
    };
    const struct rl_encoded *encoded =
        rl_node_encode_verb(node, verb, rl_arg_of(rl_info_sections[section]));
    bool ok =
        encoded != NULL && rl_pipeline_push(&node->pipe, &request, encoded->bytes, encoded->len);
    node->heartbeat.pending += ok;
    return ok;
}

/* Prepares heartbeat.info for the replies. A heartbeat that does not read all sections (`whole`
 * false) starts from what is known, so that the other sections stay as they were. Identity and
 * replication are always read anew. */
static void begin_heartbeat(struct rl_node *node, bool whole)
{
    struct rl_info *info = &node->heartbeat.info;

    *info = whole ? (struct rl_info){.run_id = ""} : *rl_eligibility_info(&node->eligibility);
    info->run_id[0] = info->role[0] = info->replid[0] = info->replid2[0] = '\0';
    info->second_offset = 0;
}

/* Appends TIME and the INFO of each section to the pipeline. Skips the heartbeat if the pipeline is
 * full. Without memory the heartbeat stays incomplete, and is then never judged. */
void rl_heartbeat_send(struct rl_node *node, uint64_t now_ns)
{
    bool whole = rl_eligibility_needs_repair(&node->eligibility) ||
                 node->heartbeat.count % FULL_HEARTBEAT == FULL_HEARTBEAT - 1;
    uint8_t count = whole ? RL_INFO_SECTIONS : SHORT_HEARTBEAT;

    node->heartbeat.last_ns = now_ns;
    rl_node_replan(node);
    if (rl_pipeline_is_full(&node->pipe))
        return;
    node->heartbeat.count++;
    begin_heartbeat(node, whole);
    node->heartbeat.sections = count;
    bool ok = send_request(node, RL_VERB_TIME, 0, now_ns);
    for (uint8_t i = 0; ok && i < count; i++)
        ok = send_request(node, RL_VERB_INFO, i, now_ns);
    if (node->heartbeat.pending != 0)
        rl_node_note_dirty(node);
}

/* Passes the time in the reply to TIME on to the admission. Ignores an error, which means that the
 * user may not call TIME: clock steps are then not noticed. */
static void take_time_reply(struct rl_node *node, const struct rl_request *request,
                            const struct rl_reply *reply, uint64_t now_ns)
{
    uint64_t time_us = 0;

    if (!rl_wire_time_us(reply, &time_us))
        return;
    rl_eligibility_take_time(node, time_us, request->sent_ns, now_ns);
}

/* Handles the end of a heartbeat, after its last reply: passes what INFO has shown on to the
 * admission. Closes the connection to a replica. */
static void take_heartbeat(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_info *info = &node->heartbeat.info;

    if (rl_info_is_replica(info)) {
        rl_node_close(node, REDLOCK_CAUSE_REPLICA, "server became a replica", true, now_ns);
        return;
    }
    bool is_identified = rl_info_is_identified(info);
    if (!is_identified && node->heartbeat.sections != RL_INFO_SECTIONS)
        return; /* the server may be busy: only a full heartbeat counts as refused */
    rl_eligibility_take_info(node, info, is_identified, now_ns);
}

/* Handles the reply to INFO of the section with this index: keeps what it shows. Closes the
 * connection if another server has replied. The reply of the last section ends the heartbeat. */
static void take_info_reply(struct rl_node *node, uint8_t section, const struct rl_reply *reply,
                            uint64_t now_ns)
{
    struct rl_info *info = &node->heartbeat.info;

    if (reply->kind == RL_REPLY_BULK) {
        rl_info_parse(info, reply->text, reply->len);
    } else {
        info->refused = true;
        info->unknown = rl_wire_error_cause(reply->text, reply->len) != REDLOCK_CAUSE_NOPERM;
    }
    if (rl_eligibility_run_differs(&node->eligibility, info->run_id))
        rl_node_close(node, REDLOCK_CAUSE_RESTARTED, "another server replies at this address", true,
                      now_ns);
    else if (section + 1 == node->heartbeat.sections)
        take_heartbeat(node, now_ns);
}

/* Handles the reply to one request of a heartbeat. Closes the connection if the reply is of the
 * wrong kind. */
void rl_heartbeat_reply(struct rl_node *node, const struct rl_request *request,
                        const struct rl_reply *reply, uint64_t now_ns)
{
    bool is_time = request->verb == RL_VERB_TIME;
    enum rl_reply_kind kind = is_time ? RL_REPLY_ARRAY : RL_REPLY_BULK;

    RL_ASSERT(node->heartbeat.pending > 0);
    rl_node_replan(node);
    node->heartbeat.pending--;
    rl_detector_note_heartbeat(node, rl_sub_sat(now_ns, request->sent_ns), now_ns);
    if (reply->kind != kind && reply->kind != RL_REPLY_ERROR)
        rl_node_close(node, REDLOCK_CAUSE_PROTOCOL, "reply of the wrong type", true, now_ns);
    else if (is_time)
        take_time_reply(node, request, reply, now_ns);
    else
        take_info_reply(node, request->form, reply, now_ns);
}
