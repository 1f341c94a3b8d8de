/* SPDX-License-Identifier: MIT
 * The protocol table: for each verb and form the words that are sent, what the replies mean as a
 * vote, and the properties of the verb. The table is in protocol.c. To add a verb, add it to enum
 * rl_verb and give it one row of the table. */
#ifndef RL_CORE_PROTOCOL_H
#define RL_CORE_PROTOCOL_H

#include "core/wire.h"

/* What a request asks a server to do. */
enum rl_verb {
    RL_VERB_NONE = 0,    /* no request; its row is empty */
    RL_VERB_ACQUIRE = 1, /* sets the keys to our token, if none of them exists */
    RL_VERB_EXTEND = 2,  /* if the key has our token, raises its TTL; never lowers it */
    RL_VERB_RELEASE = 3, /* if the key has our token, deletes it */
    RL_VERB_SHORTEN = 4, /* if the key has our token, sets its TTL exactly (release_after) */
    RL_VERB_HEAL = 5,   /* sets the keys of a held lock again; its grant does not count in the round
                         * that sends it */
    RL_VERB_GET = 6,    /* reads the value of the key: for an inspection or a verification */
    RL_VERB_PTTL = 7,   /* reads the remaining TTL of the key: for an inspection, or as the probe of
                         * a waiter. A grant means that the key exists, a denial that it does not */
    RL_VERB_PING = 8,   /* finds out whether a suspect node replies */
    RL_VERB_RAISE = 9,  /* if the key has our token, raises the register: second round of a fence */
    RL_VERB_READ = 10,  /* reads the whole fence record; leaves a mark if it is not in use */
    RL_VERB_SEED = 11,  /* raises registers and takes the fence record into use */
    RL_VERB_TIME = 12,  /* reads the server's clock */
    RL_VERB_INFO = 13,  /* reads one section of INFO */
    RL_VERB_TRACK = 14, /* has the server send notifications to our second connection */
    RL_VERB_REGISTER = 15, /* has the server track the key that the next request reads */
    /* Requests to the line of a resource (rl_script_line). A grant means that the key of the lock
     * exists, a denial that it does not. */
    RL_VERB_LINE_JOIN = 16,   /* joins the line at its end, or looks */
    RL_VERB_LINE_FRONT = 17,  /* joins it in front, or looks */
    RL_VERB_LINE_SERVED = 18, /* leaves it, if the key has our token; notifies the next one */
    RL_VERB_LINE_LEAVE = 19,  /* leaves it; notifies the next one */
    RL_VERB_LINE_DROP = 20,   /* removes a head that makes no request, then joins or looks */
    RL_VERB_LINE_LIST =
        21, /* reads who is in the line, for people: an inspection. Always granted */
    RL_VERB_LINE_PERMITS =
        22, /* the same of the semaphore whose first slot the key is. Always granted */
    RL_VERB_COUNT
};

/* How a request is put into words: as which command, or as which script. The numbers up to
 * RL_FORM_MANY are indices of rl_protocol_row.forms. */
enum rl_form {
    RL_FORM_PLAIN = 0, /* an ordinary command on one key, or on none */
    RL_FORM_SHA = 1, /* EVALSHA with a script for one key or a fence record. For ACQUIRE this is the
                      * fenced request, which carries a proposal for the fence */
    RL_FORM_DELEX = 2,   /* DELEX key IFEQ token (Redis) */
    RL_FORM_DELIFEQ = 3, /* DELIFEQ key token (Valkey) */
    RL_FORM_MANY = 4,    /* EVAL with the script for several keys */
    RL_FORM_EVAL = 5 /* EVAL with the script of RL_FORM_SHA, on a server that does not have it */
};
#define RL_FORM_ROWS 5 /* number of forms in the table: all but RL_FORM_EVAL */

/* Commands that only some servers support, one bit each. A node keeps the set of those that its
 * server supports. */
#define RL_FEATURE_DELEX   (1u << 0)
#define RL_FEATURE_DELIFEQ (1u << 1)

/* One Lua script. Constant; core/scripts.c has all of them. */
struct rl_script {
    const char *text; /* Lua source */
    const char *sha;  /* SHA1 of the text in hex; NULL: the text is always sent */
};
#define RL_SHA_LEN 40 /* hex digits of a SHA1 */
/* Largest length in bytes of a script for RL_FORM_MANY, which is sent with every request. */
#define RL_SCRIPT_MULTI_MAX 400

/* What an error reply means, if the error does not say that the server lacks the form. */
enum rl_error_rule {
    RL_ERROR_FAILS = 0,         /* failed, with the cause of the error */
    RL_ERROR_TYPE_DENIES = 1,   /* as FAILS, but WRONGTYPE is a denial: the key is not ours */
    RL_ERROR_TYPE_GRANTS = 2,   /* as FAILS, but WRONGTYPE is a grant: the key exists */
    RL_ERROR_TYPE_CORRUPTS = 3, /* as FAILS, but WRONGTYPE means a corrupt fence record */
    RL_ERROR_GRANTS = 4         /* granted: an error shows, too, that the server replies */
};

/* A classifier: returns what `reply`, which is not an error, means as a vote. `keys` is the number
 * of keys of the request. */
typedef struct rl_result rl_classifier(const struct rl_reply *reply, unsigned keys);

/* The kind of one word of a request. */
enum rl_form_arg_kind {
    RL_FORM_ARG_NONE = 0,    /* the end of the words */
    RL_FORM_ARG_LITERAL = 1, /* `text` */
    RL_FORM_ARG_TEXT = 2,    /* the struct rl_arg at offset `at` of struct rl_arguments */
    RL_FORM_ARG_NUMBER = 3,  /* the uint64_t at offset `at` of it, as decimal digits */
    RL_FORM_ARG_KEYS = 4     /* the number of keys, and each of them */
};
/* One word of a request: constant text, or the value that it is taken from. */
struct rl_form_arg {
    const char *text; /* LITERAL: the word */
    uint16_t len;     /* LITERAL: its bytes */
    uint16_t at;      /* TEXT, NUMBER: offset of the value in struct rl_arguments, in bytes */
    uint8_t kind;     /* enum rl_form_arg_kind */
};

/* One verb in one form. All zero: the verb does not have this form. */
#define RL_FORM_ARGS_MAX 13 /* elements: at most 12 words, and RL_FORM_ARG_NONE at the end */
struct rl_verb_form {
    struct rl_form_arg args[RL_FORM_ARGS_MAX]; /* the command, or what follows the script */
    const struct rl_script *script;            /* NULL: the words are the whole command */
    rl_classifier *classify;                   /* NULL: the reply is not a vote */
    enum rl_error_rule error_rule;             /* what an error reply means */
};

/* One row of the table: the properties of one verb, and its forms. Constant. */
struct rl_protocol_row {
    bool informs;        /* the reply is not a vote; node/heartbeat.c or node/tracker.c reads it */
    bool creates_key;    /* can set a key that did not exist */
    bool resets_ttl;     /* creates a key or sets its TTL to the full length again */
    bool is_undo;        /* removes keys by token. Only undos are repeated on a later connection
                          * until the server replies; the comparison with the token makes that safe */
    bool only_reads;     /* changes no key, so its order among other requests does not matter */
    bool has_long_reply; /* the reply may be as long as the text of INFO */
    uint8_t elements;    /* elements of the array in the reply; 0: the reply is not an array */
    struct rl_verb_form forms[RL_FORM_ROWS]; /* indexed by enum rl_form */
};
/* The table, indexed by enum rl_verb. */
extern const struct rl_protocol_row rl_protocol[RL_VERB_COUNT];

/* The values of one request. Each verb uses those that its row names. All are borrowed from the
 * caller. */
struct rl_arguments {
    struct rl_arg key;         /* key of the lock */
    const struct rl_arg *keys; /* RL_FORM_MANY: all keys of the lock */
    unsigned key_count;        /* RL_FORM_MANY: elements of `keys` */
    struct rl_arg token;       /* token of the attempt or of the held lock */
    uint64_t ttl_ms;           /* TTL to set, in milliseconds */
    struct rl_arg record;      /* fences: key of the fence record */
    struct rl_arg config;      /* fences: fingerprint of the configuration */
    uint64_t fence;     /* ACQUIRE: the proposal; RAISE: the fence to raise the register to */
    uint64_t stripe;    /* ACQUIRE, RAISE: the stripe that selects the register */
    struct rl_arg mark; /* READ: stored in a record that is not in use; SEED: must still be there */
    struct rl_arg run;  /* READ, SEED: run id of the server; empty: the record is durable */
    struct rl_arg fences; /* SEED: "stripe:number ...", the registers and their least values */
    struct rl_arg text;   /* INFO: the section; TRACK: id of the second connection */
    /* The line of a resource: */
    struct rl_arg line;        /* key of the line */
    struct rl_arg state;       /* "w": can be notified; "d": cannot */
    struct rl_arg waiter_text; /* for people: who waits, and since when */
    uint64_t waiter;           /* id of this client as a waiter */
    uint64_t beat;             /* differs in all requests of this client */
    uint64_t trip_us;          /* round trip to the server, in microseconds */
    uint64_t heads;            /* most heads of the line */
    uint64_t victim;           /* LINE_DROP: id of the head that makes no request */
    uint64_t victim_beat;      /* LINE_DROP: its beat */
};

/* Returns whether the verb is a request of a waiter to the line of a resource. */
static inline bool rl_verb_is_line(enum rl_verb verb)
{
    return verb >= RL_VERB_LINE_JOIN && verb <= RL_VERB_LINE_DROP;
}

/* Returns whether the verb is a request to a line after which this client is in the line. For a
 * head, such a request reads the key of the lock, so that the server can track it. */
static inline bool rl_verb_looks_at_line(enum rl_verb verb)
{
    return rl_verb_is_line(verb) && verb != RL_VERB_LINE_SERVED && verb != RL_VERB_LINE_LEAVE;
}

/* Fills `command` with the words of `verb` in `form`. The command points into `arguments` and into
 * itself, so it is valid until one of them is changed or moved. */
void rl_protocol_format(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                        const struct rl_arguments *arguments);

/* Returns the table entry of a verb in a form. RL_FORM_EVAL has the one of RL_FORM_SHA. */
static inline const struct rl_verb_form *rl_protocol_form(enum rl_verb verb, enum rl_form form)
{
    return &rl_protocol[verb].forms[form == RL_FORM_EVAL ? RL_FORM_SHA : form];
}

/* Returns what a reply of kind ERROR means; part of rl_protocol_classify(). */
struct rl_result rl_protocol_classify_error(const struct rl_verb_form *verb_form, enum rl_form form,
                                            const struct rl_reply *reply);

/* Returns what `reply` means as a vote on a request of `verb` in `form` about `keys` keys. The row
 * of `verb` must not have `informs`. A vote is exactly one well-formed reply; any other reply is
 * FAILED with CAUSE_PROTOCOL. NOSCRIPT for RL_FORM_SHA, and "unknown command", "syntax error" or
 * NOPERM for a form that needs a feature, are RESEND. */
static inline struct rl_result rl_protocol_classify(enum rl_verb verb, enum rl_form form,
                                                    unsigned keys, const struct rl_reply *reply)
{
    const struct rl_verb_form *verb_form = rl_protocol_form(verb, form);

    if (reply->kind == RL_REPLY_ERROR)
        return rl_protocol_classify_error(verb_form, form, reply);
    return verb_form->classify(reply, keys);
}

/* Returns the form in which a request is sent first: RL_FORM_MANY if the claim has several keys
 * (`many`) and the verb has that form; RL_FORM_SHA if the claim carries a proposal for a fence
 * (`fenced`), or if there is no plain form; else RL_FORM_PLAIN. */
static inline enum rl_form rl_protocol_first_form(enum rl_verb verb, bool fenced, bool many)
{
    const struct rl_verb_form *forms = rl_protocol[verb].forms;

    if (many && forms[RL_FORM_MANY].script != NULL)
        return RL_FORM_MANY;
    if (forms[RL_FORM_PLAIN].args[0].kind == RL_FORM_ARG_NONE)
        return RL_FORM_SHA;
    return fenced && forms[RL_FORM_SHA].script != NULL ? RL_FORM_SHA : RL_FORM_PLAIN;
}

/* What a form needs, and the form that replaces it. */
struct rl_form_row {
    unsigned feature; /* RL_FEATURE_* that the server must support; 0: none */
    uint8_t next;     /* enum rl_form of the next request if the server does not support this one */
};
/* Indexed by enum rl_form. */
extern const struct rl_form_row rl_forms[RL_FORM_EVAL + 1];

/* Returns the script of a verb in a form; there must be one. */
const struct rl_script *rl_protocol_script(enum rl_verb verb, enum rl_form form);

#endif
