/* SPDX-License-Identifier: MIT
 * Two engines on three correct servers, in virtual time (test/fuzz/engine_world.h), and their
 * locks. A program that includes this consists of one file: the rig defines what engine_world.c
 * needs from its program. */
#ifndef TEST_ENGINE_RIG_H
#define TEST_ENGINE_RIG_H

#include "engine_world.h"
#include "fuzz.h"
#include "suite.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

#define RIG_LOCKS  16
#define RIG_STEP   RL_MS /* the longest step of rig_pass() */
#define RIG_TTL_NS RL_SECOND

/* A lock and what its engine has reported about it. */
struct rig_lock {
    struct rl_lock lock;
    uint64_t room[64]; /* the memory next to the lock, for its votes and its kind */
    unsigned client;   /* 0 or 1: whose engine has the lock */
    uint32_t flags;    /* RL_FX_*, all since the start */
    int status;        /* of the start if that failed, otherwise of the last report with DONE */
    bool confirmed;    /* the lock was confirmed since its last grant */
};

static struct rig_lock rig_locks[RIG_LOCKS];
static unsigned rig_used; /* number of elements of rig_locks in use */
static size_t rig_blocks; /* number of blocks that the engines have allocated and not freed */
static struct rl_mem rig_mem;
static void (*rig_adjust)(struct rl_engine_params *params); /* that of rig_begin(), or NULL */

/* Fails the test; engine_world.c calls this function when a check of its own fails. */
_Noreturn void fuzz_wrong(const char *file, int line, const char *what)
{
    ck_abort_msg("%s:%d: %s", file, line, what);
    abort();
}

/* Does nothing; engine_world.c needs it from its program. */
void fuzz_alloc_exempt(bool on)
{
    (void)on;
}

/* Allocates, and counts the block. */
static void *rig_malloc(size_t size, void *userdata)
{
    (void)userdata;
    rig_blocks++;
    return malloc(size);
}

/* Reallocates, and counts a new block. */
static void *rig_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    rig_blocks += ptr == NULL;
    return realloc(ptr, size);
}

/* Frees the block and no longer counts it. */
static void rig_free(void *ptr, void *userdata)
{
    (void)userdata;
    rig_blocks -= ptr != NULL;
    free(ptr);
}

/* Sets the allocator and the changes of the test. */
static void rig_set_params(struct rl_engine_params *params)
{
    rig_mem = (struct rl_mem){rig_malloc, rig_realloc, rig_free, NULL};
    params->mem = &rig_mem;
    if (rig_adjust != NULL)
        rig_adjust(params);
}

/* Returns the engine of a client (0 or 1). */
static inline struct rl_engine *rig_engine(unsigned client)
{
    return &world.clients[client].engine;
}

/* Takes what the engine of a client has announced of locks. */
static inline void rig_take(unsigned client)
{
    struct rl_announcement announcement;
    struct rig_lock *item;

    while ((item = (struct rig_lock *)rl_announcements_take(
                rl_engine_announcements(rig_engine(client)), &announcement)) != NULL) {
        item->flags |= announcement.flags;
        if (announcement.flags & RL_FX_DONE)
            item->status = announcement.status;
        if (announcement.flags & RL_FX_WAITING)
            item->confirmed = false;
    }
}

/* Sends what is queued, and takes what that announces. */
static inline void rig_flush(unsigned client)
{
    rig_take(client);
    rl_engine_flush(rig_engine(client));
    rig_take(client);
}

/* Turns a client's loop once and confirms grants, as the API does. */
static inline void rig_turn(unsigned client)
{
    struct rl_engine *engine = rig_engine(client);

    rl_engine_refresh(engine);
    world_deliver(client, SIZE_MAX);
    rl_engine_tick(engine);
    rig_take(client);
    for (unsigned i = 0; i < rig_used; i++) {
        struct rig_lock *item = &rig_locks[i];
        bool granted =
            item->client == client && rl_lease_is_held(&item->lock.lease) && !item->confirmed;
        if (!granted || !item->lock.active)
            continue;
        item->confirmed = true;
        rl_lock_event(engine, &item->lock, RL_EVENT_CONFIRM, 0, 0);
        rig_take(client);
    }
    rig_flush(client);
}

/* Advances time in small steps. Servers reply in the step after a request. */
static inline void rig_pass(uint64_t ns)
{
    for (uint64_t end_ns = world.now_ns + ns; world.now_ns < end_ns;) {
        world.now_ns += rl_min_u64(RIG_STEP, end_ns - world.now_ns);
        world_serve_all();
        for (unsigned i = 0; i < ENGINES; i++)
            rig_turn(i);
    }
}

/* Opens both engines. `adjust` may change their parameters before; NULL: no change. */
static inline void rig_begin(void (*adjust)(struct rl_engine_params *params))
{
    ck_assert_int_eq(rl_random_init(), REDLOCK_OK);
    memset(rig_locks, 0, sizeof rig_locks);
    rig_used = 0;
    rig_blocks = 0;
    rig_adjust = adjust;
    world_adjust = rig_set_params;
    world_begin();
}

/* Closes both engines and checks that they have freed all memory. */
static inline void rig_end(void)
{
    world_end();
    for (unsigned i = 0; i < ENGINES; i++)
        rig_take(i);
    for (unsigned i = 0; i < rig_used; i++)
        rl_lock_dispose(rig_engine(rig_locks[i].client), &rig_locks[i].lock);
    ck_assert_uint_eq(rig_blocks, 0);
}

/* Returns the parameters that most tests use for a lock. */
static inline struct rl_lease_params rig_params(void)
{
    return (struct rl_lease_params){
        .terms =
            {
                .kind = RL_LEASE_ACQUIRE,
                .nodes = NODES,
                .quorum = NODES / 2 + 1,
                .drift = {.ppm = 10000, .constant_us = 2000},
                .backoff = {.min_ns = 10 * RL_MS, .max_ns = 100 * RL_MS},
                .ttl_ns = RIG_TTL_NS,
                .validity_min_ns = RL_MS,
                .margin_ns = 50 * RL_MS,
            },
        .salt = rig_used,
    };
}

/* Starts a lock on one or several keys, in ascending order, ended by NULL. token: for leases that
 * bring their own, otherwise "". */
static inline struct rig_lock *rig_start_with(unsigned client, const struct rl_lease_params *params,
                                              const char *const *names, const char *token)
{
    struct rl_arg keys[RL_KEYS_MAX];
    unsigned count = 0;

    ck_assert_uint_lt(rig_used, RIG_LOCKS);
    struct rig_lock *item = &rig_locks[rig_used++];
    item->client = client;
    for (; names[count] != NULL; count++)
        keys[count] = (struct rl_arg){names[count], strlen(names[count])};
    struct rl_storage storage = rl_storage_for(params);
    ck_assert_uint_le(storage.size, sizeof item->room);
    storage.at = item->room;
    rl_engine_refresh(rig_engine(client));
    const int error = rl_lock_start_multi(rig_engine(client), &item->lock, params, &storage, keys,
                                          count, (struct rl_arg){token, strlen(token)});
    if (error != REDLOCK_OK)
        item->status = error;
    rig_flush(client);
    return item;
}

/* Starts a lock on one or several keys, in ascending order, ended by NULL; the lease makes its
 * own token. */
static inline struct rig_lock *rig_start(unsigned client, const struct rl_lease_params *params,
                                         const char *const *names)
{
    return rig_start_with(client, params, names, "");
}

/* Starts a lock on one key. */
static inline struct rig_lock *rig_start_one(unsigned client, const struct rl_lease_params *params,
                                             const char *name)
{
    const char *const names[] = {name, NULL};

    return rig_start(client, params, names);
}

/* Returns true if the lock is held and confirmed. */
static inline bool rig_holds(const struct rig_lock *item)
{
    return item->lock.active && rl_lease_is_held(&item->lock.lease) && item->confirmed;
}

/* Acquires a lock, which must be granted at once. */
static inline struct rig_lock *rig_hold(unsigned client, const struct rl_lease_params *params,
                                        const char *name)
{
    struct rig_lock *item = rig_start_one(client, params, name);

    rig_pass(5 * RL_MS);
    ck_assert_msg(rig_holds(item), "status %d", item->status);
    return item;
}

/* Passes a call of the user to the lock: RELEASE, EXTEND, SHORTEN or CANCEL (RL_EVENT_*). */
static inline void rig_call(struct rig_lock *item, uint8_t kind, uint64_t ttl_ns)
{
    rl_engine_refresh(rig_engine(item->client));
    rl_lock_event(rig_engine(item->client), &item->lock, kind, ttl_ns, REDLOCK_ECANCELED);
    rig_flush(item->client);
}

/* Makes a server reachable, or not; then its connections are lost as well. With `executed`, the
 * server executes before that what was on the way to it. */
static inline void rig_reach(unsigned node, bool reachable, bool executed)
{
    for (unsigned i = 0; i < ENGINES && !reachable; i++) {
        world_lose_connection(i, node, executed);
        rig_take(i);
    }
    world.nodes[node].reachable = reachable;
}

/* Returns the remaining TTL of a key on a server in ms; 0: there is no key. */
static inline uint64_t rig_ttl_ms(unsigned node, const char *key)
{
    char value[128];
    uint64_t ttl_ms = 0;
    bool there = fake_store_look(&world.nodes[node].store, world.now_ns / RL_MS, key, value,
                                 sizeof value, &ttl_ms);

    return there ? ttl_ms : 0;
}

#endif
