/* SPDX-License-Identifier: MIT
 * `redlock extend` and `redlock release`: extend or release a lock by means of its token. Both go
 * through with_token(), which reads names and token, opens a client, and calls extend() or
 * release().
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "commands.h"
#include "exits.h"
#include "files.h"
#include "inspect.h"
#include "json.h"
#include "mask.h"
#include "names.h"
#include "reports.h"
#include "say.h"
#include "shown.h"
#include "timing.h"

/* Time limit for closing the client, which sends pending undos first. */
#define CLOSE_BUDGET_MS 1000
/* How long, in ms, to repeat a request to slow servers. */
#define TIME_LIMIT_MS 1000

/* Removes the fence after the token from a line that `acquire --fence` has printed. */
static void cut_fence(char *line)
{
    char *blank = strrchr(line, ' ');

    if (blank && blank[1] && strspn(blank + 1, "0123456789") == strlen(blank + 1))
        *blank = '\0';
}

/* Reads the token from the first line of the file; the path "-" means stdin. Returns -1 on success,
 * or an exit code after a message. The token is to be freed. */
static int read_token_file(const char *command, const char *path, char **ret_token)
{
    bool standard = !strcmp(path, "-");
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);

    *ret_token = fd < 0 ? NULL : read_first_line(fd);
    if (!*ret_token)
        say(SAY_ERROR, "%s: --token-file %s: %s; give a file with the output of `redlock acquire`",
            command, mask_word(path),
            errno == EFBIG ? "its first line is too long for a token" : strerror(errno));
    else
        cut_fence(*ret_token);
    if (fd >= 0 && !standard)
        close(fd);
    return *ret_token ? -1 : EXIT_USAGE;
}

/* Reads the token, from the last operand or from a file, and collects the names. Returns -1 on
 * success, or an exit code after a message. */
static int get_token(const struct options *options, struct names *ret_names, char **ret_token)
{
    size_t words = options->token_file ? 0 : 1; /* operands that are no names: the token */
    int result = -1;

    if (options->operand_count < 1 + words) {
        say(SAY_ERROR,
            "%s: %s; write: redlock %s NAME... TOKEN, or redlock %s --token-file FILE NAME...",
            options->command_name,
            options->token_file || options->operand_count == 0 ? "no name" : "no token",
            options->command_name, options->command_name);
        return EXIT_USAGE;
    }
    if (options->token_file)
        result = read_token_file(options->command_name, options->token_file, ret_token);
    else
        *ret_token = text_copy(options->operands[options->operand_count - 1]);
    if (result < 0 && !**ret_token) {
        say(SAY_ERROR, "%s: the token is empty; give what `redlock acquire` printed",
            options->command_name);
        result = EXIT_USAGE;
    }
    return result < 0 ? names_collect(ret_names, options, options->operand_count - words) : result;
}

/* Prints why the extension or release failed: the error code and, from the report, the servers.
 * Returns the exit code for `error`. */
static int explain(const struct options *options, const struct names *names, int error,
                   const redlock_report_t *report)
{
    int code = exit_of_error(error, EXIT_HELD);

    say(SAY_ERROR, "%s: not %s: %s", names->text,
        options->command == CMD_EXTEND ? "extended" : "released", report_reason(report, error));
    if (code != EXIT_LOST)
        report_say_nodes(report, SAY_ERROR);
    return code;
}

/* Prints the result as JSON object. `granted`: number of servers. `validity_ms` is printed for
 * `extend` only. Returns false if stdout could not be written. */
static bool print_result(const struct options *options, const struct names *names, int error,
                         unsigned granted, uint64_t validity_ms, const redlock_report_t *report)
{
    bool extend = options->command == CMD_EXTEND;
    json_t *object = must(json_pack("{s:s, s:o, s:b, s:s, s:i, s:o}", "schema",
                                    extend ? "redlock.extend/1" : "redlock.release/1", "name",
                                    json_text(names->list[0]), extend ? "extended" : "released",
                                    error == REDLOCK_OK, "error",
                                    error == REDLOCK_OK ? "" : redlock_error_name(error), "granted",
                                    (int)granted, "servers", report_nodes_json(report)));

    names_to_json(names, object);
    if (extend)
        json_object_set_new(object, "validity_ms", json_integer((json_int_t)validity_ms));
    return json_print(object);
}

/* Extends the lock: adopts it with its token, which resets its TTL, and detaches it again.
 * Returns the exit code. */
static int extend(const struct options *options, const struct settings *settings,
                  const struct names *names, redlock_t *rl, const char *token)
{
    redlock_opts_t opts = redlock_opts(settings->ttl_ms);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    uint64_t validity_ms = 0;

    opts.wait_ms = TIME_LIMIT_MS;
    names_to_opts(names, &opts);
    int error = redlock_adopt(rl, names->list[0], token, &opts, &lock, &report);

    if (error == REDLOCK_OK) {
        validity_ms = redlock_lock_remaining_ms(lock);
        error = redlock_lock_detach(lock);
    }
    redlock_lock_free(lock);
    int result = error == REDLOCK_OK ? EXIT_OK : explain(options, names, error, report);
    if (options->json)
        print_result(options, names, error, report_votes(report).granted, validity_ms, report);
    else if (error == REDLOCK_OK)
        show("%s: valid for %" PRIu64 " ms\n", names->text, validity_ms);
    redlock_report_free(report);
    return result;
}

/* Releases the keys. Repeats the request for TIME_LIMIT_MS if too few servers reply. A repetition
 * that does not find the lock counts as success, because the first request has released it. Returns
 * the error code of the last request; *ret_report is its report, to be freed. */
static int release_patiently(redlock_t *rl, const struct names *names, const char *token,
                             redlock_report_t **ret_report)
{
    uint64_t give_up_ns = boottime_ns() + TIME_LIMIT_MS * NS_PER_MS;
    bool again = false;

    for (;;) {
        redlock_report_free(*ret_report);
        int error = redlock_release_token_all(rl, names->list, names->count, token, ret_report);
        if (error == REDLOCK_ELOST && again)
            return REDLOCK_OK;
        if (error != REDLOCK_ENOQUORUM || boottime_ns() >= give_up_ns)
            return error;
        again = true;
        poll(NULL, 0, 20); /* a pause of 20 ms, so that a slow server can catch up */
    }
}

/* Returns the set of servers, a bit for each, that have replied that they have none of the keys. */
static uint32_t without_keys(redlock_t *rl, const struct names *names)
{
    uint32_t servers = UINT32_MAX;
    redlock_node_report_t node;

    for (size_t name = 0; name < names->count; name++) {
        struct inspection seen = {.name = text_copy(names->list[name])};
        uint32_t without = 0;
        inspect_once(rl, &seen, 1);
        for (size_t i = 0; report_node(seen.report, i, &node); i++)
            without |= node.vote == REDLOCK_VOTE_DENIED ? UINT32_C(1) << i : 0;
        servers &= without;
        redlock_report_free(seen.report);
        free(seen.name);
    }
    return servers;
}

/* Returns true for a node that has failed. */
static bool has_failed(const redlock_node_report_t *node)
{
    return node->vote == REDLOCK_VOTE_FAILED;
}

/* Prints that too few servers have confirmed the release, and why. The library decides that as soon
 * as a majority has refused, without the later replies of others; `confirmed` counts these, too. */
static void explain_no_quorum(const struct names *names, const redlock_report_t *report,
                              unsigned confirmed)
{
    redlock_report_info_t info = report_info(report);
    redlock_node_report_t node;
    char *why = text_copy("");

    for (size_t i = 0; report_node(report, i, &node); i++) {
        char *servers = report_group(report, i, has_failed);
        char *longer =
            servers ? text_format("%s; %s: %s", why, servers, node.text) : text_copy(why);
        free(servers);
        free(why);
        why = longer;
    }
    say(SAY_ERROR,
        "%s: not released: no quorum: %u of %u servers released the lock or do not have it, %u "
        "required%s",
        names->text, confirmed, info.nodes, info.quorum, why);
    free(why);
}

/* Releases the lock by release_patiently() and reports the result. Returns EXIT_OK also if the lock
 * was not held with this token, unless --strict was given; else the exit code of the error. */
static int release(const struct options *options, const struct names *names, redlock_t *rl,
                   const char *token)
{
    redlock_report_t *report = NULL;
    int error = release_patiently(rl, names, token, &report);
    int result = EXIT_OK;
    unsigned granted = report_votes(report).granted;

    if (error == REDLOCK_ELOST) {
        say(options->strict ? SAY_ERROR : SAY_WARNING,
            names->count > 1
                ? "%s were not all held with this token any more; those that were are released"
                : "%s was not held with this token any more; nothing was released",
            names->text);
        result = options->strict ? EXIT_LOST : EXIT_OK;
    } else if (error == REDLOCK_ENOQUORUM) {
        granted = (unsigned)__builtin_popcount(without_keys(rl, names));
        explain_no_quorum(names, report, granted);
        result = EXIT_NO_QUORUM;
    } else if (error != REDLOCK_OK) {
        result = explain(options, names, error, report);
    }
    if (options->json)
        print_result(options, names, error, granted, 0, report);
    redlock_report_free(report);
    return result;
}

/* Checks that the TTL of `extend` is long enough for the library and at most max_ttl; `release`
 * needs no TTL. Returns -1 on success, or an exit code after a message. */
static int check_ttl(const struct options *options, const struct settings *settings)
{
    struct timing timing = {.ttl_ms = settings->ttl_ms, .max_ttl_ms = settings->max_ttl_ms};
    char why[512];

    if (options->command != CMD_EXTEND || timing_check_ttl(&timing, why, sizeof why))
        return -1;
    say(SAY_ERROR, "extend: %s", why);
    return EXIT_CONFIG;
}

/* Runs `extend` or `release`, as options->command says. Returns the exit code. */
static int with_token(const struct options *options)
{
    struct settings settings = {0};
    redlock_t *rl = NULL;
    char *token = NULL;
    struct names names = {.count = 0};
    int result = get_token(options, &names, &token);

    if (result < 0)
        result = client_open(options, &settings, &rl);
    if (result < 0)
        result = check_ttl(options, &settings);
    if (result < 0) {
        result = options->command == CMD_EXTEND ? extend(options, &settings, &names, rl, token)
                                                : release(options, &names, rl, token);
    }
    client_close(rl, CLOSE_BUDGET_MS);
    free(token);
    names_free(&names);
    settings_free(&settings);
    return result;
}

/* Runs `redlock extend`: gives a lock, held by its token, a new TTL. Returns the exit code. */
int cmd_extend(const struct options *options)
{
    return with_token(options);
}

/* Runs `redlock release`: releases a lock, held by its token. Returns the exit code. */
int cmd_release(const struct options *options)
{
    return with_token(options);
}
