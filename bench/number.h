/* SPDX-License-Identifier: MIT
 * Parses numbers on command lines: decimal digits only, within bounds. */
#ifndef BENCH_NUMBER_H
#define BENCH_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Parses the `len` characters at `text` as a number from `min` to `max`. The text may be longer.
 * On failure returns false and leaves *ret_number unchanged. */
static inline bool number_parse_part(const char *text, size_t len, uint64_t min, uint64_t max,
                                     uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || number > UINT64_MAX / 10)
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        number *= 10;
        if (digit > UINT64_MAX - number)
            return false;
        number += digit;
    }
    if (len == 0 || number < min || number > max)
        return false;
    *ret_number = number;
    return true;
}

/* Parses the whole text, as number_parse_part() does. */
static inline bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    return number_parse_part(text, strlen(text), min, max, ret_number);
}

#endif
