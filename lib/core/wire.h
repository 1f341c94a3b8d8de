/* SPDX-License-Identifier: MIT
 * Commands and replies as data: a command is an array of byte strings, a parsed reply is a small
 * struct. core/protocol.h defines which words a request has and what its reply means; sockets and
 * the parser are in lib/node. */
#ifndef RL_CORE_WIRE_H
#define RL_CORE_WIRE_H

#include "core/types.h"

/* A byte string that belongs to another object; not terminated, and it may contain any byte. */
struct rl_arg {
    const char *data; /* the first byte */
    size_t len;       /* bytes */
};
#define RL_ARGS_MAX                                                                                \
    (RL_KEYS_MAX + 14)   /* EVAL, the script, and 12 words, one of which stands for all keys       \
                          */
#define RL_NUMBERS_MAX 6 /* most numbers that one command contains */

/* One command to be sent, made by rl_protocol_format(). `args` points to memory of the caller of
 * that function and into the texts of this struct, so a command must not be copied. */
struct rl_command {
    size_t count;                          /* used elements of `args`: words of the command */
    size_t numbers_used;                   /* used elements of `numbers` */
    char numbers[RL_NUMBERS_MAX][24];      /* decimal digits of numbers, right-aligned */
    char line[RL_KEY_MAX + RL_SUFFIX_MAX]; /* LINE_*: key of the line, written by the caller */
    char slot[RL_KEY_MAX + RL_SUFFIX_MAX]; /* LINE_*, semaphore: key of its first slot, likewise */
    char line_text[RL_LINE_TEXT_MAX];      /* LINE_*: text of the waiter, written by the caller */
    struct rl_arg args[RL_ARGS_MAX];       /* the words of the command, in order */
};

/* The type of a reply in the Redis protocol. */
enum rl_reply_kind {
    RL_REPLY_STATUS = 1,  /* "+text", such as +OK */
    RL_REPLY_ERROR = 2,   /* "-text"; the first word is usually an error code */
    RL_REPLY_INTEGER = 3, /* ":number" */
    RL_REPLY_BULK = 4,    /* a byte string of a given length */
    RL_REPLY_NIL = 5,     /* no value */
    RL_REPLY_ARRAY = 6    /* several elements, see rl_reply.text */
};
/* One parsed reply. Its text is borrowed from the parser and valid until the next reply is read. */
struct rl_reply {
    enum rl_reply_kind kind; /* selects the fields below that are set */
    int64_t integer;         /* INTEGER: the value; ARRAY: the number of elements */
    const char *text; /* STATUS, ERROR, BULK: the text; ARRAY: the texts of its elements, joined by
                       * blanks. Not terminated */
    size_t len;       /* bytes of `text` */
};

/* What one reply means for the round that its request belongs to. A grant says that the server did
 * what was requested; for GET and PTTL, that the key exists (for GET of several keys: that all of
 * them have our token). A denial says that the server did not do it: because the key exists
 * (ACQUIRE, HEAL), because the key does not have our token (requests that compare the token), or
 * because it does not exist (GET, PTTL). */
enum rl_vote {
    RL_VOTE_NONE = 0,    /* no vote yet */
    RL_VOTE_GRANTED = 1, /* see above */
    RL_VOTE_DENIED = 2,  /* see above */
    RL_VOTE_FAILED = 4,  /* no vote, with a cause; the request may have been executed */
    RL_VOTE_RESEND = 5,  /* the server does not know this form of the request and has not executed
                          * it: send it again in the form of rl_result.form */
    RL_VOTE_SUSPECT = 6  /* no reply so far, and the node is suspect: another vote may follow */
};

/* A classified reply: the vote, and what else the reply says. Fields that do not apply are 0. */
struct rl_result {
    enum rl_vote vote; /* what the reply, or its absence (FAILED, SUSPECT), means */
    int cause;         /* enum redlock_cause; NONE unless FAILED or SUSPECT */
    uint8_t form;      /* RESEND: enum rl_form of the next request */
    unsigned forget;   /* RESEND: RL_FEATURE_* bits that this server has shown not to support */
    uint8_t key; /* ACQUIRE of several keys, denied: the first key that exists, counted from 1 */
    /* Replies to fenced requests; `pttl_ms` also to PTTL: */
    uint8_t record;          /* enum rl_record_state of the node's fence record */
    bool accepted;           /* ACQUIRE granted: the register now holds the proposal */
    uint64_t register_value; /* ACQUIRE granted or denied: what the register held before */
    uint64_t pttl_ms;  /* time to live of the key that exists; 0: not in the reply, or no expiry */
    struct rl_arg run; /* run id of the server to which the record is bound; empty: to none. Points
                        * into the reply */
};

/* The state of one node's fence record, as far as replies show it. */
enum rl_record_state {
    RL_RECORD_UNKNOWN = 0,   /* no reply has shown it yet */
    RL_RECORD_ADMITTED = 1,  /* in use, for our configuration */
    RL_RECORD_MISSING = 2,   /* not in use: the server is new, or has lost its record */
    RL_RECORD_FOREIGN = 3,   /* in use for another configuration */
    RL_RECORD_CORRUPT = 4,   /* the key is not a hash, or a field is not a number */
    RL_RECORD_OLD_RUN = 5,   /* bound to an earlier run of the server; later tokens may be lost */
    RL_RECORD_UNATTESTED = 6 /* records must be durable, but the server is not attested to be */
};

/* Copies `text` as printable ASCII for a message: at most size - 1 bytes, with '?' for each byte
 * that is not printable, and a NUL behind them. `size`: bytes of `ret`, not 0. */
void rl_wire_copy_printable(char *ret, size_t size, const char *text, size_t len);

/* Reads the reply to TIME and returns it in `*ret_us` as microseconds since 1970. Returns false if
 * the reply is anything else. */
bool rl_wire_time_us(const struct rl_reply *reply, uint64_t *ret_us);

/* Returns the enum redlock_cause of an error reply; `text` is without the leading '-'. The error
 * code is the first word, or, from servers before Redis 7, inside of "ERR Error running script ...:
 * CODE ...". Unknown codes are CAUSE_ERROR_REPLY. */
int rl_wire_error_cause(const char *text, size_t len);

/* Returns whether an error reply says that the server has as many clients as it accepts. The server
 * sends it without a request, and closes the connection. */
bool rl_wire_is_full(const char *text, size_t len);

/* Returns whether an error reply says that the server does not know the command. */
bool rl_wire_is_unknown(const char *text, size_t len);

/* Returns whether the first bytes of `text` are `words`, a terminated string. */
bool rl_wire_starts_with(const char *text, size_t len, const char *words);

#endif
