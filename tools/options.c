/* SPDX-License-Identifier: MIT
 * Parses a command line with getopt_long(). Error messages say what to write instead. parse_loop()
 * calls getopt_long() until the command line ends. set_option() stores each option in struct
 * options by one of four functions: options without a value (set_switch), values that settings.c
 * parses later (set_text), values that are parsed here (set_value), and -s, which may be repeated.
 * Functions that return an int return -1 to continue, or the exit code of the program.
 */
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conflicts.h"
#include "durations.h"
#include "exits.h"
#include "help.h"
#include "mask.h"
#include "options_table.h"
#include "redlock/redlock.h"
#include "say.h"
#include "signals.h"

/* Largest --scan-rate, in keys a second. */
#define SCAN_RATE_MAX 1000000

/* Prints `what` is wrong with the command line, and how to get help. Returns EXIT_USAGE. */
static int usage(const struct options *options, const char *what)
{
    say(SAY_ERROR, "%s: %s; see: redlock %s --help", options->command_name, what,
        options->command_name);
    return EXIT_USAGE;
}

/* Reports a wrong value of an option; `want` says what to write. Returns EXIT_USAGE. */
static int bad_value(const struct options *options, const char *option, const char *value,
                     const char *want)
{
    say(SAY_ERROR, "%s: %s %s: %s", options->command_name, option,
        *value ? mask_word(value) : "\"\"", want);
    return EXIT_USAGE;
}

/* Parses a decimal number from 0 to `max` into *ret. Returns false if `text` is no such number;
 * *ret is then unchanged. */
static bool parse_number(const char *text, long max, long *ret)
{
    char *end;

    errno = 0;
    long value = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value > max)
        return false;
    *ret = value;
    return true;
}

/* Appends the value of one -s to options->servers, separated by a blank. */
static void add_servers(struct options *options, const char *value)
{
    char *joined =
        options->servers ? text_format("%s %s", options->servers, value) : text_copy(value);

    free(options->servers);
    options->servers = joined;
}

/* Parses the value of `option` as a duration into *ret_ms. Returns -1 on success, or EXIT_USAGE
 * after a message. */
static int set_duration(struct options *options, const char *option, const char *value,
                        uint64_t *ret_ms)
{
    if (!duration_parse(value, ret_ms))
        return bad_value(options, option, value, "not a duration; " DURATION_HELP);
    return -1;
}

/* Parses the value of `option` as a number from `least` to `most` into *ret. Returns -1 on success,
 * or EXIT_USAGE after a message. */
static int set_number(struct options *options, const char *option, const char *value, long least,
                      long most, int *ret)
{
    long number;
    char want[96];

    if (parse_number(value, most, &number) && number >= least) {
        *ret = (int)number;
        return -1;
    }
    snprintf(want, sizeof want, "%s; write a number from %ld to %ld",
             value[strspn(value, "0123456789")] ? "not a number" : "out of range", least, most);
    return bad_value(options, option, value, want);
}

/* Stores --status-fd, which must be open for writing. Returns -1 on success, or EXIT_USAGE after a
 * message. */
static int set_status_fd(struct options *options, const char *value)
{
    int fd;
    int result = set_number(options, "--status-fd", value, 1, 65535, &fd);

    if (result >= 0)
        return result;
    int mode = fcntl(fd, F_GETFL);
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
        return bad_value(
            options, "--status-fd", value,
            "this descriptor is not open for writing; open it, for example with 3>events");
    options->status_fd = fd;
    return -1;
}

/* Parses and stores the value of the option `id` (enum option_id), if it is one of those whose
 * value is parsed here. Returns -1 on success, or EXIT_USAGE after a message. */
static int set_value(struct options *options, int id, const char *value)
{
    int number = 0, result;

    switch (id) {
    case OPT_CONFLICT_EXIT_CODE:
        return set_number(options, "-E", value, 0, 255, &options->conflict_code);
    case OPT_MIN_HOLD:
        return set_duration(options, "--min-hold", value, &options->min_hold_ms);
    case OPT_MAX_HOLD:
        result = set_duration(options, "--max-hold", value, &options->max_hold_ms);
        if (result < 0 && options->max_hold_ms == 0)
            return bad_value(
                options, "--max-hold", value,
                "the command would be stopped at once; leave --max-hold out for no limit");
        return result;
    case OPT_INTERVAL:
        return set_duration(options, "--interval", value, &options->interval_ms);
    case OPT_STATUS_FD:
        return set_status_fd(options, value);
    case OPT_NODES:
        result = set_number(options, "-n", value, 1, REDLOCK_NODES_MAX, &number);
        options->nodes = (unsigned)number;
        return result;
    case OPT_SCAN_RATE:
        result = set_number(options, "--scan-rate", value, 1, SCAN_RATE_MAX, &number);
        options->scan_rate = (unsigned)number;
        return result;
    case OPT_PERMITS:
        result = set_number(options, "--permits", value, 1, REDLOCK_PERMITS_MAX, &number);
        options->permits = (unsigned)number;
        return result;
    case OPT_SIGNAL:
        options->stop_signal = signal_parse(value);
        if (!options->stop_signal)
            return bad_value(options, "--signal", value, "no such signal; write TERM, INT or 15");
        return -1;
    case OPT_ON_LOSS:
        options->warn_on_loss = !strcmp(value, "warn");
        if (!options->warn_on_loss && strcmp(value, "stop") != 0)
            return bad_value(options, "--on-loss", value, "no such action; write stop or warn");
        return -1;
    case OPT_ALSO:
        options->also[options->also_count++] = value;
        return -1;
    default:
        return -1;
    }
}

/* Stores the value of the option `id` if the value stays text: settings.c parses it. Returns false
 * if `id` is no such option. */
static bool set_text(struct options *options, int id, const char *value)
{
    const struct {
        int id;
        const char **to;
    } texts[] = {{OPT_CONFIG, &options->config_file},
                 {OPT_PREFIX, &options->prefix},
                 {OPT_USER, &options->user},
                 {OPT_PASS_FILE, &options->pass_file},
                 {OPT_MAX_TTL, &options->max_ttl},
                 {OPT_CONNECT_TIMEOUT, &options->connect_timeout},
                 {OPT_NODE_TIMEOUT, &options->node_timeout},
                 {OPT_TLS_CACERT, &options->tls_cacert},
                 {OPT_TLS_CERT, &options->tls_cert},
                 {OPT_TLS_KEY, &options->tls_key},
                 {OPT_TLS_SNI, &options->tls_sni},
                 {OPT_TLS_VERIFY, &options->tls_verify},
                 {OPT_TTL, &options->ttl},
                 {OPT_WAIT, &options->wait},
                 {OPT_QUORUM_WAIT, &options->quorum_wait},
                 {OPT_WAIT_LIMIT, &options->wait},
                 {OPT_GRACE, &options->grace},
                 {OPT_RENEW, &options->renew},
                 {OPT_COMMAND, &options->shell_command},
                 {OPT_MATCH, &options->match},
                 {OPT_TOKEN_FILE, &options->token_file},
                 {OPT_METRICS_FILE, &options->metrics_file}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].id == id) {
            *texts[i].to = value;
            return true;
        }
    }
    return false;
}

/* Sets the field of the option `id` to true if that option takes no value. Returns false if `id` is
 * no such option. */
static bool set_switch(struct options *options, int id)
{
    const struct {
        int id;
        bool *to;
    } switches[] = {{OPT_JSON, &options->json},
                    {OPT_QUIET, &options->quiet},
                    {OPT_NONBLOCK, &options->nonblock},
                    {OPT_ONCE, &options->once},
                    {OPT_NO_RENEW, &options->no_renew},
                    {OPT_NO_LINE, &options->no_line},
                    {OPT_KEEP, &options->keep},
                    {OPT_KEEP_ENV, &options->keep_env},
                    {OPT_FOREGROUND, &options->foreground},
                    {OPT_PRESERVE_STATUS, &options->preserve_status},
                    {OPT_ALLOW_NESTED, &options->allow_nested},
                    {OPT_EXPORT_TOKEN, &options->export_token},
                    {OPT_FENCE, &options->fence},
                    {OPT_INIT, &options->init},
                    {OPT_WAIT_ALL, &options->wait_all},
                    {OPT_ACL, &options->acl},
                    {OPT_STRICT, &options->strict},
                    {OPT_TLS, &options->tls},
                    {OPT_YES, &options->yes}};

    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        if (switches[i].id == id) {
            *switches[i].to = true;
            return true;
        }
    }
    return false;
}

/* Stores the option `id` (enum option_id) with its value, which is NULL if the option takes none.
 * Returns -1 on success, or EXIT_USAGE after a message. */
static int set_option(struct options *options, int id, const char *value)
{
    int result = conflicts_note(options, id, value);

    if (result >= 0)
        return result;
    if (id == OPT_SERVERS) {
        add_servers(options, value);
        return -1;
    }
    if (id == OPT_VERBOSE) {
        options->verbose++;
        return -1;
    }
    if (set_switch(options, id) || set_text(options, id, value))
        return -1;
    return set_value(options, id, value);
}

/* Returns how many bytes of "--option=value" a message may show: those before the '=', at most 60.
 */
static int option_len(const char *argument)
{
    size_t len = strcspn(argument, "=");

    return len < 60 ? (int)len : 60;
}

/* Reports an unknown option, with the subcommands that accept it or else the most similar option of
 * this subcommand. Returns EXIT_USAGE. */
static int unknown_option(const struct options *options, const char *option)
{
    char known[128], elsewhere[128], word[64];

    /* "--word=value" and "-x" are searched for as "word" and "x". The value is not shown. */
    snprintf(word, sizeof word, "%s", option + strspn(option, "-"));
    word[strcspn(word, "=")] = '\0';
    snprintf(known, sizeof known, "unknown option %.*s", option_len(option), option);
    const char *near = word[0] && word[1] ? option_nearest(options->command, word) : NULL;
    const char *commands = option_elsewhere(word, elsewhere, sizeof elsewhere);
    if (!strcmp(word, "tls"))
        say(SAY_ERROR, "%s: %s; to connect with TLS, write rediss:// in the addresses",
            options->command_name, known);
    else if (!strncmp(word, "pass", 4) && !commands)
        say(SAY_ERROR,
            "%s: %s; the arguments of a process are public, so give a file (--pass-file FILE), or "
            "set REDLOCK_AUTH",
            options->command_name, known);
    else if (commands)
        say(SAY_ERROR, "%s: %s (an option of %s); see: redlock %s --help", options->command_name,
            known, commands, options->command_name);
    else if (near)
        say(SAY_ERROR, "%s: %s; did you mean --%s? See: redlock %s --help", options->command_name,
            known, near, options->command_name);
    else
        return usage(options, known);
    return EXIT_USAGE;
}

/* Reports the argument that getopt_long() has refused. `code` is its result: ':' if a value is
 * missing, '?' for an unknown option or an option with a value that takes none. Returns EXIT_USAGE.
 */
static int refuse_option(const struct options *options, int code, char **argv)
{
    char text[128];

    if (code == ':') {
        snprintf(text, sizeof text, "%.60s needs a value", argv[optind - 1]);
        return usage(options, text);
    }
    if (optopt >= 256) { /* the id of a long option: it was given a value but takes none */
        snprintf(text, sizeof text, "%.*s takes no value", option_len(argv[optind - 1]),
                 argv[optind - 1]);
        return usage(options, text);
    }
    if (optopt) {
        snprintf(text, sizeof text, "-%c", optopt);
        return unknown_option(options, text);
    }
    return unknown_option(options, argv[optind - 1]);
}

/* Returns the number of operands before the words of a command that redlock runs: 1 for `run NAME
 * CMD`, 0 for `sandbox CMD`. After that many operands, all words belong to that command and are no
 * options of redlock. SIZE_MAX if the subcommand runs no command. */
static size_t operands_before_command(unsigned command)
{
    if (command == CMD_RUN)
        return 1;
    return command == CMD_SANDBOX ? 0 : SIZE_MAX;
}

/* Reads all options and operands into `options`. Returns -1 on success, or an exit code: help was
 * printed, or the usage was wrong and a message was printed. */
static int parse_loop(struct options *options, int argc, char **argv)
{
    struct option long_options[OPTION_SPECS_MAX];
    char short_options[2 * OPTION_SPECS_MAX + 3];
    size_t own = operands_before_command(options->command);

    option_table(options->command, long_options, short_options);
    optind = 1;
    opterr = 0;
    for (;;) {
        int before = optind;
        optopt = 0;
        int code = getopt_long(argc, argv, short_options, long_options, NULL);
        if (code == '?' || code == ':')
            return refuse_option(options, code, argv);
        if (code != -1) {
            int id = code < 256 ? option_by_letter(options->command, code) : code;
            if (id == OPT_HELP) {
                help_command(options->command_name, code >= 256);
                return EXIT_OK;
            }
            int result = set_option(options, id, optarg);
            if (result >= 0)
                return result;
            continue;
        }
        /* At `--`, getopt_long() has advanced optind; at an operand, it has not. */
        if (optind != before || options->operand_count >= own || optind >= argc)
            break;
        options->operands[options->operand_count++] = argv[optind++];
    }
    while (optind < argc)
        options->operands[options->operand_count++] = argv[optind++];
    return -1;
}

/* Fills *ret_options with the defaults and then with the options and operands, checks options that
 * contradict each other, and sets the level of messages. Returns -1 on success, or an exit code
 * after help or a message. */
int options_parse(unsigned command, const char *command_name, int argc, char **argv,
                  struct options *ret_options)
{
    *ret_options = (struct options){.command = command,
                                    .command_name = command_name,
                                    .conflict_code = EXIT_HELD,
                                    .stop_signal = SIGTERM,
                                    .status_fd = -1,
                                    .nodes = 5,
                                    .interval_ms = command == CMD_TOP ? 1000 : 500,
                                    .scan_rate = 10000};
    ret_options->operands = must(calloc((size_t)argc + 1, sizeof *ret_options->operands));
    ret_options->also = must(calloc((size_t)argc + 1, sizeof *ret_options->also));
    int result = parse_loop(ret_options, argc, argv);
    if (result < 0)
        result = conflicts_check(ret_options);
    if (result >= 0)
        return result;
    if (ret_options->nonblock)
        ret_options->wait = "0";
    int level = ret_options->quiet ? SAY_ERROR : SAY_NOTE + ret_options->verbose;
    say_setup(level, ret_options->json);
    return -1;
}
