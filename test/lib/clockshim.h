/* SPDX-License-Identifier: MIT
 * Clocks of another process that a test can step and slow down. The process is started with
 * clockshim.so in LD_PRELOAD and with CLOCKSHIM_FILE, which it maps; the test writes to the same
 * file. (libfaketime does not go with redis-server: it hangs.)
 *
 * What a clock shows is `now + offset + (now - since) * rate`, with `now` the kernel's. */
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

struct clockshim_setting {
    int64_t offset_ns, since_ns, rate_ppm;
};

/* The file. A setting is written beside the one in use, which is then exchanged. */
struct clockshim {
    struct {
        _Atomic uint32_t used;
        struct clockshim_setting setting[2];
    } clock[CLOCKSHIM_CLOCKS];
};

/* Path of clockshim.so. */
const char *clockshim_object(void);

/* Makes the file (all clocks right) and maps it. NULL: it cannot be made. */
struct clockshim *clockshim_create(const char *path);
void clockshim_close(struct clockshim *shim);

/* Moves a clock at once; the rate stays. */
void clockshim_step(struct clockshim *shim, enum clockshim_clock clock, int64_t step_ns);
/* From now on this much faster (or slower) than the kernel's; what it shows now stays. */
void clockshim_set_rate(struct clockshim *shim, enum clockshim_clock clock, int64_t rate_ppm);
/* Right again, in a step. */
void clockshim_reset(struct clockshim *shim, enum clockshim_clock clock);
/* How far a clock is ahead now. */
int64_t clockshim_ahead_ns(struct clockshim *shim, enum clockshim_clock clock);

#endif
