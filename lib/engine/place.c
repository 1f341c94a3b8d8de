/* SPDX-License-Identifier: MIT
 * A hash table of resources, each with a queue; the idle ones are forgotten, the oldest first. */
#include "engine/place.h"

#include "engine/engine.h"
#include "platform/hash.h"

#include <string.h>

#define BUCKETS_MIN 64u
#define IDLE_MAX    256u

static struct rl_place **bucket_of(const struct rl_places *places, uint64_t word)
{
    return &places->buckets[rl_mix(word ^ places->secret) & (places->bucket_count - 1)];
}

static void put(struct rl_places *places, struct rl_place *place)
{
    struct rl_place **bucket = bucket_of(places, place->word);

    place->next = *bucket;
    *bucket = place;
}

/* Without memory for a larger one the old table serves on, more slowly. */
static void grow(struct rl_engine *engine)
{
    struct rl_places *places = &engine->places;
    struct rl_places old = *places;
    uint32_t count = old.bucket_count != 0 ? old.bucket_count * 2 : BUCKETS_MIN;

    if (places->count < old.bucket_count)
        return;
    places->buckets = rl_alloc(engine->mem, count * sizeof(struct rl_place *));
    if (places->buckets == NULL) {
        places->buckets = old.buckets;
        return;
    }
    if (old.bucket_count == 0)
        places->secret = rl_random_word(&engine->random);
    memset(places->buckets, 0, count * sizeof(struct rl_place *));
    places->bucket_count = count;
    for (uint32_t i = 0; i < old.bucket_count; i++) {
        for (struct rl_place *place = old.buckets[i], *next; place != NULL; place = next) {
            next = place->next;
            put(places, place);
        }
    }
    rl_free(engine->mem, old.buckets);
}

static struct rl_place *find(const struct rl_places *places, struct rl_arg key, uint64_t word)
{
    struct rl_place *place = places->bucket_count != 0 ? *bucket_of(places, word) : NULL;

    while (place != NULL && (place->word != word || place->key_len != key.len ||
                             memcmp(place->key, key.data, key.len) != 0))
        place = place->next;
    return place;
}

struct rl_place *rl_place_find(const struct rl_engine *engine, struct rl_arg key)
{
    return find(&engine->places, key, rl_hash_word(key.data, key.len));
}

static void unlink_idle(struct rl_places *places, struct rl_place *place)
{
    if (place->idle_older != NULL)
        place->idle_older->idle_newer = place->idle_newer;
    else
        places->idle_oldest = place->idle_newer;
    if (place->idle_newer != NULL)
        place->idle_newer->idle_older = place->idle_older;
    else
        places->idle_newest = place->idle_older;
    place->idle_older = place->idle_newer = NULL;
    places->idle_count--;
}

static void forget(struct rl_engine *engine, struct rl_place *place)
{
    struct rl_places *places = &engine->places;
    struct rl_place **at = bucket_of(places, place->word);

    unlink_idle(places, place);
    while (*at != place)
        at = &(*at)->next;
    *at = place->next;
    places->count--;
    rl_free(engine->mem, place);
}

static void become_idle(struct rl_engine *engine, struct rl_place *place)
{
    struct rl_places *places = &engine->places;

    place->idle_older = places->idle_newest;
    place->idle_newer = NULL;
    if (places->idle_newest != NULL)
        places->idle_newest->idle_newer = place;
    else
        places->idle_oldest = place;
    places->idle_newest = place;
    if (++places->idle_count > IDLE_MAX && !places->idle_oldest->turning)
        forget(engine, places->idle_oldest);
}

static struct rl_place *make(struct rl_engine *engine, struct rl_arg key, uint64_t word)
{
    struct rl_places *places = &engine->places;
    uint64_t scores[RL_NODES_MAX];

    grow(engine);
    if (places->bucket_count == 0)
        return NULL;
    struct rl_place *place =
        rl_alloc(engine->mem, offsetof(struct rl_place, key) + key.len + engine->count);
    if (place == NULL)
        return NULL;
    RL_ASSERT(key.len <= UINT16_MAX);
    place->word = word;
    place->key_len = (uint16_t)key.len;
    memcpy(place->key, key.data, key.len);
    for (unsigned i = 0; i < engine->count; i++)
        scores[i] = rl_mix(word ^ engine->node_words[i]);
    uint8_t *order = (uint8_t *)place->key + key.len;
    rl_contest_init(&place->contest, order, engine->count, scores);
    put(places, place);
    places->count++;
    return place;
}

struct rl_place *rl_place_enter(struct rl_engine *engine, struct rl_arg key)
{
    uint64_t word = rl_hash_word(key.data, key.len);
    struct rl_place *place = find(&engine->places, key, word);

    if (place == NULL)
        place = make(engine, key, word);
    else if (place->locks == 0)
        unlink_idle(&engine->places, place);
    if (place != NULL)
        place->locks++;
    return place;
}

static void plan_turn(struct rl_engine *engine, struct rl_place *place)
{
    if (place->turning)
        return;
    place->turning = true;
    place->turn_next = engine->places.turns;
    engine->places.turns = place;
}

void rl_place_look(struct rl_engine *engine, struct rl_place *place)
{
    if (place->front == NULL && place->queue_first != NULL)
        plan_turn(engine, place);
}

void rl_place_queue(struct rl_engine *engine, struct rl_seat *seat)
{
    struct rl_place *place = seat->place;

    seat->next = NULL;
    seat->prev = place->queue_last;
    if (place->queue_last != NULL)
        place->queue_last->next = seat;
    else
        place->queue_first = seat;
    place->queue_last = seat;
    place->queued++;
    place->queued_many += seat->lock->more != 0;
    rl_place_look(engine, place);
}

void rl_place_unqueue(struct rl_engine *engine, struct rl_seat *seat)
{
    struct rl_place *place = seat->place;

    if (seat->prev != NULL)
        seat->prev->next = seat->next;
    else
        place->queue_first = seat->next;
    if (seat->next != NULL)
        seat->next->prev = seat->prev;
    else
        place->queue_last = seat->prev;
    place->queued--;
    place->queued_many -= seat->lock->more != 0;
    rl_place_look(engine, place);
}

void rl_place_pass(struct rl_engine *engine, struct rl_place *place, const struct rl_lock *lock)
{
    if (place->front != lock)
        return;
    place->front = NULL;
    rl_place_look(engine, place);
}

void rl_place_nudge(struct rl_engine *engine, struct rl_place *place, uint16_t slot)
{
    bool several = place->nudged && place->nudged_slot != slot;

    place->nudged_slot = several ? RL_SLOT_ANY : slot;
    place->nudged = place->front != NULL;
    if (place->nudged)
        plan_turn(engine, place);
}

void rl_place_leave(struct rl_engine *engine, struct rl_place *place)
{
    if (--place->locks == 0)
        become_idle(engine, place);
}

void rl_places_turn(struct rl_engine *engine)
{
    struct rl_places *places = &engine->places;

    while (places->turns != NULL) {
        struct rl_place *place = places->turns;
        places->turns = place->turn_next;
        place->turning = false;
        if (place->nudged && place->front != NULL)
            rl_lock_wake_by_us(engine, place->front, place->nudged_slot);
        place->nudged = false;
        struct rl_lock *lock = place->front == NULL ? rl_seats_next(engine, place) : NULL;
        if (lock != NULL && rl_lock_may_start(engine, lock))
            rl_lock_event(engine, lock, RL_EVENT_TURN, 0, 0);
    }
}

void rl_places_free(struct rl_engine *engine)
{
    struct rl_places *places = &engine->places;

    for (uint32_t i = 0; i < places->bucket_count; i++) {
        for (struct rl_place *place = places->buckets[i], *next; place != NULL; place = next) {
            next = place->next;
            rl_free(engine->mem, place);
        }
    }
    rl_free(engine->mem, places->buckets);
    memset(places, 0, sizeof *places);
}
