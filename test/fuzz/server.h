/* SPDX-License-Identifier: MIT
 * The server at the other end of a fuzzed node: takes bytes, checks that they are commands, and
 * answers one command at a time, as told: honestly, or with an error that executes nothing. It
 * knows which tokens are set, each under a key of its own, and for how long. */
#ifndef TEST_FUZZ_SERVER_H
#define TEST_FUZZ_SERVER_H

#include "fuzz.h"

#define SERVER_TOKENS  256
#define SERVER_BYTES   ((size_t)2 << 20)
#define SERVER_STRIPES 4 /* that the test uses */
#define SERVER_RUN     "0123abcd"

enum server_manner { HONESTLY = 0, UNKNOWN_SCRIPT = 3, UNKNOWN_COMMAND = 8, SERVER_MANNERS = 18 };

struct server_token {
    uint64_t expires_ns;  /* 0: not there */
    uint64_t banned_from; /* place in the stream: no SET may begin behind it; 0: none yet */
    unsigned sets;        /* SETs that were received */
    unsigned made, extended, deleted; /* executed with success */
    /* Fenced: */
    unsigned votes,
        unknown;       /* that were received; of those, refused as an unknown script or command */
    uint64_t before;   /* what the register held before the vote that was granted */
    uint64_t raised;   /* largest number that was acknowledged; + 1, so that 0 is none */
    bool stored, gone; /* the proposal was stored; a RAISE did not find the key */
    bool this_run;     /* the record was in use by this run of the server */
};

/* The fence record: numbers as text, as a server keeps them. */
struct server_record {
    char config[64], mark[24];
    char numbers[SERVER_STRIPES][24];
    unsigned seeded; /* how often it was taken into use */
};

struct server {
    uint64_t now_ns;
    const char *info;   /* answer to INFO */
    bool has_scripts;   /* loaded */
    bool has_fences;    /* those of fences */
    bool is_taken;      /* somebody else holds all locks: votes are denied */
    bool knows_natives; /* DELEX, DELIFEQ, SET IFEQ */
    uint64_t received;  /* bytes, over all connections */
    size_t in_len, in_done, out_len;
    char in[SERVER_BYTES];  /* received on this connection; in_done of them are executed */
    char out[SERVER_BYTES]; /* replies that were not delivered yet */
    struct server_token tokens[SERVER_TOKENS];
    struct server_record record;
};

struct server_word {
    const char *at;
    size_t len;
};

#define SERVER_WORDS_MAX 16
struct server_command {
    struct server_word words[SERVER_WORDS_MAX];
    unsigned count;
    uint64_t place; /* of its first byte in the stream */
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

/* ---- between server.c and server_fence.c ---- */

void server_reply(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool server_word_is(const struct server_command *command, unsigned i, const char *text);
uint64_t server_word_number(const struct server_command *command, unsigned i);
/* Word i as a token: "t" and its number. */
struct server_token *server_word_token(struct server *server, const struct server_command *command,
                                       unsigned i);
/* Looks at a script of fences. If told to, executes and answers it; `unknown`: it will be told that
 * the script is not known. */
enum server_fenced { SERVER_NOT_FENCED, SERVER_LOOKED_AT, SERVER_ANSWERED };
enum server_fenced server_fence(struct server *server, const struct server_command *command,
                                bool execute, bool unknown);

#endif
