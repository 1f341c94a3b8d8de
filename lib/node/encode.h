/* SPDX-License-Identifier: MIT
 * Commands as they go over the wire: arrays of bulk strings. Written here because it is on the way
 * of every lock: hiredis' formatter makes three calls of printf for each word, a third of all that
 * a client computes, and allocates anew, past the allocator that the user chose. */
#ifndef RL_NODE_ENCODE_H
#define RL_NODE_ENCODE_H

#include "core/wire.h"
#include "platform/memory.h"

#include <string.h>

/* Makes an argument of a string, which stays the caller's. */
static inline struct rl_arg rl_arg_of(const char *text)
{
    return (struct rl_arg){text, strlen(text)};
}

/* The buffer is kept for the next command. It holds a token, or a password: it is wiped when it is
 * given up. All zero is a good start. */
struct rl_encoded {
    char *bytes; /* rl_encoded_free() */
    size_t len, cap;
};

/* One command instead of what was there, or behind it. false: no memory, and all is as it was. */
bool rl_encode(const struct rl_mem *mem, struct rl_encoded *to, size_t argc,
               const struct rl_arg *args);
bool rl_encode_append(const struct rl_mem *mem, struct rl_encoded *to, size_t argc,
                      const struct rl_arg *args);

void rl_encoded_free(const struct rl_mem *mem, struct rl_encoded *encoded);

#endif
