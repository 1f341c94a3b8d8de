/* SPDX-License-Identifier: MIT
 * For each rule: the first seeds that notice that it is switched off. What it prints goes into
 * rules.txt, when the simulator has changed and its seeds mean something else.
 *
 *     search-teeth [SEEDS [RULE...]] */
#include "rules.h"
#include "world.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

static bool run(struct sim_world *world, uint64_t seed)
{
    bool good = sim_world_run(world, seed, false);

    sim_world_free(world);
    return good;
}

static bool search(struct sim_world *world, enum rl_rule rule, uint64_t seeds)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        rl_rules_off[rule] = true;
        bool good = run(world, seed);
        rl_rules_off[rule] = false;
        if (good)
            continue;
        char words[sizeof world->violation];
        snprintf(words, sizeof words, "%s", world->violation);
        if (!run(world, seed))
            continue;
        printf("%s | %" PRIu64 " | %s\n", sim_rule_name(rule), seed, words);
        fflush(stdout);
        return true;
    }
    printf("%s | nothing in %" PRIu64 " seeds\n", sim_rule_name(rule), seeds);
    return false;
}

int main(int argc, char **argv)
{
    struct sim_world *world = malloc(sizeof *world);
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    bool all = true;

    if (world == NULL || sodium_init() < 0)
        return 1;
    for (unsigned rule = 0; argc <= 2 && rule < RL_RULE_COUNT; rule++)
        all = search(world, (enum rl_rule)rule, seeds) && all;
    for (int i = 2; i < argc; i++) {
        int rule = sim_rule_find(argv[i]);
        all = rule >= 0 && search(world, (enum rl_rule)rule, seeds) && all;
    }
    free(world);
    return all ? 0 : 1;
}
