/* SPDX-License-Identifier: MIT
 * The settings of TLS in the configuration (redlock_config_set_tls()). */
#ifndef RL_API_TLS_SETTINGS_H
#define RL_API_TLS_SETTINGS_H

#include "engine/params.h"

/* Returns NULL if the settings fit together; else what is wrong and what to do. */
const char *rl_tls_settings_flaw(const struct rl_tls_settings *settings);

#endif
