/* SPDX-License-Identifier: MIT
 * A host with a client of one server that does not exist. Prints the error of redlock_new() and its
 * text; the exit status is 0 whatever they are. */
#include <redlock/redlock.h>
#include <stdio.h>

int main(void)
{
    redlock_config_t *config;
    redlock_t *rl = NULL;

    if (redlock_config_new(&config, NULL) != REDLOCK_OK ||
        redlock_config_add_nodes(config, "redis://127.0.0.1:1") != REDLOCK_OK)
        return 1;
    const int error = redlock_new(&rl, config);
    printf("%s: %s\n", redlock_error_name(error), redlock_config_error(config));
    redlock_config_free(config);
    return redlock_free(rl) == REDLOCK_OK ? 0 : 1;
}
