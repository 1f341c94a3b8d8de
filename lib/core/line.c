/* SPDX-License-Identifier: MIT
 * Reads the reply of the script of the line; scripts.c says what the words are. The text is not
 * trusted. */
#include "core/line.h"

#include "core/wire_fence.h"

#include <string.h>

/* Reads the next word of `rest`, a decimal number up to INT64_MAX, into `*ret`. Returns false if
 * the word is anything else. */
static bool next_number(struct rl_arg *rest, uint64_t *ret)
{
    struct rl_arg word = rl_wire_next_word(rest);

    *ret = 0;
    for (size_t i = 0; i < word.len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)word.data[i] - '0';
        if (digit > 9 || *ret > (INT64_MAX - digit) / 10)
            return false;
        *ret = *ret * 10 + digit;
    }
    return word.len != 0;
}

/* Reads the next words of `rest`: place, state and length. Returns false if they are anything else,
 * or contradict each other. */
static bool read_place(struct rl_arg *rest, struct rl_line_reply *ret)
{
    uint64_t place, length;

    if (!next_number(rest, &place))
        return false;
    struct rl_arg state = rl_wire_next_word(rest);
    if (state.len != 1 || memchr("-whd", state.data[0], 4) == NULL)
        return false;
    if (!next_number(rest, &length) || place > length || length > UINT32_MAX)
        return false;
    ret->place = (uint32_t)place;
    ret->length = (uint32_t)length;
    ret->is_head = state.data[0] == 'h';
    return (place == 0) == (state.data[0] == '-');
}

/* Reads the next word of `rest`: -2, there is no key; -1, it has no TTL, or this client is no head;
 * for a head the PTTL. Returns false if it is anything else. */
static bool read_left(struct rl_arg *rest, struct rl_line_reply *ret)
{
    bool negative = rest->len != 0 && rest->data[0] == '-';
    uint64_t left;

    if (negative) {
        rest->data++;
        rest->len--;
    }
    if (!next_number(rest, &left))
        return false;
    ret->exists = !negative || left == 1;
    ret->pttl_ms = negative ? 0 : left;
    return negative ? left == 1 || left == 2 : ret->is_head;
}

/* Reads a reply of `len` bytes into `*ret`. Returns false if it is anything else. */
bool rl_line_parse(const char *text, size_t len, struct rl_line_reply *ret)
{
    struct rl_arg rest = {text, len};

    memset(ret, 0, sizeof *ret);
    if (len == 0 || text[len - 1] == ' ' || !read_place(&rest, ret) || !read_left(&rest, ret))
        return false;
    if (rest.len == 0)
        return !ret->is_head; /* a line with a head has its words */
    return ret->length != 0 && next_number(&rest, &ret->head) &&
           next_number(&rest, &ret->head_beat) && next_number(&rest, &ret->head_trip_us) &&
           rest.len == 0;
}
