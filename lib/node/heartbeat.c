/* SPDX-License-Identifier: MIT
 * What is learned about the server behind a connection, at the greeting and later by heartbeats: is
 * it still the one that was greeted, are its data still its own, and has its clock stepped?
 * Heartbeats are sent only while locks are held or wanted, or while the node does not vote for a
 * reason that its operator can mend. Behind a proxy, or a name that moves, another server may
 * answer on a connection that never broke: then all is begun anew. A connection also stays when its
 * server becomes a replica and a master again, with another one's data.
 *
 * A client that had nothing to do has not asked for a while. What is due then goes out in front of
 * its first vote: the answer is there before the vote is counted, and costs no round trip. */
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

#define MENDING_NS      RL_SECOND /* how often a node that has to be mended is asked */
#define FULL_HEARTBEAT  8         /* every so many beats all sections are read, not only ... */
#define SHORT_HEARTBEAT 3         /* ... these: identity, replication, eviction policy */

static const char *const sections[] = {"server", "replication", "memory", "persistence", "cpu"};
#define SECTIONS (sizeof sections / sizeof sections[0])

void rl_node_review(struct rl_node *node, uint64_t now_ns)
{
    uint32_t exclusions = rl_admission_exclusions(&node->admission, now_ns);

    if (exclusions == node->exclusions)
        return;
    node->exclusions = exclusions;
    rl_node_notify_changed(node);
}

/* A clock that jumps back makes keys live longer: a nuisance, but nobody loses anything by it. */
void rl_heartbeat_note_step(const struct rl_node *node)
{
    if (node->admission.step_us > 0)
        rl_inbox_note(&node->common->inbox, RL_INBOX_STEPPED, node->index);
}

/* Guards begin when we hold the answer in our hands. The time of the tick may be older, by as much
 * as this process was stopped or suspended in it, and the server may have lost its keys in between.
 */
static uint64_t learned_ns(const struct rl_node *node)
{
    const struct rl_clocks *clocks = &node->common->clocks;

    return clocks->now(clocks->ctx).boot_ns;
}

/* What the greeting has taught about the server. 0, or why the connection is of no use. */
int rl_heartbeat_greeted(struct rl_node *node, const char **ret_text, bool *ret_stepped,
                         uint64_t now_ns)
{
    const struct rl_info *info = &node->info;

    if (info->role[0] != '\0' && strcmp(info->role, "master") != 0) {
        *ret_text = "server is a replica";
        return REDLOCK_CAUSE_REPLICA;
    }
    if (info->loading) {
        *ret_text = "server is loading its data";
        return REDLOCK_CAUSE_LOADING;
    }
    if (info->cluster) {
        *ret_text = "server runs in cluster mode, where keys can move to another server";
        return REDLOCK_CAUSE_CLUSTER;
    }
    rl_admission_greet(&node->admission, info, learned_ns(node));
    node->last_heartbeat_ns = now_ns;
    *ret_stepped =
        node->greeting_time_ns != 0 && rl_admission_time(&node->admission, node->greeting_time_us,
                                                         node->opened_ns, node->greeting_time_ns);
    node->exclusions = rl_admission_exclusions(&node->admission, now_ns);
    return REDLOCK_CAUSE_NONE;
}

static bool needs_mending(const struct rl_node *node)
{
    return (node->exclusions & ~(uint32_t)RL_EXCLUSIONS_TIMED) != 0;
}

uint64_t rl_heartbeat_due_ns(const struct rl_node *node)
{
    uint64_t interval_ns = node->common->heartbeat_ns;
    bool mending = needs_mending(node);

    if (node->state != RL_NODE_READY || rl_detector_is_suspect(&node->detector) ||
        node->heartbeat_pending != 0 || (!mending && !node->common->active))
        return RL_NEVER;
    if (mending)
        interval_ns = rl_min_u64(interval_ns, MENDING_NS);
    return rl_add_sat(node->last_heartbeat_ns, interval_ns);
}

static bool send_request(struct rl_node *node, enum rl_verb verb, uint8_t section, uint64_t now_ns)
{
    struct rl_request request = {
        .sent_ns = now_ns, .verb = (uint8_t)verb, .form = section, /* see rl_heartbeat_reply() */
    };
    const struct rl_encoded *encoded =
        rl_node_say_verb(node, verb, (struct rl_arg){sections[section], strlen(sections[section])});
    bool ok =
        encoded != NULL && rl_pipeline_push(&node->pipe, &request, encoded->bytes, encoded->len);
    node->heartbeat_pending += ok;
    return ok;
}

/* What is not asked for stays as it was. */
static void begin_heartbeat(struct rl_node *node, bool whole)
{
    struct rl_info *info = &node->heartbeat_info;

    *info = whole ? (struct rl_info){.run_id = ""} : node->info;
    info->run_id[0] = info->role[0] = info->replid[0] = info->replid2[0] = '\0';
    info->second_offset = 0;
}

/* Without memory the beat is skipped: the next one comes. */
void rl_heartbeat_send(struct rl_node *node, uint64_t now_ns)
{
    bool whole = needs_mending(node) || node->heartbeats % FULL_HEARTBEAT == FULL_HEARTBEAT - 1;
    uint8_t count = whole ? SECTIONS : SHORT_HEARTBEAT;

    node->last_heartbeat_ns = now_ns;
    rl_node_replan(node);
    if (node->pipe.out_len >= RL_UNSENT_MAX)
        return;
    node->heartbeats++;
    begin_heartbeat(node, whole);
    node->heartbeat_sections = count;
    bool ok = send_request(node, RL_VERB_TIME, 0, now_ns);
    for (uint8_t i = 0; ok && i < count; i++)
        ok = send_request(node, RL_VERB_INFO, i, now_ns);
    if (node->heartbeat_pending != 0)
        rl_node_note_dirty(node);
}

static void take_time_reply(struct rl_node *node, const struct rl_request *request,
                            const struct rl_reply *reply, uint64_t now_ns)
{
    uint64_t time_us = 0;

    if (!rl_wire_time_us(reply, &time_us))
        return; /* not permitted: its clock is not watched */
    if (!rl_admission_time(&node->admission, time_us, request->sent_ns, learned_ns(node)))
        return;
    rl_node_review(node, now_ns);
    rl_heartbeat_note_step(node);
}

/* All sections are in. */
static void take_heartbeat(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_info *info = &node->heartbeat_info;

    if (info->role[0] != '\0' && strcmp(info->role, "master") != 0) {
        rl_node_close(node, REDLOCK_CAUSE_REPLICA, "server became a replica", true, now_ns);
        return;
    }
    bool told = !info->refused && info->run_id[0] != '\0';
    if (!told && node->heartbeat_sections != SECTIONS)
        return; /* busy, perhaps: a whole look will tell */
    bool is_news = told && strcmp(info->run_id, node->run_id) != 0;
    rl_admission_greet(&node->admission, info, learned_ns(node));
    if (told)
        node->info = *info;
    else
        node->info.refused = true;
    memcpy(node->run_id, node->info.run_id, sizeof node->run_id);
    rl_node_review(node, now_ns);
    if (is_news) /* it may be a server that is known under another address */
        rl_node_notify_changed(node);
}

static void take_info_reply(struct rl_node *node, uint8_t section, const struct rl_reply *reply,
                            uint64_t now_ns)
{
    struct rl_info *info = &node->heartbeat_info;

    if (reply->kind == RL_REPLY_BULK)
        rl_info_parse(info, reply->text, reply->len);
    else
        info->refused = true;
    bool other = info->run_id[0] != '\0' && node->run_id[0] != '\0' &&
                 strcmp(info->run_id, node->run_id) != 0;
    if (other)
        rl_node_close(node, REDLOCK_CAUSE_RESTARTED, "another server answers at this address", true,
                      now_ns);
    else if (section + 1 == node->heartbeat_sections)
        take_heartbeat(node, now_ns);
}

void rl_heartbeat_reply(struct rl_node *node, const struct rl_request *request,
                        const struct rl_reply *reply, uint64_t now_ns)
{
    bool is_time = request->verb == RL_VERB_TIME;
    enum rl_reply_kind kind = is_time ? RL_REPLY_ARRAY : RL_REPLY_BULK;

    RL_ASSERT(node->heartbeat_pending > 0);
    rl_node_replan(node);
    node->heartbeat_pending--;
    if (reply->kind != kind && reply->kind != RL_REPLY_ERROR)
        rl_node_close(node, REDLOCK_CAUSE_PROTOCOL, "reply of the wrong type", true, now_ns);
    else if (is_time)
        take_time_reply(node, request, reply, now_ns);
    else
        take_info_reply(node, request->form, reply, now_ns);
}
