/* SPDX-License-Identifier: MIT
 * Splits the text of a configuration file into names and values.
 */
#include "ini_text.h"

#include <string.h>

#define BLANKS " \t\r\v\f"

/* The state while one text is read. Local to ini_read(). */
struct ini_reader {
    ini_take_fn *take;
    void *user;          /* for take() */
    unsigned line;       /* number of the current line, from 1 */
    const char *section; /* of the current line; "": before the first section */
    const char *name;    /* of the last value in this section; "": there is none */
    bool ended;          /* take() has ended the reading */
};

/* Removes the white space at the end of `text`. Returns `text` without the one at its beginning. */
static char *trim(char *text)
{
    size_t len;

    text += strspn(text, BLANKS);
    for (len = strlen(text); len > 0 && strchr(BLANKS, text[len - 1]); len--)
        ;
    text[len] = '\0';
    return text;
}

/* Removes the comment at the end of `text`. */
static void cut_comment(char *text)
{
    for (char *at = text; (at = strchr(at, ';')); at++) {
        if (at > text && strchr(BLANKS, at[-1])) {
            *at = '\0';
            return;
        }
    }
}

/* Hands one value to take(). */
static void hand_over(struct ini_reader *reading, char *value)
{
    reading->ended =
        !reading->take(reading->user, reading->line, reading->section, reading->name, trim(value));
}

/* Reads one line. Returns false if it is not of the format. */
static bool read_line(struct ini_reader *reading, char *line)
{
    char *text = trim(line), *end;

    if (!*text || *text == '#' || *text == ';')
        return true;
    cut_comment(text);
    if (text > line && *reading->name) {
        hand_over(reading, text);
    } else if (*text == '[') {
        end = strchr(text, ']');
        if (!end)
            return false;
        *end = '\0';
        reading->section = text + 1;
        reading->name = "";
    } else {
        end = strpbrk(text, "=:");
        if (!end)
            return false;
        *end = '\0';
        reading->name = trim(text);
        hand_over(reading, end + 1);
    }
    return true;
}

/* Calls `take` for each value in `text`. Returns the number of the first line that is not of the
 * format, or 0. */
unsigned ini_read(char *text, ini_take_fn *take, void *user)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    struct ini_reader reading = {.take = take, .user = user, .section = "", .name = ""};
    char *line;

    if (!strncmp(text, byte_order_mark, sizeof byte_order_mark - 1))
        text += sizeof byte_order_mark - 1;
    while (!reading.ended && (line = strsep(&text, "\n"))) {
        reading.line++;
        if (!read_line(&reading, line))
            return reading.line;
    }
    return 0;
}
