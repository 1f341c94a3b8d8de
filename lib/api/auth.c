/* SPDX-License-Identifier: MIT
 * Changes the login of a client that runs. */
#include "api/client.h"
#include "api/config.h"
#include "api/shards.h"

REDLOCK_API int redlock_set_auth(redlock_t *rl, const char *user, const char *password)
{
    if (rl == NULL)
        return REDLOCK_EINVAL;
    int error = rl_client_enter(rl);
    if (error != REDLOCK_OK)
        return error;
    error = redlock_config_set_auth(rl->config, user, password);
    if (error == REDLOCK_EINVAL)
        rl_logf(&rl->log, REDLOCK_LOG_ERROR, "refused: %s", redlock_config_error(rl->config));
    for (unsigned i = 0; error == REDLOCK_OK && i < rl->shard_count; i++)
        rl_engine_set_login(&rl->shards[i].engine, rl->config->user, rl->config->password);
    rl_client_leave(rl);
    return error;
}
