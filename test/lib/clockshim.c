/* SPDX-License-Identifier: MIT
 * The preloaded part of the clock shim: answers clock_gettime(), gettimeofday() and time() by the
 * settings in a mapped file. Reads the kernel's clocks by system call, so that it neither calls
 * itself nor needs the dynamic linker while an allocator is being set up. */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "clockshim.h"

#define NS_PER_SECOND INT64_C(1000000000)
#define PPM           INT64_C(1000000)

static struct clockshim *shim;

__attribute__((constructor)) static void map_settings(void)
{
    const char *path = getenv("CLOCKSHIM_FILE");
    const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof *shim, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        shim = map;
}

/* Returns the index of a kernel clock in the mapped file (enum clockshim_clock);
 * CLOCKSHIM_CLOCKS if the shim leaves that clock alone. */
static int which(clockid_t id)
{
    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return CLOCKSHIM_REALTIME;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
        return CLOCKSHIM_MONOTONIC;
    case CLOCK_MONOTONIC_RAW:
        return CLOCKSHIM_RAW;
    case CLOCK_BOOTTIME:
        return CLOCKSHIM_BOOTTIME;
    default:
        return CLOCKSHIM_CLOCKS;
    }
}

/* Returns what the clock with index `clock` shows in ns when the kernel's shows `now_ns`. */
static int64_t shown(int64_t now_ns, int clock)
{
    const uint32_t used = atomic_load(&shim->clock[clock].used);
    const struct clockshim_setting setting = shim->clock[clock].setting[used % 2];
    const int64_t since_ns = now_ns - setting.since_ns;
    const int64_t drift_ns =
        since_ns / PPM * setting.rate_ppm + since_ns % PPM * setting.rate_ppm / PPM;
    return now_ns + setting.offset_ns + drift_ns;
}

/* Replaces clock_gettime(): the kernel's time, changed by the setting of that clock. Returns 0;
 * -1 with errno if the kernel refuses the clock. */
int clock_gettime(clockid_t id, struct timespec *ret_time)
{
    const int clock = which(id);
    if (syscall(SYS_clock_gettime, id, ret_time) != 0)
        return -1;
    if (shim == NULL || clock == CLOCKSHIM_CLOCKS)
        return 0;
    const int64_t ns = shown(ret_time->tv_sec * NS_PER_SECOND + ret_time->tv_nsec, clock);
    ret_time->tv_sec = (time_t)(ns / NS_PER_SECOND);
    ret_time->tv_nsec = (long)(ns % NS_PER_SECOND);
    return 0;
}

/* Replaces gettimeofday() by the changed CLOCK_REALTIME, in microseconds. `zone` is ignored. */
int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    ret_time->tv_sec = now.tv_sec;
    ret_time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* Replaces time() by the seconds of the changed CLOCK_REALTIME. */
time_t time(time_t *ret_time)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time != NULL)
        *ret_time = now.tv_sec;
    return now.tv_sec;
}
