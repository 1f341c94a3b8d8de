/* SPDX-License-Identifier: MIT
 * `redlock top`: a live view of the servers and of locks. With --once, prints it once instead. The
 * view itself is in top_screen.c, which is only built if ncurses is there.
 */
#include <stdio.h>
#include <unistd.h>

#include "client.h"
#include "commands.h"
#include "exits.h"
#include "pass_file.h"
#include "say.h"
#include "signals.h"
#include "top_collect.h"
#include "top_screen.h"
#include "top_text.h"

/* Time limit for closing the client. */
#define CLOSE_BUDGET_MS 200
/* Shortest --interval. */
#define INTERVAL_MIN_MS 100

/* Checks the names, the interval, and that there is a screen to draw on. Returns -1 on success, or
 * EXIT_USAGE after a message. */
static int check(const struct options *options)
{
    for (size_t i = 0; i < options->operand_count; i++) {
        int result = client_check_name("top", options->operands[i]);
        if (result >= 0)
            return result;
    }
    if (options->operand_count > 0 && options->match) {
        say(SAY_ERROR, "top: NAME with --match: names are not searched for; give one of them");
        return EXIT_USAGE;
    }
    if (options->operand_count > 0 && options->given[OPT_SCAN_RATE - OPT_FIRST]) {
        say(SAY_ERROR, "top: NAME with --scan-rate: names are not searched for; leave it out");
        return EXIT_USAGE;
    }
    if (options->interval_ms < INTERVAL_MIN_MS) {
        say(SAY_ERROR,
            "top: --interval below %d ms: each inspection sends requests to all "
            "servers; give a longer one",
            INTERVAL_MIN_MS);
        return EXIT_USAGE;
    }
    if (options->once)
        return -1;
#ifdef REDLOCK_HAS_SCREEN
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        return -1;
    say(SAY_ERROR, "top: standard input or output is no terminal; give --once");
#else
    say(SAY_ERROR, "top: this redlock was built without ncurses, so it has no screen; give --once");
#endif
    return EXIT_USAGE;
}

/* Collects everything once and prints it. Returns EXIT_OK; EXIT_NO_QUORUM if a shard has no quorum
 * or locks may be missing; or EXIT_OUTPUT. */
static int print_once(const struct options *options, struct top *top)
{
    top_collect(top);
    if (!top_print(top, options->json)) {
        say(SAY_ERROR, "top: the output could not be written to stdout; check its reader");
        return EXIT_OUTPUT;
    }
    return top_has_quorum(&top->model) && !top->short_of ? EXIT_OK : EXIT_NO_QUORUM;
}

/* Shows the view on the screen until the user or a signal ends it. Returns the exit code. */
static int show_screen(struct top *top)
{
#ifdef REDLOCK_HAS_SCREEN
    int signal_fd = signals_open();
    int result = top_screen(top, signal_fd);

    close(signal_fd);
    return result;
#else
    (void)top;
    return EXIT_USAGE;
#endif
}

/* Runs `redlock top`. With --once a signal ends the process at once, because nothing has to be
 * restored: its calls may wait for servers that do not reply. Returns the exit code. */
int cmd_top(const struct options *options)
{
    struct settings settings;
    struct top top;
    redlock_t *rl;
    int result = check(options);

    if (result >= 0)
        return result;
    if (!options->once)
        signals_block();
    result = client_open(options, &settings, &rl);
    if (result >= 0)
        return result;
    pass_file_follow(&settings, rl);
    top_open(&top, options, &settings, rl);
    result = options->once ? print_once(options, &top) : show_screen(&top);
    top_close(&top);
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return result;
}
