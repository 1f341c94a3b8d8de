/* SPDX-License-Identifier: MIT
 * Reads the reply to TIME, and makes texts of servers printable. */
#include "core/wire.h"

/* Copies the first bytes of `text`, which has `len` bytes, to `ret`, as many as fit into `size`
 * with a NUL. Writes '?' for each byte that is not printable ASCII. */
void rl_wire_copy_printable(char *ret, size_t size, const char *text, size_t len)
{
    size_t at = 0;

    for (; at < len && at + 1 < size; at++)
        ret[at] = text[at] >= 0x20 && text[at] < 0x7f ? text[at] : '?';
    ret[at] = '\0';
}

/* Reads decimal digits up to `end` or to the first other byte into `*ret`. Returns the position
 * after them. NULL: there is no digit, or there are more than 12, which is too many for seconds or
 * microseconds. */
static const char *take_number(const char *at, const char *end, uint64_t *ret)
{
    const char *begin = at;

    for (*ret = 0; at < end && *at >= '0' && *at <= '9'; at++)
        *ret = *ret * 10 + (uint64_t)(*at - '0');
    return at > begin && at - begin <= 12 ? at : NULL;
}

/* Reads the reply to TIME, an array of two texts: seconds since 1970, and microseconds below
 * 1000000. Returns their sum in `*ret_us`, in microseconds. Returns false if the reply is anything
 * else. */
bool rl_wire_time_us(const struct rl_reply *reply, uint64_t *ret_us)
{
    uint64_t seconds, us;

    if (reply->kind != RL_REPLY_ARRAY || reply->integer != 2)
        return false;
    const char *end = reply->text + reply->len;
    const char *at = take_number(reply->text, end, &seconds);
    if (at == NULL || at == end || *at != ' ')
        return false;
    at = take_number(at + 1, end, &us);
    if (at != end || us >= 1000000)
        return false;
    *ret_us = seconds * 1000000 + us;
    return true;
}
