/* SPDX-License-Identifier: MIT
 * Writes the text format of Prometheus (version 0.0.4) into a buffer of the caller. All names begin
 * with "redlock_", which the functions add. A line is made of one rl_prom_begin(), any number of
 * rl_prom_label(), and one of the functions that write the value. */
#ifndef RL_API_PROMETHEUS_TEXT_H
#define RL_API_PROMETHEUS_TEXT_H

#include <redlock/redlock.h>

/* One text while it is written. Owner: prometheus_text.c; the caller of rl_prom_open() provides the
 * memory. Invariant: the first min(len, size) bytes of `text` are those of the whole text. */
struct rl_prom {
    char *text;                    /* buffer of the caller; NULL if `size` is 0 */
    size_t size;                   /* bytes of the buffer */
    size_t len;                    /* length of the text, also of what did not fit */
    const redlock_label_t *labels; /* the labels of the caller, borrowed */
    size_t label_count;            /* elements of `labels` */
    bool has_label;                /* the line that is being written has a label */
};

/* Returns whether all names and values of the labels are allowed (redlock_label_t). `labels` may be
 * NULL if `count` is 0. */
bool rl_prom_check_labels(const redlock_label_t *labels, size_t count);

/* Returns a text that is empty. `size`: bytes of `text`. `labels`, checked before, are written into
 * each line. */
struct rl_prom rl_prom_open(char *text, size_t size, const redlock_label_t *labels, size_t count);
/* Ends the text with a NUL, in the last byte of the buffer if it does not fit. Returns its length
 * without the NUL. */
size_t rl_prom_close(struct rl_prom *prom);

/* Writes the lines HELP and TYPE of one family. `type`: "counter", "gauge" or "histogram". `help`
 * contains no '\\' and no line end. */
void rl_prom_family(struct rl_prom *prom, const char *name, const char *type, const char *help);

/* Begins the line of one figure with the name of its family, `suffix` (may be "") and the labels of
 * the caller. */
void rl_prom_begin(struct rl_prom *prom, const char *name, const char *suffix);
/* Writes one more label. `value` may have any bytes: they are escaped, and bytes that are not UTF-8
 * become U+FFFD. */
void rl_prom_label(struct rl_prom *prom, const char *name, const char *value);
/* Writes one more label whose value is a number of microseconds, written in seconds. */
void rl_prom_label_us(struct rl_prom *prom, const char *name, uint64_t us);
/* Ends the line with a whole number. */
void rl_prom_value(struct rl_prom *prom, uint64_t value);
/* Ends the line with a number of microseconds, written in seconds. */
void rl_prom_value_us(struct rl_prom *prom, int64_t us);

#endif
