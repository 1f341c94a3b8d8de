/* SPDX-License-Identifier: MIT
 * The servers that are measured: their addresses, and what the benchmark does to them beside the
 * library: ask for their version, look for leftover keys, stop and continue their processes. */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVERS_MAX      31
#define SERVERS_TEXT_MAX 4096

struct server {
    char host[128];
    char port[8];
    pid_t pid;     /* 0: not known */
    size_t number; /* of its directory in the sandbox, if the pid is known */
};

struct servers {
    char text[SERVERS_TEXT_MAX]; /* the list as it was given */
    size_t count;
    struct server list[SERVERS_MAX];
};

/* Understands host:port and redis://host:port, separated by commas or blanks. No passwords, no
 * database numbers, no unix sockets: the baseline has none of them. 0, or -1 and a text in `error`.
 */
int servers_parse(struct servers *ret_servers, const char *text, char *error, size_t error_size);

/* A connected, non-blocking TCP socket with TCP_NODELAY, or -1 and a text in `error`. */
int servers_connect(const struct server *server, char *error, size_t error_size);

/* "redis 7.0.15", or "unknown". */
void servers_version(const struct server *server, char *version, size_t size);

/* How many keys on all servers begin with `prefix`, or -1 if a server could not be asked. */
long servers_count_keys(const struct servers *servers, const char *prefix);

/* Deletes the key on all servers. */
void servers_delete(const struct servers *servers, const char *key);

/* Processor time that all servers have used so far, in microseconds; 0 if one cannot be asked. */
uint64_t servers_cpu_us(const struct servers *servers);

/* Loads the script into one server and writes its hash (40 hex digits and a NUL). 0 or -1. */
int servers_load_script(const struct server *server, const char *script, char sha[41]);

/* Reads the process ids (directory/<i>/pid, counted from 1 or from 0) of the sandbox that this
 * process runs in. 0, or -1 and a text in `error`: there is none, or it does not have all of these
 * servers. */
int servers_find_pids(struct servers *servers, char *error, size_t error_size);

/* Stops (SIGSTOP) or continues the last `count` servers. */
void servers_stop(const struct servers *servers, size_t count, bool stop);

#endif
