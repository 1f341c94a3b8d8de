/* SPDX-License-Identifier: MIT
 * Parses durations in integers. A fraction is kept as an integer and a power of ten, so that
 * nothing is rounded.
 */
#include "durations.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 1000 days */
#define DURATION_MS_MAX (UINT64_C(1000) * 24 * 3600 * 1000)

/* Looks up a unit: *ret_ms is its length in ms. Returns false if it is unknown. */
static bool unit_ms(const char *unit, uint64_t *ret_ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!strcmp(unit, units[i].name)) {
            *ret_ms = units[i].ms;
            return true;
        }
    }
    return false;
}

/* Returns true if `c` is a decimal digit. */
static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Parses a duration such as "250ms", "1.5s" or "30" into *ret_ms. Returns false, with *ret_ms
 * unchanged, if `text` is none, is finer than a millisecond or exceeds 1000 days. */
bool duration_parse(const char *text, uint64_t *ret_ms)
{
    uint64_t whole = 0, fraction = 0, scale = 1, unit;
    const char *p = text;

    if (!digit(*p) && !(*p == '.' && digit(p[1])))
        return false;
    for (; digit(*p); p++) {
        whole = whole * 10 + (uint64_t)(*p - '0');
        if (whole > DURATION_MS_MAX)
            return false;
    }
    if (*p == '.') {
        if (!digit(p[1]))
            return false;
        /* value = whole + fraction / scale; digits after the ninth must be 0 */
        for (p++; digit(*p); p++) {
            if (scale >= 1000000000) {
                if (*p != '0')
                    return false;
                continue;
            }
            fraction = fraction * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
    }
    if (!unit_ms(p, &unit))
        return false;
    if (fraction * unit % scale != 0)
        return false;
    uint64_t ms = whole * unit + fraction * unit / scale;
    if (whole > DURATION_MS_MAX / unit || ms > DURATION_MS_MAX)
        return false;
    *ret_ms = ms;
    return true;
}

/* Parses a duration, or WAIT_FOREVER as UINT64_MAX, into *ret_ms. Returns false, with *ret_ms
 * unchanged, if `text` is neither. */
bool wait_parse(const char *text, uint64_t *ret_ms)
{
    if (strcmp(text, WAIT_FOREVER) != 0)
        return duration_parse(text, ret_ms);
    *ret_ms = UINT64_MAX;
    return true;
}

/* Writes the duration with the largest unit of which it is a whole number, such as "1500ms" or
 * "2h". Returns `buffer`. */
const char *duration_text(uint64_t ms, char buffer[DURATION_TEXT])
{
    if (ms == 0 || ms % 1000 != 0)
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "ms", ms);
    else if (ms % 86400000 == 0)
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "d", ms / 86400000);
    else if (ms % 3600000 == 0)
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "h", ms / 3600000);
    else if (ms % 60000 == 0)
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "m", ms / 60000);
    else
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "s", ms / 1000);
    return buffer;
}

/* Writes the duration in whole seconds, in minutes and seconds, or in hours and minutes. Returns
 * `buffer`. */
const char *duration_brief(uint64_t ms, char buffer[DURATION_TEXT])
{
    uint64_t s = ms / 1000;

    if (s < 60)
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "s", s);
    else if (s < 3600)
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "m%02us", s / 60, (unsigned)(s % 60));
    else
        snprintf(buffer, DURATION_TEXT, "%" PRIu64 "h%02um", s / 3600, (unsigned)(s / 60 % 60));
    return buffer;
}
