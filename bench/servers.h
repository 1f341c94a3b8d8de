/* SPDX-License-Identifier: MIT
 * The measured servers: their addresses, and functions besides the measurement, which read their
 * versions, count leftover keys, and stop and continue their processes. */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVERS_MAX      31   /* servers of a list */
#define SERVERS_TEXT_MAX 4096 /* bytes of a list's text, with the NUL */

/* One server. */
struct server {
    char host[128];     /* name or address, without brackets */
    char port[8];       /* decimal */
    char tls_host[128]; /* where it listens for TLS; valid if there is a list with TLS */
    char tls_port[8];
    char cacert[256]; /* file with the authority of its certificate; empty: the system's ones */
    pid_t pid;        /* 0: unknown */
    size_t number;    /* of its directory in the sandbox; valid if the pid is known */
};

/* The servers of a list, in its order. */
struct servers {
    char text[SERVERS_TEXT_MAX];     /* the list as it was given */
    char tls_text[SERVERS_TEXT_MAX]; /* the list with TLS as it was given; empty: none */
    bool tls;                        /* the measured connections use TLS */
    size_t count;                    /* of list[] */
    struct server list[SERVERS_MAX];
};

/* Parses a list of host:port and redis://host:port, separated by commas or blanks. Rejects
 * passwords, database numbers and unix sockets, which the baseline does not support. Returns 0, or
 * -1 and a text in `error`. */
int servers_parse(struct servers *ret_servers, const char *text, char *error, size_t error_size);
/* Adds a list of the same servers in the same order, as rediss://host:port?cacert=FILE. The
 * requests of the benchmark besides the measurement do not use it. Returns 0, or -1 and a text in
 * `error`. */
int servers_add_tls(struct servers *servers, const char *text, char *error, size_t error_size);
/* Returns the list of URLs for the measured connections. */
const char *servers_measured(const struct servers *servers);

/* Returns a connected, non-blocking TCP socket with TCP_NODELAY, or -1 and a text in `error`.
 * `tls`: to the port for TLS; the caller begins TLS on the socket. */
int servers_connect(const struct server *server, bool tls, char *error, size_t error_size);

/* Writes the name and version of the server, like "redis 7.0.15", or "unknown". */
void servers_version(const struct server *server, char *version, size_t size);

/* Counts the keys that begin with `prefix` on all servers, without those of lines. -1: a server
 * does not reply. */
long servers_count_keys(const struct servers *servers, const char *prefix);

/* Deletes the key on all servers that reply. */
void servers_delete(const struct servers *servers, const char *key);

/* Returns the processor time of all servers in microseconds. 0: a server does not reply. */
uint64_t servers_cpu_us(const struct servers *servers);

/* Loads the script into one server and writes its hash, 40 hex digits and a NUL. 0 or -1. */
int servers_load_script(const struct server *server, const char *script, char sha[41]);

/* Reads the process ids of the servers from the sandbox around this process
 * ($REDLOCK_SANDBOX_DIR/<i>/pid, i from 1 or from 0). Returns 0, or -1 and a text in `error` if
 * there is no sandbox, or if it does not have all of these servers. */
int servers_find_pids(struct servers *servers, char *error, size_t error_size);

/* Stops (SIGSTOP) or continues (SIGCONT) the last `count` servers, whose process ids must be known.
 * While servers are stopped, signals that end this process continue them first. */
void servers_stop(const struct servers *servers, size_t count, bool stop);

#endif
