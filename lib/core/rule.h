/* SPDX-License-Identifier: MIT
 * Rules that the simulator switches off, one at a time, to show that it would notice. In the
 * library each is the constant true and leaves nothing behind; the build of test/sim/test_teeth.c
 * makes variables of them. test/sim/rules.txt says which rule is which. */
#ifndef RL_CORE_RULE_H
#define RL_CORE_RULE_H

#include <stdbool.h>

#ifdef RL_RULES_SWITCHABLE
#define RL_RULES(X)                                                                                \
    X(QUORUM_CONFIGURED)                                                                           \
    X(NIL_IS_NO_VOTE)                                                                              \
    X(ERROR_IS_NO_VOTE)                                                                            \
    X(FRESH_TOKEN)                                                                                 \
    X(SET_ONCE)                                                                                    \
    X(T1_FIRST)                                                                                    \
    X(FAIL_FAST)                                                                                   \
    X(EARLY_SUCCESS)                                                                               \
    X(TOMBSTONES)                                                                                  \
    X(DRIFT)                                                                                       \
    X(VALIDITY_MIN)                                                                                \
    X(RECHECK)                                                                                     \
    X(BOTH_CLOCKS)                                                                                 \
    X(WALL_WATCHED)                                                                                \
    X(UNDO)                                                                                        \
    X(UNDO_UNANSWERED)                                                                             \
    X(UNDO_SAME_CONNECTION)                                                                        \
    X(ABORT_BARE_SET)                                                                              \
    X(ABORT_TO_COME_BACK)                                                                          \
    X(UNDO_AFTER_RECONNECT)                                                                        \
    X(HEAL_COUNTS_LATER)                                                                           \
    X(LATE_SET_COUNTS_LATER)                                                                       \
    X(EXTEND_IN_TIME)                                                                              \
    X(EXTEND_LIMIT)                                                                                \
    X(FRESH_CLOCK)                                                                                 \
    X(LOST_IN_TIME)                                                                                \
    X(NODE_TIMEOUT)                                                                                \
    X(ACCEPT_LARGER_ONLY)                                                                          \
    X(START_GOES_ON)                                                                               \
    X(RECORD_IN_USE)                                                                               \
    X(FENCE_ABOVE_SEEN)                                                                            \
    X(FENCE_ACKED)                                                                                 \
    X(RESTART_GUARD)                                                                               \
    X(GUARD_WHOLE)                                                                                 \
    X(PROMOTED_GUARD)                                                                              \
    X(EVICTING_REFUSED)                                                                            \
    X(TIE_AGREED)                                                                                  \
    X(TIE_FIRST)                                                                                   \
    X(TIE_HEDGE)                                                                                   \
    X(TIE_QUICK)                                                                                   \
    X(TIE_PASSED)                                                                                  \
    X(PAUSE_ONCE)                                                                                  \
    X(YIELD)                                                                                       \
    X(POLL_TIMER)                                                                                  \
    X(MANY_ALL_FREE)                                                                               \
    X(MANY_ALL_OURS)                                                                               \
    X(REMNANTS_UNDONE)                                                                             \
    X(PERMITS_COUNTED)                                                                             \
    X(PERMITS_IN_TURN)                                                                             \
    X(WATCH)                                                                                       \
    X(ONE_CONTENDER)
#define RL_RULE_NAME(name) RL_RULE_##name,
enum rl_rule { RL_RULES(RL_RULE_NAME) RL_RULE_COUNT };
extern bool rl_rules_off[RL_RULE_COUNT];
#define RL_RULE(name) (!rl_rules_off[RL_RULE_##name])
#define RL_CHECKED    true
#else
#define RL_RULE(name) true
#endif

/* There, what is not computed anew because it cannot have changed is computed all the same, and
 * compared. */
#ifndef RL_CHECKED
#define RL_CHECKED false
#endif

#endif
