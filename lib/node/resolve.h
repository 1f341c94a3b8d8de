/* SPDX-License-Identifier: MIT
 * Host names to addresses, never on the caller's thread: a silent name server must not delay the
 * renewal of a lock. */
#ifndef RL_NODE_RESOLVE_H
#define RL_NODE_RESOLVE_H

#include "core/types.h"

#include <sys/socket.h>

/* So many addresses of a name are kept at a time, however many the name server sends: the next
 * look-up takes the following ones. */
#define RL_ADDRESSES_MAX 8

/* In the order in which they should be tried. */
struct rl_addresses {
    unsigned count;
    struct sockaddr_storage list[RL_ADDRESSES_MAX];
    socklen_t len[RL_ADDRESSES_MAX];
};

/* 1: `host` was a number (IPv4, or IPv6 with or without a zone) and *ret is filled; 0: it is a name
 * that has to be looked up. Never blocks. */
int rl_resolve_numeric(const char *host, uint16_t port, struct rl_addresses *ret);

struct rl_lookup;

/* Starts to look `host` up on a thread of its own. The result begins with address number `first`,
 * counted from 0 and from the front again after the last one. When it is there, 8 bytes are written
 * to a duplicate of the eventfd `wake_fd`. NULL: out of memory, threads or descriptors. */
struct rl_lookup *rl_lookup_start(const char *host, uint16_t port, unsigned first, int wake_fd);

/* 0: still running; 1: done, and *ret holds at least one address; -1: failed, see the text. */
int rl_lookup_poll(const struct rl_lookup *lookup, struct rl_addresses *ret);

/* After a failure: why, for people. Borrowed until the lookup is dropped. */
const char *rl_lookup_text(const struct rl_lookup *lookup);

/* Ends the caller's interest, at any time; the thread goes on by itself until the name server has
 * answered or was given up. NULL: no-op. In a forked child, too. */
void rl_lookup_drop(struct rl_lookup *lookup);

#endif
