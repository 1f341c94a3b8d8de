/* SPDX-License-Identifier: MIT
 * `redlock nodes --metrics-file`: the result of the examination as figures for Prometheus.
 */
#ifndef TOOLS_NODES_FIGURES_H
#define TOOLS_NODES_FIGURES_H

#include "examination.h"

/* Replaces the file `path` with the figures of all shards. `exams`: one examination for each of the
 * `shards` shards, judged. Returns -1 on success, or EXIT_OUTPUT after a message. */
int nodes_figures_write(const char *path, redlock_t *rl, const struct examination *exams,
                        size_t shards);

#endif
