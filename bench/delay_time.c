/* SPDX-License-Identifier: MIT
 * Parses times on command lines. */
#include "delay.h"

#include <string.h>

#define TIME_MAX_US UINT64_C(60000000) /* a minute */

/* Parses a time like "5ms", "250us", "1s" or "5" (milliseconds) into microseconds. Returns false if
 * the text is no time or longer than a minute. */
bool delay_parse_time(const char *text, size_t len, uint64_t *ret_us)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {{"ms", 1000}, {"", 1000}, {"us", 1}, {"s", 1000000}};
    size_t digits = 0;
    uint64_t number = 0;
    for (; digits < len && text[digits] >= '0' && text[digits] <= '9'; digits++) {
        number = number * 10 + (uint64_t)(text[digits] - '0');
        if (number > TIME_MAX_US)
            return false;
    }
    for (size_t i = 0; digits > 0 && i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) == len - digits &&
            memcmp(units[i].name, text + digits, len - digits) == 0) {
            *ret_us = number * units[i].us;
            return *ret_us <= TIME_MAX_US;
        }
    }
    return false;
}

/* Parses one time for all `nodes` nodes, or one for each, separated by commas. Returns false if a
 * time is not valid or their number is neither 1 nor `nodes`. */
bool delay_parse_times(const char *list, size_t nodes, uint64_t *ret_us)
{
    size_t count = 0;
    while (count < nodes) {
        size_t len = strcspn(list, ",");
        if (!delay_parse_time(list, len, &ret_us[count++]))
            return false;
        list += len;
        if (*list == '\0')
            break;
        list++;
    }
    for (size_t i = 1; count == 1 && i < nodes; i++)
        ret_us[i] = ret_us[0];
    return *list == '\0' && (count == nodes || count == 1);
}
