/* SPDX-License-Identifier: MIT
 * Makes the allocations fail that the input chooses, and ends a run that found an error. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "alloc_fail.h"

#define EVER 0x8000u

static bool injecting;

void fuzz_alloc_begin(struct fuzz_input *input)
{
    fuzz_alloc_choose(fuzz_short(input));
}

void fuzz_alloc_choose(unsigned choice)
{
    uint64_t number = choice & ~EVER;

    injecting = number != 0;
    if (!injecting)
        return;
    if (choice & EVER)
        alloc_fail_from(number - 1, ALLOC_FAIL_THIS_THREAD);
    else
        alloc_fail_once(number - 1, ALLOC_FAIL_THIS_THREAD);
}

bool fuzz_alloc_end(void)
{
    bool failed = injecting && alloc_fail_stop();

    injecting = false;
    return failed;
}

void fuzz_alloc_exempt(bool on)
{
    alloc_fail_exempt(on);
}

void fuzz_wrong(const char *file, int line, const char *what)
{
    alloc_fail_stop();
    fprintf(stderr, "%s:%d: must hold: %s\n", file, line, what);
    abort();
}
