/* SPDX-License-Identifier: MIT
 * `redlock nodes`: are these servers fit to hold locks?
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "commands.h"
#include "exits.h"
#include "json.h"
#include "say.h"

#define CLOSE_BUDGET_MS 200
#define MEASURE_ROUNDS  5

struct examination {
    size_t count, quorum, may_vote;
    redlock_node_stats_t nodes[REDLOCK_NODES_MAX];
    uint64_t rtt_us[REDLOCK_NODES_MAX]; /* 0: no answer */
    int twin[REDLOCK_NODES_MAX];        /* the earlier address of the same server, -1: none */
    enum health_exit health;
};

static void read_nodes(redlock_t *rl, struct examination *exam)
{
    exam->may_vote = 0;
    for (size_t i = 0; i < exam->count; i++) {
        redlock_get_node_stats(rl, i, &exam->nodes[i], sizeof exam->nodes[i]);
        exam->may_vote += exam->nodes[i].may_vote != 0;
    }
}

static bool all_known(const struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        if (!exam->nodes[i].may_vote && exam->nodes[i].cause == REDLOCK_CAUSE_NONE)
            return false;
    return true;
}

/* A name needs time to be resolved and a connection to be made; then every node has said
 * something, or the time is over. */
static void wait_for_answers(redlock_t *rl, const struct settings *settings,
                             struct examination *exam)
{
    uint64_t patience_ms = (uint64_t)settings->connect_timeout_ms * 2 + 1000;
    uint64_t give_up_ns = boottime_ns() + patience_ms * NS_PER_MS;

    /* The result shows in the nodes' own state. */
    int ready = redlock_wait_ready(rl, patience_ms);
    say(SAY_DEBUG, "ready: %s", redlock_strerror(ready));
    read_nodes(rl, exam);
    while (!all_known(exam) && boottime_ns() < give_up_ns) {
        poll(NULL, 0, 10);
        read_nodes(rl, exam);
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* A few questions to all, of the kind that locks need. The middle one of the times counts: single
 * ones, and the long greeting that the library has measured, say more about this process. */
static void measure(redlock_t *rl, struct examination *exam)
{
    uint64_t times[REDLOCK_NODES_MAX][MEASURE_ROUNDS] = {0};
    unsigned answers[REDLOCK_NODES_MAX] = {0};
    redlock_node_report_t node;

    for (int round = 0; round < MEASURE_ROUNDS; round++) {
        redlock_report_t *report = NULL;
        int error = redlock_inspect(rl, "redlock-nodes", &report);
        say(SAY_DEBUG, "question: %s", redlock_strerror(error));
        for (size_t i = 0; report && i < exam->count; i++)
            if (redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK && node.rtt_us)
                times[i][answers[i]++] = node.rtt_us;
        redlock_report_free(report);
    }
    read_nodes(rl, exam);
    for (size_t i = 0; i < exam->count; i++) {
        qsort(times[i], answers[i], sizeof times[i][0], by_size);
        exam->rtt_us[i] = answers[i] ? times[i][answers[i] / 2] : exam->nodes[i].rtt_us;
    }
}

static void judge(struct examination *exam)
{
    exam->quorum = exam->count / 2 + 1;
    exam->health = exam->may_vote == exam->count && exam->count % 2 == 1 && exam->count > 1
                       ? HEALTH_OK
                       : HEALTH_WARN;
    if (exam->may_vote < exam->quorum)
        exam->health = HEALTH_CRIT;
    for (size_t i = 0; i < exam->count; i++) {
        exam->twin[i] = -1;
        for (size_t j = 0; j < i && exam->twin[i] < 0; j++)
            if (*exam->nodes[i].run_id && !strcmp(exam->nodes[i].run_id, exam->nodes[j].run_id))
                exam->twin[i] = (int)j;
        if (exam->twin[i] >= 0 || exam->nodes[i].cause == REDLOCK_CAUSE_DUPLICATE)
            exam->health = HEALTH_CRIT;
    }
}

static const char *health_name(enum health_exit health)
{
    static const char *const names[] = {"OK", "WARN", "CRIT", "UNKNOWN"};

    return names[health];
}

static void node_note(const struct examination *exam, size_t i, char *note, size_t size)
{
    const redlock_node_stats_t *node = &exam->nodes[i];

    if (exam->twin[i] >= 0)
        snprintf(note, size, "same server as %s; remove one of the two",
                 exam->nodes[exam->twin[i]].node);
    else if (!node->may_vote)
        snprintf(note, size, "%s", *node->text ? node->text : "no answer yet");
    else
        *note = '\0';
}

static void verdict(const struct examination *exam, char *text, size_t size)
{
    bool twins = false;

    for (size_t i = 0; i < exam->count; i++)
        twins = twins || exam->twin[i] >= 0;
    if (twins)
        snprintf(text, size, "a server is listed twice: no lock can be had until that is repaired");
    else if (exam->may_vote < exam->quorum)
        snprintf(text, size, "%zu of %zu servers may vote, %zu are needed: no lock can be had",
                 exam->may_vote, exam->count, exam->quorum);
    else if (exam->count == 1)
        snprintf(text, size, "one server: the lock is lost with it; use three or five");
    else
        snprintf(text, size, "%zu of %zu servers may vote, %zu are needed%s", exam->may_vote,
                 exam->count, exam->quorum,
                 exam->count % 2 ? "" : "; an even number survives no more failures");
}

static void print_text(const struct examination *exam)
{
    char note[256], text[160], rtt[24];

    printf("%-26s %-5s %-7s %-16s %8s\n", "server", "votes", "role", "version", "rtt ms");
    for (size_t i = 0; i < exam->count; i++) {
        const redlock_node_stats_t *node = &exam->nodes[i];
        uint64_t rtt_us = exam->rtt_us[i];
        node_note(exam, i, note, sizeof note);
        snprintf(rtt, sizeof rtt, "%" PRIu64 ".%03u", rtt_us / 1000, (unsigned)(rtt_us % 1000));
        printf("%-26s %-5s %-7s %-16s %8s%s%s\n", node->node,
               node->may_vote && exam->twin[i] < 0 ? "yes" : "no", *node->role ? node->role : "-",
               *node->version ? node->version : "-", rtt_us ? rtt : "-", *note ? "  " : "", note);
    }
    verdict(exam, text, sizeof text);
    printf("%s: %s\n", health_name(exam->health), text);
}

static void print_json(const struct examination *exam)
{
    json_t *array = must(json_array());
    char note[256], text[160];

    for (size_t i = 0; i < exam->count; i++) {
        const redlock_node_stats_t *node = &exam->nodes[i];
        node_note(exam, i, note, sizeof note);
        json_array_append_new(
            array,
            json_pack("{s:o, s:b, s:i, s:s, s:o, s:o, s:I, s:I, s:o}", "node",
                      json_text(node->node), "may_vote", node->may_vote && exam->twin[i] < 0,
                      "cause", node->cause, "role", node->role, "version", json_text(node->version),
                      "run_id", json_text(node->run_id), "rtt_us", (json_int_t)exam->rtt_us[i],
                      "uptime_s", (json_int_t)node->uptime_s, "text", json_text(note)));
    }
    verdict(exam, text, sizeof text);
    json_print(json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:o}", "schema", "redlock.nodes/1",
                         "state", health_name(exam->health), "text", text, "configured",
                         (int)exam->count, "quorum", (int)exam->quorum, "may_vote",
                         (int)exam->may_vote, "nodes", array));
}

int cmd_nodes(const struct options *options)
{
    struct settings settings;
    struct examination exam = {0};
    redlock_t *rl;

    if (options->operand_count > 0) {
        say(SAY_ERROR, "nodes: takes no operand; servers are given with -s");
        return EXIT_USAGE;
    }
    if (options->init)
        return nodes_init(options);
    int result = client_open(options, &settings, &rl);
    if (result == EXIT_SYSTEM || result == EXIT_INTERNAL)
        return HEALTH_UNKNOWN;
    if (result >= 0)
        return result;
    exam.count = redlock_node_count(rl);
    wait_for_answers(rl, &settings, &exam);
    measure(rl, &exam);
    judge(&exam);
    if (options->json)
        print_json(&exam);
    else
        print_text(&exam);
    result = (int)exam.health;
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return result;
}
