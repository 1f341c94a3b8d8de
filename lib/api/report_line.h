/* SPDX-License-Identifier: MIT
 * The waiters in the report of an inspection. */
#ifndef RL_API_REPORT_LINE_H
#define RL_API_REPORT_LINE_H

#include "core/line.h"

struct redlock_report;

/* Copies an owner label to `to`, which has RL_OWNER_MAX + 1 bytes, and replaces blanks, control
 * bytes and bytes that are not ASCII by '?'. Returns its length with the NUL. */
size_t rl_report_copy_owner(char *to, struct rl_arg label);

/* Fills in the waiters of a report. `line`: the value of the key of a line; empty or damaged: no
 * waiters. rl_report_done() frees them. */
void rl_report_fill_waiters(struct redlock_report *report, struct rl_arg line);

#endif
