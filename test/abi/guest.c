/* SPDX-License-Identifier: MIT
 * A host with a client of one server that does not exist. Prints the error of redlock_new() and its
 * text; the exit status is 0 whatever they are. */
#include <redlock/redlock.h>
#include <stdio.h>

#ifdef TAKES_ADDRESS
#include <hiredis/hiredis.h>

/* As a C++ host with a std::unique_ptr<redisReader, decltype(&redisReaderFree)> does. In a program
 * with fixed addresses, the address of the function is that of a stub in the program then, for all
 * libraries of the process. */
static void (*volatile free_reader)(redisReader *);
#endif

int main(void)
{
#ifdef TAKES_ADDRESS
    free_reader = redisReaderFree;
#endif
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
