/* SPDX-License-Identifier: MIT
 * The words of locks on several keys: one script for each verb does it to all of them or to none,
 * in one step of the server. */
#ifndef RL_CORE_WIRE_MANY_H
#define RL_CORE_WIRE_MANY_H

#include "core/wire.h"

/* ACQUIRE, HEAL, EXTEND, RELEASE, SHORTEN and GET of 2 to RL_KEYS_MAX keys; GET compares each with
 * the token. `ttl_ms` is ignored by RELEASE and GET. All is borrowed as for rl_wire_command(). The
 * script is sent whole, each time (RL_FORM_EVAL): an undo that is answered with NOSCRIPT when its
 * connection ends is none. */
void rl_wire_many_command(struct rl_command *command, enum rl_verb verb, const struct rl_arg *keys,
                          unsigned count, struct rl_arg token, uint64_t ttl_ms);

/* The script of such a verb. */
const char *rl_wire_many_script(enum rl_verb verb);
/* No script is longer. */
#define RL_SCRIPT_MANY_MAX 400

/* What `reply` says to such a verb about `count` keys. A vote is exactly one well-formed reply:
 *   ACQUIRE  1 granted; -i denied: key i is there, and none was set
 *   HEAL, EXTEND  1 granted: all are ours now; 0 denied, nothing was changed
 *   GET  1 granted: all are ours; 0 denied
 *   RELEASE, SHORTEN  the number of keys that were ours: all granted, fewer denied (what was there
 * is dealt with all the same). WRONGTYPE, of whichever key, is denied. */
struct rl_answer rl_wire_many_answer(enum rl_verb verb, unsigned count,
                                     const struct rl_reply *reply);

#endif
