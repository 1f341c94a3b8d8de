/* SPDX-License-Identifier: MIT
 * A program that creates a client of one server that does not exist, and prints the error of
 * redlock_new() and its text. The exit status is 0 also after an error. */
#include <redlock/redlock.h>
#include <stdio.h>

#ifdef TAKES_ADDRESS
#include <hiredis/hiredis.h>

/* Takes the address of a function of hiredis, like a C++ host with a std::unique_ptr<redisReader,
 * decltype(&redisReaderFree)>. In a program with fixed addresses, all libraries of the process then
 * see the address of a stub in the program. */
static void (*volatile free_reader)(redisReader *);
#endif

/* Creates a client, and prints the name and the text of the error of redlock_new(). */
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
