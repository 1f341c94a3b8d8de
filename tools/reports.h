/* SPDX-License-Identifier: MIT
 * A copy of a report that outlives the callback it came in, for people and for JSON.
 */
#ifndef TOOLS_EVIDENCE_H
#define TOOLS_EVIDENCE_H

#include <jansson.h>

#include "redlock/redlock.h"

struct evidence_node {
    int vote, cause;
    uint64_t rtt_us, pttl_ms;
    char node[160], owner[132], text[200];
};

struct evidence {
    redlock_report_info_t info;
    char set[72]; /* "": the client has only one */
    char text[512];
    size_t count;
    struct evidence_node nodes[REDLOCK_NODES_MAX];
};

struct votes {
    unsigned granted, denied, failed; /* failed: with those that were not asked or came late */
};

/* NULL for a NULL report. */
struct evidence *evidence_copy(const redlock_report_t *report);
struct votes evidence_votes(const struct evidence *evidence);

/* One line per node that denied or failed and that evidence->text does not name. */
void evidence_say_nodes(const struct evidence *evidence, int level);

/* The name of an enum redlock_cause: "connect". */
const char *cause_name(int cause);

json_t *evidence_nodes_json(const struct evidence *evidence);

/* The holder that most nodes name, or "". */
const char *evidence_owner(const struct evidence *evidence);

#endif
