/* SPDX-License-Identifier: MIT
 * Real redis-server processes for tests and for the benchmark: N of them on free loopback ports (or
 * unix sockets), in a temporary directory, gone when the process that started them is gone.
 *
 * Failures of the harness itself (a server that does not come up, an index out of range) print one
 * line with the server's log and abort: a test has nothing sensible to do about them.
 *
 * Start, signal and stop a cluster from one and the same process and thread: the servers die with
 * the thread that started them. In a Check program that means a checked fixture, or
 * suite_run_nofork().
 */
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

struct cluster_opts {
    unsigned nodes;          /* 0: five */
    bool unix_sockets;       /* listen on unix sockets only */
    bool clocks;             /* cluster_clock_…() works */
    bool network;            /* cluster_cut() works; only if network_missing() is NULL */
    bool keep_data;          /* append-only file: cluster_restart(…, true) finds the keys again */
    const char *host;        /* NULL: 127.0.0.1; ::1 works too */
    bool lasting;            /* commands of the harness go over one connection to each server, from
                              * one thread only: for tests that give thousands of them */
    bool guarded;            /* URLs without fresh=1: clients wait max_ttl after the start */
    const char *password;    /* NULL: none */
    const char *const *args; /* more arguments for each server, ended by NULL; or NULL */
};

/* Is there a server program? If not, skip: suite_skip(CLUSTER_MISSING). */
bool cluster_available(void);
#define CLUSTER_MISSING "no redis-server, valkey-server or redis-check-rdb in PATH"

/* Returns when every server has answered PING. */
struct cluster *cluster_start(unsigned nodes);
struct cluster *cluster_start_with(const struct cluster_opts *opts);

/* Kills the servers and removes the directory; also done at exit(). NULL: no-op. */
void cluster_stop(struct cluster *cluster);

unsigned cluster_nodes(const struct cluster *cluster);
const char *cluster_dir(const struct cluster *cluster);
const char *cluster_urls(const struct cluster *cluster); /* "redis://127.0.0.1:20001,redis://…" */
const char *cluster_url(const struct cluster *cluster, unsigned node);
int cluster_port(const struct cluster *cluster, unsigned node);  /* 0: unix socket */
pid_t cluster_pid(const struct cluster *cluster, unsigned node); /* 0: not running */

/* kill -9, returns when the process is gone. */
void cluster_kill(struct cluster *cluster, unsigned node);

/* Starts the node again at the same address, returns when it answers PING. A running node is killed
 * first. with_data needs keep_data; without, the node comes back empty. */
void cluster_restart(struct cluster *cluster, unsigned node, bool with_data);

/* The clocks of a server, with the option clocks. They stay as they are over restarts. */
void cluster_clock_step(struct cluster *cluster, unsigned node, int64_t step_ms);
void cluster_clock_rate(struct cluster *cluster, unsigned node, int64_t rate_ppm);
void cluster_clock_reset(struct cluster *cluster, unsigned node);
int64_t cluster_clock_ahead_ms(struct cluster *cluster, unsigned node);

/* The link to a server, with the option network: what is lost on it from now on. Commands of the
 * harness do not go over it. */
void cluster_cut(struct cluster *cluster, unsigned node, enum network_cut cut);

/* SIGSTOP (returns when it has stopped) and SIGCONT. */
void cluster_pause(struct cluster *cluster, unsigned node);
void cluster_resume(struct cluster *cluster, unsigned node);

/* One command, on a connection of its own unless `lasting` was chosen, formatted as by
 * redisCommand() ("GET %s", key). The reply as text: the bytes, a decimal number, "(nil)", "(error)
 * …"; arrays one element per line. NULL: no answer within a second. To be freed by the caller. */
char *cluster_command(const struct cluster *cluster, unsigned node, const char *format, ...);

/* The same, where only an integer reply will do: anything else aborts the test. */
int64_t cluster_integer(const struct cluster *cluster, unsigned node, const char *format, ...);

/* True if the reply is exactly this text. */
bool cluster_replies(const struct cluster *cluster, unsigned node, const char *text,
                     const char *format, ...);

/* The same command on each running node; answers are not looked at. */
void cluster_command_all(const struct cluster *cluster, const char *command);

/* All keys of the node, in every database, found by SCAN: an array ended by NULL, "key" in database
 * 0 and "db3:key" in others. Free with cluster_keys_free(). Keys past their TTL do not count, nor
 * does the fence record, which is there to stay. */
#define CLUSTER_RECORD "redlock:fence"
char **cluster_keys(const struct cluster *cluster, unsigned node);
void cluster_keys_free(char **keys);
size_t cluster_count_keys(const struct cluster *cluster, unsigned node);

/* Sum over the running nodes (a paused one is not asked: resume it first). */
size_t cluster_count_all_keys(const struct cluster *cluster);

#endif
