/* SPDX-License-Identifier: MIT
 * Prints messages to stderr, as text or as JSON objects.
 */
#include "say.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exits.h"
#include "json.h"
#include "shown.h"

/* As in say_setup(). */
static int shown_max = SAY_NOTE;
static bool as_json = false;

void say_setup(int level_max, bool json)
{
    shown_max = level_max;
    as_json = json;
}

bool say_shows(int level)
{
    return level <= shown_max;
}

bool write_line(int fd, const char *line, size_t len)
{
    struct pollfd writable = {.fd = fd, .events = POLLOUT};

    /* A pipe that is writable takes PIPE_BUF bytes at once; longer lines are rare and split. */
    while (len > 0) {
        if (poll(&writable, 1, 0) <= 0 || !(writable.revents & POLLOUT))
            return false;
        ssize_t done = write(fd, line, len < 4096 ? len : 4096);
        if (done <= 0)
            return false;
        line += done;
        len -= (size_t)done;
    }
    return true;
}

/* Prints a message as a JSON line. */
static void say_json(enum say_level level, const char *text)
{
    static const char *const names[] = {"error", "warning", "note", "info", "debug"};
    char *line = json_line(json_pack("{s:s, s:s, s:o}", "schema", "redlock.message/1", "level",
                                     names[level], "text", json_text(text)));

    write_line(STDERR_FILENO, line, strlen(line));
    free(line);
}

void say(enum say_level level, const char *format, ...)
{
    char text[2048];
    va_list args;

    if (!say_shows((int)level))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (as_json) {
        say_json(level, text);
        return;
    }
    char *shown = text_shown(text);
    char *line = text_format("redlock: %s%s\n", level == SAY_WARNING ? "warning: " : "", shown);
    write_line(STDERR_FILENO, line, strlen(line));
    free(line);
    free(shown);
}

void *must(void *memory)
{
    if (!memory) {
        static const char text[] = "redlock: out of memory\n";
        write_line(STDERR_FILENO, text, sizeof text - 1);
        _exit(EXIT_SYSTEM);
    }
    return memory;
}

char *text_format(const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return must(text);
}

char *text_copy(const char *text)
{
    return must(strdup(text));
}
