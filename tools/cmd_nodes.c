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
#include "doctor.h"
#include "exits.h"
#include "json.h"
#include "nodes_wake.h"
#include "say.h"

#define CLOSE_BUDGET_MS 200
#define MEASURE_ROUNDS  5
#define WAIT_STEP_MS    50

static void read_nodes(redlock_t *rl, struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        redlock_get_node_stats(rl, i, &exam->nodes[i], sizeof exam->nodes[i]);
}

/* A name needs time to be resolved and a connection to be made; then every node has said
 * something, or the time is over. */
static void wait_for_answers(redlock_t *rl, const struct settings *settings,
                             struct examination *exam)
{
    uint64_t patience_ms = client_patience_ms(settings);

    /* The result shows in the nodes' own state. */
    int ready = redlock_wait_ready(rl, patience_ms);
    say(SAY_DEBUG, "ready: %s", redlock_strerror(ready));
    client_settle(rl, patience_ms);
    read_nodes(rl, exam);
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

/* One line for each server that keeps the others waiting, when what stands in its way changes. */
static void tell_waiting(const struct examination *exam, int told[REDLOCK_NODES_MAX])
{
    for (size_t i = 0; i < exam->count; i++) {
        const redlock_node_stats_t *node = &exam->nodes[i];
        int state = node->may_vote ? 0 : node->cause + 1;
        if (state == told[i])
            continue;
        told[i] = state;
        say(SAY_NOTE, "nodes: %s: %s", node->node, node->may_vote ? "votes" : node->text);
    }
}

static bool all_vote(const struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        if (!exam->nodes[i].may_vote)
            return false;
    return true;
}

/* Until all vote, or a reason that does not pass by itself is found, or the time is over. */
static void wait_for_votes(redlock_t *rl, uint64_t wait_ms, struct examination *exam)
{
    int told[REDLOCK_NODES_MAX] = {0};
    uint64_t start_ns = boottime_ns();

    read_nodes(rl, exam);
    while (!all_vote(exam)) {
        tell_waiting(exam, told);
        if (wait_ms != REDLOCK_WAIT_FOREVER && boottime_ns() - start_ns >= wait_ms * NS_PER_MS)
            return;
        poll(NULL, 0, WAIT_STEP_MS);
        read_nodes(rl, exam);
    }
    tell_waiting(exam, told);
}

static const char *health_name(enum health_exit health)
{
    static const char *const names[] = {"OK", "WARN", "CRIT", "UNKNOWN"};

    return names[health];
}

static bool is_same(const struct finding *a, const struct finding *b)
{
    return a->severity == b->severity && !strcmp(a->code, b->code) && !strcmp(a->cause, b->cause) &&
           (a->node < 0) == (b->node < 0);
}

/* Whom it is about: what holds for several servers is said once. */
static void print_subject(const struct examination *exam, size_t first)
{
    const struct finding *finding = &exam->findings[first];
    size_t same = 0;

    if (finding->node < 0)
        return;
    for (size_t i = first; i < exam->finding_count; i++)
        same += is_same(finding, &exam->findings[i]);
    if (same == exam->count && same > 1) {
        printf("all servers: ");
        return;
    }
    for (size_t i = first; i < exam->finding_count; i++)
        if (is_same(finding, &exam->findings[i]))
            printf("%s%s", i == first ? "" : ", ", exam->nodes[exam->findings[i].node].node);
    printf(": ");
}

static void print_findings(const struct examination *exam)
{
    for (size_t i = 0; i < exam->finding_count; i++) {
        const struct finding *finding = &exam->findings[i];
        bool said = false;
        for (size_t j = 0; j < i; j++)
            said = said || is_same(finding, &exam->findings[j]);
        if (said)
            continue;
        printf("%s  ", severity_name(finding->severity));
        print_subject(exam, i);
        printf("%s\n      -> %s\n", finding->cause, finding->advice);
    }
}

static void print_text(const struct examination *exam)
{
    char text[160], rtt[24];

    printf("%-26s %-5s %-7s %-16s %8s\n", "server", "votes", "role", "version", "rtt ms");
    for (size_t i = 0; i < exam->count; i++) {
        const redlock_node_stats_t *node = &exam->nodes[i];
        uint64_t rtt_us = exam->rtt_us[i];
        snprintf(rtt, sizeof rtt, "%" PRIu64 ".%03u", rtt_us / 1000, (unsigned)(rtt_us % 1000));
        printf("%-26s %-5s %-7s %-16s %8s\n", node->node,
               node->may_vote && exam->twin[i] < 0 ? "yes" : "no", *node->role ? node->role : "-",
               *node->version ? node->version : "-", rtt_us ? rtt : "-");
    }
    print_findings(exam);
    doctor_verdict(exam, text, sizeof text);
    printf("%s: %s\n", health_name(exam->health), text);
}

static json_t *json_of_node(const struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];

    return must(json_pack(
        "{s:o, s:b, s:i, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:s, s:o}", "node",
        json_text(node->node), "may_vote", node->may_vote && exam->twin[i] < 0, "cause",
        node->cause, "role", node->role, "version", json_text(node->version), "run_id",
        json_text(node->run_id), "rtt_us", (json_int_t)exam->rtt_us[i], "uptime_s",
        (json_int_t)node->uptime_s, "votes_again_ms", (json_int_t)node->votes_again_ms,
        "clock_offset_us", (json_int_t)node->clock_offset_us, "replicas",
        (json_int_t)node->replicas, "maxmemory_policy", json_text(node->policy), "aof",
        (int)(node->facts & REDLOCK_FACT_AOF) != 0, "wakeups",
        wakefulness_name(exam->wakes[i].state), "text", json_text(node->text)));
}

static json_t *json_of_finding(const struct examination *exam, const struct finding *finding)
{
    return must(json_pack(
        "{s:s, s:o, s:s, s:o, s:s}", "severity", severity_name(finding->severity), "node",
        finding->node >= 0 ? json_text(exam->nodes[finding->node].node) : json_null(), "code",
        finding->code, "cause", json_text(finding->cause), "advice", finding->advice));
}

static void print_json(const struct examination *exam)
{
    json_t *nodes = must(json_array()), *findings = must(json_array());
    char text[160];

    for (size_t i = 0; i < exam->count; i++)
        json_array_append_new(nodes, json_of_node(exam, i));
    for (size_t i = 0; i < exam->finding_count; i++)
        json_array_append_new(findings, json_of_finding(exam, &exam->findings[i]));
    doctor_verdict(exam, text, sizeof text);
    json_print(json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "schema", "redlock.nodes/1",
                         "state", health_name(exam->health), "text", text, "configured",
                         (int)exam->count, "quorum", (int)exam->quorum, "may_vote",
                         (int)exam->may_vote, "nodes", nodes, "findings", findings));
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
    if (options->acl)
        return nodes_acl(options);
    if (options->init)
        return nodes_init(options);
    int result = client_open(options, &settings, &rl);
    if (result == EXIT_SYSTEM || result == EXIT_INTERNAL)
        return HEALTH_UNKNOWN;
    if (result >= 0)
        return result;
    exam.count = redlock_node_count(rl);
    wait_for_answers(rl, &settings, &exam);
    if (options->wait_all)
        wait_for_votes(rl, settings.wait_ms, &exam);
    measure(rl, &exam);
    nodes_probe(&settings, &exam);
    if (options->fence)
        nodes_fence(rl, &settings, &exam);
    doctor_judge(&exam);
    if (options->json)
        print_json(&exam);
    else
        print_text(&exam);
    result = (int)exam.health;
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return result;
}
