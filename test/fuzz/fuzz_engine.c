/* SPDX-License-Identifier: MIT
 * Fuzzes two whole engines with fenced locks on one resource, three servers that keep their
 * records, and a script of events: connections, restarts, lost records and keys, time, wall clocks
 * that are stepped. Fencing tokens must grow from lock to lock as long as at most one record at a
 * time is missing. At the end, with all faults gone, a lock must be acquired.
 *
 *     2 bytes failing allocation, then events of 2 bytes */
#include "fuzz.h"

#include "alloc_fail.h"
#include "engine/engine.h"
#include "engine_world.h"
#include "platform/hash.h"

#include <redlock/redlock.h>
#include <string.h>

#define SLOTS      2
#define TTL_NS     RL_SECOND
#define FENCES_MAX 512
#define HEAL_STEPS 4000
#define TURNS_MAX  4000 /* without advancing time */

struct slot {
    struct rl_lock lock;
    uint64_t room[64];
    uint64_t floor; /* the largest fencing token that was reported before its attempt began */
    bool used, ended, confirmed, held;
};

static struct slot slots[ENGINES][SLOTS];
static uint64_t fences[FENCES_MAX];
static unsigned fence_count;

/* Returns the largest fencing token that was reported. */
static uint64_t largest_fence(void)
{
    uint64_t largest = 0;

    for (unsigned i = 0; i < fence_count; i++)
        largest = rl_max_u64(largest, fences[i]);
    return largest;
}

/* Returns the slot of a lock. */
static struct slot *slot_of(const struct rl_lock *lock)
{
    for (unsigned i = 0; i < ENGINES * SLOTS; i++)
        if (&slots[i / SLOTS][i % SLOTS].lock == lock)
            return &slots[i / SLOTS][i % SLOTS];
    fuzz_wrong(__FILE__, __LINE__, "a lock of ours");
}

/* Records and checks what the engine reports about a lock. */
static void take_lock(const struct rl_lock *lock, const struct rl_announcement *announcement)
{
    struct slot *slot = slot_of(lock);
    uint32_t flags = announcement->flags;

    MUST(slot->used && !slot->ended);
    MUST((flags & RL_FX_HELD) == 0 || announcement->status == REDLOCK_OK);
    if (flags & RL_FX_HELD)
        slot->confirmed = false;
    slot->held = (slot->held || (flags & RL_FX_HELD) != 0) && (flags & RL_FX_ENDED) == 0;
    slot->ended = (flags & RL_FX_ENDED) != 0;
    if (flags & RL_FX_WAITING) {
        slot->held = false;
        slot->floor = largest_fence(); /* the next attempt begins after this */
    }
}

/* Takes what the engine of a client has announced. */
static void take(unsigned index)
{
    struct rl_announcements *list = rl_engine_announcements(&world.clients[index].engine);
    struct rl_announcement announcement;
    const struct rl_lock *lock;

    while ((lock = rl_announcements_take(list, &announcement)) != NULL)
        take_lock(lock, &announcement);
}

/* Sends what is queued, and takes what that announces. */
static void flush(unsigned index)
{
    take(index);
    rl_engine_flush(&world.clients[index].engine);
    take(index);
}

/* Confirms the lock right before its user learns of it, as the API does. */
static void confirm_locks(unsigned index)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[index][i];
        if (!slot->used || slot->ended || !slot->held || slot->confirmed)
            continue;
        rl_engine_refresh(&world.clients[index].engine);
        rl_lock_event(&world.clients[index].engine, &slot->lock, RL_EVENT_CONFIRM, 0, 0);
        take(index);
        if (!slot->held)
            continue;
        uint64_t fence = rl_lease_fence_chosen(&slot->lock.lease);
        slot->confirmed = true;
        MUST(fence > slot->floor && fence <= RL_FENCE_CORRUPT);
        for (unsigned k = 0; k < fence_count; k++)
            MUST(fences[k] != fence);
        if (fence_count < FENCES_MAX)
            fences[fence_count++] = fence;
    }
}

/* Turns a client's loop once. */
static void turn(unsigned index)
{
    struct rl_engine *engine = &world.clients[index].engine;

    rl_engine_refresh(engine);
    world_deliver(index, SIZE_MAX);
    rl_engine_tick(engine);
    take(index);
    confirm_locks(index);
    flush(index);
}

/* Advances time and runs the client's loops when their timers expire. */
static void pass(uint64_t ns)
{
    uint64_t end_ns = world.now_ns + ns;

    for (unsigned turns = 0;; turns++) {
        unsigned first = world.clients[0].wake_ns <= world.clients[1].wake_ns ? 0 : 1;
        uint64_t wake_ns = world.clients[first].wake_ns;
        if (wake_ns > end_ns)
            break;
        MUST(turns < TURNS_MAX); /* a timer that expires without end */
        world.now_ns = rl_max_u64(world.now_ns, wake_ns);
        world.clients[first].wake_ns = RL_NEVER;
        turn(first);
    }
    world.now_ns = end_ns;
}

/* Starts a lock in the slot. */
static void start(unsigned index, unsigned at, uint64_t wait_ns, bool auto_extend)
{
    struct slot *slot = &slots[index][at];
    const struct rl_lease_params params = {
        .terms.kind = RL_LEASE_ACQUIRE,
        .terms.nodes = NODES,
        .terms.quorum = NODES / 2 + 1,
        .terms.auto_extend = auto_extend,
        .terms.fence = true,
        .terms.drift = {.ppm = 10000, .constant_us = 2000},
        .terms.backoff = {.min_ns = 10 * RL_MS, .max_ns = 100 * RL_MS},
        .terms.ttl_ns = TTL_NS,
        .wait_ns = wait_ns,
        .terms.validity_min_ns = RL_MS,
        .terms.margin_ns = 50 * RL_MS,
        .terms.wall_slack_us = auto_extend ? 500000 : 0,
        .salt = at,
    };

    if (slot->used && !slot->ended)
        return;
    rl_lock_dispose(&world.clients[index].engine, &slot->lock);
    memset(slot, 0, sizeof *slot);
    struct rl_storage storage = rl_storage_for(&params);
    MUST(storage.size <= sizeof slot->room);
    storage.at = slot->room;
    slot->used = true;
    slot->floor = largest_fence();
    rl_engine_refresh(&world.clients[index].engine);
    if (rl_lock_start(&world.clients[index].engine, &slot->lock, &params, &storage,
                      (struct rl_arg){WORLD_KEY, sizeof WORLD_KEY - 1},
                      (struct rl_arg){NULL, 0}) != REDLOCK_OK)
        slot->used = false;
    flush(index);
}

/* Makes a call on the lock of the slot: release, extend, shorten, detach or cancel. */
static void call_lock(unsigned index, unsigned at, unsigned what)
{
    static const uint8_t kinds[] = {RL_EVENT_RELEASE, RL_EVENT_EXTEND, RL_EVENT_SHORTEN,
                                    RL_EVENT_DETACH};
    struct rl_engine *engine = &world.clients[index].engine;
    struct slot *slot = &slots[index][at];

    if (!slot->used || slot->ended)
        return;
    rl_engine_refresh(engine);
    if (slot->confirmed && slot->held) {
        slot->held = slot->held && kinds[what % 4] == RL_EVENT_EXTEND;
        rl_lock_event(engine, &slot->lock, kinds[what % 4], TTL_NS / 2, 0);
    } else if (!slot->held) {
        rl_lock_event(engine, &slot->lock, RL_EVENT_CANCEL, 0, REDLOCK_ECANCELED);
    }
    flush(index);
}

/* Lets all servers and clients do what is due, and advances time by a round trip. */
static void run_servers_and_clients(uint64_t ns)
{
    world_serve_all();
    turn(0);
    turn(1);
    pass(ns);
}

/* Plays one event of the script. */
static void play_event(struct fuzz_input *input)
{
    static const uint64_t waits[] = {0, 50 * RL_MS, RL_SECOND, RL_NEVER};
    unsigned what = fuzz_byte(input), detail = fuzz_byte(input);
    unsigned index = detail & 1, node = (detail >> 1) % NODES;

    switch (what % 12) {
    case 0:
        turn(index);
        break;
    case 1:
        world_serve(index, node, 1 + detail / 16);
        break;
    case 2:
    case 3:
        for (unsigned i = 0; i <= detail % 8; i++)
            run_servers_and_clients(what % 12 == 2 ? RL_MS / 2 : 5 * RL_MS);
        break;
    case 4:
        start(index, detail >> 1 & 1, waits[detail >> 2 & 3], (detail & 16) != 0);
        break;
    case 5:
        call_lock(index, detail >> 1 & 1, detail >> 2);
        break;
    case 6:
        pass((uint64_t)detail * detail * 100 * RL_US);
        break;
    case 7:
        world_lose_connection(index, node, (detail & 64) != 0);
        take(index);
        break;
    case 8:
        world.nodes[node].reachable = (detail & 64) != 0;
        break;
    case 9:
        world_restart(node, (detail & 32) != 0, (detail & 64) != 0);
        take(0);
        take(1);
        break;
    case 10:
        if (world_others_in_use(node))
            memset(&world.nodes[node].store.record, 0, sizeof world.nodes[node].store.record);
        break;
    default:
        world_disturb(index, node, detail >> 3);
        break;
    }
}

/* Ends all faults, cancels the waiters, and checks that a lock is acquired. If records were lost
 * after the first start had reached a minority, an operator has to decide. */
static void heal(void)
{
    for (unsigned i = 0; i < NODES; i++)
        world.nodes[i].reachable = true;
    for (unsigned i = 0; i < ENGINES * SLOTS; i++)
        call_lock(i / SLOTS, i % SLOTS, 0);
    for (unsigned steps = 0; steps < HEAL_STEPS; steps++) {
        const struct slot *slot = &slots[0][0];
        if (slot->used && slot->confirmed && slot->held)
            return;
        start(0, 0, RL_NEVER, false);
        run_servers_and_clients(RL_MS);
        if (steps % 10 == 9)
            pass(200 * RL_MS);
        if (steps == HEAL_STEPS / 4 && world_is_half_started())
            (void)rl_records_init(&world.clients[0].engine, 5 * RL_SECOND);
    }
    fuzz_wrong(__FILE__, __LINE__, "a lock is had once all works again");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const int64_t live = alloc_fail_live();
    unsigned choice = fuzz_short(&input);

    memset(slots, 0, sizeof slots);
    fence_count = 0;
    world_begin();
    fuzz_alloc_choose(choice);
    while (input.left > 0)
        play_event(&input);
    (void)fuzz_alloc_end();
    heal();
    world_end();
    take(0);
    take(1);
    for (unsigned i = 0; i < ENGINES * SLOTS; i++) {
        struct slot *slot = &slots[i / SLOTS][i % SLOTS];
        MUST(!slot->used || slot->ended);
        rl_lock_dispose(&world.clients[i / SLOTS].engine, &slot->lock);
    }
    MUST(alloc_fail_live() == live);
    return 0;
}
