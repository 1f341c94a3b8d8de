/* SPDX-License-Identifier: MIT
 * Fuzzes command lines and settings files of the command. Each input ends in options that are in
 * range, or in an exit code for a mistake of the user. A password in an address never appears in
 * the output.
 *
 *     1 byte the subcommand, 1 byte number of arguments, each ended by 0, then the file; a byte
 *     of 1 stands for the login "redis://u:QQQQ@", a byte of 2 for one without a scheme,
 *     "u:QQQQ@" */
#include "fuzz.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "durations.h"
#include "exits.h"
#include "options_table.h"
#include "redlock/redlock.h"
#include "say.h"
#include "settings.h"

#define ARGS_MAX 24
#define TEXT_MAX ((size_t)8192)

struct line {
    char text[TEXT_MAX];
    size_t len;
    char *argv[ARGS_MAX + 2];
    int argc;
    bool secret;    /* contains a login */
    bool confusing; /* contains something else that looks like its password */
};

/* Appends a byte of the input, or the login that it stands for. */
static void put(struct line *line, char byte)
{
    const char *login = byte == 1 ? "redis://u:QQQQ@" : byte == 2 ? "u:QQQQ@" : "";
    size_t len = strlen(login);

    if (len > 0 && line->len + len < TEXT_MAX) {
        memcpy(line->text + line->len, login, len);
        line->len += len;
        line->secret = true;
        return;
    }
    line->confusing = line->confusing || byte == 'Q';
    if (line->len + 1 < TEXT_MAX)
        line->text[line->len++] = byte;
}

/* Reads the arguments of a command line. */
static void read_line(struct fuzz_input *input, struct line *line, const char *command)
{
    unsigned count = fuzz_byte(input) % ARGS_MAX;
    size_t starts[ARGS_MAX];

    for (unsigned i = 0; i < count; i++) {
        starts[i] = line->len;
        for (char byte = (char)fuzz_byte(input); byte != '\0'; byte = (char)fuzz_byte(input))
            put(line, byte);
        if (line->len + 1 < TEXT_MAX)
            line->len++;
    }
    line->argv[0] = (char *)(uintptr_t)command;
    for (unsigned i = 0; i < count; i++)
        line->argv[i + 1] = line->text + starts[i];
    line->argc = (int)count + 1;
}

/* Writes the rest of the input to a file. Returns its descriptor, or -1 if the file names files of
 * its own. */
static int make_file(struct fuzz_input *input, struct line *line)
{
    size_t start = line->len;
    int fd = memfd_create("settings", MFD_CLOEXEC);

    while (input->left > 0)
        put(line, (char)fuzz_byte(input));
    MUST(fd >= 0);
    bool names_files = memmem(line->text + start, line->len - start, "file", 4) != NULL;
    ssize_t written = write(fd, line->text + start, line->len - start);
    if (!names_files && written == (ssize_t)(line->len - start))
        return fd;
    close(fd);
    return -1;
}

/* Returns true if the exit code means a mistake of the user. */
static bool is_user_error(int code)
{
    return code == EXIT_USAGE || code == EXIT_CONFIG;
}

/* Checks that the options are in their ranges. */
static void check_options(const struct options *options, const struct line *line)
{
    MUST(options->conflict_code >= 0 && options->conflict_code <= 255);
    MUST(options->nodes >= 1 && options->nodes <= REDLOCK_NODES_MAX);
    MUST(options->status_fd == -1 || (options->status_fd > 0 && options->status_fd <= 65535));
    MUST(options->stop_signal > 0 && options->stop_signal <= SIGRTMAX);
    MUST(options->operand_count < (size_t)line->argc);
    for (size_t i = 0; i < options->operand_count; i++)
        MUST(options->operands[i] != NULL);
}

/* Loads the settings and checks that they are in their ranges. */
static void check_settings(const struct options *options, bool secret)
{
    struct settings settings;
    int result = settings_load(options, &settings);

    MUST(result == -1 || is_user_error(result));
    if (result != -1)
        return;
    MUST(settings.connect_timeout_ms >= 1 && settings.connect_timeout_ms <= 60000);
    MUST(settings.node_timeout_ms <= 60000);
    for (int id = 0; id < SET_COUNT; id++) {
        enum setting_id again;
        char *shown = setting_shown(&settings, (enum setting_id)id);
        MUST(!secret || id != SET_SERVERS || shown == NULL || strstr(shown, "QQ") == NULL);
        MUST(id != SET_PASSWORD || shown == NULL || strcmp(shown, "***") == 0);
        free(shown);
        MUST(setting_by_name(setting_name((enum setting_id)id), &again) && (int)again == id);
    }
    settings_free(&settings);
}

/* Checks that a duration can be printed in its short form and read back with the same value. */
static void check_duration(const char *text)
{
    char shorter[DURATION_TEXT];
    uint64_t ms, again;

    if (!duration_parse(text, &ms))
        return;
    MUST(ms <= UINT64_C(1000) * 24 * 3600 * 1000);
    MUST(duration_parse(duration_text(ms, shorter), &again) && again == ms);
}

/* Resets getopt_long() to the state of a new process, because it remembers its position inside of
 * "-abc". */
static void reset_getopt(void)
{
    static char name[] = "redlock";
    static char *const nothing[] = {name, NULL};
    static const struct option none[] = {{NULL, 0, NULL, 0}};

    optind = 0;
    (void)getopt_long(1, nothing, "+:", none, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    static struct line line;
    struct options options;
    char path[64];
    unsigned commands = 0;

    while (command_names[commands] != NULL)
        commands++;
    unsigned index = fuzz_below(&input, commands);
    memset(&line, 0, sizeof line);
    read_line(&input, &line, command_names[index]);
    for (int i = 1; i < line.argc; i++)
        check_duration(line.argv[i]);
    (void)command_nearest(line.argc > 1 ? line.argv[1] : "");
    reset_getopt();
    say_setup(SAY_NOTE, false);
    int result = options_parse(1u << index, command_names[index], line.argc, line.argv, &options);
    MUST(result == -1 || result == EXIT_OK || is_user_error(result));
    if (result == -1) {
        check_options(&options, &line);
        int fd = make_file(&input, &line);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        options.config_file = path;
        options.pass_file = NULL; /* it could be any file of this machine */
        if (fd >= 0)
            check_settings(&options, line.secret && !line.confusing);
        if (fd >= 0)
            close(fd);
    }
    free(options.operands);
    free(options.also);
    free(options.servers);
    return 0;
}
