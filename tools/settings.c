/* SPDX-License-Identifier: MIT
 * Merges options, environment, file and defaults, and turns the texts into numbers. merge() first
 * offers the values of each source to setting_offer(), which keeps the text of the source with the
 * highest rank. Then the read_...() functions parse the texts that were kept into the numbers of
 * struct settings. Functions that return an int return -1 to continue, or the exit code of the
 * program.
 */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "durations.h"
#include "exits.h"
#include "files.h"
#include "mask.h"
#include "quorum_wait.h"
#include "rates.h"
#include "redlock/redlock.h"
#include "say.h"

/* Upper bounds of two defaults: the default grace is a quarter of the TTL, and the default TTL is
 * max_ttl, but not more than these. */
#define GRACE_MS_MAX   5000
#define TTL_MS_DEFAULT 30000

/* What is known about each setting: its name in the file; its environment variable and its option
 * (NULL: none); and its default as text (NULL: none, or one that depends on other settings). */
static const struct {
    const char *name, *environment, *option, *standard;
} about[SET_COUNT] = {
    [SET_SERVERS] = {"servers", "REDLOCK_SERVERS", "-s", NULL},
    [SET_PREFIX] = {"prefix", "REDLOCK_PREFIX", "--prefix", ""},
    [SET_USER] = {"user", "REDLOCK_USER", "--user", NULL},
    [SET_PASSWORD] = {"password", "REDLOCK_AUTH", NULL, NULL},
    [SET_PASS_FILE] = {"pass-file", NULL, "--pass-file", NULL},
    [SET_MAX_TTL] = {"max-ttl", "REDLOCK_MAX_TTL", "--max-ttl", "30s"},
    [SET_TTL] = {"ttl", NULL, "-t", NULL},
    [SET_WAIT] = {"wait", NULL, "-w", WAIT_FOREVER},
    [SET_QUORUM_WAIT] = {"quorum-wait", "REDLOCK_QUORUM_WAIT", "--quorum-wait",
                         QUORUM_WAIT_DEFAULT},
    [SET_GRACE] = {"grace", NULL, "-k", NULL},
    [SET_RENEW] = {"renew", NULL, "--renew", NULL},
    [SET_CONNECT_TIMEOUT] = {"connect-timeout", NULL, "--connect-timeout", "250ms"},
    [SET_NODE_TIMEOUT] = {"node-timeout", NULL, "--node-timeout", NULL},
    [SET_FENCE_KEY] = {"fence-key", "REDLOCK_FENCE_KEY", NULL, "redlock:fence"},
    [SET_FENCE_RECORDS] = {"fence-records", "REDLOCK_FENCE_RECORDS", NULL, "durable"},
    [SET_ADMISSION] = {"admission", "REDLOCK_ADMISSION", NULL, "strict"},
    [SET_DRIFT] = {"drift", "REDLOCK_DRIFT", NULL, "1%"},
    [SET_HEARTBEAT] = {"heartbeat", "REDLOCK_HEARTBEAT", NULL, "1s"},
    [SET_CLOCK_SLACK] = {"clock-slack", "REDLOCK_CLOCK_SLACK", NULL, "100ms"},
    [SET_LINE] = {"line", "REDLOCK_LINE", "--no-line", "on"},
    [SET_TLS_CACERT] = {"tls-cacert", "REDLOCK_TLS_CACERT", "--tls-cacert", NULL},
    [SET_TLS_CERT] = {"tls-cert", "REDLOCK_TLS_CERT", "--tls-cert", NULL},
    [SET_TLS_KEY] = {"tls-key", "REDLOCK_TLS_KEY", "--tls-key", NULL},
    [SET_TLS_SNI] = {"tls-sni", "REDLOCK_TLS_SNI", "--tls-sni", NULL},
    [SET_TLS_VERIFY] = {"tls-verify", "REDLOCK_TLS_VERIFY", "--tls-verify", "full"},
};

/* Returns the name of a setting in the file, such as "max-ttl". */
const char *setting_name(enum setting_id id)
{
    return about[id].name;
}

/* Looks up a setting by its name in the file. Returns false if there is none; *ret_id is then
 * unchanged. */
bool setting_by_name(const char *name, enum setting_id *ret_id)
{
    for (int id = 0; id < SET_COUNT; id++) {
        if (!strcmp(name, about[id].name)) {
            *ret_id = (enum setting_id)id;
            return true;
        }
    }
    return false;
}

/* Stores copies of `text` and `origin` as the value of the setting, unless `text` is NULL or a
 * value of a higher rank is stored. A value of the same rank is replaced. */
void setting_offer(struct settings *settings, enum setting_id id, enum setting_rank rank,
                   const char *text, const char *origin)
{
    struct setting *value = &settings->values[id];

    if (!text || (value->text && value->rank > rank))
        return;
    free(value->text);
    free(value->origin);
    *value = (struct setting){.text = text_copy(text), .origin = text_copy(origin), .rank = rank};
}

/* Offers the values of the options that were given. */
static void offer_options(const struct options *options, struct settings *settings)
{
    const char *given[SET_COUNT] = {
        [SET_SERVERS] = options->servers,
        [SET_PREFIX] = options->prefix,
        [SET_USER] = options->user,
        [SET_PASS_FILE] = options->pass_file,
        [SET_MAX_TTL] = options->max_ttl,
        [SET_TTL] = options->ttl,
        [SET_WAIT] = options->wait,
        [SET_QUORUM_WAIT] = options->quorum_wait,
        [SET_GRACE] = options->grace,
        [SET_RENEW] = options->renew,
        [SET_CONNECT_TIMEOUT] = options->connect_timeout,
        [SET_NODE_TIMEOUT] = options->node_timeout,
        [SET_LINE] = options->no_line ? "off" : NULL,
        [SET_TLS_CACERT] = options->tls_cacert,
        [SET_TLS_CERT] = options->tls_cert,
        [SET_TLS_KEY] = options->tls_key,
        [SET_TLS_SNI] = options->tls_sni,
        [SET_TLS_VERIFY] = options->tls_verify,
    };

    for (int id = 0; id < SET_COUNT; id++) {
        if (!given[id])
            continue;
        char *origin = text_format("option %s", about[id].option);
        setting_offer(settings, (enum setting_id)id, RANK_OPTION, given[id], origin);
        free(origin);
    }
}

/* Offers the values of environment variables that are set and not empty; of these, REDIS_URL has a
 * lower rank than a file. */
static void offer_environment(struct settings *settings)
{
    for (int id = 0; id < SET_COUNT; id++) {
        const char *name = about[id].environment;
        const char *text = name ? getenv(name) : NULL;
        if (text && *text)
            setting_offer(settings, (enum setting_id)id, RANK_ENVIRONMENT, text, name);
    }
    const char *url = getenv("REDIS_URL");
    if (url && *url)
        setting_offer(settings, SET_SERVERS, RANK_FALLBACK, url, "REDIS_URL");
}

/* Offers the defaults of the settings that have a fixed one. */
static void offer_defaults(struct settings *settings)
{
    for (int id = 0; id < SET_COUNT; id++)
        setting_offer(settings, (enum setting_id)id, RANK_DEFAULT, about[id].standard, "default");
}

/* Reports what is wrong with the value of the setting. */
void setting_say(const struct settings *settings, enum setting_id id, const char *why)
{
    const struct setting *value = &settings->values[id];
    const char *shown = *value->text ? mask_word(value->text) : "\"\"";

    if (value->rank == RANK_FILE) /* its origin is a line, which does not name the setting */
        say(SAY_ERROR, "%s: %s %s: %s", value->origin, about[id].name, shown, why);
    else
        say(SAY_ERROR, "%s%s%s: %s", value->origin, value->rank == RANK_OPTION ? " " : "=", shown,
            why);
}

/* Reports that the value of the setting is invalid; `why` says why. Returns EXIT_USAGE if the value
 * comes from an option, else EXIT_CONFIG. */
static int refuse(const struct settings *settings, enum setting_id id, const char *why)
{
    setting_say(settings, id, why);
    return settings->values[id].rank == RANK_OPTION ? EXIT_USAGE : EXIT_CONFIG;
}

/* Parses the value of the setting as a duration in ms; leaves *ret_ms unchanged if the setting is
 * not set. Returns -1 on success, or an exit code after a message. */
static int read_duration(const struct settings *settings, enum setting_id id, uint64_t *ret_ms)
{
    const char *text = settings->values[id].text;

    if (text && !duration_parse(text, ret_ms))
        return refuse(settings, id, "not a duration; " DURATION_HELP);
    return -1;
}

/* Parses the value of the setting as a duration in ms, or as WAIT_FOREVER, which gives
 * REDLOCK_WAIT_FOREVER. Returns -1 on success, or an exit code after a message. */
static int read_wait(const struct settings *settings, enum setting_id id, uint64_t *ret_ms)
{
    if (!wait_parse(settings->values[id].text, ret_ms))
        return refuse(settings, id, "not a duration; " DURATION_HELP "; no limit: " WAIT_FOREVER);
    return -1;
}

/* Parses the value of the setting as a duration from `least_ms` to one minute. Stores 0 if the
 * setting is not set. Returns -1 on success, or an exit code after a message. */
static int read_up_to_a_minute(const struct settings *settings, enum setting_id id,
                               uint32_t least_ms, uint32_t *ret_ms)
{
    uint64_t ms = 0;
    char why[64];
    int result = read_duration(settings, id, &ms);

    if (result >= 0)
        return result;
    snprintf(why, sizeof why, "out of range; write %ums to 1m", (unsigned)least_ms);
    if (settings->values[id].text && (ms < least_ms || ms > 60000))
        return refuse(settings, id, why);
    *ret_ms = (uint32_t)ms;
    return -1;
}

/* Parses drift, heartbeat and clock-slack. Returns -1 on success, or an exit code after a
 * message. */
static int read_clocks(struct settings *settings)
{
    if (!rate_parse(settings->values[SET_DRIFT].text, &settings->drift_ppm))
        return refuse(settings, SET_DRIFT, "not a rate of clocks; " RATE_HELP);
    int result = read_up_to_a_minute(settings, SET_HEARTBEAT, 10, &settings->heartbeat_ms);
    if (result >= 0)
        return result;
    return read_up_to_a_minute(settings, SET_CLOCK_SLACK, 0, &settings->clock_slack_ms);
}

/* Parses all durations and fills in defaults that depend on others. Whether they fit together is
 * checked later, by timing_check(). Returns -1 on success, or an exit code after a message. */
static int read_numbers(struct settings *settings)
{
    static const struct {
        enum setting_id id;
        size_t offset; /* of the number in struct settings, a uint64_t in ms */
    } durations[] = {{SET_MAX_TTL, offsetof(struct settings, max_ttl_ms)},
                     {SET_TTL, offsetof(struct settings, ttl_ms)},
                     {SET_GRACE, offsetof(struct settings, grace_ms)},
                     {SET_RENEW, offsetof(struct settings, renew_ms)}};

    int result = read_wait(settings, SET_WAIT, &settings->wait_ms);
    if (result < 0)
        result = read_wait(settings, SET_QUORUM_WAIT, &settings->quorum_wait_ms);
    for (size_t i = 0; i < sizeof durations / sizeof durations[0] && result < 0; i++) {
        uint64_t *field = (uint64_t *)(void *)((char *)settings + durations[i].offset);
        result = read_duration(settings, durations[i].id, field);
    }
    if (result >= 0)
        return result;
    if (!settings->values[SET_TTL].text)
        settings->ttl_ms =
            settings->max_ttl_ms < TTL_MS_DEFAULT ? settings->max_ttl_ms : TTL_MS_DEFAULT;
    if (!settings->values[SET_GRACE].text)
        settings->grace_ms =
            settings->ttl_ms / 4 < GRACE_MS_MAX ? settings->ttl_ms / 4 : GRACE_MS_MAX;
    if (!settings->values[SET_RENEW].text)
        settings->renew_ms = settings->ttl_ms / 3;
    result = read_up_to_a_minute(settings, SET_CONNECT_TIMEOUT, 1, &settings->connect_timeout_ms);
    if (result < 0)
        result = read_up_to_a_minute(settings, SET_NODE_TIMEOUT, 1, &settings->node_timeout_ms);
    return result >= 0 ? result : read_clocks(settings);
}

/* Parses tls-verify. Returns -1 on success, or an exit code after a message. */
static int read_verify(struct settings *settings)
{
    static const char *const words[] = {[REDLOCK_TLS_VERIFY_FULL] = "full",
                                        [REDLOCK_TLS_VERIFY_CHAIN] = "chain",
                                        [REDLOCK_TLS_VERIFY_NONE] = "none"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!strcmp(settings->values[SET_TLS_VERIFY].text, words[i])) {
            settings->tls_verify = (int)i;
            return -1;
        }
    }
    return refuse(settings, SET_TLS_VERIFY, "unknown; write full, chain or none");
}

/* Checks the variable of tls-verify, also where an option replaces its value or drops it: a word
 * that is meant to change how servers are verified must not be ignored. Returns -1, or an exit code
 * after a message. */
static int check_verify_variable(void)
{
    struct settings alone = {0};

    offer_environment(&alone);
    offer_defaults(&alone);
    int result = read_verify(&alone);
    settings_free(&alone);
    return result;
}

/* Parses fence-records, admission and line. Returns -1 on success, or an exit code after a message.
 */
static int read_words(struct settings *settings)
{
    const char *records = settings->values[SET_FENCE_RECORDS].text;
    const char *admission = settings->values[SET_ADMISSION].text;
    const char *line = settings->values[SET_LINE].text;

    if (!strcmp(records, "durable"))
        settings->fence_records = REDLOCK_FENCE_RECORDS_DURABLE;
    else if (!strcmp(records, "volatile"))
        settings->fence_records = REDLOCK_FENCE_RECORDS_VOLATILE;
    else
        return refuse(settings, SET_FENCE_RECORDS, "unknown; write durable or volatile");
    if (!strcmp(admission, "strict"))
        settings->admission = REDLOCK_ADMISSION_STRICT;
    else if (!strcmp(admission, "lenient"))
        settings->admission = REDLOCK_ADMISSION_LENIENT;
    else if (!strcmp(admission, "proven"))
        settings->admission = REDLOCK_ADMISSION_PROVEN;
    else
        return refuse(settings, SET_ADMISSION, "unknown; write strict, lenient or proven");
    settings->line = !strcmp(line, "on");
    if (!settings->line && strcmp(line, "off") != 0)
        return refuse(settings, SET_LINE, "unknown; write on or off");
    return -1;
}

/* Warns if `fd` is a regular file whose mode lets its group or all users read it. `path` is for the
 * message. */
void settings_warn_readable(int fd, const char *path)
{
    struct stat info;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !(info.st_mode & (S_IRGRP | S_IROTH)))
        return;
    say(SAY_WARNING, "%s contains a password and can be read by %s; chmod 600 it", path,
        info.st_mode & S_IROTH ? "all users" : "its group");
}

/* Reads the password from the first line of the pass file. Returns -1 on success, or an exit code
 * after a message. */
static int read_pass_file(struct settings *settings)
{
    const char *path = settings->values[SET_PASS_FILE].text;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    settings->password = fd < 0 ? NULL : read_first_line(fd);
    if (!settings->password)
        say(SAY_ERROR, "%s%s %s: %s; give a file with the password in its first line",
            settings->values[SET_PASS_FILE].origin,
            settings->values[SET_PASS_FILE].rank == RANK_FILE ? ": pass-file" : "", mask_word(path),
            errno == EFBIG ? "its first line is too long for a password" : strerror(errno));
    else
        settings_warn_readable(fd, path);
    if (fd >= 0)
        close(fd);
    if (settings->password && !*settings->password)
        say(SAY_ERROR, "%s: the first line is empty; write the password there", path);
    return settings->password && *settings->password ? -1 : EXIT_CONFIG;
}

/* Sets settings->password from the setting `password` or from the file that `pass-file` names,
 * whichever has the higher rank. Both with the same rank are an error. Returns -1 on success, or an
 * exit code after a message. */
static int read_password(struct settings *settings)
{
    const struct setting *password = &settings->values[SET_PASSWORD];
    const struct setting *file = &settings->values[SET_PASS_FILE];

    if (password->text && file->text && password->rank == file->rank) {
        say(SAY_ERROR, "%s: both password and pass-file are set; keep one", file->origin);
        return EXIT_CONFIG;
    }
    if (file->text && (!password->text || file->rank > password->rank))
        return read_pass_file(settings);
    if (password->text)
        settings->password = text_copy(password->text);
    return -1;
}

/* Collects the values from all sources and parses them into `settings`, which is zero before.
 * Returns -1 on success, or an exit code. */
static int merge(const struct options *options, struct settings *settings)
{
    offer_options(options, settings);
    offer_environment(settings);
    int result = settings_read_file(options, settings);
    if (result >= 0)
        return result;
    settings_settle_tls(settings);
    offer_defaults(settings);
    result = read_numbers(settings);
    if (result < 0)
        result = read_words(settings);
    if (result < 0)
        result = read_verify(settings);
    if (result < 0)
        result = check_verify_variable();
    return result >= 0 ? result : read_password(settings);
}

/* Fills *ret_settings from all sources. Returns -1 on success, or an exit code after a message;
 * then nothing is left to free. */
int settings_load(const struct options *options, struct settings *ret_settings)
{
    *ret_settings = (struct settings){0};
    int result = merge(options, ret_settings);
    if (result >= 0)
        settings_free(ret_settings);
    return result;
}

/* Frees all texts, overwrites the password, and sets all fields to zero. */
void settings_free(struct settings *settings)
{
    for (int id = 0; id < SET_COUNT; id++) {
        free(settings->values[id].text);
        free(settings->values[id].origin);
    }
    if (settings->password)
        explicit_bzero(settings->password, strlen(settings->password));
    free(settings->password);
    *settings = (struct settings){0};
}

/* Returns false, after a message, if the setting `renew` is 0; true otherwise. */
bool settings_renews(const struct settings *settings)
{
    const struct setting *renew = &settings->values[SET_RENEW];

    if (!renew->text || settings->renew_ms > 0)
        return true;
    say(SAY_ERROR,
        "%s: renew 0 is no interval; give one, such as a third of the TTL, or --no-renew",
        renew->origin);
    return false;
}

/* Returns the value in effect as text for people: the text itself, or the computed default.
 * Passwords are masked. NULL if the setting is not set. To be freed. */
char *setting_shown(const struct settings *settings, enum setting_id id)
{
    const char *text = settings->values[id].text;
    char buffer[DURATION_TEXT];

    if (id == SET_SERVERS && text)
        return mask_addresses(text);
    if (id == SET_PASSWORD && text)
        return text_copy("***");
    if (text)
        return text_copy(text);
    switch (id) {
    case SET_TTL:
        return text_copy(duration_text(settings->ttl_ms, buffer));
    case SET_GRACE:
        return text_copy(duration_text(settings->grace_ms, buffer));
    case SET_RENEW:
        return text_copy(duration_text(settings->renew_ms, buffer));
    case SET_NODE_TIMEOUT:
        return text_copy("measured");
    default:
        return NULL;
    }
}
