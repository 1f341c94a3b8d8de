/* SPDX-License-Identifier: MIT
 * The configuration that a client is made from. Part of redlock.h. */
#ifndef REDLOCK_CONFIG_H
#define REDLOCK_CONFIG_H

#include "redlock/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which thread does the client's network I/O, and where callbacks run. */
enum redlock_mode {
    /* Default. One thread of the library does all I/O and extends locks; another one runs callbacks
     * and the log function, if there are any. A slow callback delays callbacks, and nothing else.
     */
    REDLOCK_MODE_THREADED = 1,
    /* No thread of the library. The caller polls redlock_get_fd() and calls redlock_process(),
     * which does all I/O and runs callbacks. Blocking calls are not available. */
    REDLOCK_MODE_EMBEDDED = 2,
    /* A thread of the library does all I/O. The caller polls redlock_get_fd() and calls
     * redlock_process(), which runs callbacks. */
    REDLOCK_MODE_HYBRID = 3
};

/* Whether fence records survive a restart of their server. */
enum redlock_fence_records {
    /* Default. Records survive; the address of the server must attest it with durable=1. */
    REDLOCK_FENCE_RECORDS_DURABLE = 1,
    /* Records do not survive: that of a server that was restarted counts as lost. */
    REDLOCK_FENCE_RECORDS_VOLATILE = 2
};

/* Which servers vote, depending on what INFO says about their identity and age. */
enum redlock_admission {
    /* Default. A server that does not identify itself does not vote. */
    REDLOCK_ADMISSION_STRICT = 1,
    /* A server that does not identify itself votes. The client cannot notice that it was restarted
     * and lost its keys. */
    REDLOCK_ADMISSION_LENIENT = 2,
    /* As strict. In addition, the uptime that a server reports at the first contact does not count,
     * because it rests on its wall clock. Only the processor time that it has used since its start
     * shortens the quarantine. */
    REDLOCK_ADMISSION_PROVEN = 3
};

/* Levels of log lines. */
enum redlock_log_level {
    REDLOCK_LOG_ERROR = 1,
    REDLOCK_LOG_WARN = 2,
    REDLOCK_LOG_INFO = 3,
    REDLOCK_LOG_DEBUG = 4
};

/* Receives one log line. It must not call this library. In threaded mode it runs where callbacks
 * run (enum redlock_mode), behind at most 64 lines; if more are waiting, the next ones are lost,
 * and a line says how many. In the other modes it runs on any thread while the client is locked,
 * and should not wait. The reason of a refused call (REDLOCK_EINVAL) is logged on the calling
 * thread before the call returns, in all modes.
 *
 * level: enum redlock_log_level.
 * message: without a newline, without secrets and tokens; borrowed for the call.
 * userdata: as given to redlock_config_set_log(). */
typedef void (*redlock_log_fn)(int level, const char *message, void *userdata);

/* The caller's allocator. All three functions are required. They may be called from any thread, and
 * while the client is locked: a slow one delays everything. Not used by hiredis, by host name
 * look-ups and, with TLS, by OpenSSL. */
typedef struct redlock_allocator {
    size_t size;                                     /* sizeof(redlock_allocator_t) */
    void *(*malloc_fn)(size_t size, void *userdata); /* as malloc(): NULL if none is left */
    void *(*realloc_fn)(void *ptr, size_t size, void *userdata); /* as realloc() */
    void (*free_fn)(void *ptr, void *userdata);                  /* as free() */
    void *userdata;                                              /* passed to the functions */
} redlock_allocator_t;

/* How far the certificate of a server is verified. Since 0.2.0. */
enum redlock_tls_verify {
    /* Default. The certificate must be from an issuer that is trusted, be valid now, and have the
     * name or the IP address of the server in its subjectAltName. */
    REDLOCK_TLS_VERIFY_FULL = 0,
    /* The name is not compared: every server with a certificate of these issuers is accepted. Needs
     * `cacert`. */
    REDLOCK_TLS_VERIFY_CHAIN = 1,
    /* Nothing is verified: a machine that can answer in place of a server can grant locks in its
     * name, and read the password. For tests only. */
    REDLOCK_TLS_VERIFY_NONE = 2
};

/* What TLS connections need. Files are in PEM format. Since 0.2.0. */
typedef struct redlock_tls {
    size_t size;        /* sizeof(redlock_tls_t) */
    const char *cacert; /* file with the certificates of the issuers that are trusted, or directory
                         * of such files that `openssl rehash` was run on; NULL: those of the system
                         */
    const char *cert;   /* file with the certificate of this client, followed by its chain; NULL:
                         * none */
    const char *key;    /* file with the private key of `cert`, without a passphrase; NULL: it is in
                         * the file of `cert` */
    const char *sni;    /* name that the servers are addressed by and must have; NULL: the host in
                         * the address */
    int verify;         /* enum redlock_tls_verify */
} redlock_tls_t;

/* Creates a configuration with all defaults and without servers. The library reads no configuration
 * file and no variable of the environment; REDLOCK_SERVERS and the like are for the command. On
 * success the caller owns *ret_config and frees it with redlock_config_free().
 *
 * allocator: used for this configuration and for everything that is made from it; the struct is
 *   copied; NULL: malloc() and free() of libc. Its functions are used until all of that is freed.
 * EINVAL: ret_config is NULL, or the allocator lacks a function, has a smaller size than
 *   redlock_allocator_t, or uses a field that this version does not know.
 * ENOMEM.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_new(redlock_config_t **ret_config,
                                                     const redlock_allocator_t *allocator);

/* Frees a configuration and wipes its passwords. Clients that were made from it are not affected.
 *
 * config: may be NULL.
 * [configuration] */
REDLOCK_API void redlock_config_free(redlock_config_t *config);

/* Returns why a setter or redlock_new() refused the configuration last: what is wrong, and what to
 * do, without secrets. The text is "" if nothing was refused yet; never NULL. It is borrowed until
 * the next call on config.
 * [configuration] */
REDLOCK_API const char *redlock_config_error(const redlock_config_t *config);

/* Setters
 *
 * Each function that adds or sets something copies its strings and structs. If it returns an error,
 * it has changed nothing, and unless config is NULL redlock_config_error() says why. */

/* Adds servers. Can be called more than once. All clients of a lock need the same servers.
 *
 * Each address has one of these forms:
 *     host, host:port, [ipv6]:port
 *     redis://[[user]:password@]host[:port][/db]
 *     rediss://[[user]:password@]host[:port][/db]   with TLS
 *     /path
 *     unix://[[user]:password@]/path[?db=n]
 * valkey:// is the same as redis://, and valkeys:// as rediss://.
 *
 * Parameters follow a '?' and are joined by '&'. With them an operator attests what the client
 * cannot check:
 *     durable=1  the server loses no acknowledged write in a restart (appendfsync always)
 *     fresh=1    the server held no lock before this client started; for tests
 *     id=NAME    the name of this server in all clients (1..64 bytes), where they use different
 *                addresses for it: the preferred node and fence records depend on these names
 *
 * With rediss:// the certificate of the server is verified. Parameters of TLS take the place of
 * redlock_config_set_tls() for this server:
 *     cacert=PATH, cert=PATH, key=PATH, sni=NAME   see redlock_tls_t
 *     verify=full, chain or none                   in lower case; see enum redlock_tls_verify
 *
 * Parts that are left out are the host localhost, the port 6379 and the database 0. In a user, a
 * password, a path and an id, %HH stands for the byte with these two hex digits: %40 for '@'.
 * Addresses with TLS are refused by a library that was built without it.
 *
 * urls: addresses, separated by commas or white space; or "name=url,url; name=url,url" to add
 *   shards, as redlock_config_add_shard() does.
 * EINVAL: config or urls is NULL; an address is malformed or already there; there are more than
 *   REDLOCK_NODES_MAX; the text names shards and the configuration has servers without one, or the
 *   reverse.
 * ENOMEM.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_add_nodes(redlock_config_t *config,
                                                           const char *urls);

/* Adds a shard: one quorum group of several. Each resource belongs to one shard, by a hash of the
 * resource's name and of the names of the shards. If a resource has a hash tag, only the hash tag
 * is hashed: "{order:7}:pay" and "{order:7}:ship" are in the same shard, as one lock on several
 * resources needs it. The order of the calls does not change where resources belong; adding a shard
 * moves some of them (docs/embedding.md). All clients need the same shards; where they differ, two
 * clients can hold the same lock.
 *
 * name: of the shard, the same in all clients: 1 to 64 letters, digits, '.', '_' and '-'.
 * urls: all its servers, as for redlock_config_add_nodes().
 * EINVAL: an argument is NULL; the name is malformed or taken; an address is malformed or already
 *   there; there are more than REDLOCK_SHARDS_MAX shards or REDLOCK_NODES_MAX servers; the
 *   configuration has servers without a shard.
 * ENOMEM.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_add_shard(redlock_config_t *config,
                                                           const char *name, const char *urls);

/* Sets what connections with TLS need, for the servers whose address begins with rediss://. The
 * parameters of an address take precedence. If it has `cacert` without `verify`, its server is
 * verified in full; if it has `cert`, `key` here is not used for it; if it has verify=none,
 * `cacert` here is not. redlock_new() reads the files, and refuses the configuration if it cannot.
 * When a connection is made after files have changed, they are read anew; if they cannot be used
 * then, the log says why and those that were read before stay in use. Changes of the system's
 * issuers, or inside a file of a directory, are not noticed; but after a connection has failed
 * with REDLOCK_CAUSE_TLS, all is read anew for later ones, at most once a minute. Lists of revoked
 * certificates are not used.
 *
 * tls: copied; NULL: the defaults, which are those of a struct that is zero except for `size`.
 * EINVAL: config is NULL; `size` is less than sizeof(redlock_tls_t), or is larger and a field that
 *   this version does not know is not zero; a text is "", longer than 1023 bytes or has a
 *   control byte; `sni` is neither a host name nor an IP address, or has a port or brackets;
 *   `verify` is unknown; `key` is given without `cert`; VERIFY_CHAIN without `cacert`, or
 *   VERIFY_NONE with it; or tls is not NULL, and the library was built without TLS.
 * ENOMEM.
 * Since 0.2.0.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_tls(redlock_config_t *config,
                                                         const redlock_tls_t *tls);

/* Sets user and password for the servers whose address has none.
 *
 * user: at most 256 bytes; NULL or "": the default user of the server.
 * password: at most 4096 bytes; NULL: no login, the default; then user must be NULL or "".
 * EINVAL: config is NULL; the password is "", or missing beside a user; one of them is too long or
 *   contains control bytes, or the user a blank.
 * ENOMEM.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_auth(redlock_config_t *config,
                                                          const char *user, const char *password);

/* Sets the mode.
 *
 * mode: enum redlock_mode; default REDLOCK_MODE_THREADED.
 * EINVAL: config is NULL, or mode is no such value.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_mode(redlock_config_t *config, int mode);

/* Sets what all keys of locks begin with. All clients of a lock need the same.
 *
 * prefix: at most 256 bytes; default "".
 * EINVAL: an argument is NULL, or the prefix is too long.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_key_prefix(redlock_config_t *config,
                                                                const char *prefix);

/* Sets the key of the fence record on each server (REDLOCK_FLAG_FENCE). All clients need the same,
 * and nothing else may use it: a lock with this key is refused.
 *
 * key: 1 to 256 bytes, without the prefix and without "{#q}" at the end; default "redlock:fence".
 * EINVAL: config or key is NULL, or the key is not such a one.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_fence_key(redlock_config_t *config,
                                                               const char *key);

/* Sets whether fence records survive a restart of their server (docs/operations.md says what to
 * choose). All clients need the same.
 *
 * records: enum redlock_fence_records; default REDLOCK_FENCE_RECORDS_DURABLE.
 * EINVAL: config is NULL, or records is no such value.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_fence_records(redlock_config_t *config,
                                                                   int records);

/* Sets the owner: a label of this client that its tokens carry. Operators read it in Redis;
 * redlock_inspect() reports it.
 *
 * label: at most 128 printable ASCII characters without blanks; "": none; default "host/pid/start":
 *     those of the process that calls redlock_new(), and the second since 1970 in which it does.
 * EINVAL: an argument is NULL, or the label is too long or contains other characters.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_owner(redlock_config_t *config,
                                                           const char *label);

/* Sets the longest TTL that the client accepts, which also bounds quarantines. All clients of the
 * same servers need the same.
 *
 * max_ttl_ms: REDLOCK_TTL_MS_MIN to REDLOCK_TTL_MS_MAX milliseconds; default 30000.
 * EINVAL: config is NULL, or max_ttl_ms is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_max_ttl_ms(redlock_config_t *config,
                                                                uint64_t max_ttl_ms);

/* Sets the time limit for connecting to a server, and again for the replies to the first commands
 * (login, INFO). With TLS also that of the handshake between the two. Then the last two are four
 * times as long after each connection in a row that exceeded one of them, up to 16 seconds.
 *
 * timeout_ms: 1 to 60000 milliseconds; default 250.
 * EINVAL: config is NULL, or timeout_ms is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_connect_timeout_ms(redlock_config_t *config,
                                                                        uint32_t timeout_ms);

/* Sets the time limit for each reply of a server.
 *
 * timeout_ms: 1 to 60000 milliseconds. 0, the default: a server with requests in flight may be
 *   silent for eight smoothed round trips or two of the longest recent one, within 10 to 250
 *   milliseconds, and no reply may take more than 250.
 * EINVAL: config is NULL, or timeout_ms is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_node_timeout_ms(redlock_config_t *config,
                                                                     uint32_t timeout_ms);

/* Sets TCP keepalive: after this time without traffic the kernel sends probes on a connection, so
 * that no network in between forgets it for being idle. A connection that the other side does not
 * acknowledge is closed 15 seconds later, with or without requests under way (TCP_USER_TIMEOUT).
 *
 * idle_ms: 0 to 3600000 milliseconds, rounded up to whole seconds; default 30000; 0: no keepalive.
 * EINVAL: config is NULL, or idle_ms is out of range.
 * Since 0.2.0.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_keepalive_ms(redlock_config_t *config,
                                                                  uint32_t idle_ms);

/* Sets the bounds of the random delay between attempts. A delay is three round trips or more; if
 * that is longer than delay_ms_min, it is random up to six at least. While a server sends
 * notifications for the resource, waiters poll every 100 to 300 milliseconds only, or at this delay
 * if it is longer. Of the waiters in a line (redlock_config_set_line()), only the head polls.
 *
 * delay_ms_min: 1 to 60000 milliseconds; default 10.
 * delay_ms_max: delay_ms_min to 60000 milliseconds; default 200.
 * EINVAL: config is NULL, or a delay is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_retry_ms(redlock_config_t *config,
                                                              uint32_t delay_ms_min,
                                                              uint32_t delay_ms_max);

/* Sets by how much clock rates may differ: a part of the TTL plus a constant, both subtracted from
 * the validity. All clients of a lock need the same.
 *
 * drift_ppm: 0 to 500000 parts per million of the TTL; default 10000.
 * drift_constant_us: 0 to 1000000 microseconds; default 2000.
 * EINVAL: config is NULL, or a value is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_drift(redlock_config_t *config,
                                                           uint32_t drift_ppm,
                                                           uint32_t drift_constant_us);

/* Returns the validity of a lock that is granted in no time: the TTL less the drift of
 * redlock_config_set_drift(), less the time by which a loss is reported early (5 ms or a thousandth
 * of the TTL, whichever is more); in milliseconds, rounded down. Returns 0 if nothing is left or
 * config is NULL.
 *
 * ttl_ms: any value.
 * Since 0.2.0.
 * [configuration] */
REDLOCK_API uint64_t redlock_config_validity_ms(const redlock_config_t *config, uint64_t ttl_ms);

/* Sets whether servers are asked to send notifications when a key changes that a waiter waits for
 * (CLIENT TRACKING, over a second connection that is made when there is a waiter). With false, and
 * where a server or the rights of its user do not allow it, waiters poll
 * (redlock_config_set_retry_ms()); redlock_node_stats_t.notify_state says which. `redlock nodes
 * --acl` prints the rights.
 *
 * on: default true.
 * EINVAL: config is NULL.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_notifications(redlock_config_t *config,
                                                                   bool on);

/* Sets whether waiters of a resource stand in a line on its preferred server, which notifies the
 * one in front when it is its turn. A line is a second key beside that of the lock, `<key>{#q}`,
 * which expires 10 seconds after its last use. false is for clients whose servers or rights do not
 * allow another key to be written. Such a client still excludes all others, but has no place in the
 * order of arrival: its waiters compete with those who are notified at the same time. So do waiters
 * without notifications (redlock_config_set_notifications()), and where a server is older than
 * Redis 6.2 or the rights of its user do not allow lines. Clients with and without lines can be
 * mixed.
 *
 * enabled: default true.
 * EINVAL: config is NULL.
 * Since 0.2.0.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_line(redlock_config_t *config, bool enabled);

/* Sets how many acquisitions of one resource may wait in the queue of this client, first come,
 * first served. Further ones fail with EQUEUEFULL. Acquisitions with opts.wait_ms of 0 do not
 * queue.
 *
 * waiters: 0 to 1000000; 0: no limit, the default.
 * EINVAL: config is NULL, or waiters is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_queue_max(redlock_config_t *config,
                                                               uint32_t waiters);

/* Sets how often each server is asked for its clock, its identity and its eviction policy while
 * locks are held or being acquired. A clock step or an eviction policy is noticed after this time
 * at the latest. All clients of a lock need the same.
 *
 * interval_ms: 10 to 60000 milliseconds; default 1000.
 * EINVAL: config is NULL, or interval_ms is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_heartbeat_ms(redlock_config_t *config,
                                                                  uint32_t interval_ms);

/* Sets how far the wall clock (CLOCK_REALTIME) of this machine may be set ahead while a lock is
 * held; beyond that the lock is lost. A jump of the wall clock is the only trace that a paused
 * virtual machine leaves. The first time synchronisation after a boot can look the same: let it end
 * before locks are acquired. All clients of a lock need the same.
 *
 * slack_ms: 1 to 60000 milliseconds; default 100; 0: no limit.
 * EINVAL: config is NULL, or slack_ms is out of range.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_clock_slack_ms(redlock_config_t *config,
                                                                    uint32_t slack_ms);

/* Sets which servers vote, by what they tell about their identity and age.
 *
 * admission: enum redlock_admission; default REDLOCK_ADMISSION_STRICT.
 * EINVAL: config is NULL, or admission is no such value.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_admission(redlock_config_t *config,
                                                               int admission);

/* Sets the function that receives log lines.
 *
 * level_max: enum redlock_log_level; lines of a higher level are dropped; ignored if fn is NULL.
 * fn: NULL: no log, the default.
 * userdata: passed to fn; not copied. fn may run until the last client that was made from config is
 *   freed.
 * EINVAL: config is NULL, or level_max is no such value.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_log(redlock_config_t *config, int level_max,
                                                         redlock_log_fn fn, void *userdata);

/* Sets the function that receives all events of the client: those of its nodes, and those of its
 * locks after each lock's own function.
 *
 * fn: NULL: none, the default.
 * userdata: passed to fn; not copied. fn does not run any more once redlock_free() has returned for
 *   the last client that was made from config.
 * EINVAL: config is NULL.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_event(redlock_config_t *config,
                                                           redlock_event_fn fn, void *userdata);

#ifdef __cplusplus
}
#endif
#endif
