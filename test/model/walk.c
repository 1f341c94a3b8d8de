/* SPDX-License-Identifier: MIT
 * Random walks through models that are drawn from the seed. */
#include "walk.h"

#include "search.h"

#include <string.h>

#define EVENTS_MAX 2000 /* a walk that is longer ends without a violation */

/* Rules of the nodes and of readmission, which may be broken while clients use the library's code.
 */
#define NODE_RULES                                                                                 \
    (BROKEN_VOTE_LOWERS | BROKEN_VOTE_REPEATED | BROKEN_RAISE_UNGUARDED | BROKEN_RAISE_LOWERS |    \
     BROKEN_LOST_COUNTS | BROKEN_FORGETFUL | BROKEN_READMIT_EARLY | BROKEN_READ_EARLY |            \
     BROKEN_READMIT_UNMERGED | BROKEN_READ_FEWER | BROKEN_UNMARKED | BROKEN_READMIT_TORN |         \
     BROKEN_START_ONCE | BROKEN_START_FEWER | BROKEN_SEED_UNMARKED | BROKEN_SEED_ANY_RUN)

/* Returns a random number below `below` (SplitMix64): neighbouring seeds give different sequences
 * as well. */
static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random += 0x9e3779b97f4a7c15ULL;
    uint64_t z = *random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return (uint32_t)(((z ^ z >> 31) >> 32) * below >> 32);
}

/* How rarely some events are chosen, which would otherwise happen as often as all others: in one of
 * so many cases. */
struct rarities {
    uint32_t interruptions; /* lost keys and records, healed keys, attempts that give up */
    uint32_t starts;        /* an attempt begins */
    uint32_t stragglers;    /* a message of an attempt that has ended arrives */
};

/* Draws the size and the options of a model with the rules `broken` switched off, and the rarities.
 */
static struct model draw_model(uint32_t broken, uint64_t *random, struct rarities *rarities)
{
    struct model model = {
        .nodes = 3 + draw(random, MODEL_NODES_MAX - 2),
        .attempts = 2 + draw(random, MODEL_ATTEMPTS_MAX - 1),
        .keys = 1 + (draw(random, 4) == 0),
        .proposals = 1 + draw(random, 3),
        .dels = draw(random, 2) != 0,
        .heals = draw(random, 4) == 0,
        .residencies = true,
        .broken = broken,
    };
    const uint32_t forgets = BROKEN_FORGETFUL | BROKEN_READMIT_EARLY | BROKEN_READ_EARLY |
                             BROKEN_READMIT_UNMERGED | BROKEN_READ_FEWER | BROKEN_UNMARKED;

    if (draw(random, 3) == 0 || (broken & forgets) != 0) {
        model.forgets = 1 + draw(random, 3);
        model.readmitters = (broken & BROKEN_FORGETFUL) != 0 ? 0 : 1 + draw(random, 2);
    }
    model.library = (broken | NODE_RULES) == NODE_RULES && draw(random, 2) != 0;
    if (draw(random, 2) == 0)
        for (unsigned n = 0; n < model.nodes; n++)
            model.initial[n] = (uint8_t)draw(random, 4);
    if (draw(random, 4) == 0) {
        model.starters = 1 + draw(random, 2);
        memset(model.initial, 0, sizeof model.initial);
    }
    rarities->interruptions = 1U << (1 + draw(random, 7));
    rarities->starts = 1U << draw(random, 7);
    rarities->stragglers = 1U << draw(random, 5);
    return model;
}

/* Returns the rarity of an event: it is chosen in one of so many cases. */
static uint32_t rarity(const struct model_state *state, struct model_action action,
                       const struct rarities *rarities)
{
    switch (action.kind) {
    case ACTION_VANISH:
    case ACTION_GIVE_UP:
    case ACTION_FORGET:
    case ACTION_ROLL_BACK:
    case ACTION_DEL:
    case ACTION_HEAL:
        return rarities->interruptions;
    case ACTION_START:
        return rarities->starts;
    case ACTION_VOTE:
    case ACTION_RAISE:
        return model_ended(&state->attempt[action.attempt]) ? rarities->stragglers : 1;
    default:
        return 1;
    }
}

/* Chooses one of the `count` possible events. A rare one is drawn again, at most 16 times. */
static struct model_action choose(const struct model_state *state,
                                  const struct model_action *actions, unsigned count,
                                  const struct rarities *rarities, uint64_t *random)
{
    struct model_action action = actions[draw(random, count)];

    for (unsigned i = 0; i < 16 && draw(random, rarity(state, action, rarities)) != 0; i++)
        action = actions[draw(random, count)];
    return action;
}

/* Adds an event to the sums. */
static void count_event(struct walks *walks, struct model_action action,
                        const struct model_state *before, const struct model_state *after)
{
    walks->events++;
    if (action.kind == ACTION_FORGET)
        walks->forgot++;
    else if (action.kind == ACTION_ADMIT)
        walks->returned++;
    if (action.kind == ACTION_SEED)
        walks->started++;
    if (action.attempt >= MODEL_ATTEMPTS_MAX || after->attempt[action.attempt].phase != PHASE_DONE)
        return;
    if (before->attempt[action.attempt].phase == PHASE_VOTING)
        walks->fast++;
    else if (before->attempt[action.attempt].phase == PHASE_RAISING)
        walks->slow++;
}

/* Walks once through the model that the seed gives. Returns false if the order of the fencing
 * tokens was broken. Adds the events to `walks`, and writes them to `trace` unless it is NULL. */
static bool walk(uint32_t broken, uint64_t seed, struct walks *walks, FILE *trace)
{
    struct model_action actions[MODEL_ACTIONS_MAX];
    uint64_t random = seed * 0xda942042e4dd58b5ULL;
    struct rarities rarities;
    struct model model = draw_model(broken, &random, &rarities);
    struct model_state state;

    model_init(&model, &state);
    for (unsigned i = 0; i < EVENTS_MAX; i++) {
        unsigned count = model_actions(&model, &state, actions);
        if (count == 0)
            break;
        struct model_action action = choose(&state, actions, count, &rarities, &random);
        struct model_state before = state;
        bool fine = model_apply(&model, &state, action);
        if (trace != NULL)
            words_action(trace, &model, &before, &state, action);
        count_event(walks, action, &before, &state);
        if (!fine)
            return false;
    }
    return true;
}

/* Walks `count` times with seed, seed + 1 and so on, and stops at a violation. */
struct walks walk_all(uint32_t broken, uint64_t seed, uint64_t count, FILE *trace)
{
    struct walks walks = {0};

    for (; walks.walks < count && !walks.violated; seed++) {
        walks.walks++;
        walks.violated = !walk(broken, seed, &walks, trace);
        walks.seed = seed;
    }
    return walks;
}
