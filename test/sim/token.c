/* SPDX-License-Identifier: MIT
 * Tokens. */
#include "token.h"

#include <stdlib.h>
#include <string.h>

uint32_t sim_token_find(const struct sim_world *world, const char *text, size_t len)
{
    if (len < SIM_TOKEN_HEX)
        return 0;
    for (uint32_t i = world->token_count; i > 0; i--) {
        if (memcmp(world->tokens[i - 1].text, text, SIM_TOKEN_HEX) == 0)
            return i;
    }
    return 0;
}

uint32_t sim_token_number(struct sim_world *world, const char *text, size_t len, unsigned client,
                          unsigned resources)
{
    uint32_t number = sim_token_find(world, text, len);

    if (number != 0 || len < SIM_TOKEN_HEX)
        return number;
    if (world->token_count == world->token_cap) {
        world->token_cap = world->token_cap != 0 ? 2 * world->token_cap : 128;
        world->tokens = realloc(world->tokens, world->token_cap * sizeof *world->tokens);
        if (world->tokens == NULL)
            abort();
    }
    struct sim_token *token = &world->tokens[world->token_count++];
    memset(token, 0, sizeof *token);
    memcpy(token->text, text, SIM_TOKEN_HEX);
    token->client = (uint8_t)client;
    token->resources = (uint8_t)resources;
    token->born_ns = world->now_ns;
    return world->token_count;
}

struct sim_token *sim_token_at(const struct sim_world *world, uint32_t number)
{
    return &world->tokens[number - 1];
}

void sim_token_said(struct sim_world *world, const struct sim_said *said, unsigned client,
                    unsigned node)
{
    struct sim_token *token = sim_token_at(world, said->token);

    if (!said->extended) {
        token->granted_boot_ns[node] = sim_clock_read(&world->clients[client].boot, world->now_ns);
        return;
    }
    token->extended_boot_ns[node][client] = said->executed_boot_ns;
}
