/* SPDX-License-Identifier: MIT
 * The waiters in the report of an inspection: read from the value of the line's key when the report
 * is filled, and kept in one block of memory, the labels behind the array. */
#include "api/report_line.h"

#include "api/report.h"
#include "api/stats.h"

#include <string.h>

/* A time above this many ms of Unix time (year 9999) is not one. */
#define SINCE_MAX_MS UINT64_C(253402300799999)

/* One waiter in report->waiters. */
struct rl_report_waiter {
    uint64_t since_ms; /* redlock_waiter_t.since_ms */
    size_t owner;      /* its owner label: bytes from the beginning of the block, terminated */
};

/* Copies an owner label to `to`, which has RL_OWNER_MAX + 1 bytes, and replaces blanks, control
 * bytes and bytes that are not ASCII by '?'. Returns its length with the NUL. */
size_t rl_report_copy_owner(char *to, struct rl_arg label)
{
    size_t len = label.len < RL_OWNER_MAX ? label.len : RL_OWNER_MAX;

    for (size_t i = 0; i < len; i++)
        to[i] = label.data[i] > 0x20 && label.data[i] < 0x7f ? label.data[i] : '?';
    to[len] = '\0';
    return len + 1;
}

/* Counts the waiters of a line, and the bytes that their labels need with their ends. */
static uint32_t count_waiters(struct rl_arg records, size_t *ret_bytes)
{
    struct rl_line_waiter waiter;
    uint32_t count = 0;

    *ret_bytes = 0;
    while (rl_line_next_waiter(&records, &waiter)) {
        *ret_bytes += (waiter.owner.len < RL_OWNER_MAX ? waiter.owner.len : RL_OWNER_MAX) + 1;
        count++;
    }
    return count;
}

/* Fills in the waiters that an inspection has seen: report->waiters, and what the outcome says of
 * them. Without memory there are none, and the outcome says that it is not known who waits. */
void rl_report_fill_waiters(struct redlock_report *report, struct rl_arg line)
{
    struct rl_arg records;
    struct rl_line_waiter waiter;
    size_t bytes;

    if (!rl_line_open(line, &records))
        return;
    uint32_t count = count_waiters(records, &bytes);
    size_t at = count * sizeof *report->waiters;
    if (count == 0)
        return;
    report->waiters = rl_alloc(&report->mem, at + bytes);
    if (report->waiters == NULL) {
        report->info.line_servers = 0;
        return;
    }
    report->waiters_size = at + bytes;
    report->info.line_length = count;
    report->info.line_more = line.len >= RL_LINE_VALUE_MAX;
    for (uint32_t i = 0; rl_line_next_waiter(&records, &waiter); i++) {
        bool is_time = waiter.since_ms <= SINCE_MAX_MS;
        report->waiters[i] = (struct rl_report_waiter){is_time ? waiter.since_ms : 0, at};
        at += rl_report_copy_owner((char *)report->waiters + at, waiter.owner);
    }
}

/* Public function: copies what is known of one waiter to *ret_waiter of `size` bytes. Returns
 * REDLOCK_OK; or REDLOCK_EINVAL if an argument is NULL, `size` is 0 or there is no such waiter. */
REDLOCK_API int redlock_report_get_waiter(const redlock_report_t *report, size_t index,
                                          redlock_waiter_t *ret_waiter, size_t size)
{
    if (report == NULL || report->waiters == NULL || index >= report->info.line_length)
        return REDLOCK_EINVAL;
    const struct rl_report_waiter *from = &report->waiters[index];
    const redlock_waiter_t waiter = {
        .owner = (const char *)report->waiters + from->owner,
        .since_ms = from->since_ms,
    };
    return rl_copy_out(ret_waiter, size, &waiter, sizeof waiter);
}
