/* SPDX-License-Identifier: MIT
 * Shows who holds a lock, from the report of an inspection, as text and as JSON. In such a report,
 * a grant of a node means that its server has a key under the name, and a denial that it has none.
 * The holder is the client whose label most servers name.
 */
#ifndef TOOLS_HOLDING_H
#define TOOLS_HOLDING_H

#include <jansson.h>

#include "reports.h"

/* The key on one server, compared with the holder that most servers name: no key, a key of that
 * holder, a key of another holder, no reply. */
enum value { VALUE_NONE = 0, VALUE_MATCH, VALUE_OTHER, VALUE_ERROR };

/* Compares the key on one server with the label `owner`. */
enum value value_of(const redlock_node_report_t *node, const char *owner);
/* Returns the name of a value in JSON: "none", "match", "other" or "error". */
const char *value_name(enum value value);
/* Returns the word for a value in texts: "free", "held", "other" or "error". */
const char *value_word(enum value value);

/* Returns the JSON object for one lock: its holder, votes and servers. `schema` names the format of
 * the object. */
json_t *holding_json(const char *schema, const char *name, const redlock_report_t *report);
/* Prints the state and the holder of one lock, and a line for each server about its key. */
void holding_print(const char *name, const redlock_report_t *report);
/* Prints the holder, then `where`, the time left of the keys, and since when they may be held, as
 * far as that is known. Begins with a blank and prints no line end. */
void holding_print_holder(const struct holding *holding, const char *where);

#endif
