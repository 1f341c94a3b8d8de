/* SPDX-License-Identifier: MIT
 * The figures of a client for Prometheus: two tables with the figures of shards and of servers, and
 * three families whose figures are in their labels. In the text format all figures of one family
 * are together, so each family reads the statistics of all shards or servers again, into memory on
 * the stack. */
#include "api/prometheus_text.h"

#include "api/client.h"

#include <limits.h>
#include <string.h>

/* Value of a figure that is not known, or that does not exist: it has no line. */
#define NOT_KNOWN (UINT64_C(1) << 63)

/* The histograms have a bucket for each power of two in a range of microseconds, and one for all
 * that is longer: round trips from 64 us to 1.05 s, durations of acquisitions from 0.26 ms to 36
 * minutes. Shorter ones are in the first bucket. RTT_FIRST and so on are indexes in the arrays of
 * the statistics. */
#define RTT_FIRST  5
#define RTT_LAST   19
#define WAIT_FIRST 7
#define WAIT_LAST  30

/* The figures of one shard or of one server, and what its lines are labelled with. */
struct figures {
    const char *server;        /* address; NULL: these are the figures of a shard */
    const char *shard;         /* name of the shard; "": the only one */
    redlock_stats_t stats;     /* of a shard; else not set */
    redlock_node_stats_t node; /* of a server; else not set */
    /* Of a shard: numbers of servers. */
    uint64_t configured, eligible, quorum;
    /* Of a server: fields of `node`, with NOT_KNOWN where the server does not report them. */
    uint64_t votes, uptime_s, replicas, maxmemory, aof, aof_failing, clock_offset, rtt_us, expiry_s;
};

/* How a figure is written. */
enum unit { UNIT_ONE = 0, UNIT_MS, UNIT_US, UNIT_SIGNED_US, UNIT_HISTOGRAM };

/* One figure: a line of a family, or a histogram. */
struct row {
    const char *family;  /* name of the family, without "redlock_" */
    const char *type;    /* of the family; NULL: the family is that of the row before */
    const char *help;    /* of the family */
    const char *label;   /* label that only this row of the family has; NULL: none */
    const char *value;   /* value of that label */
    size_t at;           /* offset in struct figures: a uint64_t, or the array of a histogram */
    uint8_t unit;        /* enum unit */
    uint8_t first, last; /* UNIT_HISTOGRAM: the buckets that are written */
    size_t sum_at;       /* UNIT_HISTOGRAM: offset of the sum in microseconds */
};

#define AT(field) offsetof(struct figures, field)

/* Rows of the tables. COUNTER and GAUGE: a family with one figure. PARTS: the first figure of a
 * family that has several, distinguished by the label `key`; PART: a further one. TIMES: a
 * histogram. */
#define GAUGE_IN(how, name, field, text)                                                           \
    {                                                                                              \
        .family = (name), .type = "gauge", .help = (text), .at = AT(field), .unit = (how)          \
    }
#define GAUGE(name, field, text) GAUGE_IN(UNIT_ONE, name, field, text)
#define COUNTER(name, field, text)                                                                 \
    {                                                                                              \
        .family = (name), .type = "counter", .help = (text), .at = AT(field)                       \
    }
#define PARTS(name, key, word, field, text)                                                        \
    {                                                                                              \
        .family = (name), .type = "counter", .help = (text), .label = (key), .value = (word),      \
        .at = AT(field)                                                                            \
    }
#define PART(name, key, word, field)                                                               \
    {                                                                                              \
        .family = (name), .label = (key), .value = (word), .at = AT(field)                         \
    }
#define TIMES(name, field, from, to, sum, text)                                                    \
    {                                                                                              \
        .family = (name), .type = "histogram", .help = (text), .at = AT(field),                    \
        .unit = UNIT_HISTOGRAM, .first = (from), .last = (to), .sum_at = AT(sum)                   \
    }

/* Figures of each shard. */
static const struct row shard_rows[] = {
    PARTS("acquisitions_total", "result", "acquired", stats.acquired,
          "Acquisitions that have ended, by result."),
    PART("acquisitions_total", "result", "contended", stats.contended),
    PART("acquisitions_total", "result", "no_quorum", stats.no_quorum),
    PART("acquisitions_total", "result", "too_slow", stats.too_slow),
    PART("acquisitions_total", "result", "excluded", stats.excluded),
    PART("acquisitions_total", "result", "canceled", stats.canceled),
    PART("acquisitions_total", "result", "queue_full", stats.queue_full),
    TIMES("acquisition_duration_seconds", stats.wait_us_hist, WAIT_FIRST, WAIT_LAST,
          stats.wait_us_sum, "Duration of acquisitions, also of those that failed."),
    COUNTER("attempts_total", stats.attempts,
            "Attempts of all acquisitions in which a server was asked."),
    COUNTER("split_votes_total", stats.split_votes,
            "Attempts that failed although some servers granted the lock."),
    PARTS("fenced_acquisitions_total", "rounds", "1", stats.fence_one_round,
          "Acquisitions with a fencing token that succeeded, by number of rounds."),
    PART("fenced_acquisitions_total", "rounds", "2", stats.fence_two_rounds),
    PARTS("extensions_total", "result", "extended", stats.extended,
          "Rounds of extensions, by result."),
    PART("extensions_total", "result", "failed", stats.extend_failed),
    COUNTER("locks_endangered_total", stats.endangered,
            "Times that the margin before the deadline of a lock began."),
    COUNTER("locks_lost_total", stats.lost, "Locks that were lost."),
    PARTS("releases_total", "result", "released", stats.released,
          "Releases that have ended, by result."),
    PART("releases_total", "result", "failed", stats.release_failed),
    PARTS("undos_total", "result", "executed", stats.undone, "Undos that have ended, by result."),
    PART("undos_total", "result", "expired", stats.undo_expired),
    PART("undos_total", "result", "dropped", stats.undo_dropped),
    COUNTER("wakeups_total", stats.wakeups, "Waiting acquisitions that a notification woke up."),
    COUNTER("line_joins_total", stats.line_joins,
            "Times that an acquisition asked to join a line of waiters."),
    COUNTER("line_turns_total", stats.line_turns, "Notifications that it is this client's turn."),
    COUNTER("line_missed_turns_total", stats.line_missed,
            "Times that this client had a waiter removed that did not use its turn."),
    COUNTER("line_fallbacks_total", stats.line_fallbacks,
            "Acquisitions that waited without a line although lines are on."),
    GAUGE("locks_held", stats.held, "Locks that are held now."),
    GAUGE("acquisitions_waiting", stats.waiting, "Acquisitions that are under way now."),
    GAUGE("acquisitions_queued", stats.queued,
          "Acquisitions that are in the queue of this client now."),
    GAUGE("servers_configured", configured, "Servers in the configuration."),
    GAUGE("servers_eligible", eligible, "Servers whose votes count now."),
    GAUGE("servers_quorum", quorum, "Servers that must grant a lock."),
};

/* Figures of each server. */
static const struct row server_rows[] = {
    GAUGE("server_eligible", votes, "1: the votes of the server count now; 0: they do not."),
    GAUGE_IN(UNIT_MS, "server_quarantine_seconds", node.quarantine_ms,
             "Time until the quarantine of the server ends; 0: it is in none."),
    COUNTER("server_requests_total", node.requests,
            "Requests about locks that were sent, undos included."),
    PARTS("server_replies_total", "result", "granted", node.granted,
          "Replies of the server, by result."),
    PART("server_replies_total", "result", "denied", node.denied),
    PART("server_replies_total", "result", "error", node.errors),
    COUNTER("server_late_replies_total", node.replies_late,
            "Replies that came after their request had been given up."),
    COUNTER("server_timeouts_total", node.timeouts, "Times that the server did not reply in time."),
    COUNTER("server_reconnects_total", node.reconnects, "Connections after the first one."),
    TIMES("server_round_trip_seconds", node.rtt_us_hist, RTT_FIRST, RTT_LAST, node.rtt_us_sum,
          "Round trips."),
    GAUGE_IN(UNIT_US, "server_smoothed_round_trip_seconds", rtt_us, "Smoothed round trip."),
    GAUGE("server_undos_pending", node.undos_pending, "Undos that wait for the server now."),
    COUNTER("server_notifications_total", node.notifications, "Notifications that arrived."),
    GAUGE("server_uptime_seconds", uptime_s, "Uptime of the server at the last INFO."),
    GAUGE_IN(UNIT_SIGNED_US, "server_clock_offset_seconds", clock_offset,
             "Clock of the server minus clock of this machine."),
    GAUGE("server_certificate_expiry_timestamp_seconds", expiry_s,
          "When the certificate of the server or of an issuer expires first, as Unix time."),
    GAUGE("server_replicas", replicas, "Replicas of the server at the last INFO."),
    GAUGE("server_maxmemory_bytes", maxmemory, "Memory limit of the server; 0: none."),
    GAUGE("server_aof_enabled", aof, "1: the server writes an append-only file; 0: it does not."),
    GAUGE("server_aof_failing", aof_failing, "1: the server fails to write its append-only file."),
};

/* Reads the figures of shard `index`. Returns REDLOCK_OK, EFORKED or ECLOSED. */
static int read_shard(redlock_t *rl, size_t index, struct figures *ret)
{
    ret->server = NULL;
    ret->shard = redlock_shard_name(rl, index);
    int error = redlock_get_shard_stats(rl, index, &ret->stats, sizeof ret->stats);
    if (error == REDLOCK_OK)
        error = rl_client_enter_readonly(rl);
    if (error != REDLOCK_OK)
        return error;
    const struct rl_shard *shard = &rl->shards[index];
    ret->configured = shard->config->count;
    ret->quorum = rl_engine_quorum(&shard->engine);
    ret->eligible = 0;
    for (unsigned i = 0; i < shard->config->count; i++)
        ret->eligible += rl_engine_node_status(&shard->engine, i).votes;
    rl_client_unlock(rl);
    return REDLOCK_OK;
}

/* Returns `value`, or NOT_KNOWN if it is 0. */
static uint64_t known(uint64_t value)
{
    return value != 0 ? value : NOT_KNOWN;
}

/* Reads the figures of server `index`, which counts the servers of all shards. Returns REDLOCK_OK,
 * EFORKED or ECLOSED. */
static int read_server(redlock_t *rl, size_t index, struct figures *ret)
{
    redlock_node_stats_t *node = &ret->node;

    int error = redlock_get_node_stats(rl, index, node, sizeof *node);
    if (error != REDLOCK_OK)
        return error;
    bool has_info = (node->facts & REDLOCK_FACT_INFO) != 0;
    ret->server = node->node;
    ret->shard = node->shard;
    ret->votes = node->eligible != 0;
    ret->uptime_s = known(node->uptime_s);
    ret->rtt_us = known(node->rtt_us);
    ret->expiry_s = known((uint64_t)node->certificate_expiry_s);
    ret->clock_offset = known((uint64_t)node->clock_offset_us);
    ret->replicas = has_info ? node->replicas : NOT_KNOWN;
    ret->maxmemory = has_info ? node->maxmemory : NOT_KNOWN;
    ret->aof = has_info ? (node->facts & REDLOCK_FACT_AOF) != 0 : NOT_KNOWN;
    ret->aof_failing = has_info ? (node->facts & REDLOCK_FACT_AOF_FAILING) != 0 : NOT_KNOWN;
    return REDLOCK_OK;
}

/* Begins a line with the labels of the shard or server. */
static void begin(struct rl_prom *prom, const char *family, const char *suffix,
                  const struct figures *figures)
{
    rl_prom_begin(prom, family, suffix);
    if (figures->shard[0] != '\0')
        rl_prom_label(prom, "shard", figures->shard);
    if (figures->server != NULL)
        rl_prom_label(prom, "server", figures->server);
}

/* Returns the 64 bits at an offset in `figures`. */
static uint64_t word_at(const struct figures *figures, size_t at)
{
    uint64_t word;

    memcpy(&word, (const char *)figures + at, sizeof word);
    return word;
}

/* Writes a histogram: for each bucket how many durations were shorter than its end, then their sum
 * and their number. */
static void write_histogram(struct rl_prom *prom, const struct row *row,
                            const struct figures *figures)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < RL_BUCKETS; i++) {
        count += word_at(figures, row->at + i * sizeof(uint64_t));
        if (i < row->first || i > row->last)
            continue;
        begin(prom, row->family, "_bucket", figures);
        rl_prom_label_us(prom, "le", UINT64_C(2) << i);
        rl_prom_value(prom, count);
    }
    begin(prom, row->family, "_bucket", figures);
    rl_prom_label(prom, "le", "+Inf");
    rl_prom_value(prom, count);
    begin(prom, row->family, "_sum", figures);
    rl_prom_value_us(prom, (int64_t)word_at(figures, row->sum_at));
    begin(prom, row->family, "_count", figures);
    rl_prom_value(prom, count);
}

/* Writes one figure; nothing if it is not known. */
static void write_row(struct rl_prom *prom, const struct row *row, const struct figures *figures)
{
    if (row->unit == UNIT_HISTOGRAM) {
        write_histogram(prom, row, figures);
        return;
    }
    uint64_t value = word_at(figures, row->at);
    if (value == NOT_KNOWN)
        return;
    begin(prom, row->family, "", figures);
    if (row->label != NULL)
        rl_prom_label(prom, row->label, row->value);
    if (row->unit == UNIT_ONE)
        rl_prom_value(prom, value);
    else
        rl_prom_value_us(prom, (int64_t)(row->unit == UNIT_MS ? value * 1000 : value));
}

/* Writes the `count` rows of a table, family by family, each for all `objects` shards or servers.
 * `read`: read_shard() or read_server(). Returns REDLOCK_OK, EFORKED or ECLOSED. */
static int write_table(redlock_t *rl, struct rl_prom *prom, const struct row *rows, size_t count,
                       size_t objects, int (*read)(redlock_t *, size_t, struct figures *))
{
    struct figures figures;
    size_t next;

    for (size_t first = 0; first < count; first = next) {
        for (next = first + 1; next < count && rows[next].type == NULL; next++)
            continue;
        rl_prom_family(prom, rows[first].family, rows[first].type, rows[first].help);
        for (size_t i = 0; i < objects; i++) {
            int error = read(rl, i, &figures);
            if (error != REDLOCK_OK)
                return error;
            for (size_t row = first; row < next; row++)
                write_row(prom, &rows[row], &figures);
        }
    }
    return REDLOCK_OK;
}

/* Writes the shortest validity of each shard in which a lock is held. It is not in the table,
 * because the search looks at all locks. Returns REDLOCK_OK, EFORKED or ECLOSED. */
static int write_validity(redlock_t *rl, struct rl_prom *prom)
{
    static const char family[] = "shortest_validity_seconds";

    rl_prom_family(prom, family, "gauge",
                   "Shortest time until the deadline of any lock that is held now.");
    for (unsigned i = 0; i < rl->shard_count; i++) {
        const struct figures figures = {.shard = redlock_shard_name(rl, i)};
        int error = rl_client_enter_readonly(rl);
        if (error != REDLOCK_OK)
            return error;
        uint64_t shortest_ns = rl_engine_shortest_validity_ns(&rl->shards[i].engine);
        rl_client_unlock(rl);
        if (shortest_ns == RL_NEVER)
            continue;
        begin(prom, family, "", &figures);
        rl_prom_value_us(prom, (int64_t)(shortest_ns / RL_US));
    }
    return REDLOCK_OK;
}

/* Writes the cause for which the votes of a server do not count, as label of a figure that is 1.
 * Writes nothing if they count, or if the server was not reached yet and has no cause. */
static void write_cause(struct rl_prom *prom, const struct figures *figures)
{
    const char *name = redlock_cause_name(figures->node.cause) + strlen("REDLOCK_CAUSE_");
    char cause[40]; /* the name in small letters */
    size_t len = 0;

    if (figures->votes || figures->node.cause == REDLOCK_CAUSE_NONE)
        return;
    for (; name[len] != '\0' && len < sizeof cause - 1; len++)
        cause[len] =
            (char)(name[len] >= 'A' && name[len] <= 'Z' ? name[len] + ('a' - 'A') : name[len]);
    cause[len] = '\0';
    begin(prom, "server_excluded", "", figures);
    rl_prom_label(prom, "cause", cause);
    rl_prom_value(prom, 1);
}

/* Writes the state of the notifications of a server, as label of a figure that is 1. */
static void write_notification_state(struct rl_prom *prom, const struct figures *figures)
{
    static const char *const names[] = {[REDLOCK_NOTIFY_OFF] = "off",
                                        [REDLOCK_NOTIFY_IDLE] = "idle",
                                        [REDLOCK_NOTIFY_PENDING] = "pending",
                                        [REDLOCK_NOTIFY_ON] = "on",
                                        [REDLOCK_NOTIFY_REFUSED] = "refused"};

    begin(prom, "server_notification_state", "", figures);
    rl_prom_label(prom, "state", names[figures->node.notify_state]);
    rl_prom_value(prom, 1);
}

/* Writes what a server reports of itself, as labels of a figure that is 1. Writes nothing if it
 * has not reported it. */
static void write_info(struct rl_prom *prom, const struct figures *figures)
{
    if ((figures->node.facts & REDLOCK_FACT_INFO) == 0)
        return;
    begin(prom, "server_info", "", figures);
    rl_prom_label(prom, "version", figures->node.version);
    rl_prom_label(prom, "role", figures->node.role);
    rl_prom_label(prom, "policy", figures->node.policy);
    rl_prom_value(prom, 1);
}

/* Writes one family of gauges by calling `write` for each server. Returns REDLOCK_OK, EFORKED or
 * ECLOSED. */
static int write_servers(redlock_t *rl, struct rl_prom *prom, const char *family, const char *help,
                         void (*write)(struct rl_prom *, const struct figures *))
{
    struct figures figures;

    rl_prom_family(prom, family, "gauge", help);
    for (size_t i = 0; i < redlock_node_count(rl); i++) {
        int error = read_server(rl, i, &figures);
        if (error != REDLOCK_OK)
            return error;
        write(prom, &figures);
    }
    return REDLOCK_OK;
}

/* Writes all figures of the client. Returns REDLOCK_OK, EFORKED or ECLOSED. */
static int write_all(redlock_t *rl, struct rl_prom *prom)
{
    rl_prom_family(prom, "build_info", "gauge", "Version of the library.");
    rl_prom_begin(prom, "build_info", "");
    rl_prom_label(prom, "version", redlock_version_string());
    rl_prom_value(prom, 1);
    int error = write_table(rl, prom, shard_rows, sizeof shard_rows / sizeof shard_rows[0],
                            redlock_shard_count(rl), read_shard);
    if (error == REDLOCK_OK)
        error = write_validity(rl, prom);
    if (error == REDLOCK_OK)
        error = write_table(rl, prom, server_rows, sizeof server_rows / sizeof server_rows[0],
                            redlock_node_count(rl), read_server);
    if (error == REDLOCK_OK)
        error = write_servers(rl, prom, "server_excluded",
                              "1 for a server whose votes do not count now, with the cause.",
                              write_cause);
    if (error == REDLOCK_OK)
        error = write_servers(rl, prom, "server_notification_state",
                              "1 for the present state of the notifications of each server.",
                              write_notification_state);
    if (error == REDLOCK_OK)
        error = write_servers(rl, prom, "server_info",
                              "1, with what each server reports of itself.", write_info);
    return error;
}

/* Public function: writes the statistics of the client, its shards and its servers to `ret_text` of
 * `size` bytes, with the labels of the caller. Returns the length of the whole text, or EINVAL,
 * EFORKED or ECLOSED. */
REDLOCK_API int redlock_stats_prometheus(redlock_t *rl, const redlock_label_t *labels,
                                         size_t label_count, char *ret_text, size_t size)
{
    if (rl == NULL || (ret_text == NULL && size != 0) || !rl_prom_check_labels(labels, label_count))
        return REDLOCK_EINVAL;
    struct rl_prom prom = rl_prom_open(ret_text, size, labels, label_count);
    int error = write_all(rl, &prom);
    size_t len = rl_prom_close(&prom);
    /* 31 servers, 16 shards and the longest labels give about 60 MB. */
    RL_ASSERT(len <= INT_MAX);
    return error == REDLOCK_OK ? (int)len : error;
}
