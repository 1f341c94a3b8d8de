/* SPDX-License-Identifier: MIT
 * Records which connection has read which key, and sends notifications. */
#include "fake_push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANNEL "__redis__:invalidate"
#define TURNS   "redlock:q:" /* what precedes the id of a waiter */

struct fake_reading {
    struct fake_bytes key;
    unsigned by; /* number of the connection */
};

/* Returns the connection with this number, or NULL. */
static struct fake_connection *connection_of(struct fake_redis *fake, unsigned number)
{
    for (size_t i = 0; i < fake->connections_count; i++) {
        if (fake->connections[i].number == number)
            return &fake->connections[i];
    }
    return NULL;
}

/* Executes CLIENT TRACKING ON REDIRECT number OPTIN NOLOOP. */
static void track(struct fake_redis *fake, struct fake_connection *connection,
                  const struct fake_arg *argv, size_t argc, struct fake_bytes *reply)
{
    char digits[16] = "";

    if (argc != 7 || !fake_arg_is(argv[2], "ON") || !fake_arg_is(argv[3], "REDIRECT") ||
        !fake_arg_is(argv[5], "OPTIN") || !fake_arg_is(argv[6], "NOLOOP") ||
        argv[4].len >= sizeof digits) {
        fake_bytes_text(reply, "-ERR syntax error\r\n");
        return;
    }
    memcpy(digits, argv[4].data, argv[4].len);
    unsigned to = (unsigned)strtoul(digits, NULL, 10);
    if (connection_of(fake, to) == NULL) {
        fake_bytes_text(reply, "-ERR The client ID you want redirect to does not exist\r\n");
        return;
    }
    connection->session.redirect = to;
    fake_bytes_text(reply, "+OK\r\n");
}

/* Executes CLIENT CACHING YES. */
static void cache(struct fake_connection *connection, const struct fake_arg *argv, size_t argc,
                  struct fake_bytes *reply)
{
    bool ok = argc == 3 && fake_arg_is(argv[2], "YES") && connection->session.redirect != 0;

    connection->session.registers = ok;
    fake_bytes_text(reply, ok ? "+OK\r\n" : "-ERR CLIENT CACHING needs tracking with OPTIN\r\n");
}

/* Executes SUBSCRIBE to a channel of turns. */
static void subscribe_turns(struct fake_connection *connection, struct fake_arg channel,
                            struct fake_bytes *reply)
{
    snprintf(connection->session.turns, sizeof connection->session.turns, "%.*s",
             (int)(channel.len - strlen(TURNS)), channel.data + strlen(TURNS));
    fake_bytes_text(reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:2\r\n", channel.len,
                    (int)channel.len, channel.data);
}

/* Executes CLIENT ID, CLIENT TRACKING ON or SUBSCRIBE and adds the reply. Returns false for
 * other commands and for a connection that has not logged in. */
bool fake_push_execute(struct fake_redis *fake, struct fake_connection *connection,
                       const struct fake_arg *argv, size_t argc, struct fake_bytes *reply)
{
    if (fake->store.profile.password != NULL && !connection->session.authenticated)
        return false;
    if (fake_arg_is(argv[0], "SUBSCRIBE") && argc == 2 && fake_arg_is(argv[1], CHANNEL)) {
        connection->session.subscribed = true;
        fake_bytes_text(reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(CHANNEL),
                        CHANNEL);
        return true;
    }
    if (fake_arg_is(argv[0], "SUBSCRIBE") && argc == 2 && argv[1].len > strlen(TURNS) &&
        memcmp(argv[1].data, TURNS, strlen(TURNS)) == 0) {
        subscribe_turns(connection, argv[1], reply);
        return true;
    }
    if (!fake_arg_is(argv[0], "CLIENT") || argc < 2)
        return false;
    if (fake_arg_is(argv[1], "ID"))
        fake_bytes_text(reply, ":%u\r\n", connection->number);
    else if (fake_arg_is(argv[1], "TRACKING"))
        track(fake, connection, argv, argc, reply);
    else if (fake_arg_is(argv[1], "CACHING"))
        cache(connection, argv, argc, reply);
    else
        return false;
    return true;
}

/* Returns true if the reading is of this key. */
static bool same_key(const struct fake_reading *reading, struct fake_arg key)
{
    return reading->key.len == key.len && memcmp(reading->key.data, key.data, key.len) == 0;
}

/* Registers a key that was read, if the connection tracks the next key. */
void fake_push_read(struct fake_redis *fake, struct fake_connection *connection,
                    struct fake_arg key)
{
    if (!connection->session.registers)
        return;
    for (size_t i = 0; i < fake->readings_count; i++) {
        if (fake->readings[i].by == connection->number && same_key(&fake->readings[i], key))
            return;
    }
    fake->readings = realloc(fake->readings, (fake->readings_count + 1) * sizeof *fake->readings);
    if (fake->readings == NULL)
        abort();
    struct fake_reading *reading = &fake->readings[fake->readings_count++];
    *reading = (struct fake_reading){.by = connection->number};
    fake_bytes_add(&reading->key, key.data, key.len);
}

/* Registers the key that the command has read (GET or PTTL), if the connection tracks the next
 * key. Called after each command. */
void fake_push_note(struct fake_redis *fake, struct fake_connection *connection,
                    const struct fake_arg *argv, size_t argc)
{
    if (fake_arg_is(argv[0], "CLIENT"))
        return;
    if (argc == 2 && (fake_arg_is(argv[0], "PTTL") || fake_arg_is(argv[0], "GET")))
        fake_push_read(fake, connection, argv[1]);
    connection->session.registers = false;
}

/* Returns the connection that receives the notifications of connection `number`, or NULL. */
static struct fake_connection *listener_of(struct fake_redis *fake, unsigned number)
{
    const struct fake_connection *reader = connection_of(fake, number);

    return reader == NULL ? NULL : connection_of(fake, reader->session.redirect);
}

/* Returns whether a change of the key would send a notification. */
bool fake_push_is_due(struct fake_redis *fake, struct fake_arg key)
{
    for (size_t i = 0; i < fake->readings_count; i++) {
        if (same_key(&fake->readings[i], key) && listener_of(fake, fake->readings[i].by) != NULL)
            return true;
    }
    return false;
}

/* Sends a notification of the key, or of all keys, to the listener of connection `reader`. */
static void send_notification(struct fake_redis *fake, unsigned reader, struct fake_arg key)
{
    struct fake_connection *connection = listener_of(fake, reader);

    if (connection == NULL || !connection->session.subscribed || fake->store.profile.never_notifies)
        return;
    struct fake_bytes *bytes = &fake_new_chunk(connection)->bytes;
    fake_bytes_text(bytes, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n", strlen(CHANNEL), CHANNEL);
    if (key.data == NULL) {
        fake_bytes_text(bytes, "*-1\r\n");
        return;
    }
    fake_bytes_text(bytes, "*1\r\n$%zu\r\n", key.len);
    fake_bytes_add(bytes, key.data, key.len);
    fake_bytes_add(bytes, "\r\n", 2);
}

/* Removes a reading. */
static void forget(struct fake_redis *fake, size_t index)
{
    fake_bytes_free(&fake->readings[index].key);
    fake->readings[index] = fake->readings[--fake->readings_count];
}

/* Sends a notification to every connection that tracks the key. Matches fake_store.changed;
 * `fake` is a struct fake_redis. */
void fake_push_changed(void *context, struct fake_arg key)
{
    struct fake_redis *fake = context;

    for (size_t i = 0; key.data == NULL && i < fake->connections_count; i++)
        send_notification(fake, fake->connections[i].number, key);
    for (size_t i = fake->readings_count; i-- > 0;) {
        struct fake_reading *reading = &fake->readings[i];
        if (key.data != NULL && !same_key(reading, key))
            continue;
        if (key.data != NULL && reading->by != fake->acting)
            send_notification(fake, reading->by, key);
        forget(fake, i);
    }
}

/* Removes all registrations. */
void fake_push_free(struct fake_redis *fake)
{
    while (fake->readings_count > 0)
        forget(fake, 0);
    free(fake->readings);
}
