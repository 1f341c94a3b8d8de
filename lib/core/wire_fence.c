/* SPDX-License-Identifier: MIT
 * Parses the text in which a server returns its fence record, in reply to READ: the line of the
 * configuration, the line of the mark, and the registers as "stripe:number" separated by blanks.
 * The text is not trusted. */
#include "core/wire_fence.h"

#include <string.h>

/* Returns the text up to the next blank, and removes it and the blank from `text`. Without a blank,
 * returns the whole text. */
struct rl_arg rl_wire_next_word(struct rl_arg *text)
{
    const char *end = memchr(text->data, ' ', text->len);
    struct rl_arg word = {text->data, end != NULL ? (size_t)(end - text->data) : text->len};
    size_t used = word.len + (end != NULL);

    text->data += used;
    text->len -= used;
    return word;
}

/* Returns the next line in `*ret`, without its newline, and removes it from `text`. Returns false
 * if there is no newline. */
static bool next_line(struct rl_arg *text, struct rl_arg *ret)
{
    const char *end = memchr(text->data, '\n', text->len);

    if (end == NULL)
        return false;
    *ret = (struct rl_arg){text->data, (size_t)(end - text->data)};
    text->data += ret->len + 1;
    text->len -= ret->len + 1;
    return true;
}

/* Divides the reply to READ into its parts, which `ret` then points to: the line of the
 * configuration, the line of the mark, and the rest, which has the registers. Returns false if the
 * reply has fewer than two newlines. */
bool rl_wire_record_parse(const struct rl_reply *reply, struct rl_record_text *ret)
{
    struct rl_arg rest = {reply->text, reply->len};

    if (!next_line(&rest, &ret->config) || !next_line(&rest, &ret->mark))
        return false;
    ret->fences = rest;
    return true;
}

/* Reads the element "stripe:number" at offset `*at` of `numbers` into `*ret_stripe` and
 * `*ret_number`, and moves `*at` to the next element. Returns false at the end, where `*at` is not
 * smaller than numbers.len, and for a malformed element, which leaves `*at` as it is. */
bool rl_wire_record_next(struct rl_arg numbers, size_t *at, unsigned *ret_stripe,
                         uint64_t *ret_number)
{
    if (*at >= numbers.len)
        return false;
    struct rl_arg rest = {numbers.data + *at, numbers.len - *at};
    struct rl_arg word = rl_wire_next_word(&rest);
    const char *colon = memchr(word.data, ':', word.len);
    uint64_t stripe;

    if (colon == NULL)
        return false;
    size_t digits = (size_t)(colon - word.data);
    if (!rl_fence_parse(word.data, digits, &stripe) || stripe >= RL_FENCE_STRIPES ||
        !rl_fence_parse(colon + 1, word.len - digits - 1, ret_number))
        return false;
    *ret_stripe = (unsigned)stripe;
    *at = numbers.len - rest.len;
    return true;
}
