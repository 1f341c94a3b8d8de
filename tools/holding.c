/* SPDX-License-Identifier: MIT
 * Shows who holds a lock. */
#include "holding.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "json.h"
#include "say.h"
#include "shown.h"

/* Compares the key on one server with the label `owner`. */
enum value value_of(const redlock_node_report_t *node, const char *owner)
{
    if (node->vote == REDLOCK_VOTE_GRANTED)
        return strcmp(node->owner, owner) == 0 ? VALUE_MATCH : VALUE_OTHER;
    return node->vote == REDLOCK_VOTE_DENIED ? VALUE_NONE : VALUE_ERROR;
}

/* Returns the name of a value in JSON. */
const char *value_name(enum value value)
{
    static const char *const names[] = {"none", "match", "other", "error"};

    return names[value];
}

/* Returns the word for a value in texts. */
const char *value_word(enum value value)
{
    static const char *const words[] = {"free", "held", "other", "error"};

    return words[value];
}

/* Returns the JSON array of what each server has under the name, compared with the holder
 * `owner`. */
static json_t *nodes_json(const redlock_report_t *report, const char *owner)
{
    json_t *array = must(json_array());
    redlock_node_report_t node;

    for (size_t i = 0; report_node(report, i, &node); i++) {
        json_t *object =
            must(json_pack("{s:o, s:s, s:I}", "server", json_text(node.node), "value",
                           value_name(value_of(&node, owner)), "rtt_us", (json_int_t)node.rtt_us));
        if (node.vote == REDLOCK_VOTE_GRANTED && node.pttl_ms != UINT64_MAX)
            json_object_set_new(object, "pttl_ms", json_integer((json_int_t)node.pttl_ms));
        if (*node.owner)
            json_object_set_new(object, "owner", json_text(node.owner));
        if (*node.text)
            json_object_set_new(object, "text", json_text(node.text));
        json_array_append_new(array, object);
    }
    return array;
}

/* Returns the JSON object for one lock: its holder, votes and servers. `schema` names the format of
 * the object. */
json_t *holding_json(const char *schema, const char *name, const redlock_report_t *report)
{
    struct holding holding = holding_of(report);
    redlock_report_info_t info = report_info(report);
    json_t *object =
        must(json_pack("{s:s, s:o, s:s, s:o, s:i, s:i, s:o}", "schema", schema, "name",
                       json_text(name), "state", state_name(info.state), "owner",
                       json_text(holding.owner), "votes", (int)holding.votes.granted, "quorum",
                       (int)info.quorum, "servers", nodes_json(report, holding.owner)));

    if (info.shard && *info.shard)
        json_object_set_new(object, "shard", json_string(info.shard));
    if (holding.pttl_min_ms != UINT64_MAX)
        json_object_set_new(object, "ttl_ms",
                            json_pack("{s:I, s:I}", "min", (json_int_t)holding.pttl_min_ms, "max",
                                      (json_int_t)holding.pttl_max_ms));
    return object;
}

/* Returns the length of the label host/pid/start without its last part, and stores the start, in
 * seconds of Unix time. Another label has no start: 0. */
static size_t label_len(const char *owner, uint64_t *ret_start_s)
{
    const char *slash = strrchr(owner, '/');
    size_t digits = slash ? strlen(slash + 1) : 0;

    *ret_start_s = 0;
    if (digits != 10 || strspn(slash + 1, "0123456789") != digits || strchr(owner, '/') == slash)
        return strlen(owner);
    *ret_start_s = strtoull(slash + 1, NULL, 10);
    return (size_t)(slash - owner);
}

/* Prints who holds a lock, after "held", `where`, the time left of the keys, and since when. The
 * holder's process did not acquire the lock before it was started. */
void holding_print_holder(const struct holding *holding, const char *where)
{
    char date[32];
    uint64_t start_s;
    size_t len = label_len(holding->owner, &start_s);
    uint64_t min_s = (holding->pttl_min_ms + 999) / 1000;
    uint64_t max_s = (holding->pttl_max_ms + 999) / 1000;

    show(" by %.*s%s", *holding->owner ? (int)len : INT_MAX,
         *holding->owner ? holding->owner : "a client without a label", where);
    if (holding->pttl_min_ms != UINT64_MAX && min_s == max_s)
        show(", expires in %" PRIu64 " s", max_s);
    else if (holding->pttl_min_ms != UINT64_MAX)
        show(", expires in %" PRIu64 " to %" PRIu64 " s", min_s, max_s);
    if (start_s != 0) {
        rfc3339(start_s * 1000, date);
        show(", held since %.10s %.8s UTC or later", date, date + strlen("2026-01-31T"));
    }
}

/* Prints the state and the holder of one lock, and a line for each server about its key. */
void holding_print(const char *name, const redlock_report_t *report)
{
    struct holding holding = holding_of(report);
    redlock_report_info_t info = report_info(report);
    redlock_node_report_t node;
    size_t count = info.nodes;
    size_t answered = holding.votes.granted + holding.votes.denied;

    show("%s: %s", name, state_name(info.state));
    if (holding.votes.granted > 0) {
        char *where = text_format(" on %u of %zu servers", holding.votes.granted, count);
        show("%s", info.state == REDLOCK_STATE_HELD ? "" : ", but held");
        holding_print_holder(&holding, where);
        free(where);
    }
    if (info.shard && *info.shard)
        show(" (shard %s)", info.shard);
    show("\n");
    for (size_t i = 0; report_node(report, i, &node); i++)
        show("  %-24s %-6s %s\n", node.node, value_word(value_of(&node, holding.owner)),
             node.vote == REDLOCK_VOTE_DENIED ? "" : node.text);
    if (answered < count)
        show("  (only %zu of %zu servers replied; check them: redlock nodes)\n", answered, count);
}
