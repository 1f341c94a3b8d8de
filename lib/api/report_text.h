/* SPDX-License-Identifier: MIT
 * The texts of a report. The client's mutex is held in all functions, unless noted. */
#ifndef RL_API_REPORT_TEXT_H
#define RL_API_REPORT_TEXT_H

#include "api/handle.h"
#include "api/report.h"

/* Returns whether the vote of node `i` does not count because the node is excluded: its grant was
 * not counted, or it was not asked. No mutex. */
bool rl_report_is_uncounted(const struct rl_round *round, unsigned i);
/* Returns the text for node `i`, which has given no vote. No mutex. */
const char *rl_report_unanswered_text(const struct rl_round *round, unsigned i);

/* Allocates report->texts and writes the text of each node. Without memory it stays NULL. */
void rl_report_fill_texts(struct redlock_report *report, const struct redlock_lock *handle);
/* Writes report->line, and notes in report->in_line the nodes that it names. */
void rl_report_fill_line(struct redlock_report *report, const struct redlock_lock *handle);
/* Returns the text for the operation of the handle, which has succeeded. Static. */
const char *rl_report_success_text(const struct redlock_report *report,
                                   const struct redlock_lock *handle);

#endif
