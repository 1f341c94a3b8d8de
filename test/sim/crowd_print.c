/* SPDX-License-Identifier: MIT
 * Prints what a case of crowd_cases.c measured. */
#include "crowd.h"

#include <inttypes.h>
#include <stdio.h>

void sim_case_print(const struct sim_case *it, const struct sim_world *world,
                    const struct sim_crowd *crowd)
{
    uint64_t all = rl_max_u64(crowd->all, 1), most = 0, least = UINT64_MAX;

    for (unsigned i = 0; i < world->plan.clients; i++) {
        most = rl_max_u64(most, crowd->grants[i]);
        least = rl_min_u64(least, crowd->grants[i]);
    }
    printf("%-12s %6" PRIu64 " grants, hand-over p50 %6" PRIu64 " p99 %6" PRIu64
           " us, longest wait %6" PRIu64 " ms; per 1000: %6" PRIu64 " splits %7" PRIu64
           " attempts %7" PRIu64 " commands, wait avg %" PRIu64 " us share %4" PRIu64
           " to %4" PRIu64 " jain %4" PRIu64 "; %" PRIu64 " others' %" PRIu64 " events\n",
           it->name, crowd->all, sim_crowd_percentile_ns(crowd, 50) / 1000,
           sim_crowd_percentile_ns(crowd, 99) / 1000, crowd->longest_ns / RL_MS,
           crowd->splits * 1000 / all, crowd->attempts * 1000 / all, crowd->commands * 1000 / all,
           crowd->waited_ns / all / 1000, least * 1000 / all, most * 1000 / all,
           sim_crowd_jain(world), crowd->foreign_grants, world->events);
    fflush(stdout);
}
