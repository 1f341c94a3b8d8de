/* SPDX-License-Identifier: MIT
 * From settings to a client of the library, and from its errors to exit codes.
 */
#ifndef TOOLS_CLIENT_H
#define TOOLS_CLIENT_H

#include "redlock/redlock.h"
#include "settings.h"

/* Checks servers and settings. -1, or an exit code whose reason was said. */
int client_configure(const struct settings *settings, redlock_config_t **ret_config);

/* Returns how long a lock with the configured TTL is valid if it is granted at once. */
uint64_t client_validity_ms(const struct settings *settings);

/* Starts the client. -1 or an exit code that was said. */
int client_start(redlock_config_t *config, redlock_t **ret_rl);

/* One server or an even count of them. */
void client_warn_count(const struct settings *settings, redlock_t *rl);

/* Gives the connections time to be made, until every server has said something. A lock needs no
 * more than a blink, CLIENT_SETTLE_MS, and not even that; but a server that is listed twice is
 * found before the first lock this way. */
#define CLIENT_SETTLE_MS 150
void client_settle(redlock_t *rl, uint64_t patience_ms);
/* What a command that wants to hear every server grants them: a name is resolved, a connection made
 * and tried once more. */
uint64_t client_timeout_ms(const struct settings *settings);

/* Settings and client at once, for commands that only ask. On a refusal nothing is left to free. */
int client_open(const struct options *options, struct settings *ret_settings, redlock_t **ret_rl);

/* Releases what is held, sends what is owed, within the budget. REDLOCK_OK: nothing is owed. */
int client_close(redlock_t *rl, uint64_t budget_ms);

/* The label of this process in tokens: "host/pid/start". Static. */
const char *client_owner(void);

/* Checks the name of a lock: -1 or EXIT_USAGE, said. */
int client_check_name(const char *command, const char *name);
/* The same of one that has so many permits (0: it is no semaphore), each of them a lock whose name
 * is longer. */
int client_check_slots(const char *command, const char *name, unsigned slots);

/* How the slot of a permit is called, or `name` if the lock is none; and its key. To be freed. */
char *client_slot_name(const char *name, const redlock_lock_t *lock);
char *client_key(const struct settings *settings, const char *name, const redlock_lock_t *lock);

int exit_of_error(int error, int conflict_code);

#endif
