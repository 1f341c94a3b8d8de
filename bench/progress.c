/* SPDX-License-Identifier: MIT
 * Prints the progress of a run on stderr. */
#include "progress.h"

#include "result.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#define EACH_NS (UINT64_C(2) * 1000 * 1000 * 1000) /* between two lines */

/* The progress of this process; one measurement at a time. */
static struct {
    const char *what;   /* current measurement; borrowed; NULL: none */
    unsigned run, runs; /* number of the repetition, from 1, and of all repetitions */
    uint64_t shown_ns;  /* time of the last line, or of the beginning */
    bool silent;
} progress;

/* Begins a measurement, which `what` names, in repetition `run` of `runs`. */
void progress_begin(const char *what, unsigned run, unsigned runs)
{
    progress.what = what;
    progress.run = run;
    progress.runs = runs;
    progress.shown_ns = result_now_ns();
}

/* Prints a line with the percentage `done` of `total`, at most every EACH_NS. */
void progress_show(uint64_t done, uint64_t total)
{
    uint64_t now_ns = result_now_ns();
    if (progress.silent || progress.what == NULL || now_ns - progress.shown_ns < EACH_NS)
        return;
    progress.shown_ns = now_ns;
    fprintf(stderr, "%s: %s", program_invocation_short_name, progress.what);
    if (progress.runs > 1)
        fprintf(stderr, ", run %u of %u", progress.run, progress.runs);
    fprintf(stderr, ": %u %%\n", (unsigned)(100.0 * result_divide((double)done, (double)total)));
}

/* Prints no progress from now on. */
void progress_silence(void)
{
    progress.silent = true;
}
