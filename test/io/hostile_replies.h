/* SPDX-License-Identifier: MIT
 * What hostile and broken servers say in place of an answer. */
#ifndef TEST_HOSTILE_REPLIES_H
#define TEST_HOSTILE_REPLIES_H

#include "fake_redis.h"

struct hostile_reply {
    const char *name;
    enum fake_fault fault;
    const char *bytes;
    size_t len; /* 0: strlen */
    unsigned causes;
};

/* None of these is an answer to any command of ours. */
#define BAD_REPLIES 35
extern const struct hostile_reply bad_replies[BAD_REPLIES];

#endif
