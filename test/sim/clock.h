/* SPDX-License-Identifier: MIT
 * A clock of a modelled machine: it runs a little too fast or too slow, stands still, or is
 * stepped. True time is the time of the world, in nanoseconds. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Between changes, the clock shows shown_ns + (true time - true_ns) * (1 + ppm / 10^6). */
struct sim_clock {
    uint64_t true_ns;  /* true time of the last change */
    uint64_t shown_ns; /* what the clock showed then */
    int64_t ppm;       /* how much too fast it runs, in millionths */
    bool stopped;      /* it shows shown_ns until it is started again */
};

/* Returns dt * ppm / 10^6 without overflow. */
static inline int64_t sim_scaled(int64_t dt, int64_t ppm)
{
    return dt / 1000000 * ppm + dt % 1000000 * ppm / 1000000;
}

/* Returns what the clock shows at that true time. */
static inline uint64_t sim_clock_read(const struct sim_clock *clock, uint64_t true_ns)
{
    int64_t dt = (int64_t)(true_ns - clock->true_ns);

    if (clock->stopped)
        return clock->shown_ns;
    return clock->shown_ns + (uint64_t)(dt + sim_scaled(dt, clock->ppm));
}

/* Takes the present reading as a new starting point, before a change of ppm or `stopped`. */
static inline void sim_clock_touch(struct sim_clock *clock, uint64_t true_ns)
{
    clock->shown_ns = sim_clock_read(clock, true_ns);
    clock->true_ns = true_ns;
}

/* Returns the true time, rounded up, at which the clock will show `shown_ns` if it is not changed.
 */
static inline uint64_t sim_clock_when(const struct sim_clock *clock, uint64_t shown_ns)
{
    if (shown_ns <= clock->shown_ns)
        return clock->true_ns;
    int64_t d = (int64_t)(shown_ns - clock->shown_ns);
    int64_t million = 1000000;
    int64_t rate = million + clock->ppm;
    int64_t dt = d / rate * million + d % rate * million / rate;
    uint64_t at = clock->true_ns + (uint64_t)dt;
    while (!clock->stopped && sim_clock_read(clock, at) < shown_ns)
        at++;
    return at;
}

#endif
