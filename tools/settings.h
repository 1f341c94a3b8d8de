/* SPDX-License-Identifier: MIT
 * The settings in effect: flags win over the environment, the environment over the file, the file
 * over the defaults. Each value knows where it came from.
 */
#ifndef TOOLS_SETTINGS_H
#define TOOLS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

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

enum setting_rank { RANK_DEFAULT, RANK_FALLBACK, RANK_FILE, RANK_ENVIRONMENT, RANK_FLAG };

struct setting {
    char *text;   /* NULL: not set */
    char *origin; /* "flag -t", "REDLOCK_SERVERS", "/etc/redlock.conf:3", "default" */
    enum setting_rank rank;
};

struct settings {
    struct setting values[SET_COUNT];
    uint64_t max_ttl_ms, ttl_ms, wait_ms; /* wait_ms: REDLOCK_WAIT_FOREVER possible */
    uint64_t grace_ms, renew_ms;          /* defaults filled in */
    uint32_t connect_timeout_ms, node_timeout_ms;
    uint32_t drift_ppm, heartbeat_ms, clock_slack_ms;
    int fence_records; /* enum redlock_fence_records */
    int admission;     /* enum redlock_admission */
    char *password;    /* from REDLOCK_AUTH, the file or the pass file; NULL: none */
};

/* Merges and parses; -1, or the exit code of a refusal that was said. */
int settings_load(const struct options *options, struct settings *ret_settings);
void settings_free(struct settings *settings);

const char *setting_name(enum setting_id id); /* as in the file: "max-ttl" */
bool setting_by_name(const char *name, enum setting_id *ret_id);

/* Takes the value unless one of a higher rank is there already. */
void setting_offer(struct settings *settings, enum setting_id id, enum setting_rank rank,
                   const char *text, const char *origin);

/* Finds and reads the file (settings_file.c); -1 or an exit code. */
int settings_read_file(const struct options *options, struct settings *settings);

/* Returns false, and says so, if a renewal interval of 0 is set. */
bool settings_renews(const struct settings *settings);

/* Warns if the group of a regular file, or all users, may read the password that is in it. */
void settings_warn_readable(int fd, const char *path);

/* The value as it may be shown: passwords masked. To be freed. */
char *setting_shown(const struct settings *settings, enum setting_id id);

#endif
