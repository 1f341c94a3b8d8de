/* SPDX-License-Identifier: MIT
 * Prints addresses without their secrets. */
#include "api/url_mask.h"

#include <string.h>
#include <strings.h>

bool rl_url_is_separator(char byte)
{
    return byte == ',' || byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

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

bool rl_url_is_torn(const char *list)
{
    while (*list != '\0') {
        size_t len = 0;
        while (list[len] != '\0' && !rl_url_is_separator(list[len]))
            len++;
        if (memchr(list, '@', len) != NULL && rl_url_scheme_len(list, len) == 0)
            return true;
        list += len;
        if (*list != '\0')
            list++;
    }
    return false;
}

static bool is_known_scheme(const char *entry, size_t scheme_len)
{
    static const char *const KNOWN[] = {"redis://",   "rediss://", "valkey://",
                                        "valkeys://", "unix://",   "unix:"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (strlen(KNOWN[i]) == scheme_len && strncasecmp(entry, KNOWN[i], scheme_len) == 0)
            return true;
    return false;
}

struct shown {
    char *out;
    size_t len;
};

static void show_byte(struct shown *shown, char byte)
{
    if (shown->len < RL_URL_SHOWN_MAX - 4)
        shown->out[shown->len++] = (unsigned char)byte < ' ' || byte == 0x7f ? '?' : byte;
    else
        shown->len = RL_URL_SHOWN_MAX - 1; /* cut; finish() writes the dots */
}

static void show(struct shown *shown, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        show_byte(shown, text[i]);
}

static void finish(struct shown *shown)
{
    if (shown->len == RL_URL_SHOWN_MAX - 1)
        memcpy(shown->out + RL_URL_SHOWN_MAX - 4, "...", 3);
    shown->out[shown->len] = '\0';
}

/* Whether the ':' at text[at] is followed by a port, or by nothing, up to the end of the authority.
 */
static bool is_before_port(const char *text, size_t at, size_t len)
{
    for (at++; at < len && text[at] != '/' && text[at] != '?'; at++)
        if (!is_digit(text[at]))
            return false;
    return true;
}

/* Host, port and path. "user:secret" whose "@host" was forgotten looks like a host and a port, so
 * after a ':' only digits are shown. A query is never shown: "?password=" is a common mistake. */
static void show_place(struct shown *shown, const char *text, size_t len)
{
    bool in_brackets = false;
    for (size_t at = 0; at < len; at++) {
        if (text[at] == '?' || text[at] == '#') {
            show(shown, text + at, 1);
            show(shown, "...", 3);
            return;
        }
        show_byte(shown, text[at]);
        if (text[at] == '[' || text[at] == ']')
            in_brackets = text[at] == '[';
        if (text[at] == ':' && !in_brackets && !is_before_port(text, at, len)) {
            show(shown, "***", 3);
            return;
        }
    }
}

void rl_url_mask(const char *list, const char *entry, size_t len, char out[RL_URL_SHOWN_MAX])
{
    struct shown shown = {.out = out, .len = 0};
    size_t scheme_len = rl_url_scheme_len(entry, len);
    const char *at = memrchr(entry, '@', len);
    bool torn = rl_url_is_torn(list);

    if ((at == NULL && !torn) || is_known_scheme(entry, scheme_len))
        show(&shown, entry, scheme_len);
    if (at != NULL || torn)
        show(&shown, "***", 3);
    if (at != NULL && !torn)
        show_place(&shown, at, (size_t)(entry + len - at));
    else if (!torn)
        show_place(&shown, entry + scheme_len, len - scheme_len);
    finish(&shown);
}
