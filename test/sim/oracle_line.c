/* SPDX-License-Identifier: MIT
 * Checks what servers do with the requests to lines: whom they notify of a turn, in which order
 * they serve, and that nothing is left. */
#include "oracle_line.h"

#include "contention.h"
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the waiter with this id in the line, or NULL. */
static struct sim_joined *find(struct sim_world *world, unsigned node, unsigned resource,
                               const char *id)
{
    for (uint32_t i = 0; i < world->joined_count; i++) {
        struct sim_joined *joined = &world->joined[i];
        if (joined->node == node && joined->resource == resource && strcmp(joined->id, id) == 0)
            return joined;
    }
    return NULL;
}

/* Returns a new, empty element of the list of waiters. */
static struct sim_joined *append(struct sim_world *world)
{
    if (world->joined_count == world->joined_cap) {
        world->joined_cap = 2 * world->joined_cap + 16;
        world->joined = realloc(world->joined, world->joined_cap * sizeof *world->joined);
        if (world->joined == NULL)
            abort();
    }
    return &world->joined[world->joined_count++];
}

/* Returns whether the waiter is in the state of the line. Both ids are in structs that were cleared
 * first, so that all their bytes can be compared, which is faster than strcmp(). */
static bool is_in_line(const struct sim_line *line, const struct sim_joined *joined)
{
    for (unsigned i = 0; i < line->count; i++) {
        if (memcmp(line->waiters[i].id, joined->id, sizeof joined->id) == 0)
            return true;
    }
    return false;
}

/* Checks that no waiter that has joined before this one, and could be notified before it, is still
 * in the line. A waiter that has joined in front, after a split vote, has no promise. */
static void check_order(struct sim_world *world, const struct sim_joined *served)
{
    const struct sim_line *line = &world->servers[served->node].lines[served->resource];

    for (uint32_t i = 0; i < world->joined_count; i++) {
        const struct sim_joined *joined = &world->joined[i];
        if (joined->node == served->node && joined->resource == served->resource &&
            joined->order > 0 && joined->order < served->order && joined->ready < served->ready &&
            is_in_line(line, joined))
            sim_violate(world, "waiter %s is served before %s, which has joined the line earlier",
                        served->id, joined->id);
    }
}

/* Notes a request to a line before the server executes it, and checks the order of service. */
void sim_oracle_line_begins(struct sim_world *world, unsigned node, unsigned resource,
                            const struct sim_line_request *request, bool has_token)
{
    struct sim_joined *joined = find(world, node, resource, request->id);
    const struct sim_contention *contention = world->plan.contention;

    if (request->what == 'G' && has_token && joined != NULL && contention != NULL &&
        contention->in_order && !world->healed)
        check_order(world, joined);
    if (request->what == 'L' || request->what == 'G') {
        if (joined != NULL)
            joined->at_ns = world->now_ns;
        return;
    }
    if (joined == NULL) {
        joined = append(world);
        *joined = (struct sim_joined){.node = (uint8_t)node, .resource = (uint8_t)resource};
        snprintf(joined->id, sizeof joined->id, "%s", request->id);
        world->arrivals++;
        joined->order = request->what == 'F' ? -world->arrivals : world->arrivals;
        joined->ready = INT64_MAX;
    }
    if (request->state == 'w' && joined->ready == INT64_MAX)
        joined->ready = ++world->arrivals;
    joined->at_ns = world->now_ns;
    joined->late = false;
}

/* Checks that the waiter that is notified of its turn has joined the line. */
void sim_oracle_turn(struct sim_world *world, unsigned node, unsigned resource, const char *id)
{
    if (find(world, node, resource, id) == NULL)
        sim_violate(world,
                    "node %u notifies waiter %s of a turn in the line of r%u, which it has "
                    "not joined",
                    node, id, resource);
}

/* Forgets waiters that are in the line no more. */
void sim_oracle_line_ends(struct sim_world *world, unsigned node, unsigned resource)
{
    const struct sim_line *line = &world->servers[node].lines[resource];
    uint32_t kept = 0;

    for (uint32_t i = 0; i < world->joined_count; i++) {
        struct sim_joined *joined = &world->joined[i];
        if (joined->node == node && joined->resource == resource && !is_in_line(line, joined))
            continue;
        world->joined[kept++] = *joined;
    }
    world->joined_count = kept;
}

/* Notes that the request came on a connection that its client had closed: it may have been executed
 * after a later one on another connection, and be left until it expires. */
void sim_oracle_line_late(struct sim_world *world, unsigned node, unsigned resource, const char *id)
{
    struct sim_joined *joined = find(world, node, resource, id);

    if (joined != NULL)
        joined->late = true;
}

/* Returns the running client with this id as a waiter, or NULL. */
static const struct sim_client *client_of(const struct sim_world *world, const char *id)
{
    char text[SIM_LINE_ID_MAX];

    for (unsigned i = 0; i < world->plan.clients; i++) {
        const struct sim_client *client = &world->clients[i];
        snprintf(text, sizeof text, "%" PRIu64, client->engine.common.waiter);
        if (client->alive && strcmp(text, id) == 0)
            return client;
    }
    return NULL;
}

/* Checks that no waiter of a running client is left in a line. A fault of the link after the last
 * request that the server has executed may have lost the one that leaves. */
void sim_oracle_lines_left(struct sim_world *world)
{
    /* In other runs, one in some 10 000 still leaves a record behind. It expires. */
    if (world->plan.contention == NULL)
        return;
    for (uint32_t i = 0; i < world->joined_count; i++) {
        const struct sim_joined *joined = &world->joined[i];
        const struct sim_server *server = &world->servers[joined->node];
        const struct sim_client *client = client_of(world, joined->id);
        if ((world->plan.contention->no_publish >> joined->node & 1) != 0)
            continue; /* the script cannot notify the next waiter, so it fails */
        if (client == NULL || !is_in_line(&server->lines[joined->resource], joined) ||
            server->lines_expire_ms[joined->resource] < sim_server_now_ms(world, joined->node))
            continue;
        const struct sim_link *link = &world->links[client->index][joined->node];
        if (!joined->late && link->troubles == 0 && link->troubled_ns < joined->at_ns &&
            client->resumed_ns < joined->at_ns)
            sim_violate(world, "at the end client %u is left in the line of r%u on node %u",
                        client->index, joined->resource, joined->node);
    }
}
