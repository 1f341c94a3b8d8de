/* SPDX-License-Identifier: MIT
 * Makes the client. This is the only file that passes settings to the library. A subcommand calls
 * client_open(), which loads the settings and calls client_configure() and client_start(), or these
 * functions one by one. Functions that return an int return -1 to continue, or the exit code of the
 * program.
 */
#include "client.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "environment.h"
#include "exits.h"
#include "pass_file.h"
#include "say.h"
#include "settle.h"
#include "tls_addresses.h"

/* The part of the drift that does not grow with the TTL, in microseconds. */
#define DRIFT_CONSTANT_US 2000

/* Returns the label "host/pid/start" of this process, with the time of the first call in seconds
 * since 1970 as start. Bytes of the host name that do not print, and '@', become '-'. */
const char *client_owner(void)
{
    static char label[128];
    char host[65];

    if (*label)
        return label;
    if (gethostname(host, sizeof host) != 0)
        strcpy(host, "localhost");
    host[sizeof host - 1] = '\0';
    for (char *at = host; *at; at++)
        if (*at <= ' ' || *at > '~' || *at == '@')
            *at = '-';
    snprintf(label, sizeof label, "%s/%d/%llu", host, (int)getpid(),
             (unsigned long long)(unix_ms() / 1000));
    return label;
}

/* The last error that the library has logged in this thread, "" if none: why it has refused an
 * asynchronous call, which returns no report. */
static _Thread_local char refusal[1024];

/* Returns why the library has refused the last call of this thread, "" if it has not. */
const char *client_refusal(void)
{
    return refusal;
}

/* Most warnings that is_first() knows. */
#define WARNINGS_MAX 16

/* Returns true when it is called with this text for the first time. The command has a client for
 * each check of `nodes`, all of which log the same. May be called by several threads. */
static bool is_first(const char *message)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static char *known[WARNINGS_MAX];
    size_t i = 0;

    pthread_mutex_lock(&mutex);
    while (i < WARNINGS_MAX && known[i] && strcmp(known[i], message) != 0)
        i++;
    bool first = i == WARNINGS_MAX || !known[i];
    if (i < WARNINGS_MAX && first)
        known[i] = text_copy(message);
    pthread_mutex_unlock(&mutex);
    return first;
}

/* Takes a message of the library. Prints warnings about TLS once, and its errors, because they are
 * about files of this machine that nothing else reports. Prints others only with -v, because the
 * command reports the causes itself; with -v also that files were read anew. Keeps why a call was
 * refused for client_refusal(). */
static void on_log(int level, const char *message, void *userdata)
{
    static const char prefix[] = "refused: ", tls[] = "TLS: ";
    bool is_tls = !strncmp(message, tls, sizeof tls - 1);

    (void)userdata;
    if (level <= REDLOCK_LOG_WARN && is_tls) {
        if (level == REDLOCK_LOG_ERROR || is_first(message))
            say(level == REDLOCK_LOG_ERROR ? SAY_ERROR : SAY_WARNING, "%s", message);
        return;
    }
    if (level == REDLOCK_LOG_ERROR) {
        const char *text =
            !strncmp(message, prefix, sizeof prefix - 1) ? message + sizeof prefix - 1 : message;
        snprintf(refusal, sizeof refusal, "%s", text);
    }
    say(level <= REDLOCK_LOG_WARN || (is_tls && level == REDLOCK_LOG_INFO) ? SAY_INFO : SAY_DEBUG,
        "%s", message);
}

/* Returns true if this server refuses the login, with its words in `text`. */
static bool refuses_login(redlock_t *rl, const char *name, char *text, size_t size)
{
    redlock_node_stats_t node;

    for (size_t i = 0; i < redlock_node_count(rl); i++)
        if (redlock_get_node_stats(rl, i, &node, sizeof node) == REDLOCK_OK &&
            !strcmp(node.node, name) && node.cause == REDLOCK_CAUSE_AUTH) {
            snprintf(text, size, "%s", node.text);
            return true;
        }
    return false;
}

/* Warns once if a server refuses the login while a lock is held: with the third one of five, the
 * lock is lost. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    static _Atomic bool holds, said; /* `redlock nodes` has several clients */
    char text[256];

    (void)userdata;
    if (event->kind == REDLOCK_EVENT_ACQUIRED)
        holds = true;
    if (event->kind == REDLOCK_EVENT_LOST || event->kind == REDLOCK_EVENT_RELEASED)
        holds = false;
    if (said || !holds || !event->node || event->kind == REDLOCK_EVENT_NODE_UP ||
        !refuses_login(rl, event->node, text, sizeof text))
        return;
    said = true;
    say(SAY_WARNING, "%s refuses the login while the lock is held: %s; %s", event->node, text,
        pass_file_is_followed() ? "if its password was changed, change the password file, too"
                                : "a new password takes a restart, or --pass-file");
}

/* Reports why the library has refused the setting that comes from `origin`, and frees the
 * configuration. Returns EXIT_CONFIG. */
static int refuse(redlock_config_t *config, const char *origin)
{
    say(SAY_ERROR, "%s: %s", origin, redlock_config_error(config));
    redlock_config_free(config);
    return EXIT_CONFIG;
}

/* Returns the setting of TLS that the message of the library names after "TLS: ". A message without
 * a name is about all of them, because the library was built without TLS: then returns the first
 * one that is set. */
static enum setting_id refused_tls(const struct settings *settings, const char *why)
{
    static const struct {
        const char *words;
        enum setting_id id;
    } names[] = {{"TLS: cacert ", SET_TLS_CACERT},
                 {"TLS: cert ", SET_TLS_CERT},
                 {"TLS: key ", SET_TLS_KEY},
                 {"TLS: sni ", SET_TLS_SNI}};
    enum setting_id first = SET_TLS_VERIFY;

    for (size_t i = sizeof names / sizeof names[0]; i-- > 0;) {
        if (!strncmp(why, names[i].words, strlen(names[i].words)))
            return names[i].id;
        if (settings->values[names[i].id].text)
            first = names[i].id;
    }
    return first;
}

/* Passes the settings of TLS to the library, unless they have their defaults. Returns -1 on
 * success, or an exit code after a message; then the configuration is freed. */
static int set_tls(const struct settings *settings, redlock_config_t *config)
{
    redlock_tls_t tls;

    if (!settings_tls(settings, &tls) || redlock_config_set_tls(config, &tls) == REDLOCK_OK)
        return -1;
    enum setting_id id = refused_tls(settings, redlock_config_error(config));
    if (id != SET_TLS_SNI) /* the others are paths, of which the message is long enough */
        return refuse(config, settings->values[id].origin);
    setting_say(settings, id, redlock_config_error(config));
    redlock_config_free(config);
    return EXIT_CONFIG;
}

/* Passes all settings to the library. Returns -1 on success, or an exit code after a message; then
 * the configuration is freed. */
static int set_all(const struct settings *settings, redlock_config_t *config)
{
    const struct setting *values = settings->values;
    const char *user = values[SET_USER].text;

    if (redlock_config_add_nodes(config, values[SET_SERVERS].text) != REDLOCK_OK)
        return refuse(config, values[SET_SERVERS].origin);
    if ((user || settings->password) &&
        redlock_config_set_auth(config, user, settings->password) != REDLOCK_OK)
        return refuse(config, values[user ? SET_USER : SET_PASSWORD].origin
                                  ? values[user ? SET_USER : SET_PASSWORD].origin
                                  : values[SET_PASS_FILE].origin);
    if (redlock_config_set_key_prefix(config, values[SET_PREFIX].text) != REDLOCK_OK)
        return refuse(config, values[SET_PREFIX].origin);
    if (redlock_config_set_fence_key(config, values[SET_FENCE_KEY].text) != REDLOCK_OK)
        return refuse(config, values[SET_FENCE_KEY].origin);
    if (redlock_config_set_fence_records(config, settings->fence_records) != REDLOCK_OK)
        return refuse(config, values[SET_FENCE_RECORDS].origin);
    if (redlock_config_set_admission(config, settings->admission) != REDLOCK_OK)
        return refuse(config, values[SET_ADMISSION].origin);
    if (redlock_config_set_max_ttl_ms(config, settings->max_ttl_ms) != REDLOCK_OK)
        return refuse(config, values[SET_MAX_TTL].origin);
    if (redlock_config_set_connect_timeout_ms(config, settings->connect_timeout_ms) != REDLOCK_OK)
        return refuse(config, values[SET_CONNECT_TIMEOUT].origin);
    if (settings->node_timeout_ms &&
        redlock_config_set_node_timeout_ms(config, settings->node_timeout_ms) != REDLOCK_OK)
        return refuse(config, values[SET_NODE_TIMEOUT].origin);
    if (redlock_config_set_drift(config, settings->drift_ppm, DRIFT_CONSTANT_US) != REDLOCK_OK)
        return refuse(config, values[SET_DRIFT].origin);
    if (redlock_config_set_heartbeat_ms(config, settings->heartbeat_ms) != REDLOCK_OK)
        return refuse(config, values[SET_HEARTBEAT].origin);
    if (redlock_config_set_clock_slack_ms(config, settings->clock_slack_ms) != REDLOCK_OK)
        return refuse(config, values[SET_CLOCK_SLACK].origin);
    if (redlock_config_set_line(config, settings->line) != REDLOCK_OK)
        return refuse(config, values[SET_LINE].origin);
    if (redlock_config_set_owner(config, client_owner()) != REDLOCK_OK)
        return refuse(config, "owner");
    int log_level = say_shows(SAY_DEBUG)  ? REDLOCK_LOG_DEBUG
                    : say_shows(SAY_INFO) ? REDLOCK_LOG_INFO
                                          : REDLOCK_LOG_WARN;
    if (redlock_config_set_log(config, log_level, on_log, NULL) != REDLOCK_OK)
        return refuse(config, "log");
    if (redlock_config_set_event(config, on_event, NULL) != REDLOCK_OK)
        return refuse(config, "event");
    return set_tls(settings, config);
}

/* Asks the library for the validity, in ms, of a lock with the configured TTL and drift that is
 * granted at once. Returns 0 if the library refuses the drift. */
uint64_t client_validity_ms(const struct settings *settings)
{
    redlock_config_t *config = NULL;
    uint64_t validity_ms = 0;

    if (redlock_config_new(&config, NULL) != REDLOCK_OK)
        must(NULL);
    if (redlock_config_set_drift(config, settings->drift_ppm, DRIFT_CONSTANT_US) == REDLOCK_OK)
        validity_ms = redlock_config_validity_ms(config, settings->ttl_ms);
    redlock_config_free(config);
    return validity_ms;
}

/* Refuses to connect without the password that an enclosing `redlock run` removed from the
 * environment. Returns -1 on success, or an exit code after a message. */
static int check_removed(const struct settings *settings)
{
    const struct setting *servers = &settings->values[SET_SERVERS];
    const char *login = getenv("REDLOCK_LOGIN");
    bool removed = login && !strcmp(login, LOGIN_REMOVED);
    const char *what = NULL;

    if (servers->rank == RANK_ENVIRONMENT && strstr(servers->text, "***@"))
        what = "REDLOCK_SERVERS: its passwords were removed (***)";
    else if (removed && servers->rank != RANK_OPTION && !settings->password &&
             !strchr(servers->text, '@'))
        what = "REDLOCK_AUTH: removed from the environment";
    if (!what)
        return -1;
    say(SAY_ERROR,
        "%s by the enclosing `redlock run`; give --keep-env there, or a password file here "
        "(--pass-file)",
        what);
    return EXIT_CONFIG;
}

/* Checks that there are servers and a password where one is needed, and makes the configuration.
 * Returns -1, with *ret_config to be freed, or an exit code after a message. */
int client_configure(const struct settings *settings, redlock_config_t **ret_config)
{
    redlock_config_t *config;

    if (!settings->values[SET_SERVERS].text) {
        say(SAY_ERROR, "no servers: give -s a:6379,b:6379,c:6379, or set REDLOCK_SERVERS, or "
                       "write a file (redlock config --help); to try it: redlock sandbox");
        return EXIT_CONFIG;
    }
    int result = check_removed(settings);
    if (result >= 0)
        return result;
    if (settings->values[SET_USER].text && !settings->password) {
        say(SAY_ERROR, "%s: user %s without a password; set REDLOCK_AUTH or give --pass-file",
            settings->values[SET_USER].origin, settings->values[SET_USER].text);
        return EXIT_CONFIG;
    }
    result = settings_check_tls(settings);
    if (result >= 0)
        return result;
    if (redlock_config_new(&config, NULL) != REDLOCK_OK) {
        say(SAY_ERROR, "the client cannot start: %s", redlock_strerror(REDLOCK_ENOMEM));
        return EXIT_SYSTEM;
    }
    result = set_all(settings, config);
    if (result >= 0)
        return result;
    *ret_config = config;
    return -1;
}

/* Returns the number of servers of the shard with the index `shard`. */
static size_t count_of_shard(redlock_t *rl, size_t shard)
{
    redlock_node_stats_t node;
    size_t count = 0;

    for (size_t i = 0; i < redlock_node_count(rl); i++)
        count += redlock_get_node_stats(rl, i, &node, sizeof node) == REDLOCK_OK &&
                 node.shard_index == shard;
    return count;
}

/* Warns if the only shard, or one of several, has one server or an even number of servers. */
static void warn_count(const struct settings *settings, redlock_t *rl)
{
    bool fallback = settings->values[SET_SERVERS].rank == RANK_FALLBACK;
    size_t shards = redlock_shard_count(rl);

    for (size_t shard = 0; shard < shards; shard++) {
        const char *name = redlock_shard_name(rl, shard);
        size_t count = count_of_shard(rl, shard);
        if (shards > 1 && (count == 1 || count % 2 == 0))
            say(SAY_WARNING, "shard %s: %zu server%s; use three or five", name, count,
                count == 1 ? ": if it fails, the locks of this shard are lost" : "s");
    }
    if (shards > 1)
        return;
    size_t count = redlock_node_count(rl);

    if (count == 1)
        say(SAY_WARNING, "%sone server: if it fails, all locks are lost; use three or five%s",
            fallback ? "REDIS_URL names " : "", fallback ? " (REDLOCK_SERVERS)" : "");
    else if (count % 2 == 0)
        say(SAY_WARNING, "%zu servers tolerate no more failures than %zu; use an odd number", count,
            count - 1);
}

/* Prints the warnings about the list of servers. */
void client_warn(const struct settings *settings, redlock_t *rl, bool count)
{
    tls_warn_unused(settings);
    if (count)
        warn_count(settings, rl);
}

/* Starts a client with this configuration, which the caller frees. Returns -1, with the client in
 * *ret_rl, or an exit code after a message. */
int client_start(const struct settings *settings, redlock_config_t *config, redlock_t **ret_rl)
{
    int error = redlock_new(ret_rl, config);

    if (error != REDLOCK_OK) {
        const char *why = redlock_config_error(config);
        bool may_be_a_file = error == REDLOCK_EINVAL || error == REDLOCK_ESYS;
        char *origin = why && may_be_a_file ? tls_origin(settings, why) : NULL;
        say(SAY_ERROR, "%s%s%s", origin ? origin : "", origin ? ": " : "",
            why && *why ? why : redlock_strerror(error));
        free(origin);
        return exit_of_error(error, EXIT_HELD);
    }
    return -1;
}

/* Returns the number of nodes that are eligible or have a cause why they are not. */
static size_t count_settled(redlock_t *rl)
{
    redlock_node_stats_t stats;
    size_t settled = 0;

    for (size_t i = 0; i < redlock_node_count(rl); i++)
        settled += redlock_get_node_stats(rl, i, &stats, sizeof stats) != REDLOCK_OK ||
                   stats.eligible || stats.cause != REDLOCK_CAUSE_NONE;
    return settled;
}

void client_settle(redlock_t *rl, uint64_t patience_ms)
{
    uint64_t give_up_ns = boottime_ns() + patience_ms * NS_PER_MS;

    while (count_settled(rl) < redlock_node_count(rl) && boottime_ns() < give_up_ns)
        poll(NULL, 0, 1);
}

void client_meet(redlock_t *rl)
{
    struct settle settle = {0};

    while (settle_naps_on(&settle, count_settled(rl), redlock_node_count(rl)))
        poll(NULL, 0, 1);
}

/* Returns a time limit, in ms, for a reply of every server: twice the connect timeout and one
 * second. */
uint64_t client_timeout_ms(const struct settings *settings)
{
    return (uint64_t)settings->connect_timeout_ms * 2 + 1000;
}

/* Loads the settings and starts a client, and warns about the number of servers. Returns -1; the
 * caller then frees both. Else returns an exit code after a message, with nothing left to free. */
int client_open(const struct options *options, struct settings *ret_settings, redlock_t **ret_rl)
{
    redlock_config_t *config = NULL;
    int result = settings_load(options, ret_settings);

    if (result < 0 && options->command == CMD_NODES)
        ret_settings->heartbeat_ms = NODES_HEARTBEAT_MS;
    if (result < 0)
        result = client_configure(ret_settings, &config);
    if (result < 0)
        result = client_start(ret_settings, config, ret_rl);
    redlock_config_free(config);
    if (result >= 0) {
        settings_free(ret_settings);
        return result;
    }
    /* `nodes` reports the number of servers as a finding. */
    client_warn(ret_settings, *ret_rl, options->command != CMD_NODES);
    return result;
}

/* Shuts the client down within `budget_ms` and frees it. Returns the result of redlock_shutdown():
 * REDLOCK_OK if no undo is left pending. Accepts NULL. */
int client_close(redlock_t *rl, uint64_t budget_ms)
{
    if (!rl)
        return REDLOCK_OK;
    int result = redlock_shutdown(rl, budget_ms);
    pass_file_leave(rl);
    redlock_free(rl);
    return result;
}

/* Checks that the name of a lock has 1 to 512 bytes. `command` is the subcommand, for the message.
 * Returns -1 on success, or EXIT_USAGE after a message. */
int client_check_name(const char *command, const char *name)
{
    if (*name && strlen(name) <= REDLOCK_RESOURCE_LEN_MAX)
        return -1;
    say(SAY_ERROR, "%s: the name of the lock %s; use 1 to %d bytes", command,
        *name ? "is too long" : "is empty", REDLOCK_RESOURCE_LEN_MAX);
    return EXIT_USAGE;
}

/* Checks that NAME{#N} is short enough for the last slot of a semaphore with `permits` permits (0:
 * a lock, which has none). Returns -1 on success, or EXIT_USAGE after a message. */
int client_check_slots(const char *command, const char *name, unsigned permits)
{
    char suffix[16];
    size_t len = (size_t)snprintf(suffix, sizeof suffix, "{#%u}", permits - 1);

    if (permits == 0 || strlen(name) + len <= REDLOCK_RESOURCE_LEN_MAX)
        return -1;
    say(SAY_ERROR,
        "%s: the name is too long for --permits %u: each permit is a lock with a name of its own, "
        "the last one NAME%s; use 1 to %zu bytes",
        command, permits, suffix, REDLOCK_RESOURCE_LEN_MAX - len);
    return EXIT_USAGE;
}

/* Returns `stem`, or `stem` followed by "/1", "/2" and so on: the first of these names that belongs
 * to the shard. To be freed. */
char *client_name_in(redlock_t *rl, size_t shard, const char *stem)
{
    char *name = text_copy(stem);

    for (unsigned i = 1; redlock_shard_of(rl, name) != (int)shard; i++) {
        free(name);
        name = text_format("%s/%u", stem, i);
    }
    return name;
}

/* Returns the name of the slot that the permit `lock` holds, or a copy of `name` if the lock is no
 * permit. To be freed. */
char *client_slot_name(const char *name, const redlock_lock_t *lock)
{
    char slot[REDLOCK_RESOURCE_LEN_MAX + 1];
    int permit = redlock_lock_slot(lock);

    if (permit < 0 || redlock_slot_name(slot, sizeof slot, name, (uint32_t)permit) != REDLOCK_OK)
        return text_format("%s", name);
    return text_format("%s", slot);
}

/* Returns the key on the servers: the configured prefix and the name of the lock or slot. To be
 * freed. */
char *client_key(const struct settings *settings, const char *name, const redlock_lock_t *lock)
{
    char *slot = client_slot_name(name, lock);
    char *key = text_format("%s%s", settings->values[SET_PREFIX].text, slot);

    free(slot);
    return key;
}

/* Returns the exit code for an error code of the library; `conflict_code` for
 * REDLOCK_ECONTENDED. */
int exit_of_error(int error, int conflict_code)
{
    switch (error) {
    case REDLOCK_OK:
        return EXIT_OK;
    case REDLOCK_ECONTENDED:
        return conflict_code;
    case REDLOCK_ELOST:
        return EXIT_LOST;
    case REDLOCK_ENOQUORUM:
    case REDLOCK_ETOOSLOW:
    case REDLOCK_EEXCLUDED:
    case REDLOCK_EFENCE:
        return EXIT_NO_QUORUM;
    case REDLOCK_EAUTH:
        return EXIT_REFUSED;
    case REDLOCK_EDUPLICATE:
    case REDLOCK_EINVAL:
        return EXIT_CONFIG;
    case REDLOCK_ENOMEM:
    case REDLOCK_ESYS:
    case REDLOCK_ELIBRARY:
        return EXIT_SYSTEM;
    default:
        return EXIT_INTERNAL;
    }
}
