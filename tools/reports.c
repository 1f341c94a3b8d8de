/* SPDX-License-Identifier: MIT
 * Copies reports and shows them.
 */
#include "evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "say.h"

struct evidence *evidence_copy(const redlock_report_t *report)
{
    redlock_node_report_t node;

    if (!report)
        return NULL;
    struct evidence *copy = must(calloc(1, sizeof *copy));
    redlock_report_get_info(report, &copy->info, sizeof copy->info);
    snprintf(copy->set, sizeof copy->set, "%s", copy->info.set ? copy->info.set : "");
    copy->info.set = copy->set;
    snprintf(copy->text, sizeof copy->text, "%s", redlock_report_text(report));
    while (copy->count < REDLOCK_NODES_MAX &&
           redlock_report_get_node(report, copy->count, &node, sizeof node) == REDLOCK_OK) {
        struct evidence_node *to = &copy->nodes[copy->count++];
        to->vote = node.vote;
        to->cause = node.cause;
        to->rtt_us = node.rtt_us;
        to->pttl_ms = node.pttl_ms;
        snprintf(to->node, sizeof to->node, "%s", node.node ? node.node : "");
        snprintf(to->owner, sizeof to->owner, "%s", node.owner ? node.owner : "");
        snprintf(to->text, sizeof to->text, "%s", node.text ? node.text : "");
    }
    return copy;
}

struct votes evidence_votes(const struct evidence *evidence)
{
    struct votes votes = {0};

    for (size_t i = 0; evidence && i < evidence->count; i++) {
        int vote = evidence->nodes[i].vote;
        if (vote == REDLOCK_VOTE_GRANTED)
            votes.granted++;
        else if (vote == REDLOCK_VOTE_DENIED)
            votes.denied++;
        else
            votes.failed++;
    }
    return votes;
}

void evidence_say_nodes(const struct evidence *evidence, int level)
{
    for (size_t i = 0; evidence && i < evidence->count; i++) {
        const struct evidence_node *node = &evidence->nodes[i];
        /* The line about the whole names the first few already. */
        if (node->vote >= REDLOCK_VOTE_DENIED && *node->text && !strstr(evidence->text, node->node))
            say((enum say_level)level, "  %s: %s", node->node, node->text);
    }
}

static const char *vote_name(int vote)
{
    switch (vote) {
    case REDLOCK_VOTE_GRANTED:
        return "granted";
    case REDLOCK_VOTE_DENIED:
        return "denied";
    case REDLOCK_VOTE_UNCOUNTED:
        return "uncounted";
    case REDLOCK_VOTE_FAILED:
        return "failed";
    default:
        return "none";
    }
}

const char *cause_name(int cause)
{
    static const char *const names[] = {
        [REDLOCK_CAUSE_NONE] = "none",
        [REDLOCK_CAUSE_TIMEOUT] = "timeout",
        [REDLOCK_CAUSE_RESOLVE] = "resolve",
        [REDLOCK_CAUSE_CONNECT] = "connect",
        [REDLOCK_CAUSE_DISCONNECT] = "disconnect",
        [REDLOCK_CAUSE_PROTOCOL] = "protocol",
        [REDLOCK_CAUSE_AUTH] = "auth",
        [REDLOCK_CAUSE_NOPERM] = "noperm",
        [REDLOCK_CAUSE_READONLY] = "readonly",
        [REDLOCK_CAUSE_OOM] = "oom",
        [REDLOCK_CAUSE_BUSY] = "busy",
        [REDLOCK_CAUSE_WRONGTYPE] = "wrongtype",
        [REDLOCK_CAUSE_ERROR_REPLY] = "error_reply",
        [REDLOCK_CAUSE_RESTARTED] = "restarted",
        [REDLOCK_CAUSE_REPLICA] = "replica",
        [REDLOCK_CAUSE_LOADING] = "loading",
        [REDLOCK_CAUSE_PROMOTED] = "promoted",
        [REDLOCK_CAUSE_EVICTING] = "evicting",
        [REDLOCK_CAUSE_DUPLICATE] = "duplicate",
        [REDLOCK_CAUSE_CLOCK_STEP] = "clock_step",
        [REDLOCK_CAUSE_NO_INFO] = "no_info",
        [REDLOCK_CAUSE_FENCE] = "fence",
        [REDLOCK_CAUSE_NO_MEMORY] = "no_memory",
        [REDLOCK_CAUSE_CLUSTER] = "cluster",
        [REDLOCK_CAUSE_HEALED] = "healed",
        [REDLOCK_CAUSE_FENCE_UNREAD] = "fence_unread",
    };
    bool known = cause >= 0 && (size_t)cause < sizeof names / sizeof names[0] && names[cause];

    return known ? names[cause] : "other";
}

json_t *evidence_nodes_json(const struct evidence *evidence)
{
    json_t *array = must(json_array());

    for (size_t i = 0; evidence && i < evidence->count; i++) {
        const struct evidence_node *node = &evidence->nodes[i];
        json_t *object = must(json_pack(
            "{s:o, s:s, s:s, s:I}", "node", json_text(node->node), "vote", vote_name(node->vote),
            "cause", cause_name(node->cause), "rtt_us", (json_int_t)node->rtt_us));
        if (*node->text)
            json_object_set_new(object, "text", json_text(node->text));
        json_array_append_new(array, object);
    }
    return array;
}

const char *evidence_owner(const struct evidence *evidence)
{
    const char *best = "";
    unsigned best_count = 0;

    for (size_t i = 0; evidence && i < evidence->count; i++) {
        unsigned count = 0;
        for (size_t j = 0; j < evidence->count; j++)
            count += !strcmp(evidence->nodes[i].owner, evidence->nodes[j].owner);
        if (*evidence->nodes[i].owner && count > best_count) {
            best = evidence->nodes[i].owner;
            best_count = count;
        }
    }
    return best;
}
