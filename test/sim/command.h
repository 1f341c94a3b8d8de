/* SPDX-License-Identifier: MIT
 * What the files share that execute a server's commands: command.c, multi.c and record.c. */
#ifndef SIM_COMMAND_H
#define SIM_COMMAND_H

#include "server.h"

/* One command that a server executes. */
struct sim_call {
    struct sim_world *world;
    struct sim_conn *conn;
    struct sim_server *server;
    unsigned count;
    const struct sim_word *words;
    struct sim_reply *answer;
};

bool sim_is(struct sim_word word, const char *text);
int64_t sim_integer_of(struct sim_word word);
unsigned sim_resource_of(struct sim_word word);

/* Add a line, bytes, an integer reply or a bulk string to the reply. */
void sim_reply_add(struct sim_call *call, const char *line);
void sim_reply_add_bytes(struct sim_call *call, const char *bytes, size_t len);
void sim_reply_add_number(struct sim_call *call, int64_t number);
void sim_reply_add_text(struct sim_call *call, const char *text, size_t len);
/* Notes that the reply says that this token's key was set or extended. */
void sim_note_said(struct sim_call *call, uint32_t token, bool extended);

/* Returns the key of that name after removing it if it has expired. */
struct sim_key *sim_key_of(struct sim_call *call, struct sim_word word);
bool sim_key_holds(const struct sim_key *key, struct sim_word token);
void sim_key_changed(struct sim_call *call, const struct sim_key *key);
/* Notifies the connections that track the key; sim_key_renewed() also removes its ghosts, for
 * changes by the owner of its token. */
void sim_key_renewed(struct sim_call *call, const struct sim_key *key);
/* Registers the key if the connection tracks what it reads, so that the next change is notified. */
void sim_key_requested(struct sim_call *call, const struct sim_key *key);
void sim_put(struct sim_call *call, struct sim_key *key, struct sim_word token, int64_t ttl_ms);
/* Executes SET NX PX, for SET and for VOTE. Returns true if the key is set now. */
bool sim_set(struct sim_call *call, struct sim_word name, struct sim_word token, int64_t ttl_ms);

/* Runs the script if it covers several keys (multi.c). Returns false if it does not. */
bool sim_many_script(struct sim_call *call);

#endif
