/* SPDX-License-Identifier: MIT
 * Finds descriptors that were opened and not closed: remember what is open, run the code, ask what
 * is new. */
#ifndef TEST_FDCHECK_H
#define TEST_FDCHECK_H

#include <stddef.h>
#include <stdint.h>

#define FDCHECK_MAX 4096

struct fdcheck {
    size_t count;                    /* of open descriptors */
    unsigned char open[FDCHECK_MAX]; /* 1 per open descriptor number */
    uint64_t device[FDCHECK_MAX];    /* what it refers to, so that a reused number is seen */
    uint64_t inode[FDCHECK_MAX];
};

void fdcheck_begin(struct fdcheck *before);
size_t fdcheck_count(void);

/* NULL if nothing is open that was not open before, otherwise a text that lists each one. Waits up
 * to deadline_ms (scaled) for a thread that is still closing. The text is overwritten by the next
 * call. */
const char *fdcheck_leaked(const struct fdcheck *before, uint64_t deadline_ms);

/* NULL if each descriptor that was opened since is close-on-exec, otherwise the list of the others.
 */
const char *fdcheck_inherited(const struct fdcheck *before);

#endif
