/* SPDX-License-Identifier: MIT
 * Decodes UTF-8 and escapes what does not print.
 */
#include "shown.h"

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "say.h"

/* U+FFFD, the replacement character. */
#define REPLACEMENT 0xfffdu

/* Decodes the UTF-8 character at `at` into *ret_code. Returns its length in bytes, 1 to 4; 0 if the
 * bytes there are not valid UTF-8. Reads no byte after the NUL. */
static size_t decode(const char *at, uint32_t *ret_code)
{
    /* the smallest code that needs this many bytes */
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)at;
    size_t len = byte[0] < 0x80             ? 1
                 : (byte[0] & 0xe0) == 0xc0 ? 2
                 : (byte[0] & 0xf0) == 0xe0 ? 3
                 : (byte[0] & 0xf8) == 0xf0 ? 4
                                            : 0;
    uint32_t code = len == 1 ? byte[0] : byte[0] & (0x7fu >> len);

    for (size_t i = 1; i < len; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (byte[i] & 0x3f);
    }
    *ret_code = code;
    bool valid =
        len > 0 && code >= least[len] && code <= 0x10ffff && (code & 0xfffff800u) != 0xd800;
    return valid ? len : 0;
}

/* Returns false for control characters, for characters that change the direction of the text, and
 * for those that have no width or break the line. */
static bool is_printable(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
                  {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                  {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return false;
    return true;
}

/* Returns a copy in which each byte of an unprintable character, and each byte that is not UTF-8,
 * is "\xHH". To be freed. */
char *text_shown(const char *text)
{
    /* "\xHH" takes 4 bytes */
    char *shown = must(malloc(4 * strlen(text) + 1)), *to = shown;
    uint32_t code;

    while (*text) {
        size_t len = decode(text, &code);
        bool printable = len > 0 && is_printable(code);
        for (len = len ? len : 1; len > 0; len--, text++)
            to += sprintf(to, printable ? "%c" : "\\x%02x", (unsigned char)*text);
    }
    *to = '\0';
    return shown;
}

/* Returns the text as $'...', in which each byte that does not print is \xHH. To be freed. */
static char *escaped_word(const char *text)
{
    /* "\xHH" takes 4 bytes */
    char *word = must(malloc(4 * strlen(text) + 4)), *to = word;
    uint32_t code;

    to += sprintf(to, "$'");
    while (*text) {
        size_t len = decode(text, &code);
        bool printable = len > 0 && is_printable(code);
        for (len = len ? len : 1; len > 0; len--, text++)
            if (printable)
                to += sprintf(to, strchr("'\\", *text) ? "\\%c" : "%c", *text);
            else
                to += sprintf(to, "\\x%02x", (unsigned char)*text);
    }
    strcpy(to, "'");
    return word;
}

/* Returns a copy if no character has a meaning for a shell; else the text in single quotes, with
 * each single quote in it as '\'', or escaped_word(). */
char *shell_word(const char *text)
{
    char *shown = text_shown(text);
    bool prints = strcmp(shown, text) == 0;

    free(shown);
    if (!prints)
        return escaped_word(text);
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_./:@%+=,-";
    /* "'\''" takes 4 bytes */
    char *word = must(malloc(4 * strlen(text) + 3)), *to = word;

    if (*text && strspn(text, plain) == strlen(text))
        return strcpy(word, text);
    *to++ = '\'';
    for (; *text; text++)
        to += *text == '\'' ? sprintf(to, "'\\''") : sprintf(to, "%c", *text);
    strcpy(to, "'");
    return word;
}

/* Returns how many columns of a terminal the character takes: 0 to 2. Assumes 2 for a character
 * that the C library does not know. */
static size_t columns_of(uint32_t code)
{
    static locale_t utf8 = (locale_t)0;

    if (code < 0x80)
        return 1;
    if (!utf8)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!utf8)
        return 2;
    locale_t before = uselocale(utf8);
    int columns = wcwidth((wchar_t)code);
    uselocale(before);
    return columns < 0 ? 2 : (size_t)columns;
}

/* Adds up the columns of all characters. A byte that is not UTF-8 counts as one. */
size_t text_width(const char *shown)
{
    size_t columns = 0;
    uint32_t code;

    while (*shown) {
        size_t len = decode(shown, &code);
        columns += len > 0 ? columns_of(code) : 1;
        shown += len ? len : 1;
    }
    return columns;
}

/* Returns the length in bytes of the longest beginning of the text that has at most this many
 * columns. */
static size_t len_within(const char *text, size_t columns)
{
    const char *at = text;
    uint32_t code;

    while (*at) {
        size_t len = decode(at, &code);
        size_t width = len > 0 ? columns_of(code) : 1;
        if (width > columns)
            break;
        columns -= width;
        at += len ? len : 1;
    }
    return (size_t)(at - text);
}

/* Returns the text, or as much of it as fits the columns, with "..." in the last three. To be
 * freed. */
char *text_cut(const char *shown, size_t columns)
{
    static const char mark[] = "...";
    size_t len = len_within(shown, columns);

    if (!shown[len])
        return text_copy(shown);
    if (columns < sizeof mark - 1)
        return text_format("%.*s", (int)len, shown);
    return text_format("%.*s%s", (int)len_within(shown, columns - (sizeof mark - 1)), shown, mark);
}

/* Prints to stdout as printf() does, with unprintable characters escaped. Only a '\n' at the end of
 * `format` stays. */
void show(const char *format, ...)
{
    size_t len = strlen(format);
    bool ends = len > 0 && format[len - 1] == '\n';
    char *text = NULL;
    va_list args;

    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    must(size < 0 ? NULL : text);
    if (ends)
        text[size - 1] = '\0';
    char *shown = text_shown(text);
    fputs(shown, stdout);
    if (ends)
        putchar('\n');
    free(shown);
    free(text);
}

/* Returns a copy in which each byte that is not UTF-8, and each byte of a U+FFFD, is U+FFFD and two
 * hex digits. To be freed. */
char *text_utf8(const char *text)
{
    /* U+FFFD takes 3 bytes, and 2 hex digits follow */
    char *mended = must(malloc(5 * strlen(text) + 1)), *to = mended;
    uint32_t code;

    while (*text) {
        size_t len = decode(text, &code);
        bool valid = len > 0 && code != REPLACEMENT;
        for (len = len ? len : 1; len > 0; len--, text++)
            to += sprintf(to, valid ? "%c" : "\xef\xbf\xbd%02x", (unsigned char)*text);
    }
    *to = '\0';
    return mended;
}

/* Returns a copy of the JSON text in which each unprintable character is "\uHHHH", two of them (a
 * surrogate pair) above U+FFFF. To be freed. */
char *json_shown(const char *json)
{
    /* "\uHHHH" takes 6 bytes */
    char *shown = must(malloc(6 * strlen(json) + 1)), *to = shown;
    uint32_t code = 0;

    while (*json) {
        size_t len = decode(json, &code);
        if (len > 0 && is_printable(code)) {
            to = mempcpy(to, json, len);
        } else if (code > 0xffff) {
            code -= 0x10000;
            to += sprintf(to, "\\u%04x\\u%04x", 0xd800 | code >> 10, 0xdc00 | (code & 0x3ff));
        } else {
            to += sprintf(to, "\\u%04x", code);
        }
        json += len ? len : 1;
    }
    *to = '\0';
    return shown;
}
