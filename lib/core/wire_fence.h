/* SPDX-License-Identifier: MIT
 * The words of fences: votes that carry a proposal, the second round, and the fence record of a
 * node. */
#ifndef RL_CORE_WIRE_FENCE_H
#define RL_CORE_WIRE_FENCE_H

#include "core/fence.h"
#include "core/wire.h"

/* The scripts and their SHA1s, for rl_wire_script(). */
const char *rl_wire_fence_script(enum rl_verb verb);
const char *rl_wire_fence_sha(enum rl_verb verb);

/* A mark on a record is so long. */
#define RL_RECORD_MARK_LEN 16

/* The longest answer to RL_VERB_READ: fingerprint, run, mark, and a field for each stripe. */
#define RL_RECORD_TEXT_MAX (2048u + RL_FENCE_STRIPES * 22u)

/* What a fenced request says beside its key, token and TTL. */
struct rl_fence_words {
    struct rl_arg record; /* key of the fence record */
    struct rl_arg config; /* fingerprint */
    unsigned stripe;
    uint64_t number; /* ACQUIRE: the proposal; RAISE: what to raise to */
};

/* ACQUIRE and RAISE as scripts. All arguments are borrowed as for rl_wire_command(). */
void rl_wire_vote_command(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                          struct rl_arg key, struct rl_arg token, uint64_t ttl_ms,
                          const struct rl_fence_words *words);

/* What READ and SEED say. */
struct rl_record_words {
    struct rl_arg record; /* key of the fence record */
    struct rl_arg config; /* fingerprint */
    struct rl_arg mark;   /* READ: left on a record that is not in use; SEED: must be there still */
    struct rl_arg run;    /* READ, SEED: of the server that answers */
    struct rl_arg numbers; /* SEED: "stripe:number ...", raised to these */
};
void rl_wire_record_command(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                            const struct rl_record_words *words);

/* What `reply` says to ACQUIRE in a scripted form, to RAISE, READ or SEED. */
struct rl_answer rl_wire_fence_answer(enum rl_verb verb, const struct rl_reply *reply);

/* The answer to READ, taken apart. */
struct rl_record_text {
    struct rl_arg config; /* empty: the record is not in use */
    struct rl_arg mark;   /* empty: none */
    struct rl_arg numbers;
};
bool rl_wire_record_parse(const struct rl_reply *reply, struct rl_record_text *ret);

/* The next "stripe:number" of a list; `at` starts at 0. false: no more, or (`*at` short of the
 * end) something else. */
bool rl_wire_record_next(struct rl_arg numbers, size_t *at, unsigned *ret_stripe,
                         uint64_t *ret_number);

#endif
