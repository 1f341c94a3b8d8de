/* SPDX-License-Identifier: MIT
 * The settings of TLS in the configuration (redlock_config_set_tls()). */
#ifndef RL_API_TLS_SETTINGS_H
#define RL_API_TLS_SETTINGS_H

#include "engine/params.h"

/* Returns NULL if the settings fit together; else what is wrong and what to do. */
const char *rl_tls_settings_flaw(const struct rl_tls_settings *settings);

/* Returns the settings of a node with TLS: what its address says, and the rest from `common`. The
 * strings are borrowed from both. */
struct rl_tls_settings rl_tls_settings_of(const struct rl_node_spec *spec,
                                          const struct rl_tls_settings *common);
/* Adds to the settings of a node with TLS what its address does not say, from `common`. Returns
 * REDLOCK_OK; or REDLOCK_ENOMEM with unchanged settings. */
int rl_tls_settings_complete(const struct rl_mem *mem, struct rl_node_spec *spec,
                             const struct rl_tls_settings *common);

#endif
