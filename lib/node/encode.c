/* SPDX-License-Identifier: MIT
 * Encodes commands as arrays of bulk strings: "*3\r\n$3\r\nSET\r\n…". */
#include "node/encode.h"

#include <string.h>

#define CAP_MIN    256 /* bytes; size of the first buffer */
#define HEADER_MAX 23  /* bytes of "*3\r\n" or "$3\r\n" at most: a sign, twenty digits, CR LF */

/* Makes room for one command of the `argc` words `args` after the first `kept` bytes of the buffer.
 * Returns false without memory; the buffer is unchanged then. */
static bool reserve(const struct rl_mem *mem, struct rl_encoded *to, size_t kept, size_t argc,
                    const struct rl_arg *args)
{
    size_t needed = kept + HEADER_MAX;
    size_t cap = to->cap != 0 ? to->cap : CAP_MIN;

    for (size_t i = 0; i < argc; i++)
        needed += HEADER_MAX + args[i].len + 2;
    if (needed <= to->cap)
        return true;
    while (cap < needed)
        cap *= 2;
    /* realloc() could leave a copy of a password in the freed memory. */
    char *bytes = rl_realloc_array(mem, NULL, cap, 1);
    if (bytes == NULL)
        return false;
    if (kept != 0)
        memcpy(bytes, to->bytes, kept);
    rl_free_wiped(mem, to->bytes, to->cap);
    to->bytes = bytes;
    to->cap = cap;
    return true;
}

/* Writes the header of an array (sign '*') or of a bulk string (sign '$') to `at`: the sign,
 * `number` in decimal digits, CR LF. Returns the end of what was written. */
static char *put_header(char *at, char sign, size_t number)
{
    char digits[20];
    unsigned count = 0;

    *at++ = sign;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0)
        *at++ = digits[--count];
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

/* Encodes one command after the first `kept` bytes of the buffer, and drops what followed them.
 * Returns false without memory; the buffer is unchanged then. */
static bool encode(const struct rl_mem *mem, struct rl_encoded *to, size_t kept, size_t argc,
                   const struct rl_arg *args)
{
    if (!reserve(mem, to, kept, argc, args))
        return false;
    char *at = put_header(to->bytes + kept, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        at = put_header(at, '$', args[i].len);
        if (args[i].len != 0)
            memcpy(at, args[i].data, args[i].len);
        at += args[i].len;
        *at++ = '\r';
        *at++ = '\n';
    }
    to->len = (size_t)(at - to->bytes);
    return true;
}

/* Encodes one command in place of what the buffer holds. Returns false without memory. */
bool rl_encode(const struct rl_mem *mem, struct rl_encoded *to, size_t argc,
               const struct rl_arg *args)
{
    return encode(mem, to, 0, argc, args);
}

/* Encodes one command after what the buffer holds. Returns false without memory. */
bool rl_encode_append(const struct rl_mem *mem, struct rl_encoded *to, size_t argc,
                      const struct rl_arg *args)
{
    return encode(mem, to, to->len, argc, args);
}

/* Wipes and frees the buffer, and leaves it empty. */
void rl_encoded_free(const struct rl_mem *mem, struct rl_encoded *encoded)
{
    rl_free_wiped(mem, encoded->bytes, encoded->cap);
    *encoded = (struct rl_encoded){.bytes = NULL};
}
