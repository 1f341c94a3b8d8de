/* SPDX-License-Identifier: MIT
 * Links that can be cut: each server in a network namespace of its own, at the other end of a pair
 * of virtual interfaces. The test itself moves into a namespace, too, so that nothing of this is
 * seen by others and all of it is gone when the test ends. Needs root and ip(8).
 *
 * A cut is a wrong neighbour entry: packets leave and nobody takes them in. Neither side is told,
 * as with a broken switch; a route or an interface that is missing would be an error at once. */
#ifndef TEST_NETWORK_H
#define TEST_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#define NETWORK_LINKS_MAX 31

struct network {
    int before, home;            /* of the test, before and now: namespaces, as descriptors */
    int link[NETWORK_LINKS_MAX]; /* those of the servers */
    unsigned links;
};

enum network_cut {
    NETWORK_WHOLE = 0,
    NETWORK_CUT_THERE = 1, /* what goes to the server is lost */
    NETWORK_CUT_BACK = 2,  /* what comes from it is lost */
    NETWORK_CUT_BOTH = 3
};

/* Why there can be no namespaces here; NULL: there can. */
const char *network_missing(void);

/* Moves the calling thread (and all it will start) into a new namespace. False with errno. */
bool network_open(struct network *network, unsigned links);
/* Closes the descriptors, and moves the calling thread back. */
void network_close(struct network *network);

void network_address(unsigned link, char *ret_text, size_t size);

/* Replaces what the link was before. False if ip(8) fails. */
bool network_set(struct network *network, unsigned link, enum network_cut cut);

#endif
