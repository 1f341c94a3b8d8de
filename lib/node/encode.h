/* SPDX-License-Identifier: MIT
 * Encodes commands for the wire, as arrays of bulk strings. The formatter of hiredis is not used:
 * it is slow, and does not use the allocator that the caller has configured. */
#ifndef RL_NODE_ENCODE_H
#define RL_NODE_ENCODE_H

#include "core/wire.h"
#include "platform/memory.h"

#include <string.h>

/* Returns the terminated string as an argument of a command. The string is borrowed. */
static inline struct rl_arg rl_arg_of(const char *text)
{
    return (struct rl_arg){text, strlen(text)};
}

/* A buffer for encoded commands, reused for one command after another. All zero: empty. Only
 * encode.c changes it. It may hold tokens and passwords, so it is wiped before it is freed. */
struct rl_encoded {
    char *bytes; /* owned; NULL: no buffer yet */
    size_t len;  /* bytes of the encoded commands */
    size_t cap;  /* size of `bytes` */
};

/* Encodes one command of the `argc` words `args`, in place of what the buffer holds. Returns false
 * without memory; the buffer is unchanged then. */
bool rl_encode(const struct rl_mem *mem, struct rl_encoded *to, size_t argc,
               const struct rl_arg *args);
/* Encodes one command of the `argc` words `args` after what the buffer holds. Returns false without
 * memory; the buffer is unchanged then. */
bool rl_encode_append(const struct rl_mem *mem, struct rl_encoded *to, size_t argc,
                      const struct rl_arg *args);

/* Wipes and frees the buffer, and leaves it empty. */
void rl_encoded_free(const struct rl_mem *mem, struct rl_encoded *encoded);

#endif
