/* SPDX-License-Identifier: MIT
 * Heartbeats: is the server still the one that was greeted, are its data still its own, and has its
 * clock stepped? Behind a proxy, or a name that moves, another server may answer on a connection
 * that never broke: then the connection is closed. A connection also stays when its server becomes
 * a replica and a master again, with the data of another server.
 *
 * A client that had nothing to do has not asked for a while. What is due then goes out in front of
 * its first vote: the answer is there before the vote is counted, and costs no round trip. */
#include "node/heartbeat.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

#define REPAIR_NS       RL_SECOND /* heartbeat of a node that needs repair */
#define FULL_HEARTBEAT  8         /* every so many beats all sections are read, not only ... */
#define SHORT_HEARTBEAT 3         /* ... these: identity, replication, eviction policy */

static const char *const sections[] = {"server", "replication", "memory", "persistence", "cpu"};
#define SECTIONS (sizeof sections / sizeof sections[0])

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

static bool send_request(struct rl_node *node, enum rl_verb verb, uint8_t section, uint64_t now_ns)
{
    struct rl_request request = {
        .sent_ns = now_ns, .verb = (uint8_t)verb, .form = section, /* see rl_heartbeat_reply() */
    };
    const struct rl_encoded *encoded = rl_node_encode_verb(
        node, verb, (struct rl_arg){sections[section], strlen(sections[section])});
    bool ok =
        encoded != NULL && rl_pipeline_push(&node->pipe, &request, encoded->bytes, encoded->len);
    node->heartbeat.pending += ok;
    return ok;
}

/* What is not asked for stays as it was. */
static void begin_heartbeat(struct rl_node *node, bool whole)
{
    struct rl_info *info = &node->heartbeat.info;

    *info = whole ? (struct rl_info){.run_id = ""} : *rl_eligibility_info(&node->eligibility);
    info->run_id[0] = info->role[0] = info->replid[0] = info->replid2[0] = '\0';
    info->second_offset = 0;
}

/* Without memory the beat is skipped: the next one comes. */
void rl_heartbeat_send(struct rl_node *node, uint64_t now_ns)
{
    bool whole = rl_eligibility_needs_repair(&node->eligibility) ||
                 node->heartbeat.count % FULL_HEARTBEAT == FULL_HEARTBEAT - 1;
    uint8_t count = whole ? SECTIONS : SHORT_HEARTBEAT;

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

static void take_time_reply(struct rl_node *node, const struct rl_request *request,
                            const struct rl_reply *reply, uint64_t now_ns)
{
    uint64_t time_us = 0;

    if (!rl_wire_time_us(reply, &time_us))
        return; /* not permitted: its clock is not watched */
    rl_eligibility_take_time(node, time_us, request->sent_ns, now_ns);
}

/* All sections are in. */
static void take_heartbeat(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_info *info = &node->heartbeat.info;

    if (info->role[0] != '\0' && strcmp(info->role, "master") != 0) {
        rl_node_close(node, REDLOCK_CAUSE_REPLICA, "server became a replica", true, now_ns);
        return;
    }
    bool is_identified = !info->refused && info->run_id[0] != '\0';
    if (!is_identified && node->heartbeat.sections != SECTIONS)
        return; /* busy, perhaps: a whole look will tell */
    rl_eligibility_take_info(node, info, is_identified, now_ns);
}

static void take_info_reply(struct rl_node *node, uint8_t section, const struct rl_reply *reply,
                            uint64_t now_ns)
{
    struct rl_info *info = &node->heartbeat.info;

    if (reply->kind == RL_REPLY_BULK)
        rl_info_parse(info, reply->text, reply->len);
    else
        info->refused = true;
    if (rl_eligibility_run_differs(&node->eligibility, info->run_id))
        rl_node_close(node, REDLOCK_CAUSE_RESTARTED, "another server replies at this address", true,
                      now_ns);
    else if (section + 1 == node->heartbeat.sections)
        take_heartbeat(node, now_ns);
}

void rl_heartbeat_reply(struct rl_node *node, const struct rl_request *request,
                        const struct rl_reply *reply, uint64_t now_ns)
{
    bool is_time = request->verb == RL_VERB_TIME;
    enum rl_reply_kind kind = is_time ? RL_REPLY_ARRAY : RL_REPLY_BULK;

    RL_ASSERT(node->heartbeat.pending > 0);
    rl_node_replan(node);
    node->heartbeat.pending--;
    if (reply->kind != kind && reply->kind != RL_REPLY_ERROR)
        rl_node_close(node, REDLOCK_CAUSE_PROTOCOL, "reply of the wrong type", true, now_ns);
    else if (is_time)
        take_time_reply(node, request, reply, now_ns);
    else
        take_info_reply(node, request->form, reply, now_ns);
}
