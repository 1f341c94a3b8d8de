/* SPDX-License-Identifier: MIT
 * The test's part of the clock shim: creates the file and writes settings. */
#include "clockshim.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND INT64_C(1000000000)
#define PPM           INT64_C(1000000)

/* Returns the path of clockshim.so. */
const char *clockshim_object(void)
{
    return CLOCKSHIM_PATH;
}

/* Creates the file with all clocks right, and maps it. Returns NULL if it cannot be created. */
struct clockshim *clockshim_create(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *map = MAP_FAILED;
    if (ftruncate(fd, sizeof(struct clockshim)) == 0)
        map = mmap(NULL, sizeof(struct clockshim), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

/* Unmaps the file and leaves it on disk. NULL: no-op. */
void clockshim_close(struct clockshim *shim)
{
    if (shim != NULL)
        munmap(shim, sizeof *shim);
}

/* Returns what the kernel's clock shows. */
static int64_t kernel_ns(enum clockshim_clock clock)
{
    static const clockid_t ids[CLOCKSHIM_CLOCKS] = {CLOCK_REALTIME, CLOCK_MONOTONIC,
                                                    CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME};
    struct timespec now;
    clock_gettime(ids[clock], &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Returns a copy of the setting that is in use for a clock. */
static struct clockshim_setting setting_of(struct clockshim *shim, enum clockshim_clock clock)
{
    return shim->clock[clock].setting[atomic_load(&shim->clock[clock].used) % 2];
}

/* Writes a setting into the free place and makes it the one in use. */
static void use(struct clockshim *shim, enum clockshim_clock clock,
                struct clockshim_setting setting)
{
    const uint32_t next = atomic_load(&shim->clock[clock].used) + 1;
    shim->clock[clock].setting[next % 2] = setting;
    atomic_store(&shim->clock[clock].used, next);
}

/* Returns how far a clock with that setting is ahead when the kernel's clock shows `now_ns`. */
static int64_t ahead_at(struct clockshim_setting setting, int64_t now_ns)
{
    const int64_t since_ns = now_ns - setting.since_ns;
    return setting.offset_ns + since_ns / PPM * setting.rate_ppm +
           since_ns % PPM * setting.rate_ppm / PPM;
}

/* Returns by how many ns a clock is ahead of the kernel's now (negative: behind). */
int64_t clockshim_ahead_ns(struct clockshim *shim, enum clockshim_clock clock)
{
    return ahead_at(setting_of(shim, clock), kernel_ns(clock));
}

/* Steps a clock at once; its rate stays. */
void clockshim_step(struct clockshim *shim, enum clockshim_clock clock, int64_t step_ns)
{
    struct clockshim_setting setting = setting_of(shim, clock);
    setting.offset_ns += step_ns;
    use(shim, clock, setting);
}

/* Makes a clock gain `rate_ppm` millionths on the kernel's clock from now on (negative: lose).
 * The time that the clock shows now does not jump. */
void clockshim_set_rate(struct clockshim *shim, enum clockshim_clock clock, int64_t rate_ppm)
{
    const int64_t now_ns = kernel_ns(clock);
    const struct clockshim_setting setting = {
        .offset_ns = ahead_at(setting_of(shim, clock), now_ns),
        .since_ns = now_ns,
        .rate_ppm = rate_ppm,
    };
    use(shim, clock, setting);
}

/* Sets a clock right again, in one step. */
void clockshim_reset(struct clockshim *shim, enum clockshim_clock clock)
{
    use(shim, clock, (struct clockshim_setting){.offset_ns = 0});
}
