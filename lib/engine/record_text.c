/* SPDX-License-Identifier: MIT
 * Writes why the fenced votes of a node do not count because of the fence records, in English, for
 * messages and reports. A fenced vote is one on a request that proposes a fencing token. */
#include "engine/engine.h"
#include "engine/first_start.h"
#include "engine/record.h"

#include <stdio.h>
#include <string.h>

/* Returns the number of nodes whose record is in one of these states. Bit i of `states` stands for
 * state i of enum rl_record_state. */
static unsigned count_in(const struct rl_engine *engine, unsigned states)
{
    return rl_nodes_count(rl_records_in_states(engine, states));
}

/* Returns whether no quorum of records can be in use, even if all records that were not read are.
 */
static bool is_majority_lost(const struct rl_engine *engine)
{
    return count_in(engine, 1u << RL_RECORD_ADMITTED | 1u << RL_RECORD_UNKNOWN) < engine->quorum;
}

/* Writes to `text`, of `size` bytes, why the fenced votes of the node do not count, and what ends
 * that. `node`: its index. The text follows the name of the node in a message. */
void rl_records_text(const struct rl_engine *engine, unsigned node, char *text, size_t size)
{
    const struct rl_record *record = &engine->records->nodes[node];
    unsigned long long left_ms = (rl_records_wait_left_ns(engine, node) + RL_MS - 1) / RL_MS;
    bool restarted = record->state == RL_RECORD_OLD_RUN;
    const char *what = restarted ? "was restarted and may have lost fencing tokens"
                                 : "has no fence record, or has lost it";

    switch (record->state) {
    case RL_RECORD_MISSING:
    case RL_RECORD_OLD_RUN:
        if (record->first)
            snprintf(text, size,
                     "has no fence record yet: the first start was interrupted and continues");
        else if (rl_first_start_seems_new(engine))
            snprintf(text, size,
                     "has no fence record; all servers must reply for the first start, or run "
                     "redlock nodes --init");
        else if (is_majority_lost(engine))
            snprintf(text, size, "fence_majority_lost: %s; run redlock nodes --init", what);
        else if (count_in(engine, 1u << RL_RECORD_ADMITTED) >= engine->quorum)
            snprintf(text, size, "%s, counts again in %llu ms", what, left_ms);
        else
            snprintf(text, size, "%s; too few of the other servers reply", what);
        break;
    case RL_RECORD_ADMITTED:
        snprintf(text, size, "its fence record is in use, but too few of the others are");
        break;
    case RL_RECORD_FOREIGN:
        snprintf(text, size, "fence record of another configuration: %s", record->other);
        break;
    case RL_RECORD_UNATTESTED:
        snprintf(text, size,
                 "fence record is not attested as durable: add ?durable=1 to the address of the "
                 "server, or use volatile records");
        break;
    case RL_RECORD_CORRUPT:
        snprintf(text, size, "fence record is corrupt: a field is not a fencing token");
        break;
    default:
        snprintf(text, size, "fence record is not usable");
        break;
    }
}

/* Stores the fingerprint `config` of another configuration in record->other, for the message:
 * without the run id after the first ';', and with '?' for each byte that is not printable. */
void rl_record_note_other(struct rl_record *record, struct rl_arg config)
{
    const char *end = memchr(config.data, ';', config.len);
    size_t len = end != NULL ? (size_t)(end - config.data) : config.len;

    rl_wire_copy_printable(record->other, sizeof record->other, config.data, len);
}
