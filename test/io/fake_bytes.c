/* SPDX-License-Identifier: MIT
 * Byte strings that grow, and words of a command. */
#include "fake_store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Appends `len` bytes. A 0 always follows the last byte, but does not count. */
void fake_bytes_add(struct fake_bytes *bytes, const void *data, size_t len)
{
    if (len == 0)
        return;
    if (bytes->len + len + 1 > bytes->size) {
        bytes->size = (bytes->len + len + 1) * 2;
        bytes->data = realloc(bytes->data, bytes->size);
        if (bytes->data == NULL)
            abort();
    }
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
    bytes->data[bytes->len] = '\0';
}

/* Appends a formatted text of less than 1024 bytes. */
void fake_bytes_text(struct fake_bytes *bytes, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof text)
        abort();
    fake_bytes_add(bytes, text, (size_t)len);
}

/* Frees the bytes and leaves an empty string. */
void fake_bytes_free(struct fake_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct fake_bytes){.data = NULL};
}

/* Returns whether the word is `word`, in any case. */
bool fake_arg_is(struct fake_arg arg, const char *word)
{
    return arg.len == strlen(word) && strncasecmp(arg.data, word, arg.len) == 0;
}
