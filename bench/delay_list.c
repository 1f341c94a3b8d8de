/* SPDX-License-Identifier: MIT
 * Rewrites a list of server URLs so that it leads through the proxy. The rest of each
 * URL after host:port is kept. */
#include "delay_list.h"

#include <stdio.h>
#include <string.h>

/* Writes list->text from the list of servers and the proxy's ports. Returns false if it is too
 * long. */
static bool rewrite(struct delay_list *list, const struct servers *servers)
{
    char items[SERVERS_TEXT_MAX], *rest = NULL;
    size_t len = 0, index = 0;
    strcpy(items, servers_measured(servers));
    for (char *item = strtok_r(items, ", \t\n", &rest); item != NULL;
         item = strtok_r(NULL, ", \t\n", &rest)) {
        const char *start = strstr(item, "://");
        start = start == NULL ? item : start + 3;
        const char *tail = start + strcspn(start, "/?");
        int put = snprintf(list->text + len, sizeof list->text - len, "%s%s://127.0.0.1:%u%s",
                           len == 0 ? "" : ",", servers->tls ? "rediss" : "redis",
                           list->nodes[index++].local_port, tail);
        if (put < 0 || (size_t)put >= sizeof list->text - len)
            return false;
        len += (size_t)put;
    }
    return true;
}

/* Opens a proxy for all servers, with the delays and jitters of two lists of times, and writes the
 * proxy's URLs to list->text. Returns NULL and a text in `error` on failure. */
struct delay *delay_list_open(struct delay_list *list, const struct servers *servers,
                              const char *delays, const char *jitters, uint64_t seed, char *error,
                              size_t error_size)
{
    uint64_t delay_us[DELAY_NODES_MAX], jitter_us[DELAY_NODES_MAX];
    if (!delay_parse_times(delays, servers->count, delay_us) ||
        !delay_parse_times(jitters, servers->count, jitter_us)) {
        snprintf(error, error_size,
                 "'%s', '%s': expected a time like 5ms, or one for each of %zu servers, by comma",
                 delays, jitters, servers->count);
        return NULL;
    }
    for (size_t i = 0; i < servers->count; i++) {
        const struct server *server = &servers->list[i];
        list->nodes[i] = (struct delay_node){.host = servers->tls ? server->tls_host : server->host,
                                             .port = servers->tls ? server->tls_port : server->port,
                                             .delay_us = delay_us[i],
                                             .jitter_us = jitter_us[i]};
    }
    struct delay *delay = delay_open(list->nodes, servers->count, seed, error, error_size);
    if (delay != NULL && !rewrite(list, servers)) {
        snprintf(error, error_size, "the list of servers is too long");
        delay_close(delay);
        return NULL;
    }
    return delay;
}
