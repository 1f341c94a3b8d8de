/* SPDX-License-Identifier: MIT
 * Prints messages to stderr, as text or as JSON objects. While there is a status line, each message
 * is printed over it, and the status line again below. Messages may come from the library's thread,
 * so a mutex protects the status line.
 */
#include "say.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exits.h"
#include "json.h"
#include "shown.h"

/* Set by say_setup(): the highest level that is printed, and whether messages are JSON lines. */
static int shown_max = SAY_NOTE;
static bool as_json = false;

/* Set by say_set_screen(): shows the ordinary screen again; NULL: the terminal shows it. */
static void (*screen_restore)(void) = NULL;

/* Moves the cursor to the start of the line and erases the line. */
#define ERASE_LINE "\r\033[K"
/* The status line; NULL: there is none. Protected by status_mutex. */
static char *status_line = NULL;
static pthread_mutex_t status_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Sets the highest level that is printed (-q and -v change it), and whether messages are JSON
 * lines. */
void say_setup(int level_max, bool json)
{
    shown_max = level_max;
    as_json = json;
}

/* Returns true if messages of this level are printed. */
bool say_shows(int level)
{
    return level <= shown_max && !screen_restore;
}

/* Begins or ends the time in which the terminal shows a full screen. */
void say_set_screen(void (*restore)(void))
{
    screen_restore = restore;
}

/* Writes `len` bytes to `fd` as far as that does not block. Returns false if some bytes were not
 * written. */
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

/* Prints a message as a JSON line to stderr. */
static void say_json(enum say_level level, const char *text)
{
    static const char *const names[] = {"error", "warning", "note", "info", "debug"};
    char *line = json_line(json_pack("{s:s, s:s, s:o}", "schema", "redlock.message/1", "level",
                                     names[level], "text", json_text(text)));

    write_line(STDERR_FILENO, line, strlen(line));
    free(line);
}

/* Sets or removes the status line, and prints the change. */
void say_status(const char *line)
{
    pthread_mutex_lock(&status_mutex);
    if (line || status_line) {
        char *text = text_format(ERASE_LINE "%s", line ? line : "");
        write_line(STDERR_FILENO, text, strlen(text));
        free(text);
    }
    free(status_line);
    status_line = line ? text_copy(line) : NULL;
    pthread_mutex_unlock(&status_mutex);
}

/* Prints one line to stderr, above the status line. */
static void print_above(const char *line)
{
    pthread_mutex_lock(&status_mutex);
    if (status_line) {
        char *text = text_format(ERASE_LINE "%s%s", line, status_line);
        write_line(STDERR_FILENO, text, strlen(text));
        free(text);
    } else {
        write_line(STDERR_FILENO, line, strlen(line));
    }
    pthread_mutex_unlock(&status_mutex);
}

/* Prints one message to stderr, "redlock: " and the text, if its level is printed. A text of more
 * than 2047 bytes is cut. */
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
    print_above(line);
    free(line);
    free(shown);
}

/* Returns `memory`; if it is NULL, reports that memory is exhausted and ends the process. */
void *must(void *memory)
{
    if (!memory) {
        static const char text[] = "redlock: out of memory\n";
        if (screen_restore)
            screen_restore();
        write_line(STDERR_FILENO, text, sizeof text - 1);
        _exit(EXIT_SYSTEM);
    }
    return memory;
}

/* Returns the text that printf() would print. Ends the process if memory is exhausted. To be
 * freed. */
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

/* Returns a copy of the text. Ends the process if memory is exhausted. To be freed. */
char *text_copy(const char *text)
{
    return must(strdup(text));
}
