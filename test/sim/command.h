/* SPDX-License-Identifier: MIT
 * Functions shared by the files that execute a server's commands: command.c, multi.c and record.c.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_COMMAND_H
#define SIM_COMMAND_H

#include "server.h"

/* One command that a server executes. It exists only while sim_command() runs. */
struct sim_call {
    struct sim_world *world;
    struct sim_conn *conn; /* the command has arrived on it */
    struct sim_server *server;
    unsigned count; /* of `words` */
    const struct sim_word *words;
    struct sim_reply *reply; /* the reply to the command is appended to it */
};

/* Returns whether the word has this text. */
bool sim_is(struct sim_word word, const char *text);
/* Returns the number that the word contains; ends the program if it is not a number. */
int64_t sim_integer_of(struct sim_word word);
/* Returns the number of the key with that name. */
unsigned sim_resource_of(struct sim_word word);

/* Append a line, bytes, an integer reply or a bulk string to the reply. */
void sim_reply_add(struct sim_call *call, const char *line);
void sim_reply_add_bytes(struct sim_call *call, const char *bytes, size_t len);
void sim_reply_add_number(struct sim_call *call, int64_t number);
void sim_reply_add_text(struct sim_call *call, const char *text, size_t len);
/* Adds to the reply the outcome for a token: its key was set, or extended. Token number 0 is
 * ignored. */
void sim_reply_outcome(struct sim_call *call, uint32_t token, bool extended);

/* Returns the key of that name after removing it if it has expired. */
struct sim_key *sim_key_of(struct sim_call *call, struct sim_word word);
/* Returns whether the key is present with that token. */
bool sim_key_holds(const struct sim_key *key, struct sim_word token);
/* Notifies the connections that track the key. */
void sim_key_changed(struct sim_call *call, const struct sim_key *key);
/* Does the same for a change by the owner of the key's token, and forgets its earlier states. */
void sim_key_renewed(struct sim_call *call, const struct sim_key *key);
/* Tracks the key if the connection has requested that for the keys that its next command reads. */
void sim_key_requested(struct sim_call *call, const struct sim_key *key);
/* Sets the key to the token. */
void sim_put(struct sim_call *call, struct sim_key *key, struct sim_word token, int64_t ttl_ms);
/* Executes SET NX PX, for the command SET and for the script with fencing tokens. Returns true if
 * it has set the key. */
bool sim_set(struct sim_call *call, struct sim_word name, struct sim_word token, int64_t ttl_ms);

/* Executes the command if it is EVAL with a script over several keys (multi.c). Returns false if it
 * is not. */
bool sim_many_script(struct sim_call *call);

#endif
