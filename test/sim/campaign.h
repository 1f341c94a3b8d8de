/* SPDX-License-Identifier: MIT
 * Runs many seeds and adds up their results. */
#ifndef SIM_CAMPAIGN_H
#define SIM_CAMPAIGN_H

#include "plan.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#define SIM_BUCKETS 20

/* Sums over runs. */
struct sim_totals {
    uint64_t runs, violations;
    uint64_t env_faults; /* runs that break an assumption about the environment */
    uint64_t repeats;    /* runs that were repeated */
    uint64_t events, virtual_ns, grants, operations;
    uint64_t injected[SIM_COUNTED];        /* faults by kind */
    uint64_t with_fault;                   /* runs with at least one fault */
    uint64_t clients[SIM_CLIENTS_MAX + 1]; /* runs by their number of clients */
    uint64_t events_log2[SIM_BUCKETS];     /* number of runs with 2^i to 2^(i+1) events */
    uint64_t first_bad;                    /* seed of the first run with a violation; 0: none */
};

/* Set by a signal handler: the campaign ends after the present run. */
extern volatile sig_atomic_t sim_campaign_enough;

/* Runs seeds from `first` on, each `step` apart, until `runs` are done or `seconds` of wall time
 * have passed (0: no limit). Every hundredth seed runs twice and must give the same result. Prints
 * violations to stderr as they come, ten at most. */
void sim_campaign(struct sim_totals *totals, uint64_t first, uint64_t step, uint64_t runs,
                  uint64_t seconds);
/* Adds the totals of another process. */
void sim_totals_add(struct sim_totals *to, const struct sim_totals *from);
/* Estimates the number of events that `share` of 100 runs stay below. */
uint64_t sim_totals_percentile(const struct sim_totals *totals, uint64_t share);
void sim_totals_print_to(const struct sim_totals *totals, FILE *to);

#endif
