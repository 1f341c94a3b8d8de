/* SPDX-License-Identifier: MIT
 * Reads the reply of the script of the line; scripts.c says what the words are. */
#include "core/line.h"

#include "core/wire_fence.h"

#include <string.h>

/* Reads a decimal number from the next word of `rest` into `*ret`. Returns false if the word is
 * anything else. */
static bool next_number(struct rl_arg *rest, uint64_t *ret)
{
    struct rl_arg word = rl_wire_next_word(rest);

    *ret = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] < '0' || word.data[i] > '9' || *ret > UINT64_MAX / 10 - 1)
            return false;
        *ret = *ret * 10 + (uint64_t)(word.data[i] - '0');
    }
    return word.len != 0;
}

/* Reads a reply of `len` bytes into `*ret`. Returns false if it is anything else. */
bool rl_line_parse(const char *text, size_t len, struct rl_line_reply *ret)
{
    struct rl_arg rest = {text, len};
    uint64_t place, length, left;

    memset(ret, 0, sizeof *ret);
    if (!next_number(&rest, &place))
        return false;
    struct rl_arg state = rl_wire_next_word(&rest);
    if (state.len != 1 || !next_number(&rest, &length) || place > length || length > UINT32_MAX)
        return false;
    ret->place = (uint32_t)place;
    ret->length = (uint32_t)length;
    ret->is_head = state.data[0] == 'h';
    struct rl_arg word = rest;
    if (next_number(&rest, &left)) {
        ret->exists = true;
        ret->pttl_ms = left;
    } else {
        rest = word;
        word = rl_wire_next_word(&rest);
        if (word.len != 2 || word.data[0] != '-' || (word.data[1] != '1' && word.data[1] != '2'))
            return false;
        ret->exists = word.data[1] == '1';
    }
    return rest.len == 0 ||
           (next_number(&rest, &ret->head) && next_number(&rest, &ret->head_beat) &&
            next_number(&rest, &ret->head_trip_us) && rest.len == 0);
}
