/* SPDX-License-Identifier: MIT
 * Writes and reads the keys of slots, and probes several slots at once. A probe is a PTTL for the
 * key of a slot, with a claim of its own (lock->probes), because the claim of a lock has the key of
 * one slot only. */
#include "engine/slot.h"

#include "engine/engine.h"
#include "engine/lock_send.h"

#include <string.h>

#define PROBES_MAX 64u /* slots that can be probed at once: the bits of rl_effects.slots */

/* Returns the name of the semaphore that a lock for a permit is about: the key of its claim without
 * the suffix {#N}. */
struct rl_arg rl_slot_name(const struct rl_lock *lock)
{
    struct rl_arg key = rl_claim_key(lock->claim), name;
    uint16_t slot;

    /* Before the first attempt the claim has no slot. Its key is the name then, even if that has
     * the form of a slot's key. */
    return lock->claim->slot != RL_SLOT_ANY && rl_slot_of(key, &name, &slot) ? name : key;
}

/* Writes the key `name{#slot}` to `bytes` and returns it; it has no NUL. */
struct rl_arg rl_slot_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name, unsigned slot)
{
    char digits[4];
    size_t count = 0, at = name.len;

    RL_ASSERT(slot < RL_PERMITS_MAX);
    RL_ASSERT(name.len + RL_SUFFIX_MAX <= RL_SLOT_KEY_MAX);
    memcpy(bytes, name.data, name.len);
    bytes[at++] = '{';
    bytes[at++] = '#';
    do {
        digits[count++] = (char)('0' + slot % 10);
        slot /= 10;
    } while (slot != 0);
    while (count > 0)
        bytes[at++] = digits[--count];
    bytes[at++] = '}';
    return (struct rl_arg){bytes, at};
}

/* Divides a key `name{#N}` into name and number. Returns false if it has another form, or N is
 * RL_PERMITS_MAX or larger. Reads from the end, because the name may contain braces. */
bool rl_slot_of(struct rl_arg key, struct rl_arg *ret_name, uint16_t *ret_slot)
{
    unsigned slot = 0, unit = 1;
    size_t at = key.len;

    if (at < sizeof "x{#0}" - 1 || key.data[at - 1] != '}')
        return false;
    for (at--; at > 0 && key.data[at - 1] >= '0' && key.data[at - 1] <= '9'; at--) {
        slot += (unsigned)(key.data[at - 1] - '0') * unit;
        unit *= 10;
        if (unit > 10 * RL_PERMITS_MAX)
            return false;
    }
    if (unit == 1 || slot >= RL_PERMITS_MAX || at < 3 || key.data[at - 1] != '#' ||
        key.data[at - 2] != '{')
        return false;
    *ret_name = (struct rl_arg){key.data, at - 2};
    *ret_slot = (uint16_t)slot;
    return true;
}

/* Returns whether `key` is `name{#0}`, and then sets *ret_name to the name. */
bool rl_slot_is_first(struct rl_arg key, struct rl_arg *ret_name)
{
    uint16_t slot;

    return rl_slot_of(key, ret_name, &slot) && slot == 0;
}

/* Writes the key of the semaphore's resource state, the name and a zero byte, and returns it. */
struct rl_arg rl_slot_resource_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name)
{
    RL_ASSERT(name.len < RL_SLOT_KEY_MAX);
    memcpy(bytes, name.data, name.len);
    bytes[name.len] = '\0'; /* no name has a zero byte in it */
    return (struct rl_arg){bytes, name.len + 1};
}

/* Returns the claim for the probe of the slot that `bit` of rl_effects.slots stands for. Makes it
 * if lock->probes has none, or one for another slot, because the window has moved. NULL: no memory.
 */
static struct rl_claim *claim_of(struct rl_engine *engine, struct rl_lock *lock, unsigned bit)
{
    struct rl_claim **claim = &lock->probes[bit];
    uint16_t slot = rl_permit_slot(&lock->lease, bit);
    char key[RL_SLOT_KEY_MAX];

    if (*claim != NULL && (*claim)->slot == slot)
        return *claim;
    if (*claim != NULL) {
        (*claim)->owner = NULL;
        rl_claim_drop(*claim);
    }
    const struct rl_arg words = rl_slot_key(key, rl_slot_name(lock), slot);
    *claim = rl_lock_new_claim(engine, &words, 1, 0);
    if (*claim == NULL)
        return NULL;
    (*claim)->slot = slot;
    (*claim)->owner = lock;
    return *claim;
}

/* Returns whether a notification of the probed slots is of use: the call may wait, and the probed
 * node is the preferred one. A search on other nodes is the last one of a call, so it waits for no
 * change. */
static bool wants_notification(const struct rl_lease *lease)
{
    return lease->wait_ns != 0 && lease->permit->other_node == 0;
}

/* Sends PTTL for the key of each slot of fx->slots to the node of fx->probe, and has that node
 * track the keys if a notification is of use. A probe for which there is no memory is left out. */
void rl_slot_probe(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx)
{
    struct rl_node *node = &engine->nodes[__builtin_ctz(fx->probe)];
    uint32_t round = lock->lease.round.number;
    uint64_t now_ns = engine->view.now.boot_ns;

    if (lock->probes == NULL) {
        lock->probes = rl_alloc(engine->mem, PROBES_MAX * sizeof(struct rl_claim *));
        if (lock->probes == NULL)
            return;
        memset(lock->probes, 0, PROBES_MAX * sizeof(struct rl_claim *));
    }
    for (uint64_t rest = fx->slots; rest != 0; rest &= rest - 1) {
        struct rl_claim *claim = claim_of(engine, lock, (unsigned)__builtin_ctzll(rest));
        if (claim != NULL && wants_notification(&lock->lease))
            (void)rl_node_probe_and_track(node, claim, round, now_ns);
        else if (claim != NULL)
            (void)rl_node_request(node, claim, round, RL_VERB_PTTL, now_ns);
    }
}

/* Frees the claims of the lock's probes; replies to these probes are dropped from now on. */
void rl_slot_forget(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; lock->probes != NULL && i < PROBES_MAX; i++) {
        if (lock->probes[i] == NULL)
            continue;
        lock->probes[i]->owner = NULL;
        rl_claim_drop(lock->probes[i]);
    }
    rl_free(engine->mem, lock->probes);
    lock->probes = NULL;
}
