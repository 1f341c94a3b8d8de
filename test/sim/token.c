/* SPDX-License-Identifier: MIT
 * The table of tokens.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. A token's number is its place in
 * the table, counted from 1; 0 means no token. */
#include "token.h"

#include <stdlib.h>
#include <string.h>

/* Returns the place of a token in the index, or the free place where it belongs. Tokens are random,
 * so that their first bytes are hashed. */
static uint32_t *place_of(const struct sim_world *world, const char *text)
{
    uint32_t mask = 2 * world->token_cap - 1, at;
    uint64_t prefix;

    /* From bit 32 on, the product depends on five characters or more; its lowest bits depend on the
     * first one only, which is one of 16 digits. */
    memcpy(&prefix, text, sizeof prefix);
    at = (uint32_t)(prefix * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (world->token_index[at] != 0 &&
           memcmp(world->tokens[world->token_index[at] - 1].text, text, SIM_TOKEN_HEX) != 0)
        at = (at + 1) & mask;
    return &world->token_index[at];
}

/* Returns the number of the token with this text. 0: it is not in the table. */
uint32_t sim_token_find(const struct sim_world *world, const char *text, size_t len)
{
    return len < SIM_TOKEN_HEX || world->token_cap == 0 ? 0 : *place_of(world, text);
}

/* Doubles the table and its index. */
static void grow(struct sim_world *world)
{
    world->token_cap = world->token_cap != 0 ? 2 * world->token_cap : 128;
    world->tokens = realloc(world->tokens, world->token_cap * sizeof *world->tokens);
    free(world->token_index);
    world->token_index = calloc(2 * (size_t)world->token_cap, sizeof *world->token_index);
    if (world->tokens == NULL || world->token_index == NULL)
        abort();
    for (uint32_t i = 1; i <= world->token_count; i++)
        *place_of(world, world->tokens[i - 1].text) = i;
}

/* Returns the number of the token with this text, 1 or larger. A new one is added for this
 * client and this set of resources. 0: it does not look like a token of a simulated client. */
uint32_t sim_token_number(struct sim_world *world, const char *text, size_t len, unsigned client,
                          unsigned resources)
{
    uint32_t number = sim_token_find(world, text, len);

    if (number != 0 || len < SIM_TOKEN_HEX)
        return number;
    if (world->token_count == world->token_cap)
        grow(world);
    struct sim_token *token = &world->tokens[world->token_count++];
    memset(token, 0, sizeof *token);
    memcpy(token->text, text, SIM_TOKEN_HEX);
    token->client = (uint8_t)client;
    token->resources = (uint8_t)resources;
    token->born_ns = world->now_ns;
    *place_of(world, text) = world->token_count;
    return world->token_count;
}

/* Returns the token with this number, which must not be 0. The pointer is valid until a token is
 * added. */
struct sim_token *sim_token_at(const struct sim_world *world, uint32_t number)
{
    return &world->tokens[number - 1];
}

/* Notes that the reply with this outcome has reached the client: a grant of `node`. */
void sim_token_outcome(struct sim_world *world, const struct sim_outcome *outcome, unsigned client,
                       unsigned node)
{
    struct sim_token *token = sim_token_at(world, outcome->token);

    if (!outcome->extended) {
        token->granted_boot_ns[node] = sim_clock_read(&world->clients[client].boot, world->now_ns);
        return;
    }
    token->extended_boot_ns[node][client] = outcome->executed_boot_ns;
}
