/* SPDX-License-Identifier: MIT
 * Prints what a case of contention_cases.c measured. */
#include "contention.h"

#include <inttypes.h>
#include <stdio.h>

/* Prints one line with the results of a case. */
void sim_case_print(const struct sim_case *scenario, const struct sim_world *world,
                    const struct sim_contention *contention)
{
    uint64_t all = rl_max_u64(contention->all, 1), most = 0, least = UINT64_MAX;

    for (unsigned i = 0; i < world->plan.clients; i++) {
        most = rl_max_u64(most, contention->grants[i]);
        least = rl_min_u64(least, contention->grants[i]);
    }
    printf("%-12s %6" PRIu64 " grants, hand-over p50 %6" PRIu64 " p99 %6" PRIu64
           " us, longest wait %6" PRIu64 " ms; per 1000: %6" PRIu64 " splits %7" PRIu64
           " attempts %7" PRIu64 " commands %5" PRIu64 " notifications, wait avg %" PRIu64
           " us share %4" PRIu64 " to %4" PRIu64 " jain %4" PRIu64 "; %" PRIu64 " others' %" PRIu64
           " events\n",
           scenario->name, contention->all, sim_contention_percentile_ns(contention, 50) / 1000,
           sim_contention_percentile_ns(contention, 99) / 1000, contention->longest_ns / RL_MS,
           contention->splits * 1000 / all, contention->attempts * 1000 / all,
           contention->commands * 1000 / all, contention->notifications * 1000 / all,
           contention->waited_ns / all / 1000, least * 1000 / all, most * 1000 / all,
           sim_contention_jain(world), contention->foreign_grants, world->events);
    fflush(stdout);
}
