/* SPDX-License-Identifier: MIT
 * Makes tables and JSON of what `redlock top` has collected.
 */
#include "top_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "durations.h"
#include "json.h"
#include "reports.h"
#include "say.h"
#include "shown.h"

/* The columns of the table of servers, and their positions. */
enum {
    SERVER_NAME,
    SERVER_SHARD,
    SERVER_STATE,
    SERVER_LOCKS,
    SERVER_RTT,
    SERVER_UPTIME,
    SERVER_VERSION,
    SERVER_TLS,
    SERVER_CAUSE,
    SERVER_COLUMNS
};
static const struct table_column server_columns[SERVER_COLUMNS] = {
    [SERVER_NAME] = {.title = "SERVER", .least = 24},
    [SERVER_SHARD] = {.title = "SHARD", .if_any = true, .least = 6},
    [SERVER_STATE] = {.title = "STATE"},
    [SERVER_LOCKS] = {.title = "LOCKS", .right = true},
    [SERVER_RTT] = {.title = "RTT", .right = true},
    [SERVER_UPTIME] = {.title = "UPTIME", .right = true, .if_any = true, .optional = true},
    [SERVER_VERSION] = {.title = "VERSION", .if_any = true, .optional = true},
    [SERVER_TLS] = {.title = "TLS", .if_any = true, .optional = true},
    [SERVER_CAUSE] = {.title = "CAUSE", .if_any = true, .least = 12}};

/* The columns of the table of locks, and their positions. */
enum {
    LOCK_NAME,
    LOCK_SHARD,
    LOCK_STATE,
    LOCK_VOTES,
    LOCK_LEFT,
    LOCK_WAITING,
    LOCK_HOLDER,
    LOCK_COLUMNS
};
static const struct table_column lock_columns[LOCK_COLUMNS] = {
    [LOCK_NAME] = {.title = "LOCK", .least = 32},
    [LOCK_SHARD] = {.title = "SHARD", .if_any = true, .least = 6},
    [LOCK_STATE] = {.title = "STATE"},
    [LOCK_VOTES] = {.title = "VOTES", .right = true},
    [LOCK_LEFT] = {.title = "LEFT", .right = true},
    [LOCK_WAITING] = {.title = "WAITING", .right = true, .if_any = true},
    [LOCK_HOLDER] = {.title = "HOLDER", .least = 12}};

/* Returns the word for the state of a server. */
static const char *server_state(const redlock_node_stats_t *server)
{
    if (server->eligible)
        return "eligible";
    if (server->quarantine_ms > 0)
        return "quarantine";
    if (server->cause == REDLOCK_CAUSE_NONE)
        return "connecting";
    return cause_is_unreachable(server->cause) ? "down" : "excluded";
}

/* Returns how many of the locks have a key on the node with this index. */
static unsigned locks_on(const struct top_model *model, size_t index)
{
    unsigned count = 0;

    for (size_t i = 0; i < model->count; i++)
        count += (model->locks[i]->holders >> index) & 1;
    return count;
}

/* Sets the cells of a server that replies: round trip, uptime and version. */
static void set_replies(struct text_table *table, const redlock_node_stats_t *stats)
{
    char uptime[DURATION_TEXT];

    if (stats->rtt_us >= 1000)
        table_set(table, SERVER_RTT, "%" PRIu64 ".%u ms", stats->rtt_us / 1000,
                  (unsigned)(stats->rtt_us % 1000 / 100));
    else if (stats->rtt_us > 0)
        table_set(table, SERVER_RTT, "%u us", (unsigned)stats->rtt_us);
    if (stats->uptime_s >= 48 * 3600)
        table_set(table, SERVER_UPTIME, "%" PRIu64 "d", stats->uptime_s / (24 * 3600));
    else if (stats->uptime_s > 0)
        table_set(table, SERVER_UPTIME, "%s", duration_brief(stats->uptime_s * 1000, uptime));
    table_set(table, SERVER_VERSION, "%s", stats->version);
}

/* Fills in a row for each server. */
void top_server_table(struct text_table *table, const struct top_model *model)
{
    char left[DURATION_TEXT], tls[TLS_TEXT];

    table_init(table, server_columns, SERVER_COLUMNS);
    for (size_t i = 0; i < model->server_count; i++) {
        const redlock_node_stats_t *stats = &model->servers[i];
        const char *state = server_state(stats);
        table_add_row(table);
        table_set(table, SERVER_NAME, "%s", stats->node);
        table_set(table, SERVER_SHARD, "%s", stats->shard);
        if (stats->quarantine_ms > 0)
            table_set(table, SERVER_STATE, "%s %s", state,
                      duration_brief(stats->quarantine_ms + 999, left));
        else
            table_set(table, SERVER_STATE, "%s", state);
        table_set(table, SERVER_LOCKS, "%u", locks_on(model, i));
        if (strcmp(state, "down") != 0) {
            set_replies(table, stats);
            table_set(table, SERVER_TLS, "%s", reports_tls(stats, tls));
        }
        table_set(table, SERVER_CAUSE, "%s", stats->text);
    }
}

/* Returns who holds the lock, for people. */
static const char *holder_of(const struct top_lock *lock)
{
    if (lock->votes == 0)
        return "";
    return *lock->owner ? lock->owner : "(a client without a label)";
}

/* Fills in a row for each of the locks. */
void top_lock_table(struct text_table *table, const struct top_model *model,
                    struct top_lock *const *locks, size_t count, uint64_t now_ns)
{
    char left[DURATION_TEXT];

    table_init(table, lock_columns, LOCK_COLUMNS);
    for (size_t i = 0; i < count; i++) {
        const struct top_lock *lock = locks[i];
        uint64_t left_ms = top_left_ms(lock, now_ns);
        table_add_row(table);
        table_set(table, LOCK_NAME, "%s", lock->name);
        if (!lock->seen_ns)
            continue;
        table_set(table, LOCK_SHARD, "%s", model->shard_names[lock->shard]);
        table_set(table, LOCK_STATE, "%s", state_name(lock->state));
        table_set(table, LOCK_VOTES, "%u/%u", lock->votes, lock->configured);
        if (lock->endless)
            table_set(table, LOCK_LEFT, "never");
        else if (left_ms != UINT64_MAX)
            table_set(table, LOCK_LEFT, "%s", duration_brief(left_ms + 999, left));
        if (lock->waiting > 0)
            table_set(table, LOCK_WAITING, "%u", lock->waiting);
        table_set(table, LOCK_HOLDER, "%s", holder_of(lock));
    }
}

/* Returns how the server is doing. */
enum top_mood top_mood_of_server(const redlock_node_stats_t *server)
{
    if (server->eligible)
        return TOP_GOOD;
    return server->quarantine_ms > 0 ? TOP_WAITS : TOP_BAD;
}

/* Returns how the lock is doing. */
enum top_mood top_mood_of_lock(const struct top_lock *lock)
{
    if (lock->endless)
        return TOP_BAD;
    return lock->state == REDLOCK_STATE_UNKNOWN ? TOP_WAITS : TOP_GOOD;
}

/* Counts the servers of one shard, and the eligible ones among them. */
static void count_shard(const struct top_model *model, size_t shard, size_t *ret_count,
                        size_t *ret_eligible)
{
    *ret_count = *ret_eligible = 0;
    for (size_t i = 0; i < model->server_count; i++) {
        if (model->servers[i].shard_index != shard)
            continue;
        ++*ret_count;
        *ret_eligible += model->servers[i].eligible != 0;
    }
}

/* Returns true if each shard has a quorum of eligible servers. */
bool top_has_quorum(const struct top_model *model)
{
    size_t count, eligible;

    for (size_t shard = 0; shard < model->shard_count; shard++) {
        count_shard(model, shard, &count, &eligible);
        if (eligible < count / 2 + 1)
            return false;
    }
    return true;
}

/* Returns the numbers of servers: of all, of eligible ones and, of a single shard, of those that
 * are required. Of several shards, names those without a quorum. To be freed. */
char *top_servers_text(const struct top_model *model)
{
    size_t all = 0, all_eligible = 0, count = 0, eligible = 0;
    char *lacking = text_copy("");

    for (size_t shard = 0; shard < model->shard_count; shard++) {
        count_shard(model, shard, &count, &eligible);
        all += count;
        all_eligible += eligible;
        if (eligible >= count / 2 + 1)
            continue;
        char *longer =
            text_format("%s%s%s", lacking, *lacking ? ", " : "", model->shard_names[shard]);
        free(lacking);
        lacking = longer;
    }
    bool quorum = top_has_quorum(model);
    char *text =
        model->shard_count == 1
            ? text_format("%zu of %zu servers are eligible, %zu required%s", all_eligible, all,
                          all / 2 + 1, quorum ? "" : ": no quorum")
            : text_format("%zu of %zu servers of %zu shards are eligible%s%s", all_eligible, all,
                          model->shard_count, quorum ? "" : ", no quorum in ", lacking);
    free(lacking);
    return text;
}

/* Returns how many locks were found, whether the search goes on, and why a lock may be missing. To
 * be freed. */
char *top_locks_text(const struct top *top)
{
    size_t count = 0;

    for (size_t i = 0; i < top->model.count; i++)
        count += top->model.locks[i]->given || top->model.locks[i]->seen_ns;
    const char *plural = count == 1 ? "" : "s";
    if (top->short_of && count == 0)
        return text_format("locks cannot be searched for%s%s", *top->scan_error ? ": " : "",
                           top->scan_error);
    if (top->short_of)
        return text_format("%zu lock%s; some may be missing, because too few servers can be "
                           "searched%s%s",
                           count, plural, *top->scan_error ? ": " : "", top->scan_error);
    if (top->model.overflow)
        return text_format("%zu lock%s; the others are left out: give a narrower --match", count,
                           plural);
    return text_format("%zu lock%s%s", count, plural, top->complete ? "" : "; searching");
}

/* Prints the lines of a table, and frees the table. */
static void print_table(struct text_table *table)
{
    char **lines = table_lines(table, SIZE_MAX);

    for (size_t i = 0; i < table->row_count; i++)
        puts(lines[i]);
    table_free_lines(lines, table->row_count);
    table_free(table);
}

/* Prints the servers and the locks as text. */
static void print_text(const struct top *top, struct top_lock *const *locks, size_t count,
                       uint64_t now_ns)
{
    struct text_table table;
    char *servers = top_servers_text(&top->model), *found = top_locks_text(top);

    show("%s\n", servers);
    top_server_table(&table, &top->model);
    print_table(&table);
    show("\n");
    show("%s\n", found);
    if (count > 0) {
        top_lock_table(&table, &top->model, locks, count, now_ns);
        print_table(&table);
    }
    free(servers);
    free(found);
}

/* Returns the JSON object for one server. */
static json_t *server_json(const struct top_model *model, size_t index)
{
    const redlock_node_stats_t *server = &model->servers[index];
    char cause[CAUSE_NAME];
    json_t *object = must(
        json_pack("{s:o, s:s, s:b, s:s, s:i, s:I, s:s, s:o}", "server", json_text(server->node),
                  "state", server_state(server), "eligible", server->eligible != 0, "cause",
                  cause_name(server->cause, cause), "locks", (int)locks_on(model, index), "rtt_us",
                  (json_int_t)server->rtt_us, "tls", reports_tls_name(server),
                  "certificate_expires", reports_expiry_json(server)));

    if (model->shard_count > 1)
        json_object_set_new(object, "shard", json_text(server->shard));
    if (server->quarantine_ms > 0)
        json_object_set_new(object, "quarantine_ms",
                            json_integer((json_int_t)server->quarantine_ms));
    if (server->uptime_s > 0)
        json_object_set_new(object, "uptime_s", json_integer((json_int_t)server->uptime_s));
    if (*server->version)
        json_object_set_new(object, "version", json_text(server->version));
    if (*server->text)
        json_object_set_new(object, "text", json_text(server->text));
    return object;
}

/* Returns the JSON object for one lock. */
static json_t *lock_json(const struct top_model *model, const struct top_lock *lock)
{
    json_t *object = must(json_pack("{s:o, s:s, s:o, s:i, s:i, s:i}", "name", json_text(lock->name),
                                    "state", state_name(lock->state), "owner",
                                    json_text(lock->owner), "votes", (int)lock->votes, "configured",
                                    (int)lock->configured, "quorum", (int)lock->quorum));

    if (lock->knows_waiting)
        json_object_set_new(object, "waiting", json_integer(lock->waiting));
    if (model->shard_count > 1)
        json_object_set_new(object, "shard", json_text(model->shard_names[lock->shard]));
    if (lock->ttl_max_ms != UINT64_MAX)
        json_object_set_new(object, "ttl_ms",
                            must(json_pack("{s:I, s:I}", "min", (json_int_t)lock->ttl_min_ms, "max",
                                           (json_int_t)lock->ttl_max_ms)));
    if (lock->endless)
        json_object_set_new(object, "endless", json_true());
    return object;
}

/* Prints the servers and the locks as one JSON object. Returns false if stdout could not be
 * written. */
static bool print_json(const struct top *top, struct top_lock *const *locks, size_t count)
{
    const struct top_model *model = &top->model;
    json_t *servers = must(json_array()), *list = must(json_array());
    char time[32];

    for (size_t i = 0; i < model->server_count; i++)
        json_array_append_new(servers, server_json(model, i));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, lock_json(model, locks[i]));
    json_t *object =
        must(json_pack("{s:s, s:s, s:o, s:o, s:b}", "schema", "redlock.top/1", "t",
                       rfc3339(unix_ms(), time), "servers", servers, "locks", list, "complete",
                       top->complete && !top->short_of && !model->overflow));
    if (*top->scan_error)
        json_object_set_new(object, "scan_error", json_text(top->scan_error));
    return json_print(object);
}

/* Prints everything, the locks sorted by name. */
bool top_print(const struct top *top, bool json)
{
    uint64_t now_ns = boottime_ns();
    size_t count;
    struct top_lock **locks = top_select(&top->model, TOP_BY_NAME, false, "", now_ns, &count);
    bool written = true;

    if (json)
        written = print_json(top, locks, count);
    else
        print_text(top, locks, count, now_ns);
    free(locks);
    return written && fflush(stdout) == 0;
}
