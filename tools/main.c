/* SPDX-License-Identifier: MIT
 * The command `redlock`: finds the subcommand and runs it.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "exits.h"
#include "files.h"
#include "help.h"
#include "mask.h"
#include "options.h"
#include "options_table.h"
#include "redlock/redlock.h"
#include "say.h"
#include "signals.h"
#include "title.h"

/* Returns the function of the subcommand with this bit. */
static int (*command_function(enum command_bit bit))(const struct options *)
{
    switch (bit) {
    case CMD_RUN:
        return cmd_run;
    case CMD_ACQUIRE:
        return cmd_acquire;
    case CMD_EXTEND:
        return cmd_extend;
    case CMD_RELEASE:
        return cmd_release;
    case CMD_STATUS:
        return cmd_status;
    case CMD_WATCH:
        return cmd_watch;
    case CMD_TOP:
        return cmd_top;
    case CMD_NODES:
        return cmd_nodes;
    case CMD_BREAK:
        return cmd_break;
    case CMD_CONFIG:
        return cmd_config;
    case CMD_SANDBOX:
        return cmd_sandbox;
    }
    abort();
}

/* Parses the options of a subcommand and runs it. `index` is that of command_names. Returns the
 * exit code. */
static int run_subcommand(unsigned index, int argc, char **argv)
{
    enum command_bit bit = (enum command_bit)(1u << index);
    struct options options;
    int result = options_parse(bit, command_names[index], argc, argv, &options);

    if (result < 0)
        result = command_function(bit)(&options);
    free(options.operands);
    free(options.also);
    free(options.servers);
    return result;
}

/* Closes stdout. Returns `result`, or EXIT_OUTPUT if output was lost although the result is
 * success. */
static int close_output(int result)
{
    bool failed = ferror(stdout) != 0;

    failed = fclose(stdout) != 0 || failed;
    if (!failed || result != EXIT_OK)
        return result;
    say(SAY_ERROR, OUTPUT_LOST);
    return EXIT_OUTPUT;
}

/* Prints the versions of the command, of its library and of Jansson. Returns EXIT_OK. */
static int show_version(void)
{
    printf("redlock %s (%s, jansson %s)\n", redlock_version_string(), redlock_build_text(),
           JANSSON_VERSION);
    return EXIT_OK;
}

/* Reports that `word` is no subcommand, with the most similar one. Returns EXIT_USAGE. */
static int refuse_word(const char *word)
{
    const char *near = command_nearest(word + strspn(word, "-"));
    const char *shown = mask_word(word);

    if (!strcmp(word, "version"))
        say(SAY_ERROR, "unknown command version; write: redlock --version");
    else if (near)
        say(SAY_ERROR, "unknown command %.60s; did you mean %s? All commands: redlock --help",
            shown, near);
    else
        say(SAY_ERROR,
            "unknown command %.60s; to run a command under a lock: redlock run NAME -- CMD", shown);
    return EXIT_USAGE;
}

/* Finds out what the first word of the command line is (a subcommand, or a request for help or for
 * the version), and runs it. Returns the exit code. */
static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        help_examples();
        return EXIT_OK;
    }
    const char *word = argv[1];
    for (unsigned i = 0; command_names[i]; i++)
        if (!strcmp(word, command_names[i]))
            return run_subcommand(i, argc - 1, argv + 1);
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        for (unsigned i = 0; argc > 2 && command_names[i]; i++)
            if (!strcmp(argv[2], command_names[i])) {
                help_command(command_names[i], true);
                return EXIT_OK;
            }
        if (argc > 2)
            return refuse_word(argv[2]);
        help_overview();
        return EXIT_OK;
    }
    if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        return show_version();
    return refuse_word(word);
}

/* Runs the command `redlock` and returns its exit code. */
int main(int argc, char **argv)
{
    signals_ignore_output();
    title_remember(argc, argv);
    if (!fill_standard_descriptors())
        return EXIT_SYSTEM;
    return close_output(dispatch(argc, argv));
}
