/* SPDX-License-Identifier: MIT
 * `redlock nodes`: checks whether the servers are fit to hold locks, and prints the findings. It
 * makes one struct examination for each shard and fills it in steps: waits until the state of all
 * nodes is known, measures round trips, probes each server with a lock of its own (nodes_probe()),
 * and with --fence examines the fence records (nodes_fence()). Then examination_judge() makes the
 * findings, and nodes_print() prints them. `nodes --acl` and `nodes --init` are in files of their
 * own.
 */
#include <poll.h>
#include <stdlib.h>

#include "client.h"
#include "clock.h"
#include "commands.h"
#include "examination.h"
#include "exits.h"
#include "mask.h"
#include "nodes_figures.h"
#include "nodes_print.h"
#include "say.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 200
/* Number of inspections whose round trips are measured, and the pause after each. */
#define MEASURE_ROUNDS   5
#define MEASURE_PAUSE_MS 5
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
 * in exam->rtt_us. The pauses leave time for heartbeats (NODES_HEARTBEAT_MS), which show whether
 * its clock runs. Reads the state of the nodes again at the end. A single value, and the first
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
        poll(NULL, 0, MEASURE_PAUSE_MS);
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
        exams[i].max_ttl_ms = settings.max_ttl_ms;
        measure(rl, &settings, &exams[i]);
        nodes_probe(&settings, &exams[i]);
        nodes_tls(&settings, &exams[i]);
        if (options->fence)
            nodes_fence(rl, &settings, &exams[i]);
    }
    examination_compare(exams, shards);
    for (size_t i = 0; i < shards; i++)
        examination_judge(&exams[i]);
    nodes_print(options->json, exams, shards);
    result = (int)nodes_worst(exams, shards);
    struct figures text = {.text = NULL};
    if (options->metrics_file)
        nodes_figures_make(&text, options->metrics_file, rl, exams, shards);
    free(exams);
    client_close(rl, CLOSE_BUDGET_MS);
    int failure = options->metrics_file ? nodes_figures_write(options->metrics_file, &text) : -1;
    figures_free(&text);
    settings_free(&settings);
    return failure < 0 ? result : failure;
}
