/* SPDX-License-Identifier: MIT
 * The settings in effect. Flags have precedence over the environment, the environment over the
 * file, and the file over the defaults. Each value keeps its origin.
 */
#ifndef TOOLS_SETTINGS_H
#define TOOLS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

/* Identifies a setting; setting_name() returns its name. */
enum setting_id {
    SET_SERVERS,
    SET_PREFIX,
    SET_USER,
    SET_PASSWORD,
    SET_PASS_FILE,
    SET_MAX_TTL,
    SET_TTL,
    SET_WAIT,
    SET_GRACE,
    SET_RENEW,
    SET_CONNECT_TIMEOUT,
    SET_NODE_TIMEOUT,
    SET_FENCE_KEY,
    SET_FENCE_RECORDS,
    SET_ADMISSION,
    SET_DRIFT,
    SET_HEARTBEAT,
    SET_CLOCK_SLACK,
    SET_COUNT
};

/* Where a value comes from; a higher rank has precedence. RANK_FALLBACK is the variable
 * REDIS_URL. */
enum setting_rank { RANK_DEFAULT, RANK_FALLBACK, RANK_FILE, RANK_ENVIRONMENT, RANK_FLAG };

/* One value as text, owned by struct settings. */
struct setting {
    char *text;   /* NULL: not set */
    char *origin; /* "flag -t", "REDLOCK_SERVERS", "/etc/redlock.conf:3", "default" */
    enum setting_rank rank;
};

/* All settings: the texts, and the numbers made of them. settings_load() fills it;
 * settings_free() frees it. Defaults are filled in. */
struct settings {
    struct setting values[SET_COUNT]; /* the texts, by enum setting_id */
    uint64_t max_ttl_ms, ttl_ms;
    uint64_t wait_ms;  /* how long to wait for a lock; may be REDLOCK_WAIT_FOREVER */
    uint64_t grace_ms; /* time between the stop signal and KILL */
    uint64_t renew_ms; /* time between two extensions */
    uint32_t connect_timeout_ms, node_timeout_ms; /* node_timeout_ms 0: measured by the library */
    uint32_t drift_ppm, heartbeat_ms, clock_slack_ms; /* drift_ppm: parts per million */
    int fence_records;                                /* enum redlock_fence_records */
    int admission;                                    /* enum redlock_admission */
    char *password; /* from REDLOCK_AUTH, the file or the pass file; NULL: none */
};

/* Merges and parses all sources. Returns -1 on success, or an exit code after a message. */
int settings_load(const struct options *options, struct settings *ret_settings);
/* Frees all texts. Overwrites the password. */
void settings_free(struct settings *settings);

/* Returns the name as in the file, such as "max-ttl". */
const char *setting_name(enum setting_id id);
/* Finds a setting by its name in the file. Returns false if it is unknown. */
bool setting_by_name(const char *name, enum setting_id *ret_id);

/* Stores copies of a value and its origin, unless a value of a higher rank is there. `text` may be
 * NULL, which stores nothing. */
void setting_offer(struct settings *settings, enum setting_id id, enum setting_rank rank,
                   const char *text, const char *origin);

/* Finds and reads the configuration file. Returns -1 on success, or an exit code after a
 * message. */
int settings_read_file(const struct options *options, struct settings *settings);

/* Returns true unless the setting `renew` is 0. Reports a 0 as an error. */
bool settings_renews(const struct settings *settings);

/* Warns if the group or all users may read the regular file `fd`, which contains a password. */
void settings_warn_readable(int fd, const char *path);

/* Returns the value with passwords masked, or NULL if it is not set. To be freed. */
char *setting_shown(const struct settings *settings, enum setting_id id);

#endif
