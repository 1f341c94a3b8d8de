/* SPDX-License-Identifier: MIT
 * Prints the result of `redlock nodes`.
 */
#ifndef TOOLS_NODES_PRINT_H
#define TOOLS_NODES_PRINT_H

#include "examination.h"

/* Prints the examinations of all `shards` shards to stdout, judged: as one JSON object, or for
 * people with the verdict in the first line. */
void nodes_print(bool json, const struct examination *exams, size_t shards);

/* Returns the worst health among the shards; at least one. */
enum health_exit nodes_worst(const struct examination *exams, size_t shards);

#endif
