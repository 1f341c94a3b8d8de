/* SPDX-License-Identifier: MIT
 * Counts occurrences, draws random numbers and checks exclusion for test_leftover_keys.c. */
#include "leftover_keys.h"

#include <stdio.h>
#include <stdlib.h>

struct leftovers *leftovers;

/* Counts one occurrence. */
void count_one(enum occurrence what)
{
    atomic_fetch_add(&leftovers->occurred[what], 1);
}

/* Counts an acquisition by its status. A budget of 1 ms (`waited_ms`) that was too short counts
 * as well. */
void count_acquire(int status, uint64_t waited_ms)
{
    atomic_fetch_add(&leftovers->operations, 1);
    if (status == REDLOCK_OK)
        count_one(GRANTED);
    else if (status == REDLOCK_ECONTENDED)
        count_one(CONFLICT);
    else if (status == REDLOCK_ENOQUORUM)
        count_one(NO_QUORUM);
    else if (status == REDLOCK_ECANCELED)
        count_one(CANCELED);
    if (waited_ms == 1 && status != REDLOCK_OK)
        count_one(TINY_BUDGET);
}

/* Notes that an actor holds the resource. Counts an overlap if another actor holds it. */
void enter(unsigned resource)
{
    if (atomic_fetch_add(&leftovers->holders[resource], 1) != 0)
        atomic_fetch_add(&leftovers->overlaps, 1);
}

/* Notes that an actor does not hold the resource any more. Called before the release begins. */
void leave(unsigned resource)
{
    atomic_fetch_sub(&leftovers->holders[resource], 1);
}

/* Returns the name of a resource. The second half of the numbers has the same names, in database
 * 1. */
const char *resource_name(unsigned resource)
{
    static const char *const names[RESOURCES] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
    return names[resource % RESOURCES];
}

/* Returns the initial state of an actor's random numbers, which depends on the seed. The
 * constant spreads the actors' numbers, and two draws mix them. */
uint64_t random_of(unsigned actor)
{
    uint64_t random = leftovers->seed + (actor + 1) * UINT64_C(0x9e3779b97f4a7c15);
    draw(&random, 1);
    draw(&random, 1);
    return random;
}

/* Returns a random number from 0 to below - 1 (xorshift64) and advances the state. */
unsigned draw(uint64_t *random, unsigned below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (unsigned)((*random >> 11) % below);
}

/* Creates a client with a node timeout of 25 ms (scaled), so that stopped servers cause many
 * timeouts. The label `owner` shows whose key is left. Does not wait for connections. */
redlock_t *leftovers_client(const char *urls, int mode, const char *owner)
{
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    const uint32_t node_time_ms = (uint32_t)wait_scaled_ms(25);
    int status = redlock_config_new(&config, NULL);
    if (status == REDLOCK_OK)
        status = redlock_config_add_nodes(config, urls);
    if (status == REDLOCK_OK)
        status = redlock_config_set_mode(config, mode);
    if (status == REDLOCK_OK)
        status = redlock_config_set_owner(config, owner);
    if (status == REDLOCK_OK)
        status = redlock_config_set_max_ttl_ms(config, KEEP_TTL_MS);
    if (status == REDLOCK_OK)
        status = redlock_config_set_node_timeout_ms(config, node_time_ms);
    if (status == REDLOCK_OK)
        status = redlock_config_set_retry_ms(config, 1, 8);
    if (status == REDLOCK_OK)
        status = redlock_new(&client, config);
    ck_assert_msg(status == REDLOCK_OK, "%s", redlock_config_error(config));
    redlock_config_free(config);
    return client;
}

/* Waits until all nodes respond, if a server was silent for long just before `stop`. Without that,
 * returns at once: the shutdown that follows must wait for undos by itself. */
void await_servers(redlock_t *client)
{
    if (atomic_load(&leftovers->was_silent) &&
        !LOOP_UNTIL(client, live_responsive(client) == NODES, TIME_LIMIT_MS))
        abort();
}

/* Adds the client's undos, timeouts and reconnects to the counts. */
void count_client(redlock_t *client)
{
    redlock_stats_t stats;
    if (redlock_get_stats(client, &stats, sizeof stats) == REDLOCK_OK)
        atomic_fetch_add(&leftovers->occurred[UNDONE], (unsigned)stats.undone);
    for (size_t i = 0; i < redlock_node_count(client); i++) {
        redlock_node_stats_t node;
        if (redlock_get_node_stats(client, i, &node, sizeof node) != REDLOCK_OK)
            continue;
        atomic_fetch_add(&leftovers->occurred[TIMEOUTS], (unsigned)node.timeouts);
        atomic_fetch_add(&leftovers->occurred[RECONNECTS], (unsigned)node.reconnects);
    }
}
