/* SPDX-License-Identifier: MIT
 * Real redis-server processes for tests and for the benchmark: N of them on free loopback ports or
 * unix sockets, in a temporary directory. They die with the process that started them.
 *
 * Failures of the harness itself (a server that does not start, an index out of range) print one
 * line with the server's log and abort, because a test cannot handle them.
 *
 * Start, signal and stop a cluster from one process and one thread: the servers die with the thread
 * that started them. In a Check program that means a checked fixture, or suite_run_nofork(). */
#ifndef TEST_CLUSTER_H
#define TEST_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "clockshim.h"
#include "network.h"

#define CLUSTER_NODES_MAX 31

struct cluster;

/* How a cluster is started. All zero: five servers with the defaults. */
struct cluster_opts {
    unsigned nodes;          /* number of servers; 0: five */
    bool unix_sockets;       /* listen on unix sockets only */
    bool tls;                /* the ports have TLS; only if cluster_tls_missing() is NULL. Also if
                              * REDLOCK_TEST_TLS is 1, unless they listen on unix sockets */
    bool clocks;             /* cluster_clock_…() may be used */
    bool network;            /* cluster_cut() may be used; only if network_missing() is NULL */
    bool keep_data;          /* append-only file: cluster_restart(…, true) finds the keys again */
    const char *host;        /* the address to listen on; NULL: 127.0.0.1; ::1 works too */
    bool lasting;            /* the harness keeps one connection to each server for its commands,
                              * from one thread only: for tests that send thousands of them */
    bool guarded;            /* URLs without fresh=1, so that clients wait max_ttl after the start
                              * of a server */
    const char *password;    /* NULL: none */
    const char *const *args; /* more arguments for each server, ended by NULL; or NULL */
};

/* Returns whether a server program is installed. If not, skip: suite_skip(CLUSTER_MISSING). */
bool cluster_available(void);
#define CLUSTER_MISSING "no redis-server, valkey-server or redis-check-rdb in PATH"

/* Returns why there can be no servers with TLS, for suite_skip(), or NULL. */
const char *cluster_tls_missing(void);

/* Starts `nodes` servers (0: five) with the default options and returns when each has replied
 * to PING. Aborts if one does not start. */
struct cluster *cluster_start(unsigned nodes);
/* Starts servers as `opts` says and returns when each has replied to PING. Aborts if one does
 * not start. */
struct cluster *cluster_start_with(const struct cluster_opts *opts);

/* Kills the servers and removes the directory; also done at exit(). NULL: no-op. */
void cluster_stop(struct cluster *cluster);

/* Returns the number of servers. */
unsigned cluster_nodes(const struct cluster *cluster);
/* Returns the temporary directory of the cluster; n0, n1, … in it belong to one server each. With
 * TLS it has server0.pem, server0.key, server1.pem, … and the certificate and key of their issuer,
 * ca.pem and ca.key. */
const char *cluster_dir(const struct cluster *cluster);
/* With TLS, the addresses say cacert=… and begin with the other scheme. */
const char *cluster_urls(const struct cluster *cluster); /* "redis://127.0.0.1:20001,redis://…" */
const char *cluster_url(const struct cluster *cluster, unsigned node);
int cluster_port(const struct cluster *cluster, unsigned node); /* 0: unix socket */
/* Return the beginning of the addresses, and the file of their issuers (NULL: no TLS), for tests
 * that write addresses themselves. */
const char *cluster_scheme(const struct cluster *cluster); /* "redis://" or "rediss://" */
const char *cluster_cacert(const struct cluster *cluster);
pid_t cluster_pid(const struct cluster *cluster, unsigned node); /* 0: not running */

/* Kills the server with SIGKILL and returns when the process is gone. */
void cluster_kill(struct cluster *cluster, unsigned node);

/* Starts the server again at the same address and returns when it replies to PING. A running server
 * is killed first. `with_data` needs keep_data; without it the server starts empty. */
void cluster_restart(struct cluster *cluster, unsigned node, bool with_data);

/* Step, speed up and reset the clock of a server, and return how far it is ahead. They need the
 * option `clocks`. A restart of the server keeps its settings. */
void cluster_clock_step(struct cluster *cluster, unsigned node, int64_t step_ms);
void cluster_clock_rate(struct cluster *cluster, unsigned node, int64_t rate_ppm);
void cluster_clock_reset(struct cluster *cluster, unsigned node);
int64_t cluster_clock_ahead_ms(struct cluster *cluster, unsigned node);

/* Sets which packets are lost between the test and a server from now on. Needs the option
 * `network`. Commands of the harness take another path. */
void cluster_cut(struct cluster *cluster, unsigned node, enum network_cut cut);

/* Stop the process with SIGSTOP (returns when it has stopped), and continue it with SIGCONT. */
void cluster_pause(struct cluster *cluster, unsigned node);
void cluster_resume(struct cluster *cluster, unsigned node);

/* Sends one command, formatted as by redisCommand() ("GET %s", key), on a connection of its own
 * unless `lasting` was chosen. Returns the reply as text: the bytes, a decimal number, "(nil)",
 * "(error) …"; arrays have one element per line. NULL: no reply within a second. The caller frees
 * the text. */
char *cluster_command(const struct cluster *cluster, unsigned node, const char *format, ...);

/* Sends one command and returns its integer reply. Any other reply aborts the test. */
int64_t cluster_integer(const struct cluster *cluster, unsigned node, const char *format, ...);

/* Sends one command and returns whether the reply is exactly `text`. */
bool cluster_replies(const struct cluster *cluster, unsigned node, const char *text,
                     const char *format, ...);

/* Connects to a server without TLS, for a test that needs a connection of its own (hiredis).
 * Returns NULL if the server cannot be reached. The caller frees it with redisFree(). */
struct redisContext *cluster_connect(const struct cluster *cluster, unsigned node);

/* Sends the same command to each running server and ignores the replies. */
void cluster_command_all(const struct cluster *cluster, const char *command);

/* Returns all keys of the server, in every database, found by SCAN: an array ended by NULL, with
 * "key" in database 0 and "db3:key" in others. Free it with cluster_keys_free(). Keys past their
 * TTL do not count. Nor does the fence record, which is never removed. */
#define CLUSTER_RECORD "redlock:fence"
char **cluster_keys(const struct cluster *cluster, unsigned node);
/* Frees the array of cluster_keys() and its texts. */
void cluster_keys_free(char **keys);
/* Returns the number of keys that cluster_keys() would return. */
size_t cluster_count_keys(const struct cluster *cluster, unsigned node);

/* Returns the number of keys on all running servers. A paused server must be resumed first. */
size_t cluster_count_all_keys(const struct cluster *cluster);

#endif
