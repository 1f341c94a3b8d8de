/* SPDX-License-Identifier: MIT
 * Makes a client of the library out of the settings, and exit codes out of its errors.
 */
#ifndef TOOLS_CLIENT_H
#define TOOLS_CLIENT_H

#include "redlock/redlock.h"
#include "settings.h"

/* Checks the settings and makes a configuration of them, to be freed by the caller. Returns -1 on
 * success, or an exit code after a message. */
int client_configure(const struct settings *settings, redlock_config_t **ret_config);

/* Returns the validity, in ms, of a lock with the configured TTL that is granted at once. */
uint64_t client_validity_ms(const struct settings *settings);

/* Starts the client. Returns -1 on success, or an exit code after a message. The configuration
 * stays the caller's. */
int client_start(const struct settings *settings, redlock_config_t *config, redlock_t **ret_rl);

/* Warns about settings of TLS that have no effect; and, if `count` is true, if the only
 * shard, or one of several, has one server or an even number of servers. */
void client_warn(const struct settings *settings, redlock_t *rl, bool count);

/* The interval of heartbeats of `redlock nodes`, which shows within its run whether clocks run. */
#define NODES_HEARTBEAT_MS 10
/* Waits until each node is eligible or has a cause why it is not, at most for `patience_ms`. */
void client_settle(redlock_t *rl, uint64_t patience_ms);
/* Waits for the first reply of each server, but not long for a minority that does not reply: see
 * settle.h. */
void client_meet(redlock_t *rl);
/* Returns how long, in ms, a command waits that needs a reply of every server: time to resolve a
 * name, to connect, and to try to connect once more. */
uint64_t client_timeout_ms(const struct settings *settings);

/* Loads the settings and starts a client. Returns -1 on success, or an exit code after a message;
 * then nothing is left to free. */
int client_open(const struct options *options, struct settings *ret_settings, redlock_t **ret_rl);

/* Releases what is held, sends pending undos within `budget_ms`, and frees the client. Returns
 * REDLOCK_OK if no undo is left pending. `rl` may be NULL. */
int client_close(redlock_t *rl, uint64_t budget_ms);

/* Returns why the library has refused the last asynchronous call of this thread with
 * REDLOCK_EINVAL; "" if it has refused none. Valid until the next call. */
const char *client_refusal(void);

/* Returns the label of this process in its tokens: "host/pid/start", where start is in seconds
 * since 1970. Static storage. */
const char *client_owner(void);

/* Checks the length of the name of a lock. `command` is the subcommand, for the message. Returns -1
 * on success, or EXIT_USAGE after a message. */
int client_check_name(const char *command, const char *name);
/* Checks that the names of all slots of a semaphore are short enough. `permits` is the number of
 * permits; 0: `name` is a lock. Returns -1 on success, or EXIT_USAGE after a message. */
int client_check_slots(const char *command, const char *name, unsigned permits);

/* Returns a name that begins with `stem` and that the client assigns to the shard with this index.
 * To be freed. */
char *client_name_in(redlock_t *rl, size_t shard, const char *stem);

/* Returns the name of the slot that a permit holds, or `name` if the lock is no permit. To be
 * freed. */
char *client_slot_name(const char *name, const redlock_lock_t *lock);
/* Returns the key on the servers: the prefix and client_slot_name(). To be freed. */
char *client_key(const struct settings *settings, const char *name, const redlock_lock_t *lock);

/* Returns the exit code for an error code of the library; `conflict_code` if another client
 * holds the lock. */
int exit_of_error(int error, int conflict_code);

#endif
