/* SPDX-License-Identifier: MIT
 * Finds descriptors that were opened and not closed: fdcheck_begin() records which are open, and
 * later calls list those that are new. */
#ifndef TEST_FDCHECK_H
#define TEST_FDCHECK_H

#include <stddef.h>
#include <stdint.h>

#define FDCHECK_MAX 4096

/* The descriptors that were open at fdcheck_begin(). Only fdcheck.c changes the fields. */
struct fdcheck {
    size_t count;                    /* number of open descriptors */
    unsigned char open[FDCHECK_MAX]; /* 1 for each number that is open */
    uint64_t device[FDCHECK_MAX];    /* with inode: the file it refers to, so that a reused number
                                      * is noticed */
    uint64_t inode[FDCHECK_MAX];
};

/* Records the descriptors that are open now. */
void fdcheck_begin(struct fdcheck *before);
/* Returns the number of open descriptors. */
size_t fdcheck_count(void);

/* Returns NULL if no descriptor is open that was not open before, otherwise a text that lists each
 * one. Waits up to `deadline_ms` (scaled) for a thread that is still closing. The next call
 * overwrites the text. */
const char *fdcheck_leaked(const struct fdcheck *before, uint64_t deadline_ms);

/* Returns NULL if each descriptor that was opened since is close-on-exec, otherwise a list of the
 * others. The next call overwrites the text. */
const char *fdcheck_inherited(const struct fdcheck *before);

#endif
