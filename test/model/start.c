/* SPDX-License-Identifier: MIT
 * The first start, when no node is in use. A client reads all nodes and leaves its mark on each.
 * Then it reads them again. If all are still empty and have their marks, they were all empty at one
 * time between the two readings, so no grant can count. From then on the client may seed each node
 * that still has its mark, because such a node has not voted since: at once, later or never. Other
 * clients do the same meanwhile. Nodes are used, and lose their record together with their marks.
 */
#include "model.h"

/* Returns true if node `n` has the mark of client `s`. */
static bool has_mark(const struct model_state *state, unsigned s, unsigned n)
{
    return (state->node[n].marks & model_start_mark(s)) != 0;
}

/* Lists what client `s` may do, in `out`: read a node, or seed one. Returns how many actions that
 * are. */
static unsigned one_starter(const struct model *model, const struct model_state *state, unsigned s,
                            struct model_action *out)
{
    const struct model_starter *starter = &state->starter[s];
    unsigned count = 0;

    for (unsigned n = 0; n < model->nodes && starter->phase != START_OVER; n++) {
        struct model_action action = {ACTION_LOOK, (uint8_t)s, (uint8_t)n, 0};
        if (starter->phase != START_CERTAIN) {
            if ((starter->read & MODEL_BIT(n)) == 0)
                out[count++] = action;
            continue;
        }
        action.kind = ACTION_SEED;
        if (!state->node[n].admitted &&
            (has_mark(state, s, n) || model_broken(model, BROKEN_SEED_UNMARKED)))
            out[count++] = action;
    }
    return count;
}

/* Lists what all clients of the first start may do, and with BROKEN_SEED_ANY_RUN the restarts of
 * nodes. Returns how many actions that are. */
unsigned start_actions(const struct model *model, const struct model_state *state,
                       struct model_action *actions)
{
    unsigned count = 0;

    for (unsigned s = 0; s < model->starters; s++)
        count += one_starter(model, state, s, actions + count);
    if (!model_broken(model, BROKEN_SEED_ANY_RUN) || state->forgets == 0)
        return count;
    for (unsigned n = 0; n < model->nodes; n++)
        if (state->node[n].marks_before != 0 && state->node[n].admitted)
            actions[count++] = (struct model_action){ACTION_ROLL_BACK, 0, (uint8_t)n, 0};
    return count;
}

/* Returns whether a majority of nodes has come into use at some time, or there is no first start in
 * this model. Then clients may begin to vote. */
bool start_is_seen(const struct model *model, const struct model_state *state)
{
    return model->starters == 0 || (unsigned)__builtin_popcount(state->used) >= model_quorum(model);
}

/* Removes the marks of client `s` from all nodes; the client begins again with its first reading.
 */
static void restart(const struct model *model, struct model_state *state, unsigned s)
{
    state->starter[s] = (struct model_starter){.phase = START_FIRST_LOOK};
    for (unsigned n = 0; n < model->nodes; n++)
        state->node[n].marks &= (uint8_t)~model_start_mark(s);
}

/* Lets client `s` read node `n`. The client ends if the node is in use, begins again if its mark is
 * gone at the second reading, and otherwise leaves its mark. After the last node it goes on to the
 * next phase. */
static void read_node(const struct model *model, struct model_state *state, unsigned s, unsigned n)
{
    struct model_starter *starter = &state->starter[s];
    unsigned needed = model->nodes - model_broken(model, BROKEN_START_FEWER);
    unsigned last = model_broken(model, BROKEN_START_ONCE) ? START_FIRST_LOOK : START_SECOND_LOOK;

    if (state->node[n].admitted) {
        restart(model, state, s);
        starter->phase = START_OVER;
        return;
    }
    if (starter->phase == START_SECOND_LOOK && !has_mark(state, s, n)) {
        restart(model, state, s);
        return;
    }
    state->node[n].marks |= model_start_mark(s);
    starter->read |= MODEL_BIT(n);
    if ((unsigned)__builtin_popcount(starter->read) < needed)
        return;
    starter->read = 0;
    starter->phase = starter->phase == last ? START_CERTAIN : START_SECOND_LOOK;
}

/* Notes that a node came into use. Once it is a majority, the set does not matter any more. */
static void note_used(const struct model *model, struct model_state *state, unsigned n)
{
    state->used |= MODEL_BIT(n);
    if (start_is_seen(model, state))
        state->used = (uint8_t)(MODEL_BIT(model->nodes) - 1);
}

/* Returns the marks of all clients of the first start, as a set. */
static uint8_t start_marks(const struct model *model)
{
    uint8_t marks = 0;

    for (unsigned s = 0; s < model->starters; s++)
        marks |= model_start_mark(s);
    return marks;
}

/* Applies an action of a first start: a client reads or seeds a node, or a node restarts with its
 * state from before it came into use (the default case). */
void start_apply(const struct model *model, struct model_state *state, struct model_action action)
{
    struct model_node *node = &state->node[action.node];

    switch (action.kind) {
    case ACTION_LOOK:
        read_node(model, state, action.attempt, action.node);
        break;
    case ACTION_SEED:
        node->admitted = true;
        note_used(model, state, action.node);
        if (model_broken(model, BROKEN_SEED_ANY_RUN))
            node->marks_before = node->marks & start_marks(model);
        node->marks = 0;
        break;
    default:
        state->forgets--;
        node->fence = 0;
        for (unsigned key = 0; key < model->keys; key++)
            node->owner[key] = 0;
        node->admitted = false;
        node->marks = node->marks_before;
        node->marks_before = 0;
        break;
    }
}
