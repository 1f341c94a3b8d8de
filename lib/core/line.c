/* SPDX-License-Identifier: MIT
 * Reads the reply of the script of the line, and the value of a line's key; scripts.c says what the
 * words are. The texts are not trusted. */
#include "core/line.h"

#include "core/wire_fence.h"

#include <string.h>

#define MARK "redlock-line\n" /* the value of the key of a line begins with this */

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

/* Writes `number` in decimal digits. Returns their number, at most 20. */
static size_t write_number(char *to, uint64_t number)
{
    char digits[20];
    size_t len = 0, count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0)
        to[len++] = digits[--count];
    return len;
}

/* Writes the text of a waiter's record. Returns its length. A newline would end the record, so
 * control bytes become '?'. */
size_t rl_line_write_text(char text[RL_LINE_TEXT_MAX], uint64_t since_ms, struct rl_arg owner)
{
    size_t len = write_number(text, since_ms);

    text[len++] = ' ';
    for (size_t i = 0; i < owner.len && i < RL_OWNER_MAX; i++) {
        unsigned char byte = (unsigned char)owner.data[i];
        text[len++] = byte < 0x20 || byte == 0x7f ? '?' : owner.data[i];
    }
    return len;
}

/* Begins to read the value of a key. Returns false if the value is not that of a line. */
bool rl_line_open(struct rl_arg value, struct rl_arg *ret_records)
{
    size_t len = sizeof MARK - 1;

    if (value.len < len || memcmp(value.data, MARK, len) != 0)
        return false;
    *ret_records = (struct rl_arg){value.data + len, value.len - len};
    return true;
}

/* Reads one record, which is id, beat, state, round trip and text. The text is the time at which
 * the wait began and the owner label; any other text counts as an owner label. Returns false if the
 * record is damaged. */
static bool read_record(struct rl_arg record, struct rl_line_waiter *ret)
{
    uint64_t number;

    if (rl_wire_next_word(&record).len == 0 || !next_number(&record, &number))
        return false;
    struct rl_arg state = rl_wire_next_word(&record);
    if (state.len != 1 || !next_number(&record, &number))
        return false;
    *ret = (struct rl_line_waiter){.state = state.data[0], .owner = record};
    if (next_number(&record, &ret->since_ms))
        ret->owner = record;
    else
        ret->since_ms = 0;
    return true;
}

/* Reads the next waiter and removes its record, together with damaged ones in front of it. A value
 * that was cut ends with a part of a record, which is left out. Returns false at the end. */
bool rl_line_next_waiter(struct rl_arg *records, struct rl_line_waiter *ret)
{
    const char *end;

    while (records->len != 0 && (end = memchr(records->data, '\n', records->len)) != NULL) {
        struct rl_arg record = {records->data, (size_t)(end - records->data)};
        records->data = end + 1;
        records->len -= record.len + 1;
        if (read_record(record, ret))
            return true;
    }
    return false;
}
