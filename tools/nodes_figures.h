/* SPDX-License-Identifier: MIT
 * `redlock nodes --metrics-file`: the result of the examination as figures for Prometheus.
 */
#ifndef TOOLS_NODES_FIGURES_H
#define TOOLS_NODES_FIGURES_H

#include "examination.h"
#include "figures.h"

/* Makes the text with the figures of all shards, to be freed with figures_free(). Each figure has
 * the label `file`, the name of the file `path`. `exams`: one examination for each of the `shards`
 * shards, judged. */
void nodes_figures_make(struct figures *text, const char *path, redlock_t *rl,
                        const struct examination *exams, size_t shards);

/* Replaces the file `path` with the text. Needs descriptors, and so is called after the client was
 * closed. Returns -1 on success, or EXIT_OUTPUT after a message. */
int nodes_figures_write(const char *path, const struct figures *text);

#endif
