/* SPDX-License-Identifier: MIT
 * Runs many seeds. */
#include "campaign.h"

#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SHOWN_MAX    10  /* violations that are printed */
#define REPEAT_EVERY 100 /* runs */

/* Returns CLOCK_MONOTONIC in whole seconds. */
static uint64_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* Returns the exponent of the largest power of two that is not above the value, at most
 * SIM_BUCKETS - 1. */
static unsigned log2_of(uint64_t value)
{
    unsigned at = value == 0 ? 0 : 63u - (unsigned)__builtin_clzll(value);

    return at < SIM_BUCKETS ? at : SIM_BUCKETS - 1;
}

/* Adds the results of a run, and prints its violation. */
static void count(struct sim_totals *totals, const struct sim_world *world, bool good)
{
    uint64_t faults = 0;

    totals->runs++;
    totals->env_faults += world->plan.env_faults != 0;
    totals->events += world->events;
    totals->virtual_ns += world->now_ns - world->born_ns;
    totals->grants += world->grants;
    totals->operations += world->operations;
    for (unsigned i = 0; i < SIM_COUNTED; i++) {
        totals->injected[i] += world->injected[i];
        faults += world->injected[i];
    }
    totals->with_fault += faults > 0;
    totals->clients[world->plan.clients]++;
    totals->events_log2[log2_of(world->events)]++;
    if (good)
        return;
    if (totals->violations++ == 0)
        totals->first_bad = world->plan.seed;
    if (totals->violations <= SHOWN_MAX)
        fprintf(stderr, "seed %" PRIu64 ": %s\n", world->plan.seed, world->violation);
}

volatile sig_atomic_t sim_campaign_enough;

/* Runs seeds first, first + step, ... until `runs` are done or `seconds` have passed (0: no
 * limit), and adds their results to the totals. Repeats every hundredth seed and compares. */
void sim_campaign(struct sim_totals *totals, uint64_t first, uint64_t step, uint64_t runs,
                  uint64_t seconds)
{
    struct sim_world *world = malloc(sizeof *world);
    uint64_t begun = seconds_now();

    if (world == NULL)
        abort();
    for (uint64_t i = 0; i < runs && !sim_campaign_enough; i++) {
        if (seconds != 0 && i % 16 == 0 && seconds_now() - begun >= seconds)
            break;
        uint64_t seed = first + i * step;
        bool good = sim_world_run(world, seed, false);
        uint64_t hash = world->hash;
        count(totals, world, good);
        sim_world_free(world);
        if (i % REPEAT_EVERY != 0)
            continue;
        (void)sim_world_run(world, seed, false);
        totals->repeats++;
        if (world->hash != hash) {
            totals->violations++;
            fprintf(stderr, "seed %" PRIu64 ": the second run differs from the first\n", seed);
        }
        sim_world_free(world);
    }
    free(world);
}

/* Adds the sums of `from` to `to`. `to` keeps its first bad seed, if it has one. */
void sim_totals_add(struct sim_totals *to, const struct sim_totals *from)
{
    if (to->violations == 0)
        to->first_bad = from->first_bad;
    to->runs += from->runs;
    to->violations += from->violations;
    to->env_faults += from->env_faults;
    to->repeats += from->repeats;
    to->events += from->events;
    to->virtual_ns += from->virtual_ns;
    to->grants += from->grants;
    to->operations += from->operations;
    to->with_fault += from->with_fault;
    for (unsigned i = 0; i < SIM_COUNTED; i++)
        to->injected[i] += from->injected[i];
    for (unsigned i = 0; i <= SIM_CLIENTS_MAX; i++)
        to->clients[i] += from->clients[i];
    for (unsigned i = 0; i < SIM_BUCKETS; i++)
        to->events_log2[i] += from->events_log2[i];
}

/* Interpolates within the bucket of the histogram that contains the percentile. */
uint64_t sim_totals_percentile(const struct sim_totals *totals, uint64_t share)
{
    uint64_t want = totals->runs * share / 100, seen = 0;

    for (unsigned i = 0; i < SIM_BUCKETS; i++) {
        uint64_t here = totals->events_log2[i];
        if (here != 0 && seen + here > want)
            return (UINT64_C(1) << i) + (UINT64_C(1) << i) * (want - seen) / here;
        seen += here;
    }
    return 0;
}

/* Prints the totals as a table for people. */
void sim_totals_print_to(const struct sim_totals *totals, FILE *to)
{
    uint64_t tenths = totals->virtual_ns / UINT64_C(360000000000);

    fprintf(to, "schedules      %" PRIu64 ", of them %" PRIu64 " outside the assumptions\n",
            totals->runs, totals->env_faults);
    fprintf(to, "violations     %" PRIu64 "\n", totals->violations);
    fprintf(to, "virtual hours  %" PRIu64 ".%" PRIu64 "\n", tenths / 10, tenths % 10);
    fprintf(to,
            "events         %" PRIu64 "; in a schedule: 1%% below %" PRIu64 ", 10%% below %" PRIu64
            ", half below about %" PRIu64 ", 90%% below %" PRIu64 "\n",
            totals->events, sim_totals_percentile(totals, 1), sim_totals_percentile(totals, 10),
            sim_totals_percentile(totals, 50), sim_totals_percentile(totals, 90));
    fprintf(to, "operations     %" PRIu64 ", locks granted %" PRIu64 "\n", totals->operations,
            totals->grants);
    fprintf(to, "clients        ");
    for (unsigned i = 1; i <= SIM_CLIENTS_MAX; i++) {
        if (totals->clients[i] != 0)
            fprintf(to, "%u in %" PRIu64 " schedules  ", i, totals->clients[i]);
    }
    fprintf(to, "\nwith a fault   %" PRIu64 " schedules\n", totals->with_fault);
    for (unsigned i = 0; i < SIM_COUNTED; i++)
        fprintf(to, "  %-14s %" PRIu64 "\n", sim_fault_names[i], totals->injected[i]);
    fprintf(to, "run twice      %" PRIu64 " schedules, with the same result\n", totals->repeats);
}
