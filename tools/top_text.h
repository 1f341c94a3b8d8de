/* SPDX-License-Identifier: MIT
 * The tables of `redlock top` as text, for the screen and for --once, and its JSON.
 */
#ifndef TOOLS_TOP_TEXT_H
#define TOOLS_TOP_TEXT_H

#include "text_table.h"
#include "top_collect.h"

/* How a server or a lock is doing, for the colours of the screen. */
enum top_mood { TOP_GOOD, TOP_WAITS, TOP_BAD };

/* Fills in a table of all servers. table_free() is needed. */
void top_server_table(struct text_table *table, const struct top_model *model);
/* Fills in a table of these locks. table_free() is needed. */
void top_lock_table(struct text_table *table, const struct top_model *model,
                    struct top_lock *const *locks, size_t count, uint64_t now_ns);

/* Returns TOP_WAITS for a server in quarantine, TOP_BAD for one that does not vote otherwise. */
enum top_mood top_mood_of_server(const redlock_node_stats_t *server);
/* Returns TOP_WAITS for a lock whose state is not known, TOP_BAD for one that never expires. */
enum top_mood top_mood_of_lock(const struct top_lock *lock);

/* Returns how many servers are eligible, and how many are required. To be freed. */
char *top_servers_text(const struct top_model *model);
/* Returns how many locks there are, and what is missing in the list. To be freed. */
char *top_locks_text(const struct top *top);
/* Returns true if each shard has a quorum of eligible servers. */
bool top_has_quorum(const struct top_model *model);

/* Prints everything once, as text or as JSON. Returns false if stdout could not be written. */
bool top_print(const struct top *top, bool json);

#endif
