/* SPDX-License-Identifier: MIT
 * The source of all choices of a run, which come from one seed. Integers only, so that a run is the
 * same on every machine. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* The state of one generator. Initialize `word` with a seed. */
struct sim_random {
    uint64_t word;
};

/* Returns the next word (SplitMix64). */
static inline uint64_t sim_word(struct sim_random *random)
{
    uint64_t z = random->word += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns one of 0 .. count - 1. */
static inline uint64_t sim_below(struct sim_random *random, uint64_t count)
{
    return sim_word(random) % count;
}

/* Returns one of low .. high, both included. */
static inline uint64_t sim_between(struct sim_random *random, uint64_t low, uint64_t high)
{
    return low + sim_below(random, high - low + 1);
}

/* Returns true in `of_1000` of 1000 cases. */
static inline bool sim_chance(struct sim_random *random, unsigned of_1000)
{
    return sim_below(random, 1000) < of_1000;
}

/* Returns one of low .. high, where each power of two is as likely as the next one. `low` is above
 * 0. */
static inline uint64_t sim_scale(struct sim_random *random, uint64_t low, uint64_t high)
{
    unsigned steps = 0;

    while (low << (steps + 1) <= high && steps < 62)
        steps++;
    uint64_t from = low << sim_below(random, steps + 1);
    uint64_t to = 2 * from < high ? 2 * from : high;
    return sim_between(random, from, to);
}

#endif
