/* SPDX-License-Identifier: MIT
 * The script of the line, as a function on a struct: the modelled servers execute it, and
 * test_line.c compares it with the script on a real server.
 *
 * The line of a resource are its waiters in order of arrival; rl_script_line (core/scripts.c)
 * explains it and the requests. */
#ifndef SIM_LINE_H
#define SIM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_LINE_MAX      300 /* waiters */
#define SIM_LINE_ID_MAX   24  /* bytes of an id, with its end */
#define SIM_LINE_TEXT_MAX 40  /* bytes of the text for people, with its end */
/* Bytes of the value of a line of SIM_LINE_MAX waiters, with its end. */
#define SIM_LINE_VALUE_MAX (16 + SIM_LINE_MAX * (SIM_LINE_ID_MAX + SIM_LINE_TEXT_MAX + 32))

/* One waiter, as in the value of the key. */
struct sim_line_waiter {
    char id[SIM_LINE_ID_MAX];
    char state;    /* 'w' waits, 'h' is a head, 'd' cannot be notified */
    uint64_t beat; /* of its last request */
    uint64_t trip_us;
    char text[SIM_LINE_TEXT_MAX];
};

/* The line of one resource on one server. */
struct sim_line {
    unsigned count;
    struct sim_line_waiter waiters[SIM_LINE_MAX];
};

/* One request: the arguments of the script. All texts are borrowed. */
struct sim_line_request {
    char what; /* 'J', 'F', 'G', 'L' or 'D' */
    const char *id;
    char state; /* 'w' or 'd' */
    uint64_t beat;
    uint64_t trip_us;
    const char *text;
    const char *victim;   /* D: id */
    uint64_t victim_beat; /* D */
    unsigned heads;
};

/* What the server knows of the lock, and how it notifies. */
struct sim_line_server {
    bool has_token;  /* the value of the lock's key is the token of the request */
    int64_t pttl_ms; /* what PTTL replies about the lock's key */
    /* Sends a notification to the waiter with that id; returns whether it listens. */
    bool (*notify)(void *ctx, const char *id);
    void *ctx;
};

/* Executes the request. Writes the reply to `ret`, of `size` bytes. Returns whether the script has
 * read the lock's key with PTTL, so that the server tracks it if the client has requested that. */
bool sim_line_execute(struct sim_line *line, const struct sim_line_request *request,
                      const struct sim_line_server *server, char *ret, size_t size);

/* Writes the value of the key of the line to `ret`, of `size` bytes; "" for an empty line, which
 * has no key. */
void sim_line_value(const struct sim_line *line, char *ret, size_t size);

#endif
