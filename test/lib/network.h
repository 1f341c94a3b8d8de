/* SPDX-License-Identifier: MIT
 * Links that can be cut: each server runs in a network namespace of its own, at the other end of a
 * pair of virtual interfaces. The test itself moves into a namespace as well, so that other
 * processes see nothing of the links, and the kernel removes them when the test ends. Needs root
 * and ip(8).
 *
 * A cut is a wrong neighbour entry: packets leave and no interface accepts them. Neither side gets
 * an error, as with a broken switch. A missing route or interface would be an error at once. */
#ifndef TEST_NETWORK_H
#define TEST_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#define NETWORK_LINKS_MAX 31

/* The namespaces of one test. Only network.c changes the fields. */
struct network {
    int before, home;            /* descriptors of the test's own namespaces: the one before
                                  * network_open() and the present one */
    int link[NETWORK_LINKS_MAX]; /* descriptors of the servers' namespaces */
    unsigned links;
};

/* Which packets of a link are lost. */
enum network_cut {
    NETWORK_WHOLE = 0,
    NETWORK_CUT_THERE = 1, /* those to the server */
    NETWORK_CUT_BACK = 2,  /* those from the server */
    NETWORK_CUT_BOTH = 3
};

/* Returns why namespaces cannot be made here, or NULL if they can. */
const char *network_missing(void);

/* Moves the calling thread (and all threads and processes that it starts) into a new namespace with
 * `links` links. Returns false with errno. */
bool network_open(struct network *network, unsigned links);
/* Closes the descriptors and moves the calling thread back. */
void network_close(struct network *network);

/* Writes the address of the server at the end of that link. */
void network_address(unsigned link, char *ret_text, size_t size);

/* Sets which packets of a link are lost; replaces the previous setting. Returns false if ip(8)
 * fails. */
bool network_set(struct network *network, unsigned link, enum network_cut cut);

#endif
