/* SPDX-License-Identifier: MIT
 * The full-screen view of `redlock top`, with ncurses. draw() puts the whole screen together from
 * the model, and ncurses sends what has changed to the terminal. handle_key() does what a key says.
 * The loop waits for a key, a signal, or news of the thread that collects, at most for a second,
 * because the times on the screen go on.
 */
#include "top_screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "clock.h"
#include "exits.h"
#include "say.h"
#include "shown.h"
#include "signals.h"
#include "terminal_guard.h"
#include "terminal_type.h"
#include "top_text.h"

/* Longest filter, in bytes. */
#define FILTER_MAX 128
/* Key codes that have no name in ncurses. */
#define KEY_ESCAPE 27
#define KEY_CTRL_L 12
#define KEY_DELETE 127

/* What the keys do at the moment. */
enum screen_mode {
    MODE_LIST,    /* they move in the list and start something */
    MODE_FILTER,  /* they change the filter */
    MODE_CONFIRM, /* 'y' breaks the lock */
    MODE_HELP     /* each of them closes the help */
};

/* The state of the screen. Only the thread that draws uses it. */
struct screen {
    struct top *top;                 /* what is drawn */
    enum screen_mode mode;           /* what keys do */
    enum top_order order;            /* how the locks are sorted */
    bool reverse;                    /* in reverse order */
    char filter[FILTER_MAX];         /* only locks with this text are shown; "": all */
    char *selected;                  /* name of the selected lock; NULL: none; owned */
    size_t position;                 /* its position in the list as drawn last */
    size_t first;                    /* position of the first lock on the screen */
    size_t page;                     /* how many locks fit the screen */
    size_t count;                    /* how many locks the filter lets through */
    char *break_name;                /* MODE_CONFIRM: the lock; owned */
    char break_owner[TOP_OWNER_MAX]; /* MODE_CONFIRM: its holder */
    char *note;                      /* a text in the last line; NULL: the keys; owned */
    bool done;                       /* the user has ended it */
};

/* Returns true if the terminal shows UTF-8. */
static bool shows_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Prints a printable text at the start of a line, cut to the width of the screen, in these
 * attributes. The rest of the line gets them as well if `whole`. */
static void put_line(int row, const char *text, attr_t attributes, bool whole)
{
    char *line = text_cut(text, (size_t)COLS);

    if (row >= LINES) {
        free(line);
        return;
    }
    for (char *at = line; *at && !shows_utf8(); at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    attrset((int)attributes);
    mvaddstr(row, 0, line);
    if (whole)
        for (int column = (int)text_width(line); column < COLS; column++)
            addch(' ');
    attrset(A_NORMAL);
    free(line);
}

/* Returns the attributes of a row. */
static attr_t attributes_of(enum top_mood mood)
{
    if (mood == TOP_GOOD)
        return A_NORMAL;
    return has_colors() ? (attr_t)COLOR_PAIR(mood) : A_BOLD;
}

/* Draws the first line: the time, and how many servers are eligible. */
static void draw_title(const struct screen *screen)
{
    time_t now = time(NULL);
    char clock[16] = "";
    struct tm local;

    if (localtime_r(&now, &local))
        strftime(clock, sizeof clock, "%H:%M:%S", &local);
    char *servers = top_servers_text(&screen->top->model);
    char *text = text_format("redlock top  %s  %s", clock, servers);
    char *shown = text_shown(text);
    put_line(0, shown, A_REVERSE, true);
    free(shown);
    free(text);
    free(servers);
}

/* Draws the table of servers from `row` on, with at most `most` servers. Returns the next row. */
static int draw_servers(const struct screen *screen, int row, size_t most)
{
    const struct top_model *model = &screen->top->model;
    struct text_table table;

    top_server_table(&table, model);
    char **lines = table_lines(&table, (size_t)COLS);
    size_t shown = model->server_count < most ? model->server_count : most;
    put_line(row++, lines[0], A_BOLD, false);
    for (size_t i = 0; i < shown; i++)
        put_line(row++, lines[i + 1], attributes_of(top_mood_of_server(&model->servers[i])), false);
    table_free_lines(lines, table.row_count);
    table_free(&table);
    if (shown == model->server_count)
        return row;
    char *more =
        text_format("(%zu more servers: make the window higher)", model->server_count - shown);
    put_line(row++, more, A_NORMAL, false);
    free(more);
    return row;
}

/* Draws the line above the locks: how many there are, how they are sorted, and the filter. */
static void draw_list_title(const struct screen *screen, int row)
{
    static const char *const orders[TOP_ORDERS] = {"name", "time left", "holder", "votes",
                                                   "waiters"};
    char *found = top_locks_text(screen->top);
    char *filtered = *screen->filter
                         ? text_format(", %zu with \"%s\"", screen->count, screen->filter)
                         : text_copy("");
    char *text = text_format("%s%s, by %s%s", found, filtered, orders[screen->order],
                             screen->reverse ? " (reverse)" : "");
    char *shown = text_shown(text);
    put_line(row, shown, A_NORMAL, false);
    free(shown);
    free(text);
    free(filtered);
    free(found);
}

/* Finds the selected lock in the list, or selects the one at its last position, and scrolls so that
 * it is on the screen. */
static void follow_selection(struct screen *screen, struct top_lock *const *locks)
{
    bool found = false;

    for (size_t i = 0; i < screen->count && screen->selected && !found; i++) {
        found = !strcmp(locks[i]->name, screen->selected);
        if (found)
            screen->position = i;
    }
    if (screen->position >= screen->count)
        screen->position = screen->count ? screen->count - 1 : 0;
    if (!found) {
        free(screen->selected);
        screen->selected = screen->count ? text_copy(locks[screen->position]->name) : NULL;
    }
    if (screen->first > screen->position)
        screen->first = screen->position;
    if (screen->page && screen->position >= screen->first + screen->page)
        screen->first = screen->position - screen->page + 1;
    if (screen->first + screen->page > screen->count)
        screen->first = screen->count > screen->page ? screen->count - screen->page : 0;
}

/* Draws the table of locks from `row` on to the last line but one. Marks the locks on the screen,
 * so that they are inspected first. */
static void draw_locks(struct screen *screen, int row)
{
    struct top_model *model = &screen->top->model;
    uint64_t now_ns = boottime_ns();
    struct text_table table;
    struct top_lock **locks =
        top_select(model, screen->order, screen->reverse, screen->filter, now_ns, &screen->count);

    draw_list_title(screen, row);
    screen->page = LINES - 1 > row + 2 ? (size_t)(LINES - 1 - row - 2) : 0;
    follow_selection(screen, locks);
    for (size_t i = 0; i < model->count; i++)
        model->locks[i]->visible = false;
    size_t left = screen->count - screen->first;
    size_t shown = left < screen->page ? left : screen->page;
    top_lock_table(&table, model, locks + screen->first, shown, now_ns);
    char **lines = table_lines(&table, (size_t)COLS);
    if (screen->count > 0)
        put_line(row + 1, lines[0], A_BOLD, false);
    for (size_t i = 0; i < shown; i++) {
        struct top_lock *lock = locks[screen->first + i];
        bool selected = screen->first + i == screen->position;
        attr_t attributes = attributes_of(top_mood_of_lock(lock));
        lock->visible = true;
        put_line(row + 2 + (int)i, lines[i + 1], selected ? attributes | A_REVERSE : attributes,
                 selected);
    }
    table_free_lines(lines, table.row_count);
    table_free(&table);
    free(locks);
}

/* Draws the last line: a question, the filter, a note or the keys. */
static void draw_footer(const struct screen *screen)
{
    char *text;

    if (screen->mode == MODE_FILTER)
        text = text_format("filter: %s_   Enter: keep, Esc: show all", screen->filter);
    else if (screen->mode == MODE_CONFIRM)
        text = text_format("Press y to break %s, held by %s; any other key: no", screen->break_name,
                           *screen->break_owner ? screen->break_owner : "a client without a label");
    else if (screen->note)
        text = text_copy(screen->note);
    else if (*screen->top->message)
        text = text_copy(screen->top->message);
    else
        text = text_copy("q quit  / filter  n t h v w sort  b break  ? help");
    char *shown = text_shown(text);
    put_line(LINES - 1, shown, screen->mode == MODE_CONFIRM ? A_BOLD : A_NORMAL, false);
    free(shown);
    free(text);
}

/* Draws the help. */
static void draw_help(void)
{
    static const char *const lines[] = {
        "Keys of redlock top",
        "",
        "  up, down, page up, page down, home, end   select a lock",
        "  n t h v w    sort by name, time left, holder, votes, waiting; again: reversed",
        "  /            show only locks whose name or holder contains a text; Esc: all",
        "  b            break the selected lock: delete its key on all servers, after 'y'",
        "  q            quit",
        "",
        "LOCKS of a server: how many of the locks in the list have a key there.",
        "VOTES: servers that have a key of the lock, of those that could have one.",
        "LEFT: the time until the last key expires, unless the holder extends the lock.",
        "WAITING: clients in the line of the lock.",
        "",
        "Without names on the command line, locks are searched for with SCAN on as many",
        "servers as are needed to find each held lock, at most --scan-rate keys a second.",
        "",
        "Press any key to go back."};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        put_line((int)i, lines[i], i == 0 ? A_BOLD : A_NORMAL, false);
}

/* Draws the whole screen. */
static void draw(struct screen *screen)
{
    /* Beside the servers there are: the title, two headings, two other lines and the last one. */
    size_t most = LINES > 12 ? (size_t)(LINES - 6) / 2 : 3;

    erase();
    if (screen->mode == MODE_HELP) {
        draw_help();
    } else {
        pthread_mutex_lock(&screen->top->mutex);
        draw_title(screen);
        int row = draw_servers(screen, 1, most);
        draw_locks(screen, row + 1);
        draw_footer(screen);
        pthread_mutex_unlock(&screen->top->mutex);
    }
    refresh();
}

/* Sets the note in the last line; NULL removes it, and the message about the last break. */
static void set_note(struct screen *screen, const char *text)
{
    free(screen->note);
    screen->note = text ? text_copy(text) : NULL;
    pthread_mutex_lock(&screen->top->mutex);
    screen->top->message[0] = '\0';
    pthread_mutex_unlock(&screen->top->mutex);
}

/* Selects the lock at a position of the list; draw() makes it valid. */
static void select_at(struct screen *screen, size_t position)
{
    free(screen->selected);
    screen->selected = NULL;
    screen->position = position;
}

/* Sorts by `order`; in reverse order if the list is sorted by it already. */
static void sort_by(struct screen *screen, enum top_order order)
{
    screen->reverse = screen->order == order && !screen->reverse;
    screen->order = order;
}

/* Asks whether the selected lock shall be broken. */
static void ask_break(struct screen *screen)
{
    pthread_mutex_lock(&screen->top->mutex);
    const struct top_lock *lock =
        screen->selected ? top_find(&screen->top->model, screen->selected) : NULL;
    bool has_key = lock && lock->votes > 0;
    if (has_key) {
        free(screen->break_name);
        screen->break_name = text_copy(lock->name);
        memcpy(screen->break_owner, lock->owner, sizeof screen->break_owner);
        screen->mode = MODE_CONFIRM;
    }
    pthread_mutex_unlock(&screen->top->mutex);
    if (!has_key)
        set_note(screen, "no lock that is held is selected");
}

/* Handles a key that moves the selection. Returns false if it is none. */
static bool move_selection(struct screen *screen, wint_t key)
{
    size_t at = screen->position, page = screen->page ? screen->page : 1;
    size_t last = screen->count ? screen->count - 1 : 0;

    switch (key) {
    case KEY_UP:
    case 'k':
        select_at(screen, at > 0 ? at - 1 : 0);
        return true;
    case KEY_DOWN:
    case 'j':
        select_at(screen, at < last ? at + 1 : last);
        return true;
    case KEY_PPAGE:
        select_at(screen, at > page ? at - page : 0);
        return true;
    case KEY_NPAGE:
        select_at(screen, last - at > page ? at + page : last);
        return true;
    case KEY_HOME:
        select_at(screen, 0);
        return true;
    case KEY_END:
        select_at(screen, last);
        return true;
    default:
        return false;
    }
}

/* Handles a key in the list. */
static void handle_list_key(struct screen *screen, wint_t key)
{
    set_note(screen, NULL);
    if (move_selection(screen, key))
        return;
    switch (key) {
    case 'q':
    case 'Q':
        screen->done = true;
        break;
    case 'n':
        sort_by(screen, TOP_BY_NAME);
        break;
    case 't':
        sort_by(screen, TOP_BY_LEFT);
        break;
    case 'h':
        sort_by(screen, TOP_BY_HOLDER);
        break;
    case 'v':
        sort_by(screen, TOP_BY_VOTES);
        break;
    case 'w':
        sort_by(screen, TOP_BY_WAITING);
        break;
    case '/':
        screen->mode = MODE_FILTER;
        break;
    case 'b':
        ask_break(screen);
        break;
    case '?':
    case KEY_F(1):
        screen->mode = MODE_HELP;
        break;
    case KEY_ESCAPE:
        screen->filter[0] = '\0';
        break;
    case KEY_CTRL_L:
        clearok(stdscr, TRUE);
        break;
    default:
        break;
    }
}

/* Removes the last character of the filter. */
static void shorten_filter(struct screen *screen)
{
    size_t len = strlen(screen->filter);

    while (len > 0 && ((unsigned char)screen->filter[len - 1] & 0xc0) == 0x80)
        len--;
    screen->filter[len > 0 ? len - 1 : 0] = '\0';
}

/* Handles a key while the filter is typed. `code` is true for a key without a character. */
static void handle_filter_key(struct screen *screen, bool code, wint_t key)
{
    size_t len = strlen(screen->filter);
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};

    if (key == KEY_ESCAPE)
        screen->filter[0] = '\0';
    if (key == KEY_ESCAPE || key == '\n' || key == '\r' || (code && key == KEY_ENTER)) {
        screen->mode = MODE_LIST;
        return;
    }
    if (key == KEY_DELETE || key == '\b' || (code && key == KEY_BACKSPACE)) {
        shorten_filter(screen);
        return;
    }
    size_t size = code || key < ' ' ? (size_t)-1 : wcrtomb(bytes, (wchar_t)key, &state);
    if (size == (size_t)-1 || len + size >= sizeof screen->filter)
        return;
    memcpy(screen->filter + len, bytes, size);
    screen->filter[len + size] = '\0';
    select_at(screen, 0);
}

/* Handles one key. `code` is true for a key without a character, such as an arrow. */
static void handle_key(struct screen *screen, bool code, wint_t key)
{
    switch (screen->mode) {
    case MODE_LIST:
        handle_list_key(screen, key);
        break;
    case MODE_FILTER:
        handle_filter_key(screen, code, key);
        break;
    case MODE_CONFIRM:
        screen->mode = MODE_LIST;
        if (key == 'y' || key == 'Y')
            top_break(screen->top, screen->break_name, screen->break_owner);
        else
            set_note(screen, "not broken");
        break;
    case MODE_HELP:
        screen->mode = MODE_LIST;
        break;
    }
}

/* Gives the screen the size that the terminal has now. */
static void resize(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
}

/* Stops this process until it is in the foreground of the terminal. */
static void wait_for_foreground(void)
{
    while (tcgetpgrp(STDIN_FILENO) != getpgrp())
        raise(SIGSTOP);
}

/* Gives the terminal back, stops this process, and takes the terminal again after `fg`. */
static void suspend(void)
{
    endwin();
    raise(SIGSTOP);
    wait_for_foreground();
    resize();
    clearok(stdscr, TRUE);
}

/* Handles all pending signals. Returns -1, or 128+n if signal n ends the program. */
static int take_signals(int signal_fd)
{
    struct signalfd_siginfo info;

    while (signals_next(signal_fd, &info)) {
        int sig = (int)info.ssi_signo;
        if (signal_ends(sig))
            return EXIT_SIGNAL_BASE + sig;
        if (sig == SIGTSTP)
            suspend();
        if (sig == SIGWINCH)
            resize();
    }
    return -1;
}

/* Handles all keys that were pressed. Draws after each of them, because the next one is about what
 * is on the screen then. */
static void take_keys(struct screen *screen)
{
    wint_t key;
    int kind;

    while (!screen->done && (kind = get_wch(&key)) != ERR) {
        handle_key(screen, kind == KEY_CODE_YES, key);
        draw(screen);
    }
}

/* How long the first picture waits for the state of the servers, in ms. */
#define FIRST_MS 500

/* Draws and handles keys until the user or a signal ends it. Returns the exit code. */
static int loop(struct screen *screen, int signal_fd)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = signal_fd, .events = POLLIN},
                           {.fd = screen->top->news_fd, .events = POLLIN}};
    uint64_t count;

    poll(&fds[2], 1, FIRST_MS);
    while (!screen->done) {
        draw(screen);
        poll(fds, 3, 1000);
        if (fds[2].revents && read(fds[2].fd, &count, sizeof count) < 0)
            continue;
        int result = take_signals(signal_fd);
        if (result >= 0)
            return result;
        if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
            return EXIT_SIGNAL_BASE + SIGHUP;
        take_keys(screen);
    }
    return EXIT_OK;
}

/* Sets up the terminal for keys without Enter, and colours unless NO_COLOR is set. */
static void set_up(void)
{
    const char *no_color = getenv("NO_COLOR");

    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    if ((no_color && *no_color) || start_color() == ERR || use_default_colors() == ERR)
        return;
    init_pair(TOP_WAITS, COLOR_YELLOW, -1);
    init_pair(TOP_BAD, COLOR_RED, -1);
}

/* Takes the terminal, draws until the end, and gives the terminal back. */
int top_screen(struct top *top, int signal_fd)
{
    struct screen screen = {.top = top};
    const char *type = getenv("TERM");

    setlocale(LC_CTYPE, "");
    wait_for_foreground();
    terminal_guard_begin();
    SCREEN *terminal = terminal_type_is_known() ? newterm(NULL, stdout, stdin) : NULL;
    if (!terminal) {
        terminal_guard_end();
        say(SAY_ERROR, "top: unknown terminal type \"%s\"; set TERM, or give --once",
            type ? type : "");
        return EXIT_CONFIG;
    }
    set_up();
    int error = top_start(top);
    int result = error == 0 ? loop(&screen, signal_fd) : EXIT_SYSTEM;
    endwin();
    terminal_guard_end();
    delscreen(terminal);
    if (error != 0)
        say(SAY_ERROR, "top: cannot start a thread: %s; raise the limit of processes",
            strerror(error));
    free(screen.selected);
    free(screen.break_name);
    free(screen.note);
    return result;
}
