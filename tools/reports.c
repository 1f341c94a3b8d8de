/* SPDX-License-Identifier: MIT
 * Reads reports of the library: counts votes, prints nodes, names causes. A report may be NULL; it
 * then has no nodes and no text.
 */
#include "reports.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "json.h"
#include "say.h"

/* Returns the summary of the report; all zero, with an unknown state, if there is none. */
redlock_report_info_t report_info(const redlock_report_t *report)
{
    redlock_report_info_t info = {.state = REDLOCK_STATE_UNKNOWN};

    if (redlock_report_get_info(report, &info, sizeof info) != REDLOCK_OK)
        return (redlock_report_info_t){.state = REDLOCK_STATE_UNKNOWN};
    return info;
}

/* Reads node `index` of the report into *ret_node. Returns false if there is none. */
bool report_node(const redlock_report_t *report, size_t index, redlock_node_report_t *ret_node)
{
    return redlock_report_get_node(report, index, ret_node, sizeof *ret_node) == REDLOCK_OK;
}

/* Returns the text of the report. If it has none: why the library has refused the call, or else the
 * text of the error code `error`. */
const char *report_reason(const redlock_report_t *report, int error)
{
    const char *text = redlock_report_text(report);

    if (*text)
        return text;
    return error == REDLOCK_EINVAL && *client_refusal() ? client_refusal()
                                                        : redlock_strerror(error);
}

/* Counts the nodes that granted, denied, and did neither. */
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

/* Collects the names of the servers with an equal text; NULL if an earlier server has it. */
char *report_group(const redlock_report_t *report, size_t first, node_filter *is_meant)
{
    redlock_node_report_t node, other;
    char *names = NULL;
    unsigned count = 0;

    if (!report_node(report, first, &node) || !is_meant(&node))
        return NULL;
    for (size_t i = 0; report_node(report, i, &other); i++) {
        if (!is_meant(&other) || strcmp(node.text, other.text) != 0)
            continue;
        if (i < first)
            return NULL;
        char *longer = names ? text_format("%s, %s", names, other.node) : text_copy(other.node);
        free(names);
        names = longer;
        count++;
    }
    if (count > 1 && count == report_info(report).nodes) {
        free(names);
        names = text_format("all %u servers", count);
    }
    return names;
}

/* Returns true for a node with a text that has not granted and that the text of the report does not
 * name. */
static bool is_unsaid(const redlock_node_report_t *node)
{
    return node->vote >= REDLOCK_VOTE_DENIED && *node->text && !node->in_text;
}

/* Prints a line at this level for each text of the nodes of is_unsaid(). */
void report_say_nodes(const redlock_report_t *report, int level)
{
    redlock_node_report_t node;

    for (size_t i = 0; report_node(report, i, &node); i++) {
        char *names = report_group(report, i, is_unsaid);
        if (names)
            say((enum say_level)level, "  %s: %s", names, node.text);
        free(names);
    }
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

/* Writes the name of the cause, in lower case and without its prefix, to `text`. Returns `text`. */
const char *cause_name(int cause, char text[CAUSE_NAME])
{
    const char *name = redlock_cause_name(cause) + strlen("REDLOCK_CAUSE_");
    size_t len = 0;

    for (; name[len] && len < CAUSE_NAME - 1; len++)
        text[len] = (char)tolower((unsigned char)name[len]);
    text[len] = '\0';
    return text;
}

/* Returns true if the cause is that the server was not reached: no name, no connection, no reply or
 * no socket. */
bool cause_is_unreachable(int cause)
{
    return cause == REDLOCK_CAUSE_TIMEOUT || cause == REDLOCK_CAUSE_RESOLVE ||
           cause == REDLOCK_CAUSE_CONNECT || cause == REDLOCK_CAUSE_DISCONNECT ||
           cause == REDLOCK_CAUSE_NO_SOCKET;
}

/* Returns a JSON array of the nodes with their vote, cause, round trip and text. To be freed by
 * json_decref(), or by the object that takes it. */
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

/* Returns the label of the holder that most nodes name; "" if no node names one. Borrowed from the
 * report. */
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

/* Reads the holder out of the report of an inspection: its label, the votes, and the shortest and
 * the longest TTL on a server. `report` may be NULL. */
struct holding holding_of(const redlock_report_t *report)
{
    struct holding holding = {.owner = report_owner(report),
                              .votes = report_votes(report),
                              .pttl_min_ms = UINT64_MAX,
                              .pttl_max_ms = UINT64_MAX};
    redlock_node_report_t node;

    for (size_t i = 0; report_node(report, i, &node); i++) {
        if (node.vote != REDLOCK_VOTE_GRANTED || node.pttl_ms == UINT64_MAX)
            continue;
        if (node.pttl_ms < holding.pttl_min_ms)
            holding.pttl_min_ms = node.pttl_ms;
        if (holding.pttl_max_ms == UINT64_MAX || node.pttl_ms > holding.pttl_max_ms)
            holding.pttl_max_ms = node.pttl_ms;
    }
    return holding;
}

/* Returns the name of an enum redlock_state: "held", "free" or "unknown". */
const char *state_name(int state)
{
    if (state == REDLOCK_STATE_HELD)
        return "held";
    return state == REDLOCK_STATE_FREE ? "free" : "unknown";
}

/* Returns true if connections to the server use TLS, and it has replied to the greeting on the last
 * one. */
bool reports_tls_known(const redlock_node_stats_t *node)
{
    return node->facts & REDLOCK_FACT_TLS && (node->eligible || node->facts & REDLOCK_FACT_INFO);
}

/* Writes how a server is connected. */
const char *reports_tls(const redlock_node_stats_t *node, char text[TLS_TEXT])
{
    char date[32];

    if (!reports_tls_known(node))
        text[0] = '\0';
    else if (node->facts & REDLOCK_FACT_UNVERIFIED)
        snprintf(text, TLS_TEXT, "unverified");
    else if (node->certificate_expiry_s > 0)
        snprintf(text, TLS_TEXT, "until %.10s",
                 rfc3339((uint64_t)node->certificate_expiry_s * 1000, date));
    else
        snprintf(text, TLS_TEXT, "on");
    return text;
}

/* Returns the word for TLS in JSON: "off", "on", "unverified" if the certificate of the server is
 * not verified, or "unknown" if it has not replied to the greeting on its last connection. */
const char *reports_tls_name(const redlock_node_stats_t *node)
{
    if (!(node->facts & REDLOCK_FACT_TLS))
        return "off";
    if (!reports_tls_known(node))
        return "unknown";
    return node->facts & REDLOCK_FACT_UNVERIFIED ? "unverified" : "on";
}

/* Returns the date at which the certificate of the server expires, for JSON; null: not known, or no
 * TLS. */
json_t *reports_expiry_json(const redlock_node_stats_t *node)
{
    char date[32];

    return reports_tls_known(node) && node->certificate_expiry_s > 0
               ? json_string(rfc3339((uint64_t)node->certificate_expiry_s * 1000, date))
               : json_null();
}
