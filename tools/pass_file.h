/* SPDX-License-Identifier: MIT
 * Follows the password file while a client runs: a password that is changed in the file is passed
 * to the client, for its next connections. A thread of its own reads the file, because a file
 * system may hang.
 */
#ifndef TOOLS_PASS_FILE_H
#define TOOLS_PASS_FILE_H

#include <stdbool.h>

#include "redlock/redlock.h"
#include "settings.h"

/* Begins to follow the file, if the password comes from one. Does nothing if another client is
 * followed, or without a thread: then the password stays as it was read. Signals must be blocked,
 * or be handled by any thread. */
void pass_file_follow(const struct settings *settings, redlock_t *rl);

/* Ends that for this client, before it is freed. Does nothing for another client. */
void pass_file_leave(const redlock_t *rl);

/* Returns true if a file is followed. */
bool pass_file_is_followed(void);

#endif
