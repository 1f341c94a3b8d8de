/* SPDX-License-Identifier: MIT
 * What is said to a node, word by word, and what its answer means. No socket, no parser: arguments
 * go out as an array of byte strings, a reply comes in as a small struct. */
#ifndef RL_CORE_WIRE_H
#define RL_CORE_WIRE_H

#include "core/types.h"

/* What is asked of a node. */
enum rl_verb {
    RL_VERB_ACQUIRE = 1,  /* SET key token NX PX ttl */
    RL_VERB_EXTEND = 2,   /* compare and PEXPIRE, never shortens */
    RL_VERB_RELEASE = 3,  /* compare and delete */
    RL_VERB_SHORTEN = 4,  /* compare and PEXPIRE to exactly ttl (release_after) */
    RL_VERB_HEAL = 5,     /* as ACQUIRE, but never a vote in the round that sends it */
    RL_VERB_GET = 6,      /* inspection, first half */
    RL_VERB_PTTL = 7,     /* inspection, second half */
    RL_VERB_PING = 8,     /* probe of a silent node */
    RL_VERB_RAISE = 9,    /* second round of a fence: compare the token, raise the register */
    RL_VERB_READ = 10,    /* the whole fence record of a node */
    RL_VERB_SEED = 11,    /* raises registers and takes the record into use */
    RL_VERB_TIME = 12,    /* its clock */
    RL_VERB_INFO = 13,    /* who it is, one section */
    RL_VERB_TRACK = 14,   /* tell our other connection when a registered key changes */
    RL_VERB_REGISTER = 15 /* registers the key that the next request reads */
};

/* In which words it is asked. */
enum rl_form {
    RL_FORM_PLAIN = 0,  /* ACQUIRE, HEAL, GET, PTTL, PING */
    RL_FORM_SHA = 1,    /* EVALSHA; ACQUIRE in this form carries a proposal for a fence */
    RL_FORM_EVAL = 2,   /* EVAL with the whole script, after NOSCRIPT */
    RL_FORM_DELEX = 3,  /* RELEASE: DELEX key IFEQ token */
    RL_FORM_DELIFEQ = 4 /* RELEASE: DELIFEQ key token */
};

/* Capabilities of a server, learned one by one. */
#define RL_FEATURE_DELEX   (1u << 0)
#define RL_FEATURE_DELIFEQ (1u << 1)

struct rl_arg {
    const char *data;
    size_t len;
};
#define RL_ARGS_MAX    (RL_KEYS_MAX + 5) /* of a script: its words, all keys, token and TTL */
#define RL_NUMBERS_MAX 3

struct rl_command {
    size_t count;
    size_t numbers_used;
    char numbers[RL_NUMBERS_MAX][24]; /* backing store of numbers */
    struct rl_arg args[RL_ARGS_MAX];
};

/* For the files that find words: one more argument. */
void rl_wire_say(struct rl_command *command, const char *word);
void rl_wire_say_arg(struct rl_command *command, struct rl_arg arg);
void rl_wire_say_number(struct rl_command *command, uint64_t value);

/* Fills `command` with the words of `verb` in `form`. `ttl_ms` is ignored by verbs without a TTL.
 * key and token are borrowed: the command is valid as long as they are, and must not be moved
 * (args may point into command->numbers). */
void rl_wire_command(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                     struct rl_arg key, struct rl_arg token, uint64_t ttl_ms);

/* The script of a scripted verb (EXTEND, RELEASE, SHORTEN, RAISE, READ, SEED; ACQUIRE: the vote
 * with a proposal) and its SHA1 in hex (40 bytes). */
const char *rl_wire_script(enum rl_verb verb);
const char *rl_wire_script_sha(enum rl_verb verb);

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
    RL_VOTE_AGAIN = 5, /* this form was not executed: ask once more in the form of rl_answer.form */
    RL_VOTE_SILENT = 6 /* no answer so far, and not much hope for one: another vote may follow */
};

struct rl_answer {
    enum rl_vote vote;
    int cause;         /* enum redlock_cause; NONE unless FAILED */
    enum rl_form form; /* with AGAIN: how to ask again */
    unsigned forget;   /* with AGAIN: feature bits that this server has shown not to have */
    uint8_t key;       /* ACQUIRE of several keys, denied: the first that was taken; from 1 on */
    /* Of fences: */
    uint8_t record;    /* enum rl_record_state: what the answer says of the node's record */
    bool accepted;     /* ACQUIRE granted: the proposal was stored */
    uint64_t number;   /* ACQUIRE granted or denied: what the register held before */
    uint64_t pttl_ms;  /* of the key that is there; 0: not said, or for ever */
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

/* What `reply` says to `verb` asked in `form`. A vote is exactly one well-formed reply:
 *   ACQUIRE, HEAL  +OK granted; nil denied
 *   EXTEND         1 granted; 0 denied; WRONGTYPE denied
 *   RELEASE, SHORTEN  1 granted; 0 denied (already gone); WRONGTYPE denied
 *   GET            bulk granted; nil denied; WRONGTYPE granted (some other kind of lock is there)
 *   PTTL           integer >= -1 granted; -2 denied
 *   PING           anything that is not a protocol violation: granted (+PONG, or an error reply: it
 * is alive) NOSCRIPT to RL_FORM_SHA, and "unknown command" / "syntax error" / NOPERM to a native
 * form give AGAIN. A reply of any other kind or number is FAILED with CAUSE_PROTOCOL. */
struct rl_answer rl_wire_answer(enum rl_verb verb, enum rl_form form, const struct rl_reply *reply);

/* The answer to TIME as microseconds since 1970; false: it is not one. */
bool rl_wire_time_us(const struct rl_reply *reply, uint64_t *ret_us);

/* The cause behind an error reply (text without the leading '-'). Understands the code as the first
 * word and, as servers before Redis 7 write it, wrapped in "ERR Error running script ...: CODE
 * ...". */
int rl_wire_error_cause(const char *text, size_t len);

#endif
