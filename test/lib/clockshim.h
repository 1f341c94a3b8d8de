/* SPDX-License-Identifier: MIT
 * Clocks of another process that a test can step and speed up. The process is started with
 * clockshim.so in LD_PRELOAD and with CLOCKSHIM_FILE, which it maps; the test writes to the same
 * file. (libfaketime cannot be used: redis-server hangs with it.)
 *
 * A clock shows `now + offset + (now - since) * rate`, where `now` is what the kernel's clock
 * shows. */
#ifndef TEST_CLOCKSHIM_H
#define TEST_CLOCKSHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum clockshim_clock {
    CLOCKSHIM_REALTIME, /* also gettimeofday() and time() */
    CLOCKSHIM_MONOTONIC,
    CLOCKSHIM_RAW,
    CLOCKSHIM_BOOTTIME,
    CLOCKSHIM_CLOCKS
};

/* How one clock differs from the kernel's. All 0: not at all. */
struct clockshim_setting {
    int64_t offset_ns; /* how far the clock was ahead at since_ns */
    int64_t since_ns;  /* what the kernel's clock showed when the rate was set */
    int64_t rate_ppm;  /* what the clock gains since then, in millionths */
};

/* The mapped file. Only the test writes to it. A new setting is written beside the one in use, and
 * then `used` changes, so that a reader never sees half of one. */
struct clockshim {
    struct {
        /* the setting with index used % 2 is in use */
        _Atomic uint32_t used;
        struct clockshim_setting setting[2];
    } clock[CLOCKSHIM_CLOCKS];
};

/* Returns the path of clockshim.so. */
const char *clockshim_object(void);

/* Creates the file with all clocks right, and maps it. Returns NULL if it cannot be created. */
struct clockshim *clockshim_create(const char *path);
/* Unmaps the file and leaves it on disk. NULL: no-op. */
void clockshim_close(struct clockshim *shim);

/* Steps a clock at once; its rate stays. */
void clockshim_step(struct clockshim *shim, enum clockshim_clock clock, int64_t step_ns);
/* Makes a clock gain `rate_ppm` millionths on the kernel's from now on (negative: lose). What it
 * shows now stays. */
void clockshim_set_rate(struct clockshim *shim, enum clockshim_clock clock, int64_t rate_ppm);
/* Sets a clock right again, in one step. */
void clockshim_reset(struct clockshim *shim, enum clockshim_clock clock);
/* Returns by how many ns a clock is ahead of the kernel's now (negative: behind). */
int64_t clockshim_ahead_ns(struct clockshim *shim, enum clockshim_clock clock);

#endif
