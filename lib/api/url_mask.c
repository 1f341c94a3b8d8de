/* SPDX-License-Identifier: MIT
 * Shows addresses in messages without their secrets. */
#include "api/url_mask.h"

#include <string.h>
#include <strings.h>

/* Returns whether the byte separates the entries of a list: ',', blank, tab, line feed or carriage
 * return. */
bool rl_url_is_separator(char byte)
{
    return byte == ',' || byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Returns whether the byte is an ASCII letter. */
static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Returns whether the byte is an ASCII digit. */
static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Returns the length of "scheme://" (or "unix:") at the start of the entry of `len` bytes, whatever
 * the scheme is; 0 if there is none. */
size_t rl_url_scheme_len(const char *entry, size_t len)
{
    size_t at = 0;
    while (at < len && (is_letter(entry[at]) ||
                        (at > 0 && (is_digit(entry[at]) || strchr("+-.", entry[at]) != NULL))))
        at++;
    if (at == 0 || at == len || entry[at] != ':')
        return 0;
    if (len - at >= 3 && entry[at + 1] == '/' && entry[at + 2] == '/')
        return at + 3;
    if (at == 4 && strncasecmp(entry, "unix", 4) == 0 && len - at >= 2 && entry[at + 1] == '/')
        return at + 1;
    return 0;
}

/* Returns whether the first `scheme_len` bytes of the entry are a scheme that addresses can
 * have. */
static bool is_known_scheme(const char *entry, size_t scheme_len)
{
    static const char *const KNOWN[] = {
        "redis://", "rediss://", "valkey://",         "valkeys://",
        "unix://",  "unix:",     "redis+sentinel://", "rediss+sentinel://"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (strlen(KNOWN[i]) == scheme_len && strncasecmp(entry, KNOWN[i], scheme_len) == 0)
            return true;
    return false;
}

/* Returns whether some entry of the list has an '@' but no known scheme. Such an entry is probably
 * the end of a password that contains a separator. */
bool rl_url_is_torn(const char *list)
{
    while (*list != '\0') {
        size_t len = 0;
        while (list[len] != '\0' && !rl_url_is_separator(list[len]))
            len++;
        if (memchr(list, '@', len) != NULL && !is_known_scheme(list, rl_url_scheme_len(list, len)))
            return true;
        list += len;
        if (*list != '\0')
            list++;
    }
    return false;
}

/* The text that is being written. On the stack of rl_url_mask(). */
struct shown {
    char *out;  /* RL_URL_SHOWN_MAX bytes */
    size_t len; /* bytes written; RL_URL_SHOWN_MAX - 1: the text was cut, nothing is added */
};

/* Adds a byte to the text, or '?' for a control byte. If only the room for "..." and the NUL is
 * left, marks the text as cut instead. */
static void show_byte(struct shown *shown, char byte)
{
    if (shown->len < RL_URL_SHOWN_MAX - 4)
        shown->out[shown->len++] = (unsigned char)byte < ' ' || byte == 0x7f ? '?' : byte;
    else
        shown->len = RL_URL_SHOWN_MAX - 1; /* cut: finish() writes the dots */
}

/* Adds `len` bytes of `text`, as show_byte() does. */
static void show(struct shown *shown, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        show_byte(shown, text[i]);
}

/* Ends the text with a NUL, after dots if it was cut. */
static void finish(struct shown *shown)
{
    if (shown->len == RL_URL_SHOWN_MAX - 1)
        memcpy(shown->out + RL_URL_SHOWN_MAX - 4, "...", 3);
    shown->out[shown->len] = '\0';
}

/* Returns whether the byte may be part of a host name or of an IPv4 address. */
static bool is_host_byte(char byte)
{
    return is_letter(byte) || is_digit(byte) || byte == '-' || byte == '_' || byte == '.';
}

/* Returns the length of the host at the start of `text`, or of a bracketed IPv6 address with its
 * zone. 0: there is none. */
static size_t host_len(const char *text, size_t len)
{
    size_t at = len > 0 && text[0] == '[';
    bool in_brackets = at == 1;

    while (at < len &&
           (is_host_byte(text[at]) || (in_brackets && (text[at] == ':' || text[at] == '%'))))
        at++;
    if (in_brackets)
        return at < len && text[at] == ']' ? at + 1 : 0;
    return at;
}

/* Returns the length of `mark` and the number after it at text[at]. 0: something else stands
 * there, or the number has more digits than a port or a database. */
static size_t number_len(const char *text, size_t at, size_t len, char mark)
{
    size_t end = at + 1;

    if (at == len || text[at] != mark)
        return 0;
    while (end < len && is_digit(text[end]))
        end++;
    bool ends = end == len || text[end] == '/' || text[end] == '?';
    return ends && end - at <= 6 ? end - at : 0;
}

/* Shows what follows the login: the host, the port and the database; or if `is_path`, a path up to
 * a '?', '#' or ':'. Text that does not look like these may be a part of a password whose "@host"
 * was forgotten: "***" stands for it and for all that follows. A query is never shown, because
 * "?password=" is a common mistake. */
static void show_place(struct shown *shown, const char *text, size_t len, bool is_path)
{
    size_t at = 0;

    if (is_path) {
        while (at < len && text[0] == '/' && strchr("?#:", text[at]) == NULL)
            at++;
    } else {
        at = host_len(text, len);
        at += number_len(text, at, len, ':');
        at += number_len(text, at, len, '/');
    }
    show(shown, text, at);
    if (at == len)
        return;
    if (text[at] == ':' || text[at] == '/')
        show_byte(shown, text[at]);
    if (text[at] == '?')
        show(shown, "?...", 4);
    else
        show(shown, "***", 3);
}

/* Writes `entry` (`len` bytes), a part of `list`, to `out` without secrets. If the list is torn or
 * the scheme is not known, only "***" is written. */
void rl_url_mask(const char *list, const char *entry, size_t len, char out[RL_URL_SHOWN_MAX])
{
    struct shown shown = {.out = out, .len = 0};
    size_t scheme_len = rl_url_scheme_len(entry, len);
    const char *place = entry + scheme_len, *login_end = memrchr(entry, '@', len);
    bool is_path = scheme_len > 0 ? strncasecmp(entry, "unix", 4) == 0 : len > 0 && entry[0] == '/';

    if (rl_url_is_torn(list) || (scheme_len > 0 && !is_known_scheme(entry, scheme_len))) {
        show(&shown, "***", 3);
    } else {
        show(&shown, entry, scheme_len);
        if (login_end != NULL) {
            show(&shown, "***@", 4);
            place = login_end + 1;
        }
        show_place(&shown, place, (size_t)(entry + len - place), is_path);
    }
    finish(&shown);
}
