/* SPDX-License-Identifier: MIT
 * The inside of a fake server: shared by its interface (fake_redis.c) and its thread
 * (fake_serve.c). */
#ifndef TEST_FAKE_SERVE_H
#define TEST_FAKE_SERVE_H

#include "fake_redis.h"

#include <hiredis/read.h>
#include <pthread.h>

#define FAKE_CONNECTIONS_MAX 64
#define FAKE_RULES_MAX       64

enum fake_end { FAKE_END_NONE = 0, FAKE_END_CLOSE = 1, FAKE_END_RESET = 2 };

/* One answer on its way out, with what is to happen to it. */
struct fake_chunk {
    struct fake_bytes bytes;
    size_t sent;
    bool split, gated, mute, endless;
    enum fake_end end; /* after the last byte */
};

struct fake_connection {
    int fd;
    unsigned number; /* from 1, in the order of accept */
    redisReader *reader;
    struct fake_session session;
    struct fake_chunk *chunks; /* in the order of the commands */
    size_t chunks_count, chunks_size;
    uint64_t sent;
};

struct fake_reading; /* fake_push.c */

struct fake_line {
    unsigned connection;
    char *text;
};

struct fake_redis {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards everything below */
    pthread_cond_t changed;
    char url[160], path[108], run_id[41];
    int port, port_fd;  /* -1: a unix socket */
    int listener, wake; /* descriptors; listener -1: connections are refused */
    bool stopping;
    uint64_t cut_after, sent;
    struct fake_store store;
    struct fake_rule rules[FAKE_RULES_MAX];
    size_t rules_count;
    struct fake_connection connections[FAKE_CONNECTIONS_MAX];
    size_t connections_count;
    unsigned accepted;
    unsigned acting; /* the connection whose command is being executed; 0: none */
    struct fake_reading *readings;
    size_t readings_count;
    struct fake_line *lines;
    size_t lines_count, lines_size;
};

uint64_t fake_now_ms(void);
void fake_note(struct fake_redis *fake, unsigned connection, const char *text, size_t len);
/* An empty answer behind those that wait. */
struct fake_chunk *fake_new_chunk(struct fake_connection *connection);
void fake_end_connection(struct fake_redis *fake, size_t index, enum fake_end end);
void *fake_serve(void *fake); /* the thread */

#endif
