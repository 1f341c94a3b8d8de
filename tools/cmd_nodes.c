/* SPDX-License-Identifier: MIT
 * `redlock nodes`: checks whether the servers are fit to hold locks, and prints the findings. It
 * makes one struct examination for each shard and fills it in steps: waits until the state of all
 * nodes is known, measures round trips, probes each server with a lock of its own (nodes_probe()),
 * and with --fence examines the fence records (nodes_fence()). Then examination_judge() makes the
 * findings, and they are printed as text or JSON. `nodes --acl` and `nodes --init` are in files of
 * their own.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "commands.h"
#include "examination.h"
#include "exits.h"
#include "json.h"
#include "mask.h"
#include "nodes_figures.h"
#include "nodes_notify.h"
#include "reports.h"
#include "say.h"
#include "shown.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 200
/* Number of inspections whose round trips are measured. */
#define MEASURE_ROUNDS 5
/* Pause between two looks at the nodes while `--wait` waits. */
#define WAIT_STEP_MS 50

/* Reads the present state of the nodes of one shard into exam->nodes. */
static void read_nodes(redlock_t *rl, struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        redlock_get_node_stats(rl, exam->first + i, &exam->nodes[i], sizeof exam->nodes[i]);
}

/* Waits until every node is connected or has a cause why it is not, then reads the state of all
 * nodes. */
static void wait_for_replies(redlock_t *rl, const struct settings *settings,
                             struct examination *exams, size_t shards)
{
    uint64_t patience_ms = client_timeout_ms(settings);

    /* The result is not needed: the state of the nodes shows it. */
    int ready = redlock_wait_ready(rl, patience_ms);
    say(SAY_DEBUG, "ready: %s", redlock_strerror(ready));
    client_settle(rl, patience_ms);
    for (size_t i = 0; i < shards; i++)
        read_nodes(rl, &exams[i]);
}

/* Returns true if the node is excluded because its server did not reply in time. `number` is its
 * index among the nodes of all shards. */
static bool is_suspect(redlock_t *rl, size_t number)
{
    redlock_node_stats_t node;

    return redlock_get_node_stats(rl, number, &node, sizeof node) == REDLOCK_OK && !node.eligible &&
           node.cause == REDLOCK_CAUSE_TIMEOUT;
}

/* Waits until no server of the shard that was eligible before is suspect, at most until
 * `give_up_ns` of CLOCK_BOOTTIME. A server that does not reply for a few milliseconds is excluded
 * for the moment. That must not become a finding. */
static void wait_for_suspects(redlock_t *rl, const struct examination *exam, uint64_t give_up_ns)
{
    for (size_t i = 0; i < exam->count; i++)
        while (exam->nodes[i].eligible && is_suspect(rl, exam->first + i) &&
               boottime_ns() < give_up_ns)
            poll(NULL, 0, 1);
}

/* Measures the round trip of each server of the shard by several inspections, and stores the median
 * in exam->rtt_us. Reads the state of the nodes again at the end. A single value, and the first
 * connection that the library has measured, depend more on this process than on the server. */
static void measure(redlock_t *rl, const struct settings *settings, struct examination *exam)
{
    uint64_t give_up_ns = boottime_ns() + client_timeout_ms(settings) * NS_PER_MS;
    uint64_t times[REDLOCK_NODES_MAX][MEASURE_ROUNDS] = {0};
    unsigned replies[REDLOCK_NODES_MAX] = {0};
    redlock_node_report_t node;
    char *name = client_name_in(rl, exam->shard, "redlock-nodes");

    for (int round = 0; round < MEASURE_ROUNDS; round++) {
        redlock_report_t *report = NULL;
        int error = redlock_inspect(rl, name, &report);
        say(SAY_DEBUG, "inspection: %s", redlock_strerror(error));
        for (size_t i = 0; report && i < exam->count; i++)
            if (redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK && node.rtt_us)
                times[i][replies[i]++] = node.rtt_us;
        redlock_report_free(report);
        wait_for_suspects(rl, exam, give_up_ns);
    }
    free(name);
    read_nodes(rl, exam);
    for (size_t i = 0; i < exam->count; i++) {
        exam->rtt_us[i] = replies[i] ? median_of(times[i], replies[i]) : exam->nodes[i].rtt_us;
    }
}

/* Prints one line for each server of the shard whose node has become eligible or is excluded for
 * another cause than before. `reported` holds what was printed last for each: 0 if the node was
 * eligible, else its cause plus 1. */
static void report_waiting(const struct examination *exam, int reported[REDLOCK_NODES_MAX])
{
    for (size_t i = 0; i < exam->count; i++) {
        const redlock_node_stats_t *node = &exam->nodes[i];
        int state = node->eligible ? 0 : node->cause + 1;
        if (state == reported[i])
            continue;
        reported[i] = state;
        say(SAY_NOTE, "nodes: %s: %s", node->node, node->eligible ? "eligible" : node->text);
    }
}

/* Returns true if all nodes of the shard are eligible. */
static bool all_vote(const struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        if (!exam->nodes[i].eligible)
            return false;
    return true;
}

/* Reads the state of the nodes of all shards and prints changes. Returns true if all nodes are
 * eligible. `reported` has one entry for each node, as in report_waiting(). */
static bool shards_vote(redlock_t *rl, struct examination *exams, size_t shards,
                        int reported[REDLOCK_NODES_MAX])
{
    bool all = true;

    for (size_t i = 0; i < shards; i++) {
        read_nodes(rl, &exams[i]);
        all = all_vote(&exams[i]) && all;
        report_waiting(&exams[i], reported + exams[i].first);
    }
    return all;
}

/* Waits until all nodes are eligible, at most for `wait_ms`; REDLOCK_WAIT_FOREVER: without a
 * limit. */
static void wait_for_votes(redlock_t *rl, uint64_t wait_ms, struct examination *exams,
                           size_t shards)
{
    int reported[REDLOCK_NODES_MAX] = {0};
    uint64_t start_ns = boottime_ns();

    while (!shards_vote(rl, exams, shards, reported)) {
        if (wait_ms != REDLOCK_WAIT_FOREVER && boottime_ns() - start_ns >= wait_ms * NS_PER_MS)
            return;
        poll(NULL, 0, WAIT_STEP_MS);
    }
}

/* Returns the word for a health: "OK", "WARN", "CRIT" or "UNKNOWN". */
static const char *health_name(enum health_exit health)
{
    static const char *const names[] = {"OK", "WARN", "CRIT", "UNKNOWN"};

    return names[health];
}

/* Returns true if two findings say the same, about the same or about different servers. */
static bool is_same(const struct finding *a, const struct finding *b)
{
    return a->severity == b->severity && !strcmp(a->code, b->code) && !strcmp(a->text, b->text) &&
           (a->node < 0) == (b->node < 0);
}

/* Prints the servers that the finding with the index `first` is about: all that have the same
 * finding at a later index, too. Prints nothing if the finding is about the whole shard. */
static void print_subject(const struct examination *exam, size_t first)
{
    const struct finding *finding = &exam->findings[first];
    size_t same = 0;

    if (finding->node < 0)
        return;
    for (size_t i = first; i < exam->finding_count; i++)
        same += is_same(finding, &exam->findings[i]);
    if (same == exam->count && same > 1) {
        show("all servers: ");
        return;
    }
    for (size_t i = first; i < exam->finding_count; i++)
        if (is_same(finding, &exam->findings[i]))
            show("%s%s", i == first ? "" : ", ", exam->nodes[exam->findings[i].node].node);
    show(": ");
}

/* Prints the findings of one shard, each with its advice. The same finding about several servers is
 * printed once, with the names of these servers. */
static void print_findings(const struct examination *exam)
{
    for (size_t i = 0; i < exam->finding_count; i++) {
        const struct finding *finding = &exam->findings[i];
        bool said = false;
        for (size_t j = 0; j < i; j++)
            said = said || is_same(finding, &exam->findings[j]);
        if (said)
            continue;
        show("%s  ", severity_name(finding->severity));
        print_subject(exam, i);
        show("%s\n", finding->text);
        show("      -> %s\n", finding->advice);
    }
}

/* Prints one shard for people: a table of the servers, the findings and the verdict. */
static void print_text(const struct examination *exam)
{
    char text[160], rtt[24];

    if (*exam->shard_name && exam->shard > 0)
        show("\n");
    if (*exam->shard_name)
        show("shard %s\n", exam->shard_name);
    show("%-26s %-8s %-7s %-16s %8s\n", "server", "eligible", "role", "version", "rtt ms");
    for (size_t i = 0; i < exam->count; i++) {
        const redlock_node_stats_t *node = &exam->nodes[i];
        uint64_t rtt_us = exam->rtt_us[i];
        snprintf(rtt, sizeof rtt, "%" PRIu64 ".%03u", rtt_us / 1000, (unsigned)(rtt_us % 1000));
        show("%-26s %-8s %-7s %-16s %8s\n", node->node,
             node->eligible && exam->duplicate_of[i] < 0 ? "yes" : "no",
             *node->role ? node->role : "-", *node->version ? node->version : "-",
             rtt_us ? rtt : "-");
    }
    print_findings(exam);
    examination_verdict(exam, text, sizeof text);
    show("%s: %s\n", health_name(exam->health), text);
}

/* Returns the JSON object for server `i` of the shard. */
static json_t *json_of_node(const struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    char cause[CAUSE_NAME];

    return must(json_pack(
        "{s:o, s:b, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:s, s:o}", "server",
        json_text(node->node), "eligible", node->eligible && exam->duplicate_of[i] < 0, "cause",
        cause_name(node->cause, cause), "role", node->role, "version", json_text(node->version),
        "run_id", json_text(node->run_id), "rtt_us", (json_int_t)exam->rtt_us[i], "uptime_s",
        (json_int_t)node->uptime_s, "quarantine_ms", (json_int_t)node->quarantine_ms,
        "clock_offset_us", (json_int_t)node->clock_offset_us, "replicas",
        (json_int_t)node->replicas, "maxmemory_policy", json_text(node->policy), "aof",
        (int)(node->facts & REDLOCK_FACT_AOF) != 0, "notifications",
        notify_result_name(exam->notify[i].state), "text", json_text(node->text)));
}

/* Returns the JSON object for one finding. */
static json_t *json_of_finding(const struct examination *exam, const struct finding *finding)
{
    return must(json_pack(
        "{s:s, s:o, s:s, s:o, s:s}", "severity", severity_name(finding->severity), "server",
        finding->node >= 0 ? json_text(exam->nodes[finding->node].node) : json_null(), "code",
        finding->code, "text", json_text(finding->text), "advice", finding->advice));
}

/* Returns the JSON object for one shard: its health, numbers of servers, servers and findings. */
static json_t *json_of_shard(const struct examination *exam)
{
    json_t *servers = must(json_array()), *findings = must(json_array());
    char text[160];

    for (size_t i = 0; i < exam->count; i++)
        json_array_append_new(servers, json_of_node(exam, i));
    for (size_t i = 0; i < exam->finding_count; i++)
        json_array_append_new(findings, json_of_finding(exam, &exam->findings[i]));
    examination_verdict(exam, text, sizeof text);
    return must(json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "state", health_name(exam->health),
                          "text", text, "configured", (int)exam->count, "quorum", (int)exam->quorum,
                          "eligible", (int)exam->eligible, "servers", servers, "findings",
                          findings));
}

/* Returns the worst health among all shards. */
static enum health_exit worst_of(const struct examination *exams, size_t shards)
{
    enum health_exit worst = HEALTH_OK;

    for (size_t i = 0; i < shards; i++)
        worst = exams[i].health > worst ? exams[i].health : worst;
    return worst;
}

/* Prints all shards as one JSON object, with an array "shards". If there is a single shard, its
 * members are those of the object itself, without that array. */
static void print_json(const struct examination *exams, size_t shards)
{
    json_t *object = must(json_pack("{s:s}", "schema", "redlock.nodes/1"));
    json_t *only = shards == 1 ? json_of_shard(&exams[0]) : NULL, *list = must(json_array());

    for (size_t i = 0; !only && i < shards; i++) {
        json_t *shard = json_of_shard(&exams[i]);
        json_object_set_new(shard, "shard", json_string(exams[i].shard_name));
        json_array_append_new(list, shard);
    }
    if (only) {
        json_object_update(object, only);
    } else {
        json_object_set_new(object, "state", json_string(health_name(worst_of(exams, shards))));
        json_object_set(object, "shards", list);
    }
    json_decref(only);
    json_decref(list);
    json_print(object);
}

/* Prints all `shards` shards, with --json as JSON, else as text. */
static void print_all(const struct options *options, const struct examination *exams, size_t shards)
{
    if (options->json)
        print_json(exams, shards);
    for (size_t i = 0; !options->json && i < shards; i++)
        print_text(&exams[i]);
}

/* Returns an array of one examination for each shard, in which only shard_name, shard, first and
 * count are set. To be freed by the caller. */
static struct examination *new_examinations(redlock_t *rl)
{
    size_t shards = redlock_shard_count(rl), count = redlock_node_count(rl);
    struct examination *exams = must(calloc(shards, sizeof *exams));
    redlock_node_stats_t node;

    for (size_t i = 0; i < count; i++) {
        if (redlock_get_node_stats(rl, i, &node, sizeof node) != REDLOCK_OK)
            continue;
        struct examination *exam = &exams[node.shard_index];
        exam->shard_name = node.shard;
        exam->shard = node.shard_index;
        exam->first = exam->count++ == 0 ? i : exam->first;
    }
    return exams;
}

/* Runs `redlock nodes`: examines all servers and prints the findings. Returns the worst health as
 * exit code, HEALTH_UNKNOWN if the client could not be started, or the exit code of a usage or
 * configuration error. */
int cmd_nodes(const struct options *options)
{
    struct settings settings;
    redlock_t *rl;

    if (options->operand_count > 0) {
        say(SAY_ERROR, "nodes: unexpected word %s; give options only, and servers with -s",
            mask_word(options->operands[0]));
        return EXIT_USAGE;
    }
    if (options->acl)
        return nodes_acl(options);
    if (options->init)
        return nodes_init(options);
    int result = client_open(options, &settings, &rl);
    if (result == EXIT_SYSTEM || result == EXIT_INTERNAL)
        return HEALTH_UNKNOWN;
    if (result >= 0)
        return result;
    size_t shards = redlock_shard_count(rl);
    struct examination *exams = new_examinations(rl);
    wait_for_replies(rl, &settings, exams, shards);
    if (options->wait_all)
        wait_for_votes(rl, settings.wait_ms, exams, shards);
    for (size_t i = 0; i < shards; i++) {
        measure(rl, &settings, &exams[i]);
        nodes_probe(&settings, &exams[i]);
        if (options->fence)
            nodes_fence(rl, &settings, &exams[i]);
    }
    examination_compare(exams, shards);
    for (size_t i = 0; i < shards; i++)
        examination_judge(&exams[i]);
    print_all(options, exams, shards);
    result =
        options->metrics_file ? nodes_figures_write(options->metrics_file, rl, exams, shards) : -1;
    if (result < 0)
        result = (int)worst_of(exams, shards);
    free(exams);
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return result;
}
