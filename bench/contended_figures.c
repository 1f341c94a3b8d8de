/* SPDX-License-Identifier: MIT
 * Computes figures from the holds that the contenders recorded, and checks that no two contenders
 * held the lock at the same time. */
#include "contended.h"

#include <stdlib.h>
#include <string.h>

/* Orders holds by the time of their grant, for qsort(). */
static int compare_holds(const void *a, const void *b)
{
    const struct hold *x = a, *y = b;
    return (x->grant_ns > y->grant_ns) - (x->grant_ns < y->grant_ns);
}

/* Orders numbers, the smallest first, for qsort(). */
static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the smallest value that at least basis_points / 10000 of all values do not exceed. 5000
 * is the median. 0 if there is no value. */
static uint64_t percentile(const uint64_t *sorted, size_t count, unsigned basis_points)
{
    return count == 0 ? 0 : sorted[(count * basis_points + 9999) / 10000 - 1];
}

/* Counts the grants that came before the end of an earlier hold. `holds` are in the order of their
 * grants; warm-up and end of the measurement count as well. */
static uint64_t count_violations(const struct hold *holds, size_t count)
{
    uint64_t violations = 0, held_until_ns = 0;
    for (size_t i = 0; i < count; i++) {
        violations += holds[i].grant_ns < held_until_ns;
        if (holds[i].release_ns > held_until_ns)
            held_until_ns = holds[i].release_ns;
    }
    return violations;
}

/* Computes the latencies of the hand-overs in the window. `holds` are in the order of their grants;
 * `latencies` has room for `count` values. */
static void hand_overs(const struct hold *holds, size_t count, uint64_t from_ns, uint64_t to_ns,
                       uint64_t *latencies, struct contended_result *result)
{
    size_t n = 0;
    for (size_t i = 1; i < count; i++) {
        const struct hold *last = &holds[i - 1], *next = &holds[i];
        if (next->grant_ns < from_ns || next->grant_ns >= to_ns)
            continue;
        if (next->contender == last->contender)
            result->selfs++;
        else
            latencies[n++] =
                next->grant_ns > last->release_ns ? next->grant_ns - last->release_ns : 0;
    }
    qsort(latencies, n, sizeof *latencies, compare_u64);
    result->handovers = n;
    result->p50_ns = percentile(latencies, n, 5000);
    result->p90_ns = percentile(latencies, n, 9000);
    result->p95_ns = percentile(latencies, n, 9500);
    result->p99_ns = percentile(latencies, n, 9900);
    result->p99_9_ns = percentile(latencies, n, 9990);
    result->max_ns = percentile(latencies, n, 10000);
}

/* Computes how the contenders shared the lock: grants, starved contenders, longest wait, Jain's
 * index. */
static void shares(const struct contender *contenders, unsigned count, uint64_t from_ns,
                   uint64_t to_ns, struct contended_result *result)
{
    double sum = 0.0, squares = 0.0;
    for (unsigned i = 0; i < count; i++) {
        const struct contender *one = &contenders[i];
        uint64_t grants = 0, wait_ns;
        for (uint32_t j = 0; j < one->count; j++) {
            const struct hold *hold = &one->holds[j];
            if (hold->grant_ns < from_ns || hold->grant_ns >= to_ns)
                continue;
            grants++;
            wait_ns = hold->grant_ns - hold->want_ns;
            result->wait_max_ns = wait_ns > result->wait_max_ns ? wait_ns : result->wait_max_ns;
        }
        wait_ns = one->waiting_ns != 0 && one->waiting_ns < to_ns ? to_ns - one->waiting_ns : 0;
        result->wait_max_ns = wait_ns > result->wait_max_ns ? wait_ns : result->wait_max_ns;
        result->grants += grants;
        result->starved += grants == 0;
        sum += (double)grants;
        squares += (double)grants * (double)grants;
    }
    result->jain = squares > 0.0 ? sum * sum / (squares * (double)count) : 0.0;
}

/* Sums up what the grants cost the contenders, and their errors. These sums include the warm-up. */
static void costs(const struct contender *contenders, unsigned count,
                  struct contended_result *result)
{
    uint64_t acquired = 0, attempts = 0, splits = 0, cpu_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        acquired += contenders[i].acquired;
        attempts += contenders[i].attempts;
        splits += contenders[i].split_votes;
        cpu_ns += contenders[i].cpu_ns;
        result->errors += contenders[i].errors + contenders[i].failed + contenders[i].full;
    }
    if (acquired == 0)
        return;
    result->splits_per_grant = (double)splits / (double)acquired;
    result->attempts_per_grant = (double)attempts / (double)acquired;
    result->client_us_per_grant = (double)cpu_ns / 1e3 / (double)acquired;
}

/* Fills in the figures of `result` from the records of `count` contenders. Only grants from from_ns
 * up to to_ns count; violations and costs count the whole run. */
void contended_figures(const struct contender *contenders, unsigned count, uint64_t from_ns,
                       uint64_t to_ns, struct contended_result *result)
{
    size_t total = 0, at = 0;
    for (unsigned i = 0; i < count; i++)
        total += contenders[i].count;
    struct hold *holds = calloc(total + 1, sizeof *holds);
    uint64_t *latencies = calloc(total + 1, sizeof *latencies);
    if (holds == NULL || latencies == NULL)
        abort();
    for (unsigned i = 0; i < count; i++) {
        memcpy(holds + at, contenders[i].holds, contenders[i].count * sizeof *holds);
        at += contenders[i].count;
    }
    qsort(holds, total, sizeof *holds, compare_holds);
    result->window_ns = to_ns - from_ns;
    result->violations = count_violations(holds, total);
    hand_overs(holds, total, from_ns, to_ns, latencies, result);
    shares(contenders, count, from_ns, to_ns, result);
    costs(contenders, count, result);
    free(latencies);
    free(holds);
}
