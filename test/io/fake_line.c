/* SPDX-License-Identifier: MIT
 * Keeps the lines of a fake server and sends the notifications of turns. */
#include "fake_line.h"

#include "../sim/line.h"
#include "core/scripts.h"
#include "fake_push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MS 10000 /* a line expires that long after its last use */

/* The line of one resource. */
struct fake_waiters {
    struct fake_bytes key; /* of the line */
    struct sim_line line;
    uint64_t expires_ms;
};

/* What the notifications of one call need. */
struct turns {
    struct fake_redis *fake;
    struct fake_arg key; /* of the lock */
};

/* Copies a word into `text`, of `size` bytes, cut to its size. Returns `text`. */
static const char *text_of(char *text, size_t size, struct fake_arg word)
{
    snprintf(text, size, "%.*s", (int)word.len, word.data);
    return text;
}

/* Returns a word as a number. */
static uint64_t number_of(struct fake_arg word)
{
    char text[24];

    return strtoull(text_of(text, sizeof text, word), NULL, 10);
}

/* Returns the line with this key, empty if it is a new one or has expired. */
static struct fake_waiters *find(struct fake_redis *fake, struct fake_arg key)
{
    for (size_t i = 0; i < fake->waiters_count; i++) {
        struct fake_waiters *waiters = &fake->waiters[i];
        if (waiters->key.len != key.len || memcmp(waiters->key.data, key.data, key.len) != 0)
            continue;
        if (waiters->expires_ms <= fake_now_ms())
            waiters->line.count = 0;
        return waiters;
    }
    fake->waiters = realloc(fake->waiters, (fake->waiters_count + 1) * sizeof *fake->waiters);
    if (fake->waiters == NULL)
        abort();
    struct fake_waiters *waiters = &fake->waiters[fake->waiters_count++];
    memset(waiters, 0, sizeof *waiters);
    fake_bytes_add(&waiters->key, key.data, key.len);
    return waiters;
}

/* Sends the notification of a turn to the connection that listens for this waiter. Returns whether
 * there is one. `ctx` is a struct turns. */
static bool notify(void *ctx, const char *id)
{
    struct turns *turns = ctx;
    bool found = false;

    for (size_t i = 0; i < turns->fake->connections_count; i++) {
        struct fake_connection *connection = &turns->fake->connections[i];
        if (strcmp(connection->session.turns, id) != 0)
            continue;
        found = true;
        if (turns->fake->store.profile.never_notifies)
            continue;
        struct fake_bytes *bytes = &fake_new_chunk(connection)->bytes;
        fake_bytes_text(bytes, "*3\r\n$7\r\nmessage\r\n$%zu\r\nredlock:q:%s\r\n$%zu\r\n",
                        strlen(id) + 10, id, turns->key.len);
        fake_bytes_add(bytes, turns->key.data, turns->key.len);
        fake_bytes_add(bytes, "\r\n", 2);
    }
    return found;
}

/* Executes the script: the words are EVAL or EVALSHA, the script, 2, both keys and the arguments.
 */
static void execute(struct fake_redis *fake, struct fake_connection *connection,
                    const struct fake_arg *argv, size_t argc, struct fake_bytes *reply)
{
    char id[SIM_LINE_ID_MAX], text[SIM_LINE_TEXT_MAX], victim[SIM_LINE_ID_MAX], answer[160];
    char key[1024], token[512], value[512];
    uint64_t left_ms = 0;
    struct fake_waiters *waiters = find(fake, argv[3]);
    const struct sim_line_request request = {
        .what = argv[5].data[0],
        .id = text_of(id, sizeof id, argv[6]),
        .state = argv[7].data[0],
        .beat = number_of(argv[8]),
        .trip_us = number_of(argv[9]),
        .text = text_of(text, sizeof text, argv[10]),
        .victim = text_of(victim, sizeof victim, argv[11]),
        .victim_beat = argc > 13 ? number_of(argv[13]) : 0,
        .heads = (unsigned)number_of(argv[12]),
    };
    bool exists = fake_store_look(&fake->store, fake_now_ms(), text_of(key, sizeof key, argv[4]),
                                  value, sizeof value, &left_ms);
    struct turns turns = {fake, argv[4]};
    const struct sim_line_server server = {
        .has_token = exists && strcmp(value, text_of(token, sizeof token, argv[11])) == 0,
        .pttl_ms = !exists                 ? -2
                   : left_ms == UINT64_MAX ? -1
                                           : (int64_t)left_ms,
        .notify = notify,
        .ctx = &turns,
    };

    if (sim_line_execute(&waiters->line, &request, &server, answer, sizeof answer))
        fake_push_read(fake, connection, argv[4]);
    waiters->expires_ms = fake_now_ms() + KEEP_MS;
    fake_bytes_text(reply, "$%zu\r\n%s\r\n", strlen(answer), answer);
}

/* Executes EVAL or EVALSHA of the script of the line and adds the reply. Returns false for other
 * commands, for a connection that has not logged in, and if the server keeps no lines. */
bool fake_line_execute(struct fake_redis *fake, struct fake_connection *connection,
                       const struct fake_arg *argv, size_t argc, struct fake_bytes *reply)
{
    const struct fake_profile *profile = &fake->store.profile;
    bool by_sha = fake_arg_is(argv[0], "EVALSHA");

    if ((!by_sha && !fake_arg_is(argv[0], "EVAL")) || argc < 12 || profile->loading ||
        !profile->keeps_lines ||
        (profile->password != NULL && !connection->session.authenticated) ||
        !fake_arg_is(argv[1], by_sha ? rl_script_line.sha : rl_script_line.text))
        return false;
    if (by_sha && !fake->has_line_script) {
        fake_bytes_text(reply, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return true;
    }
    fake->has_line_script = true;
    execute(fake, connection, argv, argc, reply);
    return true;
}

/* Returns the number of waiters in all lines. */
size_t fake_line_count(const struct fake_redis *fake)
{
    size_t count = 0;

    for (size_t i = 0; i < fake->waiters_count; i++)
        count += fake->waiters[i].line.count;
    return count;
}

/* Frees all lines. */
void fake_line_free(struct fake_redis *fake)
{
    for (size_t i = 0; i < fake->waiters_count; i++)
        fake_bytes_free(&fake->waiters[i].key);
    free(fake->waiters);
}
