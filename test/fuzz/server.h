/* SPDX-License-Identifier: MIT
 * The server at the other end of a fuzzed node: takes bytes, checks that they are commands, and
 * answers one command at a time, as told: honestly, or with an error that executes nothing. It
 * knows which tokens are set, each under a key of its own, and for how long. */
#ifndef TEST_FUZZ_SERVER_H
#define TEST_FUZZ_SERVER_H

#include "fuzz.h"

#define SERVER_TOKENS 256
#define SERVER_BYTES  ((size_t)2 << 20)

enum server_manner { HONESTLY = 0, SERVER_MANNERS = 13 };

struct server_token {
    uint64_t expires_ns;  /* 0: not there */
    uint64_t banned_from; /* place in the stream: no SET may begin behind it; 0: none yet */
    unsigned sets;        /* SETs that were received */
    unsigned made, extended, deleted; /* executed with success */
};

struct server {
    uint64_t now_ns;
    const char *info;   /* answer to INFO */
    bool has_scripts;   /* loaded */
    bool knows_natives; /* DELEX, DELIFEQ, SET IFEQ */
    uint64_t received;  /* bytes, over all connections */
    size_t in_len, in_done, out_len;
    char in[SERVER_BYTES];  /* received on this connection; in_done of them are executed */
    char out[SERVER_BYTES]; /* replies that were not delivered yet */
    struct server_token tokens[SERVER_TOKENS];
};

void server_reset(struct server *server);
void server_receive(struct server *server, const char *bytes, size_t len);
/* Executes the next command, if all of it is there. */
bool server_execute(struct server *server, enum server_manner manner);
/* The connection is over: of what was received, `more` commands are still executed. */
void server_hang_up(struct server *server, unsigned more);
/* From here on no SET of that token may be sent any more. */
void server_ban(struct server *server, unsigned token);
bool server_has(const struct server *server, unsigned token);

#endif
