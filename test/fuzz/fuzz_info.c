/* SPDX-License-Identifier: MIT
 * Fuzzes INFO texts: no field is written beyond its end, what is kept is printable, and neither the
 * line ends nor text after a complete reply change the result. */
#include "fuzz.h"

#include "node/info.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)64 * 1024)

/* Checks that the field ends within its size and is printable. */
static void check_text(const char *field, size_t size)
{
    size_t len = strnlen(field, size);

    MUST(len < size);
    for (size_t i = 0; i < len; i++)
        MUST((unsigned char)field[i] >= 0x20 && (unsigned char)field[i] < 0x7f);
}

/* Checks the fields of one result. */
static void check(const struct rl_info *info)
{
    check_text(info->run_id, sizeof info->run_id);
    check_text(info->role, sizeof info->role);
    check_text(info->version, sizeof info->version);
    MUST(info->major <= 9999 && info->minor <= 9999);
}

/* Checks that two results are equal. */
static void check_same(const struct rl_info *a, const struct rl_info *b)
{
    MUST(strcmp(a->run_id, b->run_id) == 0 && strcmp(a->role, b->role) == 0);
    MUST(strcmp(a->version, b->version) == 0 && a->uptime_s == b->uptime_s);
    MUST(a->major == b->major && a->minor == b->minor && a->is_valkey == b->is_valkey);
    MUST(a->features == b->features);
}

/* Parses the same lines with CRLF and an unknown line after them. */
static void parse_respelled(struct rl_info *info, const char *text, size_t len)
{
    static const char more[] = "nobody_knows_this:1\r\n";
    char *copy = malloc(2 * len + sizeof more + 2);
    size_t at = 0;

    MUST(copy != NULL);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n')
            copy[at++] = '\r';
        copy[at++] = text[i];
    }
    copy[at++] = '\n';
    memcpy(copy + at, more, sizeof more - 1);
    rl_info_parse(info, copy, at + sizeof more - 1);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rl_info info, other;
    const char *text = (const char *)data;

    if (size > TEXT_MAX)
        return 0;
    memset(&info, 0, sizeof info);
    memset(&other, 0, sizeof other);
    rl_info_parse(&info, text, size);
    check(&info);
    parse_respelled(&other, text, size);
    check(&other);
    check_same(&info, &other);
    return 0;
}
