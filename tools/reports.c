/* SPDX-License-Identifier: MIT
 * Reads reports of the library.
 */
#include "reports.h"

#include <ctype.h>
#include <string.h>

#include "json.h"
#include "say.h"

redlock_report_info_t report_info(const redlock_report_t *report)
{
    redlock_report_info_t info = {.state = REDLOCK_STATE_UNKNOWN};

    if (redlock_report_get_info(report, &info, sizeof info) != REDLOCK_OK)
        return (redlock_report_info_t){.state = REDLOCK_STATE_UNKNOWN};
    return info;
}

bool report_node(const redlock_report_t *report, size_t index, redlock_node_report_t *ret_node)
{
    return redlock_report_get_node(report, index, ret_node, sizeof *ret_node) == REDLOCK_OK;
}

const char *report_reason(const redlock_report_t *report, int error)
{
    const char *text = redlock_report_text(report);

    return *text ? text : redlock_strerror(error);
}

struct votes report_votes(const redlock_report_t *report)
{
    struct votes votes = {0};
    redlock_node_report_t node;

    for (size_t i = 0; report_node(report, i, &node); i++) {
        if (node.vote == REDLOCK_VOTE_GRANTED)
            votes.granted++;
        else if (node.vote == REDLOCK_VOTE_DENIED)
            votes.denied++;
        else
            votes.failed++;
    }
    return votes;
}

void report_say_nodes(const redlock_report_t *report, int level)
{
    redlock_node_report_t node;

    for (size_t i = 0; report_node(report, i, &node); i++)
        if (node.vote >= REDLOCK_VOTE_DENIED && *node.text && !node.in_text)
            say((enum say_level)level, "  %s: %s", node.node, node.text);
}

/* Returns the name of an enum redlock_vote in JSON. */
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

const char *cause_name(int cause, char text[CAUSE_NAME])
{
    const char *name = redlock_cause_name(cause) + strlen("REDLOCK_CAUSE_");
    size_t len = 0;

    for (; name[len] && len < CAUSE_NAME - 1; len++)
        text[len] = (char)tolower((unsigned char)name[len]);
    text[len] = '\0';
    return text;
}

bool cause_is_unreachable(int cause)
{
    return cause == REDLOCK_CAUSE_TIMEOUT || cause == REDLOCK_CAUSE_RESOLVE ||
           cause == REDLOCK_CAUSE_CONNECT || cause == REDLOCK_CAUSE_DISCONNECT ||
           cause == REDLOCK_CAUSE_NO_SOCKET;
}

json_t *report_nodes_json(const redlock_report_t *report)
{
    json_t *array = must(json_array());
    redlock_node_report_t node;
    char cause[CAUSE_NAME];

    for (size_t i = 0; report_node(report, i, &node); i++) {
        json_t *object = must(json_pack(
            "{s:o, s:s, s:s, s:I}", "server", json_text(node.node), "vote", vote_name(node.vote),
            "cause", cause_name(node.cause, cause), "rtt_us", (json_int_t)node.rtt_us));
        if (*node.text)
            json_object_set_new(object, "text", json_text(node.text));
        json_array_append_new(array, object);
    }
    return array;
}

const char *report_owner(const redlock_report_t *report)
{
    redlock_node_report_t node, other;
    const char *best = "";
    unsigned best_count = 0;

    for (size_t i = 0; report_node(report, i, &node); i++) {
        unsigned count = 0;
        for (size_t j = 0; report_node(report, j, &other); j++)
            count += !strcmp(node.owner, other.owner);
        if (*node.owner && count > best_count) {
            best = node.owner;
            best_count = count;
        }
    }
    return best;
}
