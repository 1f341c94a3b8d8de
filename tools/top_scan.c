/* SPDX-License-Identifier: MIT
 * Searches servers for keys with SCAN. scan_step() chooses the servers anew each time: the first
 * ones of each shard that reply, as many as are needed to find every held lock. It sends them one
 * SCAN each, and then reads the replies. When SCAN has passed over all keys of a server, the next
 * pass begins after a rest.
 */
#include "top_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "say.h"

/* Bounds of the keys of one step, and the time between two steps if the rate allows it. */
#define STEP_KEYS_MIN 10
#define STEP_KEYS_MAX 1000
#define STEPS_PER_S   10
/* Time between two passes. */
#define REST_NS (1000 * NS_PER_MS)
/* Time limit for a reply, and time until a server is tried again after an error. */
#define REPLY_MS 1000
#define RETRY_NS (5000 * NS_PER_MS)

/* Returns a glob pattern for keys: the prefix, with its special characters escaped, and `match`. To
 * be freed. */
static char *pattern_of(const char *prefix, const char *match)
{
    char *pattern = must(malloc(2 * strlen(prefix) + strlen(match) + 1)), *to = pattern;

    for (; *prefix; prefix++) {
        if (strchr("*?[]^\\", *prefix))
            *to++ = '\\';
        *to++ = *prefix;
    }
    strcpy(to, match);
    return pattern;
}

/* Sets the keys of a step and the time between two, so that a server examines `rate` keys a second.
 */
void scan_open(struct scan *scan, redlock_t *rl, const struct settings *settings, const char *match,
               unsigned rate)
{
    unsigned keys = rate / STEPS_PER_S;

    if (keys < STEP_KEYS_MIN)
        keys = STEP_KEYS_MIN;
    if (keys > STEP_KEYS_MAX)
        keys = STEP_KEYS_MAX;
    *scan = (struct scan){.rl = rl,
                          .settings = settings,
                          .pattern = pattern_of(settings->values[SET_PREFIX].text, match),
                          .keys_per_step = keys,
                          .step_ns = UINT64_C(1000000000) * keys / rate};
}

/* Closes the connection of a source. A new connection begins a new pass. */
static void close_source(struct scan_source *source)
{
    server_close(source->link);
    source->link = NULL;
    strcpy(source->cursor, "0");
    source->done = source->asked = false;
}

/* Closes all connections and frees the pattern. */
void scan_close(struct scan *scan)
{
    for (size_t i = 0; i < REDLOCK_NODES_MAX; i++)
        close_source(&scan->sources[i]);
    free(scan->pattern);
    scan->pattern = NULL;
}

/* Notes the error of a server, which is tried again later. */
static void fail(struct scan *scan, size_t index, const char *why)
{
    snprintf(scan->sources[index].error, sizeof scan->sources[index].error, "%s", why);
    close_source(&scan->sources[index]);
    scan->sources[index].retry_ns = boottime_ns() + RETRY_NS;
}

/* Connects to a server unless that is done. `place` is its position in the shard. Returns false,
 * after noting the error, if that fails. */
static bool connect_source(struct scan *scan, size_t index, const redlock_node_stats_t *node,
                           size_t place)
{
    struct scan_source *source = &scan->sources[index];
    char error[LINK_ERROR_MAX];

    if (source->link)
        return true;
    source->link = server_connect(scan->settings, node, place, REPLY_MS, error);
    strcpy(source->cursor, "0");
    if (source->link)
        return true;
    fail(scan, index, error);
    return false;
}

/* Chooses the servers of a shard that are searched: the first ones that reply, as many as needed.
 * Stores their indexes in `chosen`, and returns their number. Sets scan->short_of if there are too
 * few. */
static size_t choose(struct scan *scan, size_t shard, size_t chosen[REDLOCK_NODES_MAX])
{
    redlock_node_stats_t node;
    size_t count = 0, fit = 0;

    for (size_t i = 0; i < redlock_node_count(scan->rl); i++) {
        if (redlock_get_node_stats(scan->rl, i, &node, sizeof node) != REDLOCK_OK ||
            node.shard_index != shard)
            continue;
        bool replies = node.eligible || node.quarantine_ms > 0;
        if (replies && boottime_ns() >= scan->sources[i].retry_ns &&
            connect_source(scan, i, &node, count))
            chosen[fit++] = i;
        count++;
    }
    size_t needed = count - (count / 2 + 1) + 1;
    scan->short_of = scan->short_of || fit < needed;
    return fit < needed ? fit : needed;
}

/* Calls `found` for each key of the reply that is longer than the prefix. */
static void take_keys(const struct scan *scan, const redisReply *keys, scan_found_fn found,
                      void *context)
{
    size_t prefix_len = strlen(scan->settings->values[SET_PREFIX].text);

    for (size_t i = 0; i < keys->elements; i++) {
        const redisReply *key = keys->element[i];
        if (key->type == REDIS_REPLY_STRING && key->len > prefix_len)
            found(context, key->str + prefix_len, key->len - prefix_len);
    }
}

/* Reads the reply of one server, or notes why no SCAN could be sent to it. */
static void take_reply(struct scan *scan, size_t index, scan_found_fn found, void *context)
{
    struct scan_source *source = &scan->sources[index];
    redisReply *reply = source->asked ? server_receive(source->link) : NULL;
    if (!reply)
        fail(scan, index, source->link->error);
    else if (reply->type == REDIS_REPLY_ERROR)
        fail(scan, index, reply->str);
    else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
             reply->element[0]->type != REDIS_REPLY_STRING ||
             reply->element[1]->type != REDIS_REPLY_ARRAY)
        fail(scan, index, "unexpected reply to SCAN");
    else {
        snprintf(source->cursor, sizeof source->cursor, "%s", reply->element[0]->str);
        source->done = !strcmp(source->cursor, "0");
        source->error[0] = '\0';
        take_keys(scan, reply->element[1], found, context);
    }
    if (reply)
        freeReplyObject(reply);
}

/* Begins the next pass on all servers. */
static void begin_pass(struct scan *scan)
{
    for (size_t i = 0; i < REDLOCK_NODES_MAX; i++)
        scan->sources[i].done = false;
}

/* Sends one SCAN to each chosen server whose pass has not ended, and then reads the replies.
 * Returns true if the pass of all has ended. */
static bool scan_chosen(struct scan *scan, const size_t *chosen, size_t count, scan_found_fn found,
                        void *context)
{
    bool done = true;
    char keys[16];

    snprintf(keys, sizeof keys, "%u", scan->keys_per_step);
    for (size_t i = 0; i < count; i++) {
        struct scan_source *source = &scan->sources[chosen[i]];
        const char *const words[] = {"SCAN", source->cursor, "MATCH", scan->pattern, "COUNT", keys};
        source->asked = !source->done && server_send(source->link, words, 6);
    }
    for (size_t i = 0; i < count; i++) {
        if (!scan->sources[chosen[i]].done)
            take_reply(scan, chosen[i], found, context);
        done = done && scan->sources[chosen[i]].done;
    }
    return done;
}

/* Returns the servers with the error of the server `first`, and that error; NULL if it has none, or
 * an earlier server has the same. To be freed. */
static char *group_text(const struct scan *scan, size_t first)
{
    const char *error = scan->sources[first].error;
    size_t count = redlock_node_count(scan->rl), same = 0;
    char *names = NULL;
    redlock_node_stats_t node;

    for (size_t i = 0; *error && i < count; i++) {
        if (strcmp(scan->sources[i].error, error) != 0)
            continue;
        if (i < first)
            return NULL;
        redlock_get_node_stats(scan->rl, i, &node, sizeof node);
        char *longer = names ? text_format("%s, %s", names, node.node) : text_copy(node.node);
        free(names);
        names = longer;
        same++;
    }
    char *text = same == 0                    ? NULL
                 : same == count && count > 1 ? text_format("all %zu servers: %s", count, error)
                                              : text_format("%s: %s", names, error);
    free(names);
    return text;
}

/* Writes to scan->error which servers cannot be searched and why, each error once. What to do about
 * a missing right comes first, because a screen may cut the text. */
static void explain(struct scan *scan)
{
    char *all = text_copy("");
    bool lacks_right = false;

    for (size_t i = 0; i < redlock_node_count(scan->rl); i++) {
        char *text = group_text(scan, i);
        lacks_right = lacks_right || strstr(scan->sources[i].error, "NOPERM");
        char *longer = text ? text_format("%s%s%s", all, *all ? "; " : "", text) : text_copy(all);
        free(text);
        free(all);
        all = longer;
    }
    snprintf(scan->error, sizeof scan->error, "%s%s",
             lacks_right ? "allow +scan, or name the locks; " : "", all);
    free(all);
}

/* Makes one step of the search, if it is due. */
void scan_step(struct scan *scan, scan_found_fn found, void *context)
{
    size_t chosen[REDLOCK_NODES_MAX], count = 0;

    if (boottime_ns() < scan->due_ns)
        return;
    scan->short_of = false;
    for (size_t shard = 0; shard < redlock_shard_count(scan->rl); shard++)
        count += choose(scan, shard, chosen + count);
    bool done = scan_chosen(scan, chosen, count, found, context);
    scan->error[0] = '\0';
    if (scan->short_of)
        explain(scan);
    scan->due_ns = boottime_ns() + scan->step_ns;
    if (!done)
        return;
    scan->complete = !scan->short_of;
    scan->due_ns = boottime_ns() + (scan->step_ns > REST_NS ? scan->step_ns : REST_NS);
    begin_pass(scan);
}
