/* SPDX-License-Identifier: MIT
 * The table of causes: why a node gave no vote, or why its vote does not count, and what follows
 * from each cause. It is in cause.c and has one row for each enum redlock_cause. */
#ifndef RL_CORE_CAUSE_H
#define RL_CORE_CAUSE_H

#include <stdbool.h>

/* One row of the table: the properties of one cause. Constant. */
struct rl_cause {
    const char *name;  /* "REDLOCK_CAUSE_..." */
    const char *text;  /* for people: lower case, no full stop */
    int status;        /* error (enum redlock_error) of a call that lacks its quorum because of this
                        * cause; 0: the cause alone does not decide the error. EAUTH and EEXCLUDED:
                        * the server is reachable, but its votes cannot count until its operator or
                        * its state changes */
    bool excludes;     /* the server replies, but its votes do not count: the node is excluded by
                        * admission, or by its fence record */
    bool unanswered;   /* the request was sent and no reply came: the server may have executed it */
    bool retry_slowly; /* the node reconnects after about a second, not at once */
    bool shows_reply;  /* reports show the text of the server's error rather than `text` */
};

/* Returns the row of a cause. For a number that is not a cause, returns a row that has only a name
 * and a text. Never NULL. */
const struct rl_cause *rl_cause_of(int cause);

#endif
