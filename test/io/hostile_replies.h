/* SPDX-License-Identifier: MIT
 * Replies of hostile and broken servers. */
#ifndef TEST_HOSTILE_REPLIES_H
#define TEST_HOSTILE_REPLIES_H

#include "fake_redis.h"

/* A fault to put into a fake_rule, and what the client has to report about it. */
struct hostile_reply {
    const char *name;
    enum fake_fault fault;
    const char *bytes;
    size_t len; /* 0: strlen */
    /* set of 1 << REDLOCK_CAUSE_*, of which the report must give one */
    unsigned causes;
};

/* None of these is a valid reply to any command of the library. */
#define BAD_REPLIES 35
extern const struct hostile_reply bad_replies[BAD_REPLIES];

#endif
