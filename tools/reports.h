/* SPDX-License-Identifier: MIT
 * Reads reports of the library: counts votes, prints nodes, names causes. Each function takes a
 * report that may be NULL, and borrows it.
 */
#ifndef TOOLS_REPORTS_H
#define TOOLS_REPORTS_H

#include <jansson.h>
#include <stdbool.h>

#include "redlock/redlock.h"

#define CAUSE_NAME 40 /* bytes that cause_name() needs */

struct votes {
    unsigned granted, denied, failed; /* failed: with those that were not asked or came late */
};

/* Returns what the report says of the whole; all zero without a report. */
redlock_report_info_t report_info(const redlock_report_t *report);

/* Reads one node of the report. False: there is none with this index. */
bool report_node(const redlock_report_t *report, size_t index, redlock_node_report_t *ret_node);

/* Returns the line of the report, or what `error` means where there is no line. */
const char *report_reason(const redlock_report_t *report, int error);

struct votes report_votes(const redlock_report_t *report);

/* Says a line for each node that denied or failed and that the line of the report does not name. */
void report_say_nodes(const redlock_report_t *report, int level);

json_t *report_nodes_json(const redlock_report_t *report);

/* Returns the holder that most nodes name, or ""; borrowed from the report. */
const char *report_owner(const redlock_report_t *report);

/* Writes the name of an enum redlock_cause into `text`, and returns it: "connect". */
const char *cause_name(int cause, char text[CAUSE_NAME]);

/* Returns true of a cause that says nothing about the server but that it was not reached. */
bool cause_is_unreachable(int cause);

#endif
