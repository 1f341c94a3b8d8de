/* SPDX-License-Identifier: MIT
 * Replaces the random bytes of OpenSSL, and the time. */
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_set_rand_method(), the way that all versions have */
#include "tls_fixed.h"

#include "fuzz.h"

#include <openssl/rand.h>
#include <time.h>

static int64_t now_s = TLS_FIXED_BEGIN_S;
static uint64_t state;

/* Replaces the wall clock of the library: the linker's option --wrap redirects its calls. The
 * clocks of libc stay as they are, because libFuzzer measures with them. */
uint64_t __wrap_rl_clock_wall_us(void);
uint64_t __wrap_rl_clock_wall_us(void)
{
    return (uint64_t)now_s * 1000000;
}

/* Replaces time() of libc, for OpenSSL. libFuzzer does not call it. */
time_t time(time_t *ret)
{
    if (ret != NULL)
        *ret = (time_t)now_s;
    return (time_t)now_s;
}

/* Implements RAND_bytes() with the function splitmix64. Returns 1. */
static int random_bytes(unsigned char *bytes, int len)
{
    for (int i = 0; i < len; i++) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t mixed = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
        bytes[i] = (unsigned char)(mixed >> 56);
    }
    return 1;
}

/* Implements RAND_status(): there are always random bytes. */
static int random_status(void)
{
    return 1;
}

/* Replaces the random bytes. */
void tls_fixed_begin(void)
{
    static const RAND_METHOD method = {
        .bytes = random_bytes, .pseudorand = random_bytes, .status = random_status};

    MUST(RAND_set_rand_method(&method) == 1);
    state = 0;
}

/* Begins the random bytes and the time of a run. */
void tls_fixed_restart(void)
{
    state = 1;
    now_s = TLS_FIXED_BEGIN_S;
}

/* Moves the time forward. */
void tls_fixed_pass(int64_t seconds)
{
    now_s += seconds;
}

/* Returns the time. */
int64_t tls_fixed_now_s(void)
{
    return now_s;
}
