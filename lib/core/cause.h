/* SPDX-License-Identifier: MIT
 * The table of causes: why a node gave no vote, or why its vote does not count, and what follows
 * from each cause. It is in cause.c, one row for each enum redlock_cause. */
#ifndef RL_CORE_CAUSE_H
#define RL_CORE_CAUSE_H

#include <stdbool.h>

struct rl_cause {
    const char *name; /* "REDLOCK_CAUSE_..." */
    const char *text; /* for people: lower case, no full stop */
    int status;       /* error (enum redlock_error) of a call that lacks its quorum for this cause;
                       * 0: the cause alone does not decide which. EAUTH and EEXCLUDED: the server
                       * is reached, and unfit until something changes there */
    bool is_bar;     /* the server answers, but its votes do not count (admission, fence records) */
    bool unanswered; /* the request was sent, and no answer came: it may have been executed */
    bool retry_slowly; /* the next connection is tried after about a second, not at once */
    bool own_words;    /* the server's text says more than the text of the cause */
};

/* Returns the row of a cause; for a number that is none a row with nothing but a name and a text.
 * Never NULL. */
const struct rl_cause *rl_cause_of(int cause);

#endif
