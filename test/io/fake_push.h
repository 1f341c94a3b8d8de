/* SPDX-License-Identifier: MIT
 * What a fake server tells unasked: CLIENT TRACKING with REDIRECT, OPTIN and NOLOOP. Registrations
 * are used up by one change. */
#ifndef TEST_FAKE_PUSH_H
#define TEST_FAKE_PUSH_H

#include "fake_serve.h"

/* CLIENT ID, CLIENT TRACKING ON and SUBSCRIBE; false for other commands, and for who has not logged
 * in. */
bool fake_push_execute(struct fake_redis *fake, struct fake_connection *connection,
                       const struct fake_arg *argv, size_t argc, struct fake_bytes *reply);
/* After a command: what it has read is remembered. */
void fake_push_note(struct fake_redis *fake, struct fake_connection *connection,
                    const struct fake_arg *argv, size_t argc);
/* The store's `changed`. */
void fake_push_changed(void *fake, struct fake_arg key);
/* Somebody is told when it changes. */
bool fake_push_is_due(struct fake_redis *fake, struct fake_arg key);
void fake_push_free(struct fake_redis *fake);

#endif
