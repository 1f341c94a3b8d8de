/* SPDX-License-Identifier: MIT
 * What a process of a chaos run believed and did, a line each, as it happened: what is written
 * stays when the process is killed. checker.py says what the lines mean.
 *
 * Times are CLOCK_BOOTTIME in ns: one clock for all processes of the machine, which no fault of a
 * run moves. */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* Appends to the file. */
bool history_open(const char *path);

uint64_t history_now_ns(void);

/* One line, with `at_ns` before it, in one write. From any thread. */
void history_write(uint64_t at_ns, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Numbers of acquisitions: unlike in all processes of a run. */
uint64_t history_new_id(void);

#endif
