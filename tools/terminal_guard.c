/* SPDX-License-Identifier: MIT
 * Restores the terminal in handlers of fatal signals. They make system calls only.
 */
#include "terminal_guard.h"

#include <signal.h>
#include <stdbool.h>
#include <termios.h>
#include <unistd.h>

#include "say.h"

/* The signals of a fault of this process. They are not blocked (signals_block()). */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

/* The settings of the terminal at terminal_guard_begin(), and whether there are any. */
static struct termios saved;
static bool has_saved = false;

/* Restores the settings of the terminal, shows the ordinary screen and the cursor, and ends all
 * attributes. These codes are the same on all terminals that have a second screen. */
static void restore(void)
{
    static const char codes[] = "\033[?1049l\033[?25h\033[0m\r";

    if (has_saved)
        tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    if (write(STDOUT_FILENO, codes, sizeof codes - 1) < 0)
        return; /* nothing is left to do */
}

/* Restores the terminal, and ends the process by the signal. The handler was reset when the signal
 * came. */
static void on_fault(int sig)
{
    restore();
    raise(sig);
}

/* Sets the handler of all faults; NULL: the default. */
static void set_handlers(void (*handler)(int))
{
    struct sigaction action = {.sa_flags = (int)SA_RESETHAND | SA_NODEFER};

    action.sa_handler = handler ? handler : SIG_DFL;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigaction(faults[i], &action, NULL);
}

/* Remembers the settings, and sets the handlers. */
void terminal_guard_begin(void)
{
    has_saved = tcgetattr(STDIN_FILENO, &saved) == 0;
    set_handlers(on_fault);
    say_set_screen(restore);
}

/* Removes the handlers. */
void terminal_guard_end(void)
{
    set_handlers(NULL);
    say_set_screen(NULL);
}
