/* SPDX-License-Identifier: MIT
 * Reads reports of the library: counts votes, prints nodes, names causes. Each function borrows the
 * report that it is given; the report may be NULL.
 */
#ifndef TOOLS_REPORTS_H
#define TOOLS_REPORTS_H

#include <jansson.h>
#include <stdbool.h>

#include "redlock/redlock.h"

/* Size of the buffer that cause_name() needs. */
#define CAUSE_NAME 40

/* Numbers of nodes by their vote. */
struct votes {
    /* failed: all others, also nodes that were not asked or replied too late */
    unsigned granted, denied, failed;
};

/* Returns the summary of the report; all zero without a report. */
redlock_report_info_t report_info(const redlock_report_t *report);

/* Reads node `index` of the report into *ret_node. Returns false if there is none with this
 * index. */
bool report_node(const redlock_report_t *report, size_t index, redlock_node_report_t *ret_node);

/* Returns the text of the report; if it has none, why the library has refused the call, or the text
 * of `error`. */
const char *report_reason(const redlock_report_t *report, int error);

/* Counts the votes of the nodes in the report. */
struct votes report_votes(const redlock_report_t *report);

/* Returns whether a node belongs to those that are meant. */
typedef bool node_filter(const redlock_node_report_t *node);

/* Returns the nodes among the meant ones that have the text of node `first`: their names, or "all 5
 * servers" if these are all. NULL if node `first` is not meant, or if an earlier node has its text,
 * so that a loop over all nodes names each text once. To be freed. */
char *report_group(const redlock_report_t *report, size_t first, node_filter *is_meant);

/* Prints a line, at the given level (enum say_level), for each text of nodes that denied or failed
 * and that the text of the report does not name. */
void report_say_nodes(const redlock_report_t *report, int level);

/* Returns a JSON array of the nodes of the report, with vote, cause, round trip in us and text. */
json_t *report_nodes_json(const redlock_report_t *report);

/* Returns the label of the holder that most nodes name, or ""; borrowed from the report. */
const char *report_owner(const redlock_report_t *report);

/* What a report of an inspection says about the holder of one lock. Borrows from the report. */
struct holding {
    const char *owner;  /* label of the holder that most servers name; "" if there is none */
    struct votes votes; /* granted: servers with a key; denied: servers without; failed: no reply */
    /* shortest and longest TTL on a server; UINT64_MAX: not known */
    uint64_t pttl_min_ms, pttl_max_ms;
};

/* Reads the holder out of the report of an inspection. */
struct holding holding_of(const redlock_report_t *report);

/* Returns the name of an enum redlock_state: "held", "free" or "unknown". */
const char *state_name(int state);

/* Writes the name of an enum redlock_cause to `text`, such as "connect", and returns it. */
const char *cause_name(int cause, char text[CAUSE_NAME]);

/* Returns true if the cause says only that the server was not reached. */
bool cause_is_unreachable(int cause);

/* Size of the buffer for the text of reports_tls(). */
#define TLS_TEXT 24

/* Returns true if connections to the server use TLS, and it has replied to the greeting on the last
 * one. */
bool reports_tls_known(const redlock_node_stats_t *node);

/* Writes for a table how a server is connected: "" if reports_tls_known() returns false;
 * "unverified" if its certificate is not verified; else until when the certificate is valid, or
 * "on" before that is known. Returns `text`. */
const char *reports_tls(const redlock_node_stats_t *node, char text[TLS_TEXT]);

/* Returns the same for JSON: "off", "on", "unverified", or "unknown" if reports_tls_known() returns
 * false. */
const char *reports_tls_name(const redlock_node_stats_t *node);

/* Returns when the certificate of the server expires, for JSON; null: not known, or no TLS. */
json_t *reports_expiry_json(const redlock_node_stats_t *node);

#endif
