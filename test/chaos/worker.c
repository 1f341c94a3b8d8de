/* SPDX-License-Identifier: MIT
 * Chooses locks at random, checks them while they are held, and logs them. */
#include "worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "history.h"

#define NS_PER_MS UINT64_C(1000000)

struct world world;

/* Returns a random number below `below` and advances the state `random` (xorshift). */
unsigned draw(uint64_t *random, unsigned below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (unsigned)((*random >> 11) % below);
}

/* Returns the initial state of the random numbers of the thread or slot `actor`. The first numbers
 * are thrown away, because they are alike for neighbouring seeds. */
uint64_t random_of(unsigned actor)
{
    uint64_t random = world.seed + (actor + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 4; i++)
        draw(&random, 1);
    return random;
}

/* Ends the process with status 70 and a message about the configuration unless `status` is OK.
 * `what` names the setting. */
static void exit_unless_ok(int status, const char *what, redlock_config_t *config)
{
    if (status == REDLOCK_OK)
        return;
    fprintf(stderr, "chaos client %s: %s: %s\n", world.name, what, redlock_config_error(config));
    exit(70);
}

/* Returns a client of all servers in `mode`. Ends the process if it cannot be created. */
redlock_t *worker_client(int mode)
{
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    if (redlock_config_new(&config, NULL) != REDLOCK_OK)
        exit(70);
    exit_unless_ok(redlock_config_add_nodes(config, world.urls), "nodes", config);
    exit_unless_ok(redlock_config_set_mode(config, mode), "mode", config);
    exit_unless_ok(redlock_config_set_owner(config, world.name), "owner", config);
    exit_unless_ok(redlock_config_set_max_ttl_ms(config, world.max_ttl_ms), "max_ttl", config);
    exit_unless_ok(redlock_config_set_retry_ms(config, 5, 60), "retry", config);
    exit_unless_ok(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE),
                   "fences", config);
    exit_unless_ok(redlock_new(&client, config), "client", config);
    redlock_config_free(config);
    return client;
}

/* Chooses two or more of the resources, in random order. */
static void choose_several(struct lock_choice *workload, uint64_t *random)
{
    const char *names[RESOURCES] = {"r0", "r1", "r2", "r3"};
    const unsigned count = 2 + draw(random, RESOURCES - 2);
    size_t len = 0;
    for (unsigned i = 0; i < count; i++) {
        const unsigned which = i + draw(random, RESOURCES - i);
        const char *name = names[which];
        names[which] = names[i];
        if (i == 0)
            workload->resource = name;
        else
            workload->also[workload->also_count++] = name;
        len += (size_t)snprintf(workload->text + len, sizeof workload->text - len, "%s%s",
                                i == 0 ? "" : "+", name);
    }
}

/* Chooses the resources of a lock: several (2 of 10), a permit (4 of 10) or one resource. */
void workload_choose(struct lock_choice *workload, uint64_t *random)
{
    static const char *const names[RESOURCES] = {"r0", "r1", "r2", "r3"};
    static const char *const semaphores[SEMAPHORES] = {"s0", "s1"};
    const unsigned kind = draw(random, 10);
    *workload = (struct lock_choice){.resource = names[draw(random, RESOURCES)]};
    if (kind < 2) {
        choose_several(workload, random);
    } else if (kind < 6) {
        const unsigned which = draw(random, SEMAPHORES);
        workload->resource = semaphores[which];
        workload->permits = 2 + which; /* the same number for all clients */
        snprintf(workload->text, sizeof workload->text, "%s*%u", workload->resource,
                 workload->permits);
    } else {
        snprintf(workload->text, sizeof workload->text, "%s", workload->resource);
    }
}

/* Copies the choice of resources into the options of the acquisition. */
static void set_opts(struct turn *turn)
{
    turn->opts.also = turn->workload.also;
    turn->opts.also_count = turn->workload.also_count;
    turn->opts.kind = turn->workload.permits != 0 ? REDLOCK_KIND_PERMIT : REDLOCK_KIND_EXCLUSIVE;
    turn->opts.permits = turn->workload.permits;
    if (world.fences && turn->workload.also_count == 0)
        turn->opts.flags |= REDLOCK_FLAG_FENCE;
}

/* Chooses the next turn and logs the call. Of 40 turns one holds longer than its TTL, two are
 * extended automatically, three are extended once, and the others are short. */
void turn_choose(struct turn *turn, uint64_t *random)
{
    const unsigned kind = draw(random, 40);
    *turn = (struct turn){.id = history_new_id()};
    workload_choose(&turn->workload, random);
    turn->opts = redlock_opts(world.max_ttl_ms / 2 + draw(random, (unsigned)world.max_ttl_ms / 2));
    turn->opts.wait_ms = draw(random, 4) == 0 ? 0 : draw(random, 3000);
    turn->hold_ms =
        draw(random, 40) * (1 + turn->workload.permits); /* so that permits are scarce */
    if (kind < 1) {                                      /* longer than the TTL: it is lost */
        turn->hold_ms = 3 * world.max_ttl_ms;
    } else if (kind < 3) {
        turn->opts.flags |= REDLOCK_FLAG_AUTO_EXTEND;
        turn->hold_ms = draw(random, 2 * (unsigned)world.max_ttl_ms);
    } else if (kind < 6) {
        turn->hold_ms = world.max_ttl_ms / 2;
        turn->extend = true;
    }
    set_opts(turn);
    turn->drop = draw(random, 10) == 0;
    history_write(history_now_ns(), "call %s %" PRIu64 " %" PRIu64, turn->workload.text, turn->id,
                  turn->opts.ttl_ms);
}

/* Stores the keys in turn->held as the lock reports them, not as they were chosen: the checker
 * compares the two. */
static void read_names(struct turn *turn)
{
    const int slot = redlock_lock_slot(turn->lock);
    const char *name = redlock_lock_resource(turn->lock, 0);
    size_t len = 0;
    if (slot >= 0) {
        if (redlock_slot_name(turn->held, sizeof turn->held, name, (uint32_t)slot) != REDLOCK_OK)
            exit(70);
        return;
    }
    for (size_t i = 0; name != NULL && len < sizeof turn->held; i++) {
        len += (size_t)snprintf(turn->held + len, sizeof turn->held - len, "%s%s",
                                i == 0 ? "" : "+", name);
        name = redlock_lock_resource(turn->lock, i + 1);
    }
}

/* Logs the deadline that the library reports as an event `word`, if it is a new one. The clock was
 * read before, so that a pause between the two calls makes the logged deadline earlier. */
static void log_deadline(struct turn *turn, uint64_t now_ns, const char *word)
{
    const uint64_t deadline_ns = now_ns + redlock_lock_remaining_ms(turn->lock) * NS_PER_MS;
    if (deadline_ns <= turn->deadline_ns + 2 * NS_PER_MS) /* the same deadline, rounded */
        return;
    turn->deadline_ns = deadline_ns;
    history_write(now_ns, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64, word, turn->held, turn->id,
                  deadline_ns, redlock_lock_fence(turn->lock));
}

/* Logs how the acquisition ended: "hold" with a lock, "fail" without one. */
void turn_begin(struct turn *turn, int status, redlock_lock_t *lock)
{
    const uint64_t now_ns = history_now_ns();
    turn->lock = lock;
    turn->since_ns = turn->held_ns = now_ns;
    if (lock == NULL) {
        history_write(now_ns, "fail %s %" PRIu64 " %s", turn->workload.text, turn->id,
                      redlock_error_name(status));
        return;
    }
    read_names(turn);
    log_deadline(turn, now_ns, "hold");
}

/* Checks the lock and logs a loss or a new deadline. Returns false if the lock is lost, was held
 * for hold_ms, or world.stop is set. */
bool turn_continue(struct turn *turn)
{
    const uint64_t now_ns = history_now_ns();
    if (redlock_lock_check(turn->lock, 0) != REDLOCK_OK) {
        history_write(now_ns, "lost %s %" PRIu64 " %" PRIu64, turn->held, turn->id, turn->held_ns);
        return false;
    }
    turn->held_ns = now_ns;
    log_deadline(turn, now_ns, "still");
    return now_ns - turn->since_ns < turn->hold_ms * NS_PER_MS && !atomic_load(&world.stop);
}

/* Logs that the lock is about to be released, or its handle freed. */
void turn_log_end(struct turn *turn)
{
    history_write(history_now_ns(), "end %s %" PRIu64, turn->held, turn->id);
}
