/* SPDX-License-Identifier: MIT
 * Commands and replies as the core sees them. No socket, no parser: a command goes out as an array
 * of byte strings, a reply comes in as a small struct. core/protocol.h says which words a request
 * has and what its reply means. */
#ifndef RL_CORE_WIRE_H
#define RL_CORE_WIRE_H

#include "core/types.h"

struct rl_arg {
    const char *data;
    size_t len;
};
#define RL_ARGS_MAX                                                                                \
    (RL_KEYS_MAX + 10) /* EVAL, the script, and 8 words, one of which is all keys                  \
                        */
#define RL_NUMBERS_MAX 3

struct rl_command {
    size_t count;
    size_t numbers_used;
    char numbers[RL_NUMBERS_MAX][24]; /* backing store of numbers */
    struct rl_arg args[RL_ARGS_MAX];
};

enum rl_reply_kind {
    RL_REPLY_STATUS = 1,
    RL_REPLY_ERROR = 2,
    RL_REPLY_INTEGER = 3,
    RL_REPLY_BULK = 4,
    RL_REPLY_NIL = 5,
    RL_REPLY_ARRAY = 6
};
struct rl_reply {
    enum rl_reply_kind kind;
    int64_t integer;  /* INTEGER; ARRAY: its elements */
    const char *text; /* STATUS, ERROR, BULK; ARRAY: its texts, joined by blanks; not terminated */
    size_t len;
};

enum rl_vote {
    RL_VOTE_NONE = 0,
    RL_VOTE_GRANTED = 1,
    RL_VOTE_DENIED = 2,
    RL_VOTE_FAILED = 4,
    RL_VOTE_RESEND =
        5, /* this form was not executed: ask once more in the form of rl_result.form */
    RL_VOTE_SUSPECT = 6 /* no answer so far, and not much hope for one: another vote may follow */
};

struct rl_result {
    enum rl_vote vote;
    int cause;       /* enum redlock_cause; NONE unless FAILED */
    uint8_t form;    /* enum rl_form; with AGAIN: how to ask again */
    unsigned forget; /* with AGAIN: feature bits that this server has shown not to have */
    uint8_t key;     /* ACQUIRE of several keys, denied: the first that was taken; from 1 on */
    /* Of fences: */
    uint8_t record;          /* enum rl_record_state: what the answer says of the node's record */
    bool accepted;           /* ACQUIRE granted: the proposal was stored */
    uint64_t register_value; /* ACQUIRE granted or denied: what the register held before */
    uint64_t pttl_ms;        /* of the key that is there; 0: not said, or for ever */
    struct rl_arg run; /* which run of the server the record belongs to; points into the reply */
};

/* What an answer says of the fence record of its node. */
enum rl_record_state {
    RL_RECORD_UNKNOWN = 0,
    RL_RECORD_ADMITTED = 1,  /* in use, for our configuration */
    RL_RECORD_MISSING = 2,   /* not in use: new, or forgotten */
    RL_RECORD_FOREIGN = 3,   /* in use for another configuration */
    RL_RECORD_CORRUPT = 4,   /* holds what is not a number, or not a record */
    RL_RECORD_OLD_RUN = 5,   /* in use by an earlier run of the server, which may have known more */
    RL_RECORD_UNATTESTED = 6 /* nobody says that it survives a restart, though it should */
};

/* The answer to TIME as microseconds since 1970; false: it is not one. */
bool rl_wire_time_us(const struct rl_reply *reply, uint64_t *ret_us);

/* The cause behind an error reply (text without the leading '-'). Understands the code as the first
 * word and, as servers before Redis 7 write it, wrapped in "ERR Error running script ...: CODE
 * ...". */
int rl_wire_error_cause(const char *text, size_t len);

bool rl_wire_starts_with(const char *text, size_t len, const char *words);

#endif
