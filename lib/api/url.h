/* SPDX-License-Identifier: MIT
 * Parses node addresses:
 *
 *   redis://[[user]:password@][host][:port][/db]   valkey:// is the same; default localhost:6379/0
 *   unix://[[user]:password@]/path[?db=N]
 *   host, host:port, [::1]:port, /path             short forms
 *
 * Commas or blanks separate the entries of a list. User, password and socket path are
 * percent-decoded. They must not contain a control byte, and a user must not contain a blank. */
#ifndef RL_API_URL_H
#define RL_API_URL_H

#include "engine/params.h"

/* Appends all addresses of `text` to the array *nodes of *node_count specs, or none of them.
 * Refuses a server that is in the array already, and more than RL_NODES_MAX nodes. Returns
 * REDLOCK_OK, REDLOCK_EINVAL or REDLOCK_ENOMEM. On failure `error` says what is wrong, in which
 * address, and what to do; it shows no secret. The caller frees the array and its specs with `mem`.
 */
int rl_url_parse_list(const struct rl_mem *mem, const char *text, struct rl_node_spec **nodes,
                      size_t *node_count, char *error, size_t error_size);

#endif
