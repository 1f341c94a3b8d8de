/* SPDX-License-Identifier: MIT
 * What the files share that say what a server's commands do. */
#ifndef SIM_COMMAND_H
#define SIM_COMMAND_H

#include "server.h"

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

/* Parts of a reply. */
void sim_reply_add(struct sim_call *call, const char *line);
void sim_reply_add_bytes(struct sim_call *call, const char *bytes, size_t len);
void sim_reply_add_number(struct sim_call *call, int64_t number);
void sim_reply_add_text(struct sim_call *call, const char *text, size_t len);
/* The reply that is being said tells this of a token. */
void sim_note_said(struct sim_call *call, uint32_t token, bool extended);

/* The key, after what has expired is gone. */
struct sim_key *sim_key_of(struct sim_call *call, struct sim_word word);
bool sim_key_holds(const struct sim_key *key, struct sim_word token);
void sim_key_changed(struct sim_call *call, const struct sim_key *key);
/* The same after the owner of its token has set or extended it. */
void sim_key_renewed(struct sim_call *call, const struct sim_key *key);
/* Who is told of changes hears of the next one of this key. */
void sim_key_requested(struct sim_call *call, const struct sim_key *key);
void sim_put(struct sim_call *call, struct sim_key *key, struct sim_word token, int64_t ttl_ms);
/* SET NX PX, for SET and for VOTE. true: it is set now. */
bool sim_set(struct sim_call *call, struct sim_word name, struct sim_word token, int64_t ttl_ms);

/* multi.c: runs the script if it is one over several keys; false: it is not. */
bool sim_many_script(struct sim_call *call);

#endif
