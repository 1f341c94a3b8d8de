/* SPDX-License-Identifier: MIT
 * Prints measurements as lines of a table, as CSV or as one JSON document. */
#include "contended_print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* A printer between contended_printer_open() and contended_printer_close(). */
struct contended_printer {
    enum contended_format format;
    json_t *document; /* owned; NULL unless the format is JSON */
    json_t *results;  /* array in `document` */
};

/* Returns nanoseconds in milliseconds. */
static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* Returns hand-overs per second. */
static double per_second(const struct contended_result *result)
{
    return result->window_ns == 0 ? 0.0
                                  : (double)result->handovers * 1e9 / (double)result->window_ns;
}

/* Returns a time in units of the round trip that was measured during the run. */
static double trips(const struct contended_result *result, uint64_t ns)
{
    return result->trip_ns == 0 ? 0.0 : (double)ns / (double)result->trip_ns;
}

/* Returns the share of grants that went to the same contender again, 0 to 1. */
static double self_share(const struct contended_result *result)
{
    uint64_t all = result->selfs + result->handovers;
    return all == 0 ? 0.0 : (double)result->selfs / (double)all;
}

/* Prints the head of the report and of the table. */
static void table_header(const struct environment *env, const struct contended_settings *settings)
{
    printf("redlock-contended: hand-overs of one lock between contenders\n");
    environment_print(env, "  ");
    printf("  seed     %" PRIu64 ", ttl %" PRIu64 " ms, %" PRIu64 " ms each, the first %" PRIu64
           " not counted\n\n"
           "%-13s%6s%7s%8s%8s%9s%9s%9s%7s%7s%7s%7s%7s%8s%7s%9s%6s%7s%6s\n",
           settings->seed, settings->ttl_ms, settings->run_ms, settings->warm_ms, "driver", "proc",
           "hold", "delay", "trip", "over/s", "p50 ms", "p99 ms", "p50/tr", "split", "cmds",
           "upkeep", "notes", "cpu us", "jain", "longest", "never", "self", "fail");
    fflush(stdout);
}

/* Prints one line of the table. */
static void table_add(const struct contended_result *result)
{
    const struct contended_case *what = &result->what;
    printf("%-13s%6u%7.1f%8s%8.2f%9.1f%9.2f%9.1f%7.2f%7.2f%7.1f%7.1f%7.2f%8.0f%7.3f%9.0f%6" PRIu64
           "%6.0f%%%6" PRIu64,
           contended_driver_names[what->driver], what->contenders, (double)what->hold_us / 1e3,
           what->delays, ms(result->trip_ns), per_second(result), ms(result->p50_ns),
           ms(result->p99_ns), trips(result, result->p50_ns), result->splits_per_grant,
           result->commands_per_grant, result->upkeep_per_grant, result->notifications_per_grant,
           result->client_us_per_grant, result->jain, ms(result->wait_max_ns), result->starved,
           100.0 * self_share(result), result->errors);
    if (!contended_passed(result))
        printf("  WRONG: %" PRIu64 " violations, %ld keys left, %" PRIu64 " errors%s",
               result->violations, result->leftover_keys < 0 ? 0 : result->leftover_keys,
               result->errors,
               result->leftover_keys < 0 ? ", a server does not reply: leftover keys unknown" : "");
    printf("\n");
    fflush(stdout);
}

/* Prints the head of the report as comments, and the names of the columns. */
static void csv_header(const struct environment *env, const struct contended_settings *settings)
{
    environment_print(env, "# ");
    printf("# seed     %" PRIu64 ", ttl %" PRIu64 " ms, %" PRIu64 " ms each, the first %" PRIu64
           " not counted\n",
           settings->seed, settings->ttl_ms, settings->run_ms, settings->warm_ms);
    printf("driver,run,contenders,hold_ms,delay,jitter,round_trip_ms,grants,handovers,"
           "self_reacquires,handovers_per_s,p50_ms,p90_ms,p95_ms,p99_ms,p99_9_ms,max_ms,"
           "p50_round_trips,split_votes_per_grant,attempts_per_grant,commands_per_grant,"
           "upkeep_per_grant,notifications_per_grant,turns_per_grant,client_us_per_grant,jain,"
           "never_granted,longest_wait_ms,violations,errors,leftover_keys\n");
    fflush(stdout);
}

/* Prints one line of CSV. The delays of several servers contain commas, so the field is quoted. */
static void csv_add(const struct contended_result *result)
{
    const struct contended_case *what = &result->what;
    printf("%s,%u,%u,%.3f,\"%s\",\"%s\",%.4f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.2f",
           contended_driver_names[what->driver], result->run, what->contenders,
           (double)what->hold_us / 1e3, what->delays, what->jitters, ms(result->trip_ns),
           result->grants, result->handovers, result->selfs, per_second(result));
    printf(",%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.3f", ms(result->p50_ns), ms(result->p90_ns),
           ms(result->p95_ns), ms(result->p99_ns), ms(result->p99_9_ns), ms(result->max_ns),
           trips(result, result->p50_ns));
    printf(",%.3f,%.3f,%.2f,%.2f,%.2f,%.2f,%.2f,%.4f,%" PRIu64 ",%.1f,%" PRIu64 ",%" PRIu64
           ",%ld\n",
           result->splits_per_grant, result->attempts_per_grant, result->commands_per_grant,
           result->upkeep_per_grant, result->notifications_per_grant, result->turns_per_grant,
           result->client_us_per_grant, result->jain, result->starved, ms(result->wait_max_ns),
           result->violations, result->errors, result->leftover_keys);
    fflush(stdout);
}

/* Explains the columns, below the table. */
static const char table_end[] =
    "\nproc: contenders; hold, delay (each direction), trip (PING to the q-th server during the "
    "run), longest (wait): ms\nover/s: hand-overs per second; p50, p99: from the call of release "
    "to the grant of the next holder; p50/tr: p50 in round trips\nsplit: failed attempts that at "
    "least one server had granted, per grant; cmds: commands on all servers per grant, without "
    "those of upkeep, which each client sends anyway (greetings, heartbeats); notes: notifications "
    "per grant; cpu us: "
    "processor time of the contenders per grant\njain: fairness, 1 means equal shares; never: "
    "contenders without any grant; self: grants to the same contender again, not counted as "
    "hand-overs\nfail: failed calls of this library, mostly because servers replied too late; up "
    "to one in a hundred grants is accepted\n";

/* Returns one measurement as a JSON object. */
static json_t *json_result(const struct contended_result *result)
{
    const struct contended_case *what = &result->what;
    json_t *object = json_pack(
        "{s:s, s:i, s:i, s:f, s:s, s:s, s:f, s:f}", "driver", contended_driver_names[what->driver],
        "run", (int)result->run, "contenders", (int)what->contenders, "hold_ms",
        (double)what->hold_us / 1e3, "delay", what->delays, "jitter", what->jitters,
        "round_trip_idle_ms", ms(result->trip_idle_ns), "round_trip_ms", ms(result->trip_ns));
    json_t *more = json_pack(
        "{s:I, s:I, s:I, s:f, s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:s, s:f, "
        "s:f, s:I, s:f, "
        "s:I, s:I, s:I, s:b}",
        "grants", (json_int_t)result->grants, "handovers", (json_int_t)result->handovers,
        "self_reacquires", (json_int_t)result->selfs, "handovers_per_s", per_second(result),
        "handover_ms", "p50", ms(result->p50_ns), "p90", ms(result->p90_ns), "p95",
        ms(result->p95_ns), "p99", ms(result->p99_ns), "p99_9", ms(result->p99_9_ns), "max",
        ms(result->max_ns), "p50_round_trips", trips(result, result->p50_ns), "p99_round_trips",
        trips(result, result->p99_ns), "split_votes_per_grant", result->splits_per_grant,
        "attempts_per_grant", result->attempts_per_grant, "commands_per_grant",
        result->commands_per_grant, "upkeep_per_grant", result->upkeep_per_grant,
        "notifications_per_grant", result->notifications_per_grant, "turns_per_grant",
        result->turns_per_grant, "commands_by_name", result->commands, "client_us_per_grant",
        result->client_us_per_grant, "jain", result->jain, "never_granted",
        (json_int_t)result->starved, "longest_wait_ms", ms(result->wait_max_ns), "violations",
        (json_int_t)result->violations, "errors", (json_int_t)result->errors, "leftover_keys",
        (json_int_t)result->leftover_keys, "passed", contended_passed(result));
    json_object_update(object, more);
    json_decref(more);
    return object;
}

/* Prints the head of a table or of CSV, or begins the JSON document. Returns NULL if out of
 * memory. */
struct contended_printer *contended_printer_open(enum contended_format format,
                                                 const struct environment *env,
                                                 const struct contended_settings *settings)
{
    struct contended_printer *printer = calloc(1, sizeof *printer);
    if (printer == NULL)
        return NULL;
    printer->format = format;
    if (format == CONTENDED_TABLE)
        table_header(env, settings);
    else if (format == CONTENDED_CSV)
        csv_header(env, settings);
    if (format != CONTENDED_JSON)
        return printer;
    printer->results = json_array();
    printer->document =
        json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:O}", "schema", "redlock.contended/1",
                  "environment", environment_json(env), "seed", (json_int_t)settings->seed,
                  "ttl_ms", (json_int_t)settings->ttl_ms, "run_ms", (json_int_t)settings->run_ms,
                  "warm_ms", (json_int_t)settings->warm_ms, "results", printer->results);
    return printer;
}

/* Prints one result, or adds it to the JSON document. */
void contended_printer_add(struct contended_printer *printer, const struct contended_result *result)
{
    if (printer->format == CONTENDED_TABLE)
        table_add(result);
    else if (printer->format == CONTENDED_CSV)
        csv_add(result);
    else
        json_array_append_new(printer->results, json_result(result));
}

/* Prints the end of the table or the JSON document, and frees the printer. */
void contended_printer_close(struct contended_printer *printer)
{
    if (printer->document != NULL) {
        json_dumpf(printer->document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        printf("\n");
        json_decref(printer->results);
        json_decref(printer->document);
    } else if (printer->format == CONTENDED_TABLE) {
        fputs(table_end, stdout);
    }
    free(printer);
}
