/* SPDX-License-Identifier: MIT
 * Breadth-first search. States are in one array in the order of their discovery, which is the
 * queue as well; the number of a state is its index there. A hash table of these numbers finds
 * states again. */
#include <stdlib.h>
#include <string.h>

#include "search.h"

#define NO_PARENT UINT32_MAX /* parent of the first state */

/* The states that a search has found. */
struct space {
    const struct model *model;
    bool symmetric;       /* as for pack_state() */
    struct packed *state; /* all states */
    uint32_t *parent;     /* for each state, the number of the state that led to it first */
    uint32_t *table;      /* number of a state + 1; 0: free */
    uint64_t count, room; /* number of states, and of elements in `state` and `parent` */
    uint64_t slots;       /* number of elements of `table`: a power of two, at most half in use */
    uint64_t limit;       /* largest count */
    struct search result;
};

/* Reallocates an array to `count` elements of `size` bytes. Ends the program if memory is short. */
static void *grow_array(void *memory, uint64_t count, size_t size)
{
    memory = realloc(memory, count * size);
    if (memory == NULL) {
        fprintf(stderr, "model: no memory for %llu states\n", (unsigned long long)count);
        exit(2);
    }
    return memory;
}

/* Returns a hash of a packed state. */
static uint64_t hash(struct packed key)
{
    uint64_t h = key.word[0] * 0x9e3779b97f4a7c15ULL ^ key.word[1];

    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
    return h ^ h >> 32;
}

/* Returns the index in the table of the state's slot, or of the free slot for it. */
static uint64_t slot_of(const struct space *space, struct packed key)
{
    uint64_t slot = hash(key) & (space->slots - 1);

    while (space->table[slot] != 0) {
        const struct packed *other = &space->state[space->table[slot] - 1];
        if (other->word[0] == key.word[0] && other->word[1] == key.word[1])
            break;
        slot = (slot + 1) & (space->slots - 1);
    }
    return slot;
}

/* Makes room for one more state in the arrays and in the table. */
static void grow(struct space *space)
{
    if (space->count == space->room) {
        space->room = space->room == 0 ? 1U << 16 : space->room * 2;
        space->state = grow_array(space->state, space->room, sizeof *space->state);
        space->parent = grow_array(space->parent, space->room, sizeof *space->parent);
    }
    if (space->count * 2 < space->slots)
        return;
    space->slots = space->slots == 0 ? 1U << 18 : space->slots * 2;
    space->table = grow_array(space->table, space->slots, sizeof *space->table);
    memset(space->table, 0, space->slots * sizeof *space->table);
    for (uint64_t i = 0; i < space->count; i++)
        space->table[slot_of(space, space->state[i])] = (uint32_t)(i + 1);
}

/* Adds a state if it is new. Returns false if it is new and the limit is reached. */
static bool discover(struct space *space, struct packed key, uint32_t parent)
{
    grow(space);
    uint64_t slot = slot_of(space, key);
    if (space->table[slot] != 0)
        return true;
    if (space->count == space->limit)
        return false;
    space->state[space->count] = key;
    space->parent[space->count] = parent;
    space->table[slot] = (uint32_t)++space->count;
    return true;
}

/* Applies an action, and reduces the state in a reduced model. Returns false if that breaks the
 * order of the fencing tokens. */
static bool step(const struct space *space, struct model_state *state, struct model_action action)
{
    bool fine = model_apply(space->model, state, action);

    if (space->model->reduced)
        reduce_state(space->model, state);
    return fine;
}

/* Returns true if attempt `a` has returned a fencing token in this step. */
static bool has_returned(const struct model_state *before, const struct model_state *after,
                         unsigned a)
{
    return a < MODEL_ATTEMPTS_MAX && before->attempt[a].phase != PHASE_DONE &&
           after->attempt[a].phase == PHASE_DONE;
}

/* Adds the outcome of attempt `a`, which has returned in `state`, to the result. */
static void note_outcome(struct search *result, const struct model *model,
                         const struct model_state *state, unsigned a)
{
    const struct model_attempt *now = &state->attempt[a];

    result->grants++;
    for (unsigned b = 0; b < model->attempts; b++) {
        const struct model_attempt *other = &state->attempt[b];
        unsigned theirs = other->phase == PHASE_DONE && b != a ? other->value : 0;
        unsigned seen = (now->seen >> b & 1U);
        unsigned bit = seen << 8 | (now->value & 15U) << 4 | (theirs & 15U);
        result->outcomes.word[bit / 64] |= 1ULL << bit % 64;
    }
}

/* Writes the events from the first state to the state `last`, and the event of kind `final` that
 * breaks the order. result.length is the number of these events plus 1. States are packed without
 * names, so the path is followed from the first state: each step takes an event that leads to the
 * next packed state. */
static void write_path(struct space *space, uint32_t last, struct model_action final, FILE *out)
{
    struct model_action actions[MODEL_ACTIONS_MAX];
    uint32_t *path = grow_array(NULL, space->result.length + 1, sizeof *path);
    unsigned at = space->result.length - 1;
    struct model_state state;

    for (uint32_t i = last; i != NO_PARENT; i = space->parent[i])
        path[at--] = i;
    model_init(space->model, &state);
    for (unsigned i = 1; i < space->result.length; i++) {
        unsigned count = model_actions(space->model, &state, actions);
        for (unsigned j = 0; j < count; j++) {
            struct model_state next = state;
            step(space, &next, actions[j]);
            struct packed key = pack_state(space->model, &next, space->symmetric);
            if (memcmp(&key, &space->state[path[i]], sizeof key) == 0) {
                words_action(out, space->model, &state, &next, actions[j]);
                state = next;
                break;
            }
        }
    }
    unsigned count = model_actions(space->model, &state, actions);
    for (unsigned j = 0; j < count; j++) {
        struct model_state next = state;
        if (actions[j].kind == final.kind && !step(space, &next, actions[j])) {
            words_action(out, space->model, &state, &next, actions[j]);
            break;
        }
    }
    free(path);
}

/* Records a violation and its length, and writes the path to it. */
static void note_violation(struct space *space, uint32_t from, struct model_action action,
                           FILE *trace)
{
    space->result.violated = true;
    space->result.length = 1;
    for (uint32_t i = from; space->parent[i] != NO_PARENT; i = space->parent[i])
        space->result.length++;
    space->result.length++; /* a path has one more state than events */
    if (trace != NULL)
        write_path(space, from, action, trace);
    space->result.length--;
}

/* Adds the successors of state `number`. Returns false if the search must end: after a violation,
 * or at the limit. */
static bool expand(struct space *space, uint32_t number, FILE *trace)
{
    struct model_action actions[MODEL_ACTIONS_MAX];
    struct model_state state;

    unpack_state(space->model, space->state[number], &state);
    unsigned count = model_actions(space->model, &state, actions);
    for (unsigned i = 0; i < count; i++) {
        struct model_state next = state;
        bool fine = step(space, &next, actions[i]);
        space->result.steps++;
        if (has_returned(&state, &next, actions[i].attempt))
            note_outcome(&space->result, space->model, &next, actions[i].attempt);
        if (!fine) {
            note_violation(space, number, actions[i], trace);
            return false;
        }
        struct packed key = pack_state(space->model, &next, space->symmetric);
        if (!discover(space, key, number))
            return false;
    }
    return true;
}

/* Searches all states, the nearest first, until a violation or until `states_max` states were
 * found. Writes the events of the violation to `trace` unless it is NULL. */
struct search search_all(const struct model *model, bool symmetric, uint64_t states_max,
                         FILE *trace)
{
    struct space space = {.model = model, .symmetric = symmetric, .limit = states_max};
    struct model_state first;
    uint64_t next = 0;

    if (!pack_fits(model)) {
        fprintf(stderr, "model: a state of this model does not fit into 128 bits\n");
        exit(2);
    }
    model_init(model, &first);
    discover(&space, pack_state(model, &first, symmetric), NO_PARENT);
    while (next < space.count && expand(&space, (uint32_t)next, trace))
        next++;
    space.result.states = space.count;
    space.result.complete = next == space.count;
    free(space.state);
    free(space.parent);
    free(space.table);
    return space.result;
}
