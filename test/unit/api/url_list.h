/* SPDX-License-Identifier: MIT
 * A growing list of parsed addresses, as a configuration keeps it. */
#ifndef TEST_UNIT_URL_LIST_H
#define TEST_UNIT_URL_LIST_H

#include "api/url.h"

#include <string.h>

/* The list and the last error. */
struct list {
    struct rl_mem mem;          /* the allocator of nodes */
    struct rl_node_spec *nodes; /* the addresses; NULL: none */
    size_t count;
    char error[512]; /* text of the last error of parse() */
};

/* Returns an empty list. */
static inline struct list empty_list(void)
{
    struct list list;
    memset(&list, 0, sizeof list);
    list.mem = rl_mem_libc();
    return list;
}

/* Adds the addresses of `text` to the list. Returns 0 or an error, with its text in `error`. */
static inline int parse(struct list *list, const char *text)
{
    return rl_url_parse_list(&list->mem, text, &list->nodes, &list->count, list->error,
                             sizeof list->error);
}

/* Frees the list. */
static inline void done(struct list *list)
{
    while (list->count > 0)
        rl_node_spec_done(&list->mem, &list->nodes[--list->count]);
    rl_free(&list->mem, list->nodes);
}

#endif
