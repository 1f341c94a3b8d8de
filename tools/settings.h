/* SPDX-License-Identifier: MIT
 * The settings in effect. Options have precedence over the environment, the environment over the
 * file, and the file over the defaults. Each value keeps its origin.
 */
#ifndef TOOLS_SETTINGS_H
#define TOOLS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "redlock/redlock.h"

/* Identifies a setting; setting_name() returns its name. */
enum setting_id {
    SET_SERVERS,         /* list of servers */
    SET_PREFIX,          /* prefix of all keys */
    SET_USER,            /* user name at the servers */
    SET_PASSWORD,        /* password at the servers */
    SET_PASS_FILE,       /* file with the password */
    SET_MAX_TTL,         /* longest TTL of any client */
    SET_TTL,             /* TTL of a lock */
    SET_WAIT,            /* longest wait for a lock */
    SET_QUORUM_WAIT,     /* longest wait without a quorum */
    SET_GRACE,           /* time between the stop signal and KILL */
    SET_RENEW,           /* time between two extensions */
    SET_CONNECT_TIMEOUT, /* time limit for connecting */
    SET_NODE_TIMEOUT,    /* time limit for a reply */
    SET_FENCE_KEY,       /* key of the fence record */
    SET_FENCE_RECORDS,   /* "durable" or "volatile" */
    SET_ADMISSION,       /* "strict", "lenient" or "proven" */
    SET_DRIFT,           /* largest difference of clock rates */
    SET_HEARTBEAT,       /* time between two heartbeats */
    SET_CLOCK_SLACK,     /* largest step of this machine's wall clock */
    SET_LINE,            /* "on" or "off": waiters use lines */
    SET_TLS_CACERT,      /* file or directory with the issuers that are trusted */
    SET_TLS_CERT,        /* file with the certificate of this client */
    SET_TLS_KEY,         /* file with its private key */
    SET_TLS_SNI,         /* name that the servers must have */
    SET_TLS_VERIFY,      /* "full", "chain" or "none" */
    SET_COUNT            /* the number of settings */
};

/* Where a value comes from; a higher rank has precedence. RANK_FALLBACK is the variable
 * REDIS_URL. */
enum setting_rank { RANK_DEFAULT, RANK_FALLBACK, RANK_FILE, RANK_ENVIRONMENT, RANK_OPTION };

/* One value as text, owned by struct settings. */
struct setting {
    char *text;   /* the value; NULL: not set */
    char *origin; /* source of the value: "option -t", "REDLOCK_SERVERS", "/etc/redlock.conf:3",
                     "default" */
    enum setting_rank rank; /* of the origin */
};

/* All settings: the texts, and the numbers made of them. settings_load() fills it;
 * settings_free() frees it. Defaults are filled in. */
struct settings {
    struct setting values[SET_COUNT]; /* the texts, by enum setting_id */
    uint64_t max_ttl_ms;              /* longest TTL of any client of these servers */
    uint64_t ttl_ms;                  /* TTL of a lock */
    uint64_t wait_ms;                 /* how long to wait for a lock; may be REDLOCK_WAIT_FOREVER */
    uint64_t quorum_wait_ms;          /* longest wait without a quorum; may be that, too */
    uint64_t grace_ms;                /* time between the stop signal and KILL */
    uint64_t renew_ms;                /* time between two extensions */
    uint32_t connect_timeout_ms;      /* time limit for connecting to a server */
    uint32_t node_timeout_ms;         /* time limit for a reply; 0: measured by the library */
    uint32_t drift_ppm;               /* largest difference of clock rates, in parts per million */
    uint32_t heartbeat_ms;            /* time between two heartbeats */
    /* how far the wall clock of this machine may jump ahead while a lock is held; 0: no limit */
    uint32_t clock_slack_ms;
    int fence_records; /* enum redlock_fence_records */
    int admission;     /* enum redlock_admission */
    bool line;         /* waiters use lines */
    int tls_verify;    /* enum redlock_tls_verify */
    char *password;    /* from REDLOCK_AUTH, the file or the pass file; NULL: none; owned */
};

/* Fills *ret_settings from the options in `options`, the environment, the configuration file and
 * the defaults. Returns -1 on success, or an exit code after a message. */
int settings_load(const struct options *options, struct settings *ret_settings);
/* Frees all texts, after overwriting the password, and sets all fields to zero. */
void settings_free(struct settings *settings);

/* Returns the name of a setting as in the configuration file, such as "max-ttl". */
const char *setting_name(enum setting_id id);
/* Looks up a setting by its name in the configuration file. Returns false if it is unknown. */
bool setting_by_name(const char *name, enum setting_id *ret_id);

/* Stores copies of a value and its origin, unless a value of a higher rank is there. `text` may be
 * NULL, which stores nothing. */
void setting_offer(struct settings *settings, enum setting_id id, enum setting_rank rank,
                   const char *text, const char *origin);

/* Finds the configuration file and offers its values to setting_offer() with RANK_FILE. No file is
 * no error. Returns -1 on success, or an exit code after a message. */
int settings_read_file(const struct options *options, struct settings *settings);

/* Drops settings of TLS that belong to another one, which a source with more precedence sets:
 * tls-key to tls-cert, and tls-verify to tls-cacert. Drops tls-cacert if tls-verify = none comes
 * from a source with more precedence. To be called before the defaults are offered. */
void settings_settle_tls(struct settings *settings);
/* Fills *ret_tls with what connections with TLS need; the texts are borrowed from `settings`.
 * Returns false if all settings of TLS have their defaults. */
bool settings_tls(const struct settings *settings, redlock_tls_t *ret_tls);
/* Checks that the settings of TLS fit together. Returns -1 on success, or EXIT_CONFIG after a
 * message. */
int settings_check_tls(const struct settings *settings);
/* Returns true if the setting is set where the servers are, or by a source of more precedence. */
bool settings_weighs(const struct settings *settings, enum setting_id id);
/* Returns the first setting of TLS that is set where the servers are, or by a source of more
 * precedence; SET_COUNT if there is none. */
enum setting_id settings_first_tls(const struct settings *settings);

/* Reports an error in the value of the setting, with its source and the reason `why`. */
void setting_say(const struct settings *settings, enum setting_id id, const char *why);

/* Returns true unless the setting `renew` is 0. Reports a 0 as an error. */
bool settings_renews(const struct settings *settings);

/* Warns if the group or all users may read the regular file `fd`, which contains a password. */
void settings_warn_readable(int fd, const char *path);

/* Returns the value in effect as text, with passwords masked, or NULL if there is none. To be
 * freed. */
char *setting_shown(const struct settings *settings, enum setting_id id);

#endif
