/* SPDX-License-Identifier: MIT
 * Shuts clients down, as lib/api/review.c does, and starts new ones. */
#include "shutdown.h"

#include "client.h"
#include "fault.h"
#include "oracle.h"

/* Closes the client and starts a new one. */
static void close_client(struct sim_client *client)
{
    client->leaving = false;
    sim_note(client->world, "client % has shut down, settled: %", client->index, client->settled, 0,
             0);
    sim_fault_replace_client(client->world, client->index, false);
}

/* Ends the shutdown of the client, if it shuts down and its undos are done. */
void sim_shutdown_review(struct sim_client *client)
{
    if (!client->leaving || !rl_engine_is_settled(&client->engine))
        return;
    client->settled = !rl_engine_has_dropped(&client->engine);
    close_client(client);
}

/* Begins the shutdown of the client: its users have no locks any more, and its undos are awaited
 * within a time limit. */
void sim_shutdown_begin(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->clients[index];
    uint64_t limit_ns = sim_scale(&world->random, RL_MS, 4 * world->plan.ttl_ns);

    sim_note(world, "client % shuts down within % us", index, limit_ns / RL_US, 0, 0);
    for (unsigned i = 0; i < world->plan.users; i++) {
        struct sim_user *user = &client->users[i];
        user->doing = SIM_IDLE;
        user->reported = false;
        user->stamp++;
    }
    client->leaving = true;
    client->leave_stamp++;
    sim_client_refresh(client);
    rl_engine_end_locks(&client->engine);
    sim_user_take(client);
    sim_user_sweep(client);
    sim_oracle_client(client);
    sim_plan_event(world, world->now_ns + limit_ns, SIM_CLOSE, index, 0, client->leave_stamp, NULL);
    sim_shutdown_review(client);
}

/* Handles SIM_CLOSE: ends the shutdown with this number, because its time limit has come. A process
 * that does not run notices it later. */
void sim_shutdown_limit(struct sim_world *world, unsigned index, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];

    if (!client->leaving || client->leave_stamp != stamp)
        return;
    if (sim_client_runs(client))
        close_client(client);
    else
        sim_plan_event(world, client->paused_until_ns, SIM_CLOSE, index, 0, stamp, NULL);
}
