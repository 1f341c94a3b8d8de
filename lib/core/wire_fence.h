/* SPDX-License-Identifier: MIT
 * Parses the text in which a server returns its fence record. */
#ifndef RL_CORE_WIRE_FENCE_H
#define RL_CORE_WIRE_FENCE_H

#include "core/fence.h"
#include "core/wire.h"

/* Bytes of a mark: the random text that a client stores in a record that it wants to take into use.
 */
#define RL_RECORD_MARK_LEN 16

/* Largest length in bytes of a reply to RL_VERB_READ: fingerprint, run id, mark, and an element for
 * each stripe. */
#define RL_RECORD_TEXT_MAX (2048u + RL_FENCE_STRIPES * 22u)

/* Returns the word up to the next blank, and removes the word and the blank from `text`. Without a
 * blank, returns the whole text. */
struct rl_arg rl_wire_next_word(struct rl_arg *text);

/* The parts of a reply to READ; they point into the reply. */
struct rl_record_text {
    struct rl_arg config; /* fingerprint, then the run id of a volatile record; empty: the record is
                           * not in use */
    struct rl_arg mark;   /* empty: the record has no mark */
    struct rl_arg fences; /* "stripe:number ...": the registers, see rl_wire_record_next() */
};
/* Divides the text of a reply to READ into its parts. Returns false if it does not have them. */
bool rl_wire_record_parse(const struct rl_reply *reply, struct rl_record_text *ret);

/* Reads the next element "stripe:number" of `numbers` and moves `*at`, which starts at 0, after it.
 * Returns false at the end, and if the next element is malformed; then `*at` is smaller than
 * numbers.len. */
bool rl_wire_record_next(struct rl_arg numbers, size_t *at, unsigned *ret_stripe,
                         uint64_t *ret_number);

#endif
