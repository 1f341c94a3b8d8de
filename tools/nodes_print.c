/* SPDX-License-Identifier: MIT
 * Prints the result of `redlock nodes`, for people and as JSON: the verdict, the servers and the
 * findings.
 */
#include "nodes_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "nodes_notify.h"
#include "reports.h"
#include "say.h"
#include "shown.h"

/* Returns the worst health among all shards. */
enum health_exit nodes_worst(const struct examination *exams, size_t shards)
{
    enum health_exit worst = HEALTH_OK;

    for (size_t i = 0; i < shards; i++)
        worst = exams[i].health > worst ? exams[i].health : worst;
    return worst;
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

/* Prints what to do about a finding. */
static void print_advice(const struct finding *finding)
{
    show("      -> %s\n", finding->advice);
}

/* Returns true if a finding is printed only with -v: it holds for nearly all servers, and nothing
 * has to be done. */
static bool is_detail(const struct finding *finding)
{
    return !strcmp(finding->code, "no_aof") && !say_shows(SAY_INFO);
}

/* Prints the findings of one shard, each with its advice, except `verdict`, which was printed
 * before (NULL: none was). The same finding about several servers is printed once, with the names
 * of these servers. */
static void print_findings(const struct examination *exam, const struct finding *verdict)
{
    for (size_t i = 0; i < exam->finding_count; i++) {
        const struct finding *finding = &exam->findings[i];
        bool said = finding == verdict || is_detail(finding);
        for (size_t j = 0; j < i; j++)
            said = said || is_same(finding, &exam->findings[j]);
        if (said)
            continue;
        show("%s  ", severity_name(finding->severity));
        print_subject(exam, i);
        show("%s\n", finding->text);
        print_advice(finding);
    }
}

/* Returns true if a server of the shard is connected with TLS. */
static bool has_tls(const struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        if (exam->nodes[i].facts & REDLOCK_FACT_TLS)
            return true;
    return false;
}

/* Prints the table of the servers of one shard. The column about TLS is left out if there is none.
 */
static void print_servers(const struct examination *exam)
{
    bool with_tls = has_tls(exam);
    char rtt[24], tls[TLS_TEXT];

    show("%-26s %-8s %-7s %-16s %8s%s\n", "server", "eligible", "role", "version", "rtt ms",
         with_tls ? "  tls" : "");
    for (size_t i = 0; i < exam->count; i++) {
        const redlock_node_stats_t *node = &exam->nodes[i];
        uint64_t rtt_us = exam->rtt_us[i];
        snprintf(rtt, sizeof rtt, "%" PRIu64 ".%03u", rtt_us / 1000, (unsigned)(rtt_us % 1000));
        reports_tls(node, tls);
        show("%-26s %-8s %-7s %-16s %8s%s%s\n", node->node,
             node->eligible && exam->duplicate_of[i] < 0 ? "yes" : "no",
             *node->role ? node->role : "-", *node->version ? node->version : "-",
             rtt_us ? rtt : "-", with_tls ? "  " : "", with_tls && !*tls ? "-" : tls);
    }
}

/* Prints one shard for people: the verdict, a table of the servers, and the findings. */
static void print_shard(const struct examination *exam)
{
    const struct finding *verdict = examination_verdict_finding(exam);
    char text[VERDICT_TEXT_MAX];

    if (*exam->shard_name) {
        show("\n");
        show("shard %s: ", exam->shard_name);
    }
    examination_verdict(exam, text, sizeof text);
    show("%s: %s\n", health_name(exam->health), text);
    if (verdict)
        print_advice(verdict);
    print_servers(exam);
    print_findings(exam, verdict);
}

/* Prints the verdict about several shards: which of them are not in order. */
static void print_summary(const struct examination *exams, size_t shards)
{
    size_t bad = 0;

    for (size_t i = 0; i < shards; i++)
        bad += exams[i].health != HEALTH_OK;
    show("%s: ", health_name(nodes_worst(exams, shards)));
    if (bad == 0)
        show("all %zu shards are in order", shards);
    else
        show("%zu of %zu shards not in order", bad, shards);
    const char *before = ": ";
    for (size_t i = 0; i < shards; i++) {
        if (exams[i].health == HEALTH_OK)
            continue;
        show("%s%s", before, exams[i].shard_name);
        before = ", ";
    }
    show("\n");
}

/* Returns the JSON object for server `i` of the shard. */
static json_t *json_of_node(const struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    char cause[CAUSE_NAME];

    return must(json_pack(
        "{s:o, s:b, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:s, s:s, s:s, s:o, "
        "s:o}",
        "server", json_text(node->node), "eligible", node->eligible && exam->duplicate_of[i] < 0,
        "cause", cause_name(node->cause, cause), "role", node->role, "version",
        json_text(node->version), "run_id", json_text(node->run_id), "rtt_us",
        (json_int_t)exam->rtt_us[i], "uptime_s", (json_int_t)node->uptime_s, "quarantine_ms",
        (json_int_t)node->quarantine_ms, "clock_offset_us", (json_int_t)node->clock_offset_us,
        "replicas", (json_int_t)node->replicas, "maxmemory_policy", json_text(node->policy), "aof",
        (int)(node->facts & REDLOCK_FACT_AOF) != 0, "notifications",
        notify_result_name(exam->notify[i].state), "line", notify_line_name(&exam->notify[i]),
        "tls", reports_tls_name(node), "certificate_expires", reports_expiry_json(node), "text",
        json_text(node->text)));
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
    char text[VERDICT_TEXT_MAX];

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
        json_object_set_new(object, "state", json_string(health_name(nodes_worst(exams, shards))));
        json_object_set(object, "shards", list);
    }
    json_decref(only);
    json_decref(list);
    json_print(object);
}

/* Prints all shards, as JSON or for people. The first line for people is the verdict, because
 * monitoring systems show only that line. */
void nodes_print(bool json, const struct examination *exams, size_t shards)
{
    if (json) {
        print_json(exams, shards);
        return;
    }
    if (shards > 1)
        print_summary(exams, shards);
    for (size_t i = 0; i < shards; i++)
        print_shard(&exams[i]);
}
