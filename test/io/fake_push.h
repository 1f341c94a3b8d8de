/* SPDX-License-Identifier: MIT
 * The notifications of a fake server: CLIENT TRACKING with REDIRECT, OPTIN and NOLOOP. As in Redis,
 * one change of a key uses up its registration. */
#ifndef TEST_FAKE_PUSH_H
#define TEST_FAKE_PUSH_H

#include "fake_serve.h"

/* Executes CLIENT ID, CLIENT TRACKING ON or SUBSCRIBE and adds the reply. Returns false for other
 * commands and for a connection that has not logged in. */
bool fake_push_execute(struct fake_redis *fake, struct fake_connection *connection,
                       const struct fake_arg *argv, size_t argc, struct fake_bytes *reply);
/* Registers a key that a script has read, if the connection tracks the next key. */
void fake_push_read(struct fake_redis *fake, struct fake_connection *connection,
                    struct fake_arg key);
/* After each command: registers the key that it has read, if the connection tracks it. */
void fake_push_note(struct fake_redis *fake, struct fake_connection *connection,
                    const struct fake_arg *argv, size_t argc);
/* Sends a notification to every connection that tracks the key. Matches fake_store.changed; `fake`
 * is a struct fake_redis. */
void fake_push_changed(void *fake, struct fake_arg key);
/* Returns whether a change of the key would send a notification. */
bool fake_push_is_due(struct fake_redis *fake, struct fake_arg key);
void fake_push_free(struct fake_redis *fake);

#endif
