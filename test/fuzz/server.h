/* SPDX-License-Identifier: MIT
 * The server at the other end of a fuzzed node. It takes bytes, checks that they are commands, and
 * replies to one command at a time in the way that it is given: correctly, or with an error without
 * executing it. It knows which tokens are set, each under a key of its own, and for how long. */
#ifndef TEST_FUZZ_SERVER_H
#define TEST_FUZZ_SERVER_H

#include "fuzz.h"

#define SERVER_TOKENS  256
#define SERVER_BYTES   ((size_t)2 << 20)
#define SERVER_STRIPES 4 /* number of stripes that the test uses */
#define SERVER_RUN     "0123abcd"

/* How a command is answered. Numbers without a name are other error replies. */
enum server_manner { HONESTLY = 0, UNKNOWN_SCRIPT = 3, UNKNOWN_COMMAND = 8, SERVER_MANNERS = 18 };

/* What happened with one token. */
struct server_token {
    uint64_t expires_ns; /* 0: no key with it */
    uint64_t
        banned_from; /* position in the stream after which no SET of it may begin; 0: none yet */
    unsigned made, extended, deleted; /* commands that were executed with success */
    /* Of fenced attempts: */
    unsigned votes, unknown; /* votes that were received; those of them that were refused as an
                              * unknown script or command */
    uint64_t before;         /* what the register held before the granted vote */
    uint64_t raised;         /* largest fencing token that was confirmed, + 1; 0: none */
    bool stored, gone;       /* the proposal was stored; a RAISE did not find the key */
    bool this_run;           /* the record was in use by this run of the server */
};

/* The fence record, with fencing tokens as text, as a server stores them. */
struct server_record {
    char config[64]; /* configuration for which the record holds; "": not in use */
    char mark[24];   /* the mark that a reader left; "": none */
    char numbers[SERVER_STRIPES][24];
    unsigned seeded; /* number of times that it was taken into use */
};

/* The server, and the bytes between it and the node. The program of the target sets now_ns, info
 * and the flags; server.c changes the rest. */
struct server {
    uint64_t now_ns;        /* virtual time, by which keys expire */
    const char *info;       /* reply to INFO */
    bool has_scripts;       /* the scripts of locks are loaded */
    bool has_fences;        /* the scripts of fences are loaded */
    bool is_taken;          /* another client holds all locks, so that votes are denied */
    bool knows_natives;     /* DELEX, DELIFEQ and SET IFEQ are supported */
    uint64_t received;      /* bytes, over all connections */
    size_t in_len, out_len; /* bytes in `in` and `out` */
    size_t in_done;         /* bytes of `in` that were executed */
    char in[SERVER_BYTES];  /* received on this connection; the first in_done bytes are executed */
    char out[SERVER_BYTES]; /* replies that are not delivered yet */
    struct server_token tokens[SERVER_TOKENS];
    struct server_record record;
};

/* One word of a command. It is borrowed. */
struct server_word {
    const char *at;
    size_t len;
};

#define SERVER_WORDS_MAX 16
/* One command. Its words point into server->in. */
struct server_command {
    struct server_word words[SERVER_WORDS_MAX];
    unsigned count;
    uint64_t place; /* position of its first byte in the stream */
};

/* Empties the server: no keys, no record, no bytes, scripts of locks loaded, those of fences
 * not. */
void server_reset(struct server *server);
/* Adds bytes from the node to those that wait for server_execute(). */
void server_receive(struct server *server, const char *bytes, size_t len);
/* Executes the next command and replies as `manner` says. Returns false if no complete command
 * is there. */
bool server_execute(struct server *server, enum server_manner manner);
/* Ends the connection. Of the commands that were received, `more` are still executed. */
void server_hang_up(struct server *server, unsigned more);
/* Forbids SETs of that token from here on: one that begins later in the stream ends the run as
 * an error. */
void server_ban(struct server *server, unsigned token);
/* Returns whether the key with this token exists now. */
bool server_has(const struct server *server, unsigned token);

/* ---- between server.c and server_fence.c ---- */

/* Appends a formatted text to the replies that wait to be delivered. */
void server_reply(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns whether word i exists and is exactly `text`. */
bool server_word_is(const struct server_command *command, unsigned i, const char *text);
/* Returns word i as a decimal number. */
uint64_t server_word_number(const struct server_command *command, unsigned i);
/* Returns the token that word i names: "t" and its index in server->tokens. */
struct server_token *server_word_token(struct server *server, const struct server_command *command,
                                       unsigned i);
/* What server_fence() did with a command: it is no script of fences; it was checked; it was
 * checked, executed and replied to. */
enum server_fenced { SERVER_NOT_FENCED, SERVER_LOOKED_AT, SERVER_ANSWERED };
/* Checks a script of fences. With `execute`, executes it and replies. `unknown`: the reply will say
 * that the script is unknown. */
enum server_fenced server_fence(struct server *server, const struct server_command *command,
                                bool execute, bool unknown);

#endif
