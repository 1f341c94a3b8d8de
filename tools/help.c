/* SPDX-License-Identifier: MIT
 * The help texts. The build makes them from tools/manual/table.py.
 */
#include "help.h"

#include <stdio.h>
#include <string.h>

/* The help texts of a subcommand, arrays of lines that end with NULL. */
struct command_help {
    const char *name;
    const char *const *card; /* for -h: one screen */
    const char *const *full; /* for --help: all options in sentences */
};

/* Defines start_text, overview_text and command_helps. */
#include "help_texts.inc"

/* Prints the lines to stdout. */
static void print_lines(const char *const *lines)
{
    for (; *lines; lines++) {
        fputs(*lines, stdout);
        putchar('\n');
    }
}

/* Prints examples to stdout, for `redlock` without arguments. */
void help_examples(void)
{
    print_lines(start_text);
}

/* Prints the list of subcommands to stdout, for `redlock --help`. */
void help_overview(void)
{
    print_lines(overview_text);
}

/* Prints a help text of the subcommand `name` to stdout: `--help` if `full`, else `-h`. Prints
 * nothing if there is no such subcommand. */
void help_command(const char *name, bool full)
{
    for (size_t i = 0; i < sizeof command_helps / sizeof command_helps[0]; i++)
        if (!strcmp(name, command_helps[i].name))
            print_lines(full ? command_helps[i].full : command_helps[i].card);
}
