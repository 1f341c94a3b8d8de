/* SPDX-License-Identifier: MIT
 * Node addresses as people write them.
 *
 *   redis://[[user]:password@][host][:port][/db]   valkey:// is the same; default localhost:6379/0
 *   unix:///path[?db=N]                            with [user]:password@ before the path, if need
 * be host   host:port   [::1]:port   /path          shorthands
 *
 * A list is separated by commas or blanks. User, password and socket path are percent-decoded; what
 * is decoded may not be a control byte, nor a blank in a user. */
#ifndef RL_API_URL_H
#define RL_API_URL_H

#include "engine/params.h"

/* Appends every address of `text` to the array *nodes of *node_count specs, or none of them.
 * 0, REDLOCK_EINVAL or REDLOCK_ENOMEM; on failure `error` says what, where and what to do, without
 * a secret. Refuses a server that is in the array already and more than RL_NODES_MAX nodes. */
int rl_url_parse_list(const struct rl_mem *mem, const char *text, struct rl_node_spec **nodes,
                      size_t *node_count, char *error, size_t error_size);

#endif
