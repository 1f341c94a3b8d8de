/* SPDX-License-Identifier: MIT
 * Measures the cases of crowd_cases.c, with and without a rule.
 *
 *     crowds [--seed N] [--trace] [CASE|all [RULE]] */
#include "crowd.h"
#include "rules.h"

#include <getopt.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void measure(const struct sim_case *it, const char *rule, uint64_t seed, bool trace)
{
    struct sim_world *world = malloc(sizeof *world);
    struct sim_crowd *crowd = malloc(sizeof *crowd);

    if (world == NULL || crowd == NULL)
        abort();
    bool good = sim_case_run(it, seed, trace, world, crowd);
    uint64_t all = rl_max_u64(crowd->all, 1), most = 0, least = UINT64_MAX;
    for (unsigned i = 0; i < world->plan.clients; i++) {
        most = rl_max_u64(most, crowd->grants[i]);
        least = rl_min_u64(least, crowd->grants[i]);
    }
    printf("%-12s %-14s %6" PRIu64 " grants, hand-over p50 %6" PRIu64 " p99 %6" PRIu64
           " us, longest wait %6" PRIu64 " ms; per 1000: %6" PRIu64 " splits %7" PRIu64
           " attempts %7" PRIu64 " commands, wait avg %" PRIu64 " us share %4" PRIu64
           " to %4" PRIu64 " jain %4" PRIu64 "; %" PRIu64 " others' %" PRIu64 " events\n",
           it->name, rule, crowd->all, sim_crowd_percentile_ns(crowd, 50) / 1000,
           sim_crowd_percentile_ns(crowd, 99) / 1000, crowd->longest_ns / RL_MS,
           crowd->splits * 1000 / all, crowd->attempts * 1000 / all, crowd->commands * 1000 / all,
           crowd->waited_ns / all / 1000, least * 1000 / all, most * 1000 / all,
           sim_crowd_jain(world), crowd->foreign_grants, world->events);
    if (!good)
        printf("    %s\n", world->violation);
    fflush(stdout);
    sim_world_free(world);
    free(world);
    free(crowd);
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"seed", required_argument, NULL, 's'},
                                          {"trace", no_argument, NULL, 't'},
                                          {NULL, 0, NULL, 0}};
    uint64_t seed = 1;
    bool trace = false;
    int option, rule = -1;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 't')
            trace = true;
        else
            return 64;
    }
    const char *name = optind < argc ? argv[optind] : "all";
    if (sodium_init() < 0 || (optind + 1 < argc && (rule = sim_rule_find(argv[optind + 1])) < 0))
        return 64;
    for (unsigned i = 0; i < sim_case_count; i++) {
        if (strcmp(name, "all") != 0 && strcmp(name, sim_cases[i].name) != 0)
            continue;
        if (!trace || rule < 0)
            measure(&sim_cases[i], "-", seed, trace);
        if (rule < 0)
            continue;
        rl_rules_off[rule] = true;
        measure(&sim_cases[i], argv[optind + 1], seed, trace);
        rl_rules_off[rule] = false;
    }
    return 0;
}
