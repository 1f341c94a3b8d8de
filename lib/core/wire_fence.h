/* SPDX-License-Identifier: MIT
 * The fence record of a node as its server tells it. */
#ifndef RL_CORE_WIRE_FENCE_H
#define RL_CORE_WIRE_FENCE_H

#include "core/fence.h"
#include "core/wire.h"

/* A mark on a record is so long. */
#define RL_RECORD_MARK_LEN 16

/* The longest answer to RL_VERB_READ: fingerprint, run, mark, and a field for each stripe. */
#define RL_RECORD_TEXT_MAX (2048u + RL_FENCE_STRIPES * 22u)

/* Returns the word up to the next blank; `text` moves behind it. */
struct rl_arg rl_wire_next_word(struct rl_arg *text);

/* The answer to READ, taken apart. */
struct rl_record_text {
    struct rl_arg config; /* empty: the record is not in use */
    struct rl_arg mark;   /* empty: none */
    struct rl_arg fences;
};
bool rl_wire_record_parse(const struct rl_reply *reply, struct rl_record_text *ret);

/* The next "stripe:number" of a list; `at` starts at 0. false: no more, or (`*at` short of the
 * end) something else. */
bool rl_wire_record_next(struct rl_arg numbers, size_t *at, unsigned *ret_stripe,
                         uint64_t *ret_number);

#endif
