/* SPDX-License-Identifier: MIT
 * Masks passwords in a list of addresses, also in a list that is written wrongly: a comma that was
 * not escaped splits a password, so an address is taken to end where the next scheme begins.
 */
#include "mask.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

/* A ';' that another set begins behind: "; east=redis://". */
static bool is_between_sets(const char *at)
{
    if (*at != ';')
        return false;
    at += 1 + strspn(at + 1, " \t");
    size_t len = strcspn(at, "=,;:/@ \t");
    return len > 0 && at[len] == '=';
}

/* Where the address that `from` stands in ends: before the word of the next "://". A "://" without
 * a comma or blank in front of its word, or a ';' that ends a set, begins nothing: it stands in a
 * password. */
static const char *end_of_address(const char *from)
{
    const char *at = from, *next;

    while ((next = strstr(at, "://")) != NULL) {
        const char *word = next;
        while (word > from && word[-1] != ',' && word[-1] != ' ' && !is_between_sets(word - 1))
            word--;
        if (word > from)
            return word;
        at = next + 3;
    }
    return from + strlen(from);
}

/* A "redis://" in front, or `at`. */
static const char *after_scheme(const char *at)
{
    const char *scheme = strstr(at, "://");

    if (scheme && strcspn(at, ", ") > (size_t)(scheme - at))
        return scheme + 3;
    return at;
}

/* From the first ':' to the last '@'; without a scheme everything before the '@'. */
static char *mask_one(const char *at, const char *rest, const char *end)
{
    const char *login_end = end;

    while (login_end > rest && *login_end != '@')
        login_end--;
    if (*login_end != '@')
        return text_format("%.*s", (int)(end - at), at);
    const char *colon = memchr(rest, ':', (size_t)(login_end - rest));
    const char *keep = rest > at && colon ? colon + 1 : rest;
    return text_format("%.*s***%.*s", (int)(keep - at), at, (int)(end - login_end), login_end);
}

char *mask_addresses(const char *list)
{
    char *shown = text_copy("");

    while (*list) {
        const char *rest = after_scheme(list);
        const char *end = end_of_address(rest);
        if (end == list) /* a "://" with nothing before it */
            end = list + strlen(list);
        char *one = mask_one(list, rest, end);
        char *longer = text_format("%s%s", shown, one);
        free(one);
        free(shown);
        shown = longer;
        list = end;
    }
    return shown;
}
