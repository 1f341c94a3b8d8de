/* SPDX-License-Identifier: MIT
 * Proxies in front of the servers of a cluster, which forget connections as a network does: nothing
 * passes on them any more, and neither end learns of it. */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include "cluster.h"

struct proxy;

/* Starts one proxy for each server, all on one thread. Aborts if it cannot. */
struct proxy *proxy_start(const struct cluster *cluster);
/* Closes all connections and ends the thread. NULL: no-op. */
void proxy_stop(struct proxy *proxy);

/* Returns the addresses of the proxies, in the order of the servers, for a client. */
const char *proxy_urls(const struct proxy *proxy);

/* Lets nothing pass any more on the connections that exist now. New ones work. */
void proxy_forget(struct proxy *proxy);

#endif
