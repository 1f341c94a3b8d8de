/* SPDX-License-Identifier: MIT
 * Builds a client's configuration. Every setter checks its arguments and changes all or nothing. A
 * setter that refuses its arguments returns REDLOCK_EINVAL and writes to config->error, for
 * redlock_config_error(), what was wrong and what to do. For a configuration that is NULL it only
 * returns REDLOCK_EINVAL.
 *
 * The owner label may contain any printable ASCII byte except a blank, also '@', as in
 * "ada@web3/4711". A token stays unambiguous, because the label follows a prefix of fixed length.
 */
#include "api/config.h"

#include "api/names.h"
#include "api/tls_settings.h"
#include "api/url.h"
#include "platform/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Values of a new configuration (_DEFAULT) and limits of the setters (_MIN, _MAX). */
#define FENCE_KEY_DEFAULT          "redlock:fence"
#define MAX_TTL_MS_DEFAULT         30000
#define CONNECT_TIMEOUT_MS_DEFAULT 250
#define KEEPALIVE_MS_DEFAULT       30000
#define KEEPALIVE_MS_MAX           3600000
#define HEARTBEAT_MS_DEFAULT       1000
#define CLOCK_SLACK_MS_DEFAULT     100
#define HEARTBEAT_MS_MIN           10 /* shortest interval */
#define RETRY_MS_MIN_DEFAULT       10
#define RETRY_MS_MAX_DEFAULT       200
#define DRIFT_PPM_DEFAULT          10000 /* millionths of the TTL: 1 percent */
#define DRIFT_CONSTANT_US_DEFAULT  2000
#define DRIFT_CONSTANT_US_MAX      1000000
#define QUEUE_MAX_MAX              1000000 /* largest limit of a queue */
#define DURATION_MS_MAX            60000   /* of timeouts, delays and intervals */
#define HOST_MAX                   64      /* bytes of the name of a host in Linux */

_Static_assert(REDLOCK_NODES_MAX == RL_NODES_MAX, "public and internal limits agree");
_Static_assert(REDLOCK_SHARDS_MAX == RL_SHARDS_MAX, "public and internal limits agree");
_Static_assert(HOST_MAX + sizeof "/-2147483648/18446744073709" <= RL_OWNER_MAX,
               "a label of the process fits");
_Static_assert(REDLOCK_RESOURCE_LEN_MAX == RL_RESOURCE_MAX, "public and internal limits agree");

/* Writes the text of redlock_config_error() to config->error, in the form of printf(). A text that
 * is too long is cut. */
void rl_config_refuse(struct redlock_config *config, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(config->error, sizeof config->error, fmt, args);
    va_end(args);
}

/* Writes "out of memory" to config->error. Returns REDLOCK_ENOMEM. */
static int refuse_memory(struct redlock_config *config)
{
    rl_config_refuse(config, "out of memory");
    return REDLOCK_ENOMEM;
}

/* Returns whether the allocator has all functions and uses no field that this library does not
 * know. A caller with a newer header may have further fields, which must be zero. */
static bool is_complete(const redlock_allocator_t *allocator)
{
    if (allocator->size < sizeof *allocator || allocator->malloc_fn == NULL ||
        allocator->realloc_fn == NULL || allocator->free_fn == NULL)
        return false;
    for (size_t i = sizeof *allocator; i < allocator->size; i++)
        if (((const unsigned char *)allocator)[i] != 0)
            return false;
    return true;
}

/* Public function: creates a configuration with all defaults, without servers, in *ret_config.
 * `allocator`: NULL for malloc() of libc. Returns REDLOCK_OK, EINVAL or ENOMEM. */
REDLOCK_API int redlock_config_new(redlock_config_t **ret_config,
                                   const redlock_allocator_t *allocator)
{
    struct rl_mem mem = rl_mem_libc();

    if (ret_config == NULL || (allocator != NULL && !is_complete(allocator)))
        return REDLOCK_EINVAL;
    if (allocator != NULL)
        mem = (struct rl_mem){.malloc_fn = allocator->malloc_fn,
                              .realloc_fn = allocator->realloc_fn,
                              .free_fn = allocator->free_fn,
                              .userdata = allocator->userdata};
    struct redlock_config *config = rl_alloc(&mem, sizeof *config);
    if (config == NULL)
        return REDLOCK_ENOMEM;
    config->mem = mem;
    config->mode = REDLOCK_MODE_THREADED;
    config->fence_key_len = sizeof FENCE_KEY_DEFAULT - 1;
    memcpy(config->fence_key, FENCE_KEY_DEFAULT, sizeof FENCE_KEY_DEFAULT);
    config->fence_records = REDLOCK_FENCE_RECORDS_DURABLE;
    config->max_ttl_ms = MAX_TTL_MS_DEFAULT;
    config->connect_timeout_ms = CONNECT_TIMEOUT_MS_DEFAULT;
    config->keepalive_ms = KEEPALIVE_MS_DEFAULT;
    config->retry_ms_min = RETRY_MS_MIN_DEFAULT;
    config->retry_ms_max = RETRY_MS_MAX_DEFAULT;
    config->drift = (struct rl_drift){DRIFT_PPM_DEFAULT, DRIFT_CONSTANT_US_DEFAULT};
    config->heartbeat_ms = HEARTBEAT_MS_DEFAULT;
    config->notifications = true;
    config->line = true;
    config->clock_slack_ms = CLOCK_SLACK_MS_DEFAULT;
    config->admission = REDLOCK_ADMISSION_STRICT;
    *ret_config = config;
    return 0;
}

/* Overwrites and frees the string *text, which may be secret or NULL, and sets *text to NULL. */
static void free_secret(struct redlock_config *config, char **text)
{
    if (*text != NULL)
        rl_free_wiped(&config->mem, *text, strlen(*text));
    *text = NULL;
}

/* Public function: frees a configuration and overwrites its passwords. Ignores NULL. */
REDLOCK_API void redlock_config_free(redlock_config_t *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->node_count; i++)
        rl_node_spec_done(&config->mem, &config->nodes[i]);
    rl_free(&config->mem, config->nodes);
    rl_node_spec_tls_done(&config->mem, &config->tls);
    free_secret(config, &config->user);
    free_secret(config, &config->password);
    struct rl_mem mem = config->mem;
    rl_free(&mem, config);
}

/* Public function: returns why the configuration was refused last; "" if it was not. Never NULL. */
REDLOCK_API const char *redlock_config_error(const redlock_config_t *config)
{
    return config == NULL ? "no configuration given" : config->error;
}

/* Returns NULL if a text has only permitted bytes; else what is wrong with it. */
const char *rl_config_text_flaw(const char *text, size_t len_max, unsigned char lowest,
                                unsigned char highest)
{
    if (strlen(text) > len_max)
        return "is too long";
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == ' ' && lowest > ' ')
            return "contains a blank";
        if (*at < lowest || *at == 0x7f)
            return "contains a control byte";
        if (*at > highest)
            return "contains a byte that is not ASCII";
    }
    return NULL;
}

/* Public function: sets the user and the password for servers whose address has none. NULL as
 * `password`: no login. Returns REDLOCK_OK, EINVAL or ENOMEM. */
REDLOCK_API int redlock_config_set_auth(redlock_config_t *config, const char *user,
                                        const char *password)
{
    if (config == NULL)
        return REDLOCK_EINVAL;

    bool has_user = user != NULL && user[0] != '\0';
    bool has_password = password != NULL && password[0] != '\0';
    const char *user_flaw = has_user ? rl_config_text_flaw(user, RL_USER_MAX, '!', 0xff) : NULL;
    const char *password_flaw =
        has_password ? rl_config_text_flaw(password, RL_PASSWORD_MAX, ' ', 0xff) : NULL;
    if (password != NULL && !has_password) {
        rl_config_refuse(config, "password: it is empty; give one, or NULL for no login");
        return REDLOCK_EINVAL;
    }
    if (has_user && !has_password) {
        rl_config_refuse(config, "user: given without a password; give both, or NULL for both");
        return REDLOCK_EINVAL;
    }
    if (user_flaw != NULL || password_flaw != NULL) {
        rl_config_refuse(config, "%s: it %s; check where it comes from",
                         user_flaw != NULL ? "user" : "password",
                         user_flaw != NULL ? user_flaw : password_flaw);
        return REDLOCK_EINVAL;
    }

    char *user_copy = has_user ? rl_strdup_len(&config->mem, user, strlen(user)) : NULL;
    char *password_copy =
        has_password ? rl_strdup_len(&config->mem, password, strlen(password)) : NULL;
    if ((has_user && user_copy == NULL) || (has_password && password_copy == NULL)) {
        free_secret(config, &user_copy);
        free_secret(config, &password_copy);
        return refuse_memory(config);
    }
    free_secret(config, &config->user);
    free_secret(config, &config->password);
    config->user = user_copy;
    config->password = password_copy;
    return 0;
}

/* Public function: sets the mode, an enum redlock_mode. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_mode(redlock_config_t *config, int mode)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (mode != REDLOCK_MODE_THREADED && mode != REDLOCK_MODE_EMBEDDED &&
        mode != REDLOCK_MODE_HYBRID) {
        rl_config_refuse(config, "mode: %d is unknown; use one of enum redlock_mode", mode);
        return REDLOCK_EINVAL;
    }
    config->mode = mode;
    return 0;
}

/* Public function: sets the prefix of all keys of locks, at most RL_PREFIX_MAX bytes; "": none.
 * Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_key_prefix(redlock_config_t *config, const char *prefix)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (prefix == NULL || strlen(prefix) > RL_PREFIX_MAX) {
        rl_config_refuse(config, prefix == NULL
                                     ? "key prefix: NULL given; use \"\" for none"
                                     : "key prefix: it is longer than 256 bytes; shorten it");
        return REDLOCK_EINVAL;
    }
    config->prefix_len = strlen(prefix);
    memcpy(config->prefix, prefix, config->prefix_len + 1);
    return 0;
}

/* Public function: sets the key of the fence record, 1 to RL_PREFIX_MAX bytes and not the key of a
 * line. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_fence_key(redlock_config_t *config, const char *key)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (key == NULL || key[0] == '\0' || strlen(key) > RL_PREFIX_MAX) {
        rl_config_refuse(config, "fence key: it must have 1 to %d bytes", RL_PREFIX_MAX);
        return REDLOCK_EINVAL;
    }
    if (rl_names_is_line((struct rl_arg){key, strlen(key)})) {
        rl_config_refuse(config, "fence key: with " RL_LINE_SUFFIX
                                 " at its end it is the key of a line; choose another one");
        return REDLOCK_EINVAL;
    }
    config->fence_key_len = strlen(key);
    memcpy(config->fence_key, key, config->fence_key_len + 1);
    return 0;
}

/* Public function: sets whether fence records survive a restart of their server, an enum
 * redlock_fence_records. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_fence_records(redlock_config_t *config, int records)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (records != REDLOCK_FENCE_RECORDS_DURABLE && records != REDLOCK_FENCE_RECORDS_VOLATILE) {
        rl_config_refuse(
            config, "fence records: %d is unknown; use one of enum redlock_fence_records", records);
        return REDLOCK_EINVAL;
    }
    config->fence_records = records;
    return 0;
}

/* Public function: sets the owner label in the tokens, at most RL_OWNER_MAX bytes; "": none, not
 * even that of the process. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_owner(redlock_config_t *config, const char *label)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (label == NULL) {
        rl_config_refuse(config, "owner label: NULL given; use \"\" for none");
        return REDLOCK_EINVAL;
    }
    const char *label_flaw = rl_config_text_flaw(label, RL_OWNER_MAX, '!', '~');
    if (label_flaw != NULL) {
        rl_config_refuse(config,
                         "owner label: it %s; use up to %d printable ASCII characters without "
                         "blanks, as in web3/4711",
                         label_flaw, RL_OWNER_MAX);
        return REDLOCK_EINVAL;
    }
    config->owner_len = strlen(label);
    memcpy(config->owner, label, config->owner_len + 1);
    config->has_owner = true;
    return 0;
}

/* Sets the default of the owner label, with the name of this host. */
void rl_config_label(struct redlock_config *config)
{
    char host[HOST_MAX + 1] = "";

    if (config->has_owner)
        return;
    if (gethostname(host, sizeof host) != 0 || host[0] == '\0')
        memcpy(host, "localhost", sizeof "localhost");
    host[sizeof host - 1] = '\0';
    for (char *at = host; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~' || *at == '@')
            *at = '-';
    config->owner_len =
        (size_t)snprintf(config->owner, sizeof config->owner, "%s/%d/%llu", host, (int)getpid(),
                         (unsigned long long)(rl_clock_wall_us() / 1000000));
}

/* Checks that `value` is from `min` to `max`. `what` and `unit` name it in the refusal. Returns
 * REDLOCK_OK; or REDLOCK_EINVAL with a reason in config->error. */
static int check_range(struct redlock_config *config, const char *what, const char *unit,
                       uint64_t value, uint64_t min, uint64_t max)
{
    if (value >= min && value <= max)
        return 0;
    rl_config_refuse(config, "%s: %llu %s is out of range; use %llu to %llu", what,
                     (unsigned long long)value, unit, (unsigned long long)min,
                     (unsigned long long)max);
    return REDLOCK_EINVAL;
}

/* Public function: sets the longest TTL of locks in ms. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_max_ttl_ms(redlock_config_t *config, uint64_t max_ttl_ms)
{
    if (config == NULL || check_range(config, "max_ttl", "ms", max_ttl_ms, REDLOCK_TTL_MS_MIN,
                                      REDLOCK_TTL_MS_MAX) != 0)
        return REDLOCK_EINVAL;
    config->max_ttl_ms = max_ttl_ms;
    return 0;
}

/* Public function: sets the time limit in ms for connecting to a server, 1 to DURATION_MS_MAX.
 * Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_connect_timeout_ms(redlock_config_t *config, uint32_t timeout_ms)
{
    if (config == NULL ||
        check_range(config, "connect timeout", "ms", timeout_ms, 1, DURATION_MS_MAX) != 0)
        return REDLOCK_EINVAL;
    config->connect_timeout_ms = timeout_ms;
    return 0;
}

/* Public function: sets the time limit in ms for each reply, 0 to DURATION_MS_MAX; 0: computed from
 * the round trips. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_node_timeout_ms(redlock_config_t *config, uint32_t timeout_ms)
{
    if (config == NULL ||
        check_range(config, "node timeout", "ms", timeout_ms, 0, DURATION_MS_MAX) != 0)
        return REDLOCK_EINVAL;
    config->node_timeout_ms = timeout_ms;
    return 0;
}

/* Public function: sets the idle time in ms after which TCP connections are probed; 0: never.
 * Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_keepalive_ms(redlock_config_t *config, uint32_t idle_ms)
{
    if (config == NULL || check_range(config, "keepalive", "ms", idle_ms, 0, KEEPALIVE_MS_MAX) != 0)
        return REDLOCK_EINVAL;
    config->keepalive_ms = idle_ms;
    return REDLOCK_OK;
}

/* Public function: sets the bounds in ms of the random delay between two attempts. Returns
 * REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_retry_ms(redlock_config_t *config, uint32_t delay_ms_min,
                                            uint32_t delay_ms_max)
{
    if (config == NULL ||
        check_range(config, "lower retry delay", "ms", delay_ms_min, 1, DURATION_MS_MAX) != 0 ||
        check_range(config, "upper retry delay", "ms", delay_ms_max, delay_ms_min,
                    DURATION_MS_MAX) != 0)
        return REDLOCK_EINVAL;
    config->retry_ms_min = delay_ms_min;
    config->retry_ms_max = delay_ms_max;
    return 0;
}

/* Public function: sets the drift: a part of the TTL in millionths (ppm) and a constant in
 * microseconds. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_drift(redlock_config_t *config, uint32_t drift_ppm,
                                         uint32_t drift_constant_us)
{
    if (config == NULL ||
        check_range(config, "drift", "ppm", drift_ppm, 0, RL_DRIFT_PPM_MAX) != 0 ||
        check_range(config, "drift constant", "us", drift_constant_us, 0, DRIFT_CONSTANT_US_MAX) !=
            0)
        return REDLOCK_EINVAL;
    config->drift = (struct rl_drift){.ppm = drift_ppm, .constant_us = drift_constant_us};
    return 0;
}

/* Public function: returns the validity, in ms, of a lock with this TTL that is granted in no time:
 * the TTL without drift and loss margin. Returns 0 if nothing is left, or for NULL. */
REDLOCK_API uint64_t redlock_config_validity_ms(const redlock_config_t *config, uint64_t ttl_ms)
{
    uint64_t ttl_ns = rl_min_u64(ttl_ms, UINT64_MAX / RL_MS) * RL_MS;

    return config == NULL ? 0 : rl_usable_ns(ttl_ns, &config->drift) / RL_MS;
}

/* Public function: sets whether servers are asked for notifications. Returns REDLOCK_OK or
 * EINVAL. */
REDLOCK_API int redlock_config_set_notifications(redlock_config_t *config, bool on)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    config->notifications = on;
    return REDLOCK_OK;
}

/* Public function: sets whether waiters use lines. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_line(redlock_config_t *config, bool enabled)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    config->line = enabled;
    return REDLOCK_OK;
}

/* Public function: sets how many acquisitions of one resource may wait in the client's queue; 0: no
 * limit. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_queue_max(redlock_config_t *config, uint32_t waiters)
{
    if (config == NULL ||
        check_range(config, "longest queue", "acquisitions", waiters, 0, QUEUE_MAX_MAX) != 0)
        return REDLOCK_EINVAL;
    config->queue_max = waiters;
    return REDLOCK_OK;
}

/* Public function: sets the interval of heartbeats in ms. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_heartbeat_ms(redlock_config_t *config, uint32_t interval_ms)
{
    if (config == NULL || check_range(config, "heartbeat interval", "ms", interval_ms,
                                      HEARTBEAT_MS_MIN, DURATION_MS_MAX) != 0)
        return REDLOCK_EINVAL;
    config->heartbeat_ms = interval_ms;
    return 0;
}

/* Public function: sets by how many ms the wall clock may run ahead while a lock is held; 0: it is
 * not checked. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_clock_slack_ms(redlock_config_t *config, uint32_t slack_ms)
{
    if (config == NULL ||
        check_range(config, "clock slack", "ms", slack_ms, 0, DURATION_MS_MAX) != 0)
        return REDLOCK_EINVAL;
    config->clock_slack_ms = slack_ms;
    return 0;
}

/* Public function: sets which servers vote, an enum redlock_admission. Returns REDLOCK_OK or
 * EINVAL. */
REDLOCK_API int redlock_config_set_admission(redlock_config_t *config, int admission)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (admission < REDLOCK_ADMISSION_STRICT || admission > REDLOCK_ADMISSION_PROVEN) {
        rl_config_refuse(config, "admission: %d is unknown; use one of enum redlock_admission",
                         admission);
        return REDLOCK_EINVAL;
    }
    config->admission = admission;
    return 0;
}

/* Public function: sets the function that receives log lines up to `level_max`, an enum
 * redlock_log_level. NULL as `fn`: no log. Returns REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_log(redlock_config_t *config, int level_max, redlock_log_fn fn,
                                       void *userdata)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (fn != NULL && (level_max < REDLOCK_LOG_ERROR || level_max > REDLOCK_LOG_DEBUG)) {
        rl_config_refuse(config, "log level: %d is unknown; use one of enum redlock_log_level",
                         level_max);
        return REDLOCK_EINVAL;
    }
    config->log = (struct rl_log){.level_max = level_max, .fn = fn, .userdata = userdata};
    return 0;
}

/* Public function: sets the function that receives all events of the client; NULL: none. Returns
 * REDLOCK_OK or EINVAL. */
REDLOCK_API int redlock_config_set_event(redlock_config_t *config, redlock_event_fn fn,
                                         void *userdata)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    config->event_fn = fn;
    config->event_userdata = userdata;
    return 0;
}

/* Copies a node. One with TLS gets from the configuration what its address does not say.
 * Returns REDLOCK_OK, or REDLOCK_ENOMEM with a zeroed `to`. */
static int copy_node(const struct redlock_config *config, struct rl_node_spec *to,
                     const struct rl_node_spec *from)
{
    int error = rl_node_spec_copy(&config->mem, to, from);

    if (error != REDLOCK_OK || !from->tls)
        return error;
    error = rl_tls_settings_complete(&config->mem, to, &config->tls);
    if (error != REDLOCK_OK)
        rl_node_spec_done(&config->mem, to);
    return error;
}

/* Copies the nodes, the settings of TLS, the user and the password, which `to` does not have yet.
 * Returns REDLOCK_OK or REDLOCK_ENOMEM; on failure `to` owns what was copied so far. */
static int copy_members(struct redlock_config *to, const struct redlock_config *from)
{
    const struct rl_mem *mem = &from->mem;

    to->nodes = rl_alloc(mem, from->node_count * sizeof *to->nodes);
    if (to->nodes == NULL)
        return REDLOCK_ENOMEM;
    for (; to->node_count < from->node_count; to->node_count++) {
        int error = copy_node(from, &to->nodes[to->node_count], &from->nodes[to->node_count]);
        if (error != REDLOCK_OK)
            return error;
    }
    if (rl_node_spec_tls_copy(mem, &to->tls, &from->tls) != REDLOCK_OK)
        return REDLOCK_ENOMEM;
    if (from->user != NULL &&
        (to->user = rl_strdup_len(mem, from->user, strlen(from->user))) == NULL)
        return REDLOCK_ENOMEM;
    if (from->password != NULL &&
        (to->password = rl_strdup_len(mem, from->password, strlen(from->password))) == NULL)
        return REDLOCK_ENOMEM;
    return REDLOCK_OK;
}

/* Creates a deep copy of the configuration in *ret_config, with the same allocator. Returns
 * REDLOCK_OK or REDLOCK_ENOMEM. */
int rl_config_copy(struct redlock_config **ret_config, const struct redlock_config *config)
{
    struct redlock_config *copy = rl_alloc(&config->mem, sizeof *copy);

    if (copy == NULL)
        return REDLOCK_ENOMEM;
    *copy = *config;
    copy->nodes = NULL;
    copy->node_count = 0;
    copy->user = copy->password = NULL;
    copy->tls = (struct rl_tls_settings){.verify = config->tls.verify};
    int error = copy_members(copy, config);
    if (error != REDLOCK_OK) {
        redlock_config_free(copy);
        return error;
    }
    *ret_config = copy;
    return REDLOCK_OK;
}
