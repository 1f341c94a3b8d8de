/* SPDX-License-Identifier: MIT
 * The inside of a fake server: shared by its interface (fake_redis.c) and its thread
 * (fake_serve.c). */
#ifndef TEST_FAKE_SERVE_H
#define TEST_FAKE_SERVE_H

#include "fake_redis.h"
#include "fake_tls.h"

#include <hiredis/read.h>
#include <pthread.h>

#define FAKE_CONNECTIONS_MAX 64
#define FAKE_RULES_MAX       64

enum fake_end { FAKE_END_NONE = 0, FAKE_END_CLOSE = 1, FAKE_END_RESET = 2 };

/* One reply that waits to be sent, and the fault that applies to it. */
struct fake_chunk {
    struct fake_bytes bytes;
    size_t sent;
    bool split, gated, mute, endless;
    enum fake_end end; /* how the connection ends after the last byte */
};

/* One client's connection. Owned by the server's thread. */
struct fake_connection {
    int fd;
    struct fake_tls *tls; /* NULL: without TLS */
    unsigned number;      /* from 1, in the order of accept */
    redisReader *reader;
    struct fake_session session;
    struct fake_chunk *chunks; /* the replies that are not sent yet, in the order of the commands */
    size_t chunks_count, chunks_size;
    uint64_t sent;
};

struct fake_reading; /* one registered key; see fake_push.c */
struct fake_waiters;

/* One line of the log. */
struct fake_line {
    unsigned connection;
    char *text;
};

/* One fake server. fake_serve.c runs its thread; fake_redis.c changes it for the test. */
struct fake_redis {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all fields below */
    pthread_cond_t changed;
    char url[160], path[108], run_id[41];
    int port, port_fd;  /* port_fd reserves the port; -1: a unix socket */
    int listener, wake; /* descriptors; listener -1: connections are refused; wake interrupts the
                         * poll loop */
    struct fake_tls_server *tls; /* how new connections speak TLS; NULL: they do not */
    bool stopping;
    /* see fake_redis_cut_after(); bytes sent on all connections */
    uint64_t cut_after, sent;
    struct fake_store store;
    struct fake_rule rules[FAKE_RULES_MAX];
    size_t rules_count;
    char **texts; /* copies of what all rules point to, those of ended rules too; the server owns
                   * them */
    size_t texts_count;
    struct fake_connection connections[FAKE_CONNECTIONS_MAX];
    size_t connections_count;
    unsigned accepted;
    unsigned acting; /* number of the connection whose command is being executed; 0: none */
    struct fake_reading *readings;
    size_t readings_count;
    struct fake_waiters *waiters; /* the lines, of one resource each; see fake_line.c */
    size_t waiters_count;
    bool has_line_script; /* the script of the line is loaded */
    struct fake_line *lines;
    size_t lines_count, lines_size;
};

/* Returns the time for expiry of keys. */
uint64_t fake_now_ms(void);
/* Appends a line to the log. */
void fake_note(struct fake_redis *fake, unsigned connection, const char *text, size_t len);
/* Appends an empty reply to those that wait, and returns it. It is valid until the next call. */
struct fake_chunk *fake_new_chunk(struct fake_connection *connection);
/* Closes the connection with that index and removes it, as `end` says. */
void fake_end_connection(struct fake_redis *fake, size_t index, enum fake_end end);
void *fake_serve(void *fake); /* the thread's main function; `fake` is a struct fake_redis */

#endif
