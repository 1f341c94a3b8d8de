/* SPDX-License-Identifier: MIT
 * The log of a process of a chaos run: one line for each event, written when it happens, so that
 * the lines stay when the process is killed. history.py describes the lines.
 *
 * Times are CLOCK_BOOTTIME in ns: one clock for all processes of the machine, which no fault of a
 * run changes. */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the file for appending. Returns false if it cannot be opened. */
bool history_open(const char *path);

/* Returns the time of CLOCK_BOOTTIME. */
uint64_t history_now_ns(void);

/* Writes one line in the form of history.py, with `at_ns` before it, in one write(). May be called
 * from any thread. */
void history_write(uint64_t at_ns, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the number of a new acquisition, which differs from those of all processes of a run. */
uint64_t history_new_id(void);

#endif
