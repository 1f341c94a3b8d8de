/* SPDX-License-Identifier: MIT
 * Resolves host names to addresses, on a thread of its own. The caller's thread never waits for the
 * name server, because that would delay the extension of locks. */
#ifndef RL_NODE_RESOLVE_H
#define RL_NODE_RESOLVE_H

#include "core/types.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* Most addresses that one look-up returns. If the name has more, the caller gets the following ones
 * by another look-up: see `first` of rl_lookup_start(). */
#define RL_ADDRESSES_MAX 8

/* An address of IPv4 or IPv6. A client has hundreds of them, so it is no struct sockaddr_storage.
 */
union rl_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Addresses of one host with its port, in the order in which they should be tried. */
struct rl_addresses {
    unsigned count;                          /* number of addresses */
    union rl_address list[RL_ADDRESSES_MAX]; /* IPv4 and IPv6 */
    socklen_t len[RL_ADDRESSES_MAX];         /* bytes of the address in `list` */
};

/* Parses an IPv4 address, or an IPv6 address with or without a zone. Returns 1 and fills `*ret`
 * with that one address and `port`; returns 0 if `host` is a name, which must be looked up. Never
 * blocks. */
int rl_resolve_numeric(const char *host, uint16_t port, struct rl_addresses *ret);

/* One look-up of a name, which runs or has ended. Owner: resolve.c. */
struct rl_lookup;

/* Starts a thread that looks up the name `host`; `port` is put into the addresses. The result
 * begins with address number `first` of the name, counted from 0, modulo the number of addresses.
 * When the result is complete, the thread writes to a duplicate of the eventfd `wake_fd`. The
 * caller drops the look-up with rl_lookup_drop(). Returns NULL if memory, threads or descriptors
 * are exhausted, or `host` is longer than 255 bytes. */
struct rl_lookup *rl_lookup_start(const char *host, uint16_t port, unsigned first, int wake_fd);

/* Returns 0 while the look-up runs; 1 when it has succeeded, with at least one address in `*ret`;
 * -1 when it has failed. */
int rl_lookup_poll(const struct rl_lookup *lookup, struct rl_addresses *ret);

/* Returns why the look-up has failed, as text for messages; "" if it has not. Valid until the
 * look-up is dropped. */
const char *rl_lookup_text(const struct rl_lookup *lookup);

/* Ends the use of the look-up by its caller, at any time. The thread continues until getaddrinfo()
 * returns; then it frees the look-up. May also be called in a forked child. NULL is ignored. */
void rl_lookup_drop(struct rl_lookup *lookup);

#endif
