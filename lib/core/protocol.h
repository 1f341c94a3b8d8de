/* SPDX-License-Identifier: MIT
 * The protocol table: for each verb and form the words that are sent, what the replies mean as a
 * vote, and the properties of the verb. It is in protocol.c. To add a verb, add it to enum rl_verb
 * and give it one row of the table. */
#ifndef RL_CORE_PROTOCOL_H
#define RL_CORE_PROTOCOL_H

#include "core/wire.h"

/* What a request asks of a server. */
enum rl_verb {
    RL_VERB_NONE = 0,    /* no request; its row is empty */
    RL_VERB_ACQUIRE = 1, /* sets the keys, if none of them exists */
    RL_VERB_EXTEND = 2,  /* compares the token, then lengthens the TTL; never shortens it */
    RL_VERB_RELEASE = 3, /* compares the token, then deletes */
    RL_VERB_SHORTEN = 4, /* compares the token, then sets the TTL exactly (release_after) */
    RL_VERB_HEAL = 5,    /* as ACQUIRE, but never a vote in the round that sends it */
    RL_VERB_GET = 6,     /* reads the key: first half of an inspection */
    RL_VERB_PTTL = 7,    /* reads the TTL: second half of an inspection */
    RL_VERB_PING = 8,    /* probes a suspect node */
    RL_VERB_RAISE = 9,   /* compares the token, then raises the register: second round of a fence */
    RL_VERB_READ = 10,   /* reads the whole fence record; leaves a mark if it is not in use */
    RL_VERB_SEED = 11,   /* raises registers and takes the fence record into use */
    RL_VERB_TIME = 12,   /* reads the clock of the server */
    RL_VERB_INFO = 13,   /* reads one section of INFO */
    RL_VERB_TRACK = 14,  /* has the server notify our second connection of changed keys */
    RL_VERB_REGISTER = 15, /* registers the key that the next request reads */
    RL_VERB_COUNT
};

/* In which words a request is said. The numbers up to RL_FORM_MANY are indices of the table. */
enum rl_form {
    RL_FORM_PLAIN = 0,   /* an ordinary command on one key, or on none */
    RL_FORM_SHA = 1,     /* EVALSHA; of ACQUIRE: the vote that carries a proposal for a fence */
    RL_FORM_DELEX = 2,   /* DELEX key IFEQ token (Redis) */
    RL_FORM_DELIFEQ = 3, /* DELIFEQ key token (Valkey) */
    RL_FORM_MANY = 4,    /* EVAL with the script for several keys */
    RL_FORM_EVAL = 5     /* EVAL with the script of RL_FORM_SHA, after NOSCRIPT */
};
#define RL_FORM_ROWS 5

/* Commands that only some servers know; a bit for each, learned one by one. */
#define RL_FEATURE_DELEX   (1u << 0)
#define RL_FEATURE_DELIFEQ (1u << 1)

struct rl_script {
    const char *text;
    const char *sha; /* SHA1 of the text in hex; NULL: the script is always sent whole */
};
#define RL_SHA_LEN 40
/* No script of RL_FORM_MANY has more bytes. */
#define RL_SCRIPT_MULTI_MAX 400

/* What an error reply means, beside that a form is not understood. */
enum rl_error_rule {
    RL_ERROR_FAILS = 0,         /* no vote, with the cause of the error */
    RL_ERROR_TYPE_DENIES = 1,   /* as FAILS, but a key of another type is not ours: denied */
    RL_ERROR_TYPE_GRANTS = 2,   /* as FAILS, but a key of another type is a lock, too: granted */
    RL_ERROR_TYPE_CORRUPTS = 3, /* as FAILS, but a key of another type is a corrupt fence record */
    RL_ERROR_GRANTS = 4         /* any reply will do: granted */
};

/* Judges a reply that is no error; `keys` is the number of keys that the request was about. */
typedef struct rl_result rl_classifier(const struct rl_reply *reply, unsigned keys);

/* One word of a request, or what stands for it. */
enum rl_form_arg_kind {
    RL_FORM_ARG_NONE = 0,    /* the end of the words */
    RL_FORM_ARG_LITERAL = 1, /* `text` */
    RL_FORM_ARG_VALUE = 2,   /* the struct rl_arg at this offset of struct rl_arguments */
    RL_FORM_ARG_NUMBER = 3,  /* the uint64_t at this offset, as decimal digits */
    RL_FORM_ARG_KEYS = 4     /* the number of keys, and each of them */
};
struct rl_form_arg {
    const char *text;
    uint16_t len;
    uint16_t at;
    uint8_t kind; /* enum rl_form_arg_kind */
};

/* One verb in one form. All zero: there is no such form. */
#define RL_FORM_ARGS_MAX 9 /* with RL_FORM_ARG_NONE at the end */
struct rl_verb_form {
    struct rl_form_arg args[RL_FORM_ARGS_MAX]; /* behind the script, if there is one */
    const struct rl_script *script;            /* NULL: the words are the whole command */
    rl_classifier *classify;                   /* NULL: the verb informs */
    enum rl_error_rule error_rule;
};

struct rl_protocol_row {
    bool informs;        /* the reply is not a vote: node/heartbeat.c or node/tracker.c reads it */
    bool creates_key;    /* sets a key that was not there */
    bool resets_ttl;     /* sets a key, or gives it its whole TTL again */
    bool is_undo;        /* removes what was set; the only requests that are repeated on a later
                          * connection until they are answered: the token makes that safe */
    bool only_reads;     /* changes no key: its order among other requests does not matter */
    bool has_long_reply; /* the text of a reply may be as long as INFO */
    uint8_t elements;    /* of the array that is the reply; 0: it is none */
    struct rl_verb_form forms[RL_FORM_ROWS];
};
extern const struct rl_protocol_row rl_protocol[RL_VERB_COUNT];

/* The values that the words of a request stand for. A request uses those that its row names; all
 * are borrowed. */
struct rl_arguments {
    struct rl_arg key;         /* of the lock */
    const struct rl_arg *keys; /* RL_FORM_MANY: all keys of the lock */
    unsigned key_count;        /* RL_FORM_MANY: how many */
    struct rl_arg token;
    uint64_t ttl_ms;
    struct rl_arg record; /* fences: key of the fence record */
    struct rl_arg config; /* fences: fingerprint of the configuration */
    uint64_t fence;       /* ACQUIRE: the proposal; RAISE: what to raise the register to */
    uint64_t stripe;      /* ACQUIRE, RAISE: which register */
    struct rl_arg mark;   /* READ: left on a record that is not in use; SEED: must still be there */
    struct rl_arg run;    /* READ, SEED: run of the server that is asked; empty: any */
    struct rl_arg fences; /* SEED: "stripe:number ...", registers are raised to these */
    struct rl_arg text;   /* INFO: the section; TRACK: id of the second connection */
};

/* Fills `command` with the words of `verb` in `form`. The command borrows from `arguments` and from
 * itself: it is valid as long as both stay where they are. */
void rl_protocol_format(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                        const struct rl_arguments *arguments);

static inline const struct rl_verb_form *rl_protocol_form(enum rl_verb verb, enum rl_form form)
{
    return &rl_protocol[verb].forms[form == RL_FORM_EVAL ? RL_FORM_SHA : form];
}

/* Judges a reply of kind ERROR, for rl_protocol_classify(). */
struct rl_result rl_protocol_classify_error(const struct rl_verb_form *verb_form, enum rl_form form,
                                            const struct rl_reply *reply);

/* Returns what `reply` says to `verb`, which does not inform, asked in `form` about `keys` keys. A
 * vote is exactly one well-formed reply; a reply of any other kind or number is FAILED with
 * CAUSE_PROTOCOL. NOSCRIPT to RL_FORM_SHA, and "unknown command", "syntax error" or NOPERM to a
 * form that needs a feature, are AGAIN. */
static inline struct rl_result rl_protocol_classify(enum rl_verb verb, enum rl_form form,
                                                    unsigned keys, const struct rl_reply *reply)
{
    const struct rl_verb_form *verb_form = rl_protocol_form(verb, form);

    if (reply->kind == RL_REPLY_ERROR)
        return rl_protocol_classify_error(verb_form, form, reply);
    return verb_form->classify(reply, keys);
}

/* Returns the form in which a request is asked first: the script for several keys if the claim has
 * several (`many`); the script if the claim carries a proposal for a fence (`fenced`), or if there
 * is no plain form; the plain form. */
static inline enum rl_form rl_protocol_first_form(enum rl_verb verb, bool fenced, bool many)
{
    const struct rl_verb_form *forms = rl_protocol[verb].forms;

    if (many && forms[RL_FORM_MANY].script != NULL)
        return RL_FORM_MANY;
    if (forms[RL_FORM_PLAIN].args[0].kind == RL_FORM_ARG_NONE)
        return RL_FORM_SHA;
    return fenced && forms[RL_FORM_SHA].script != NULL ? RL_FORM_SHA : RL_FORM_PLAIN;
}

/* A form that a server may not understand. */
struct rl_form_row {
    unsigned feature; /* RL_FEATURE_* that the server must have for it; 0: none */
    uint8_t next;     /* enum rl_form in which the request is asked then */
};
extern const struct rl_form_row rl_forms[RL_FORM_EVAL + 1];

/* Returns the script of a verb that has one in this form. */
const struct rl_script *rl_protocol_script(enum rl_verb verb, enum rl_form form);

#endif
