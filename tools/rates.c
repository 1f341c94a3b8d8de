/* SPDX-License-Identifier: MIT
 * Parses rates in integers. A bare number is refused, because its unit would be unclear.
 */
#include "rates.h"

#include <string.h>

/* The largest rate, 50 %, and one percent, in parts per million. */
#define PPM_MAX         500000u
#define PPM_PER_PERCENT 10000u

/* Returns true if `c` is a decimal digit. */
static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Parses "1%", "0.5%" or "10000ppm" into parts per million. Returns false if `text` has another
 * form, exceeds 50 % or is finer than one part per million. */
bool rate_parse(const char *text, uint32_t *ret_ppm)
{
    uint32_t whole = 0, fraction = 0, digits = 0;
    const char *p = text;

    if (!digit(*p))
        return false;
    for (; digit(*p); p++) {
        whole = whole * 10 + (uint32_t)(*p - '0');
        if (whole > PPM_MAX)
            return false;
    }
    if (*p == '.') {
        /* Four decimals of a percent are one part per million. */
        for (p++; digit(*p) && digits < 4; p++, digits++)
            fraction = fraction * 10 + (uint32_t)(*p - '0');
        if (digits == 0)
            return false;
    }
    if (!strcmp(p, "ppm") && digits == 0) {
        *ret_ppm = whole;
        return true;
    }
    if (strcmp(p, "%") != 0 || whole > PPM_MAX / PPM_PER_PERCENT)
        return false;
    for (; digits < 4; digits++)
        fraction *= 10;
    *ret_ppm = whole * PPM_PER_PERCENT + fraction;
    return *ret_ppm <= PPM_MAX;
}
