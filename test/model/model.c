/* SPDX-License-Identifier: MIT
 * The possible actions of the model and their effects: the scripts of a node (VOTE, RAISE, DEL) and
 * the steps of a client. They follow the description of the algorithm (model.h), not the library.
 *
 * A client sends VOTE with its proposal p to all nodes. A node grants the vote, accepts p if p is
 * larger than its register, and replies GRANTED with the earlier register, prev. If a quorum has
 * accepted p, p is the fencing token. Otherwise the client chooses one more than the maximum and
 * sends RAISE; a quorum of ACKs makes that number the token.
 *
 * Functions that list actions append to `out` and return how many. In a reduced model (reduce.c) a
 * script and its reply are one action. Broken rules are BROKEN_* in model.h. */
#include <string.h>

#include "model.h"

/* Returns the number of nodes that must grant: a majority. */
unsigned model_quorum(const struct model *model)
{
    return model->nodes / 2 + 1;
}

/* Returns whether the attempt has begun and not ended. */
bool model_under_way(const struct model_attempt *attempt)
{
    return attempt->phase == PHASE_VOTING || attempt->phase == PHASE_RAISING;
}

/* Returns whether the attempt has returned a fencing token or given up. */
bool model_ended(const struct model_attempt *attempt)
{
    return attempt->phase == PHASE_DONE || attempt->phase == PHASE_FAILED;
}

/* Returns the number of nodes whose cell has all of these flags. */
unsigned model_count(const struct model *model, const struct model_attempt *attempt, unsigned flags)
{
    unsigned count = 0;

    for (unsigned n = 0; n < model->nodes; n++)
        count += (attempt->cell[n].flags & flags) == flags;
    return count;
}

/* Sets the first state: registers as configured, nodes in use unless there is a first start. */
void model_init(const struct model *model, struct model_state *state)
{
    memset(state, 0, sizeof *state);
    for (unsigned n = 0; n < model->nodes; n++) {
        state->node[n].fence = model->initial[n];
        state->node[n].admitted = model->starters == 0;
    }
    state->forgets = (uint8_t)model->forgets;
}

/* Returns the larger number. */
static uint8_t larger(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* Sets a flag in all cells of the attempt. */
static void set_all(const struct model *model, struct model_attempt *attempt, unsigned flag)
{
    for (unsigned n = 0; n < model->nodes; n++)
        attempt->cell[n].flags |= (uint16_t)flag;
}

/* Clears flags in all cells of the attempt. */
static void clear_all(const struct model *model, struct model_attempt *attempt, unsigned flags)
{
    for (unsigned n = 0; n < model->nodes; n++)
        attempt->cell[n].flags &= (uint16_t)~flags;
}

/* ---- possible actions ---- */

/* Lists what the client of attempt `a` may do: begin, return after one round, begin the second
 * round, return after the second round, or give up. */
static unsigned client_actions(const struct model *model, const struct model_state *state,
                               unsigned a, struct model_action *out)
{
    const struct model_attempt *attempt = &state->attempt[a];
    unsigned q = model_quorum(model), count = 0;
    unsigned grants = q - model_broken(model, BROKEN_FEWER_GRANTS);
    unsigned accepted = q - (model->broken & (BROKEN_FEWER_GRANTS | BROKEN_FEWER_ACCEPTED) ? 1 : 0);
    unsigned acks = q - (model->broken & (BROKEN_FEWER_GRANTS | BROKEN_FEWER_ACKS) ? 1 : 0);
    uint8_t who = (uint8_t)a;

    switch (attempt->phase) {
    case PHASE_IDLE:
        if (!start_is_seen(model, state) && !model_broken(model, BROKEN_VOTE_EARLY))
            return 0;
        for (unsigned p = 1; p <= (model->p_is_time ? 1 : model->proposals); p++)
            out[count++] = (struct model_action){ACTION_START, who, 0, (uint8_t)p};
        return count;
    case PHASE_VOTING:
        if (model->library || model_count(model, attempt, CELL_USED) < grants)
            break;
        if (model_count(model, attempt, CELL_USED | CELL_ACCEPTED) >= accepted &&
            !model_broken(model, VARIANT_TWO_ROUNDS))
            out[count++] = (struct model_action){ACTION_FAST, who, 0, 0};
        out[count++] = (struct model_action){ACTION_SLOW, who, 0, 0};
        break;
    case PHASE_RAISING:
        if (!model->library && model_count(model, attempt, CELL_ACKED) >= acks)
            out[count++] = (struct model_action){ACTION_RETURN, who, 0, 0};
        break;
    default:
        return 0;
    }
    if (!model->reduced || model->readmitters > 0)
        out[count++] = (struct model_action){ACTION_GIVE_UP, who, 0, 0};
    return count;
}

/* Lists the ways in which node `n` may execute the VOTE of attempt `a`. In a reduced model there
 * are two: the reply is not used (detail 0), or used at once (detail 1). */
static unsigned vote_actions(const struct model *model, const struct model_state *state, unsigned a,
                             unsigned n, struct model_action *out)
{
    uint8_t last = 0;
    unsigned count = 0;

    if (model->reduced) {
        if (!state->node[n].admitted)
            return 0;
        last = state->attempt[a].phase == PHASE_VOTING && !model->library;
    }
    for (uint8_t detail = 0; detail <= last; detail++)
        out[count++] = (struct model_action){ACTION_VOTE, (uint8_t)a, (uint8_t)n, detail};
    return count;
}

/* Lists the messages between attempt `a` and node `n` that may arrive, and the restoration of a
 * key. */
static unsigned message_actions(const struct model *model, const struct model_state *state,
                                unsigned a, unsigned n, struct model_action *out)
{
    static const struct {
        uint16_t flag;
        uint8_t action;
    } MESSAGES[] = {{CELL_GRANT, ACTION_GRANT},
                    {CELL_RAISE, ACTION_RAISE},
                    {CELL_ACK, ACTION_ACK},
                    {CELL_DEL, ACTION_DEL}};
    const struct model_attempt *attempt = &state->attempt[a];
    uint16_t flags = attempt->cell[n].flags;
    unsigned count = 0;

    if ((flags & CELL_VOTE) != 0)
        count = vote_actions(model, state, a, n, out);
    for (unsigned i = 0; i < sizeof MESSAGES / sizeof MESSAGES[0]; i++)
        if ((flags & MESSAGES[i].flag) != 0)
            out[count++] = (struct model_action){MESSAGES[i].action, (uint8_t)a, (uint8_t)n, 0};
    if (model->heals && attempt->phase == PHASE_DONE) {
        uint8_t owner = state->node[n].owner[model_key(model, a)];
        if (model->reduced ? owner != a + 1 : owner == 0)
            out[count++] = (struct model_action){ACTION_HEAL, (uint8_t)a, (uint8_t)n, 0};
    }
    return count;
}

/* Lists the events of a node alone: it loses its record, or one of its keys vanishes. */
static unsigned node_actions(const struct model *model, const struct model_state *state, unsigned n,
                             struct model_action *out)
{
    unsigned count = 0;

    if (state->forgets > 0)
        out[count++] = (struct model_action){ACTION_FORGET, 0, (uint8_t)n, 0};
    if (model->reduced)
        return count;
    for (unsigned key = 0; key < model->keys; key++)
        if (state->node[n].owner[key] != 0)
            out[count++] = (struct model_action){ACTION_VANISH, 0, (uint8_t)n, (uint8_t)key};
    return count;
}

/* Lists all possible actions and returns their number; 0 if all attempts have ended. */
unsigned model_actions(const struct model *model, const struct model_state *state,
                       struct model_action actions[MODEL_ACTIONS_MAX])
{
    unsigned count = 0;
    bool all_ended = true;

    for (unsigned a = 0; a < model->attempts; a++)
        all_ended = all_ended && model_ended(&state->attempt[a]);
    if (all_ended)
        return 0;
    for (unsigned a = 0; a < model->attempts; a++) {
        count += client_actions(model, state, a, actions + count);
        for (unsigned n = 0; n < model->nodes; n++)
            count += message_actions(model, state, a, n, actions + count);
    }
    for (unsigned n = 0; n < model->nodes; n++)
        count += node_actions(model, state, n, actions + count);
    count += readmit_actions(model, state, actions + count);
    return count + start_actions(model, state, actions + count);
}

/* ---- effects of actions ---- */

/* Begins attempt `a` with the proposal `p` and sends its VOTE to all nodes. */
static void start(const struct model *model, struct model_state *state, unsigned a, uint8_t p)
{
    struct model_attempt *attempt = &state->attempt[a];
    uint8_t started = 0;

    for (unsigned b = 0; b < model->attempts; b++) {
        if (state->attempt[b].phase != PHASE_IDLE)
            started++;
        if (state->attempt[b].phase == PHASE_DONE && model_key(model, a) == model_key(model, b))
            attempt->seen |= MODEL_BIT(b);
    }
    attempt->phase = PHASE_VOTING;
    /* The clock gives attempts increasing values, with gaps between them. */
    attempt->p = model->p_is_time ? (uint8_t)(3U * (started + 1U)) : p;
    set_all(model, attempt, CELL_VOTE);
    if (model_broken(model, BROKEN_VOTE_REPEATED))
        set_all(model, attempt, CELL_AGAIN);
}

/* Adds the GRANTED of node `n` to what the client of the attempt knows: the node belongs to its
 * quorum, and `prev` and an accepted p count in the maximum. */
static void use_grant(const struct model *model, struct model_attempt *attempt, unsigned n,
                      uint8_t prev, bool accepted)
{
    unsigned used = model_count(model, attempt, CELL_USED);

    attempt->cell[n].flags |= CELL_USED;
    if (accepted)
        attempt->cell[n].flags |= CELL_ACCEPTED;
    if (model_broken(model, BROKEN_ONE_PREV_IGNORED) && used + 1 >= model_quorum(model))
        return;
    attempt->value = larger(attempt->value, prev);
    if (accepted && !model_broken(model, BROKEN_P_NOT_IN_MAXIMUM))
        attempt->value = larger(attempt->value, attempt->p);
}

/* Lets the client receive a GRANTED. Returns false if that breaks the order of the fencing tokens.
 */
static bool read_grant(const struct model *model, struct model_state *state,
                       struct model_action action)
{
    struct model_attempt *attempt = &state->attempt[action.attempt];
    struct model_cell *cell = &attempt->cell[action.node];
    bool accepted = (cell->flags & CELL_ACCEPTED) != 0;
    uint8_t prev = cell->prev;

    cell->prev = 0;
    if (model->library)
        return library_grant(model, state, action.attempt, action.node, prev, accepted);
    use_grant(model, attempt, action.node, prev, accepted);
    return true;
}

/* Records that node `n` has the key of attempt `a` now, and which attempts had the key before. Only
 * for models with `residencies`. */
static void note_residency(const struct model *model, struct model_state *state, unsigned a,
                           unsigned n)
{
    struct model_cell *cell = &state->attempt[a].cell[n];

    if (!model->residencies || (cell->flags & CELL_RESIDED) != 0)
        return;
    cell->flags |= CELL_RESIDED;
    for (unsigned b = 0; b < model->attempts; b++)
        if (b != a && (state->attempt[b].cell[n].flags & CELL_RESIDED) != 0 &&
            model_key(model, a) == model_key(model, b))
            cell->after |= MODEL_BIT(b);
}

/* Executes VOTE on a node, and in a reduced model also its reply. A node that is not in use, or
 * that has a key, does nothing. In a reduced model a key has vanished just before. */
static void vote(const struct model *model, struct model_state *state, struct model_action action)
{
    struct model_node *node = &state->node[action.node];
    struct model_attempt *attempt = &state->attempt[action.attempt];
    struct model_cell *cell = &attempt->cell[action.node];
    uint8_t *owner = &node->owner[model_key(model, action.attempt)];

    cell->flags &= (uint16_t) ~((cell->flags & CELL_AGAIN) != 0 ? CELL_AGAIN : CELL_VOTE);
    if (!node->admitted || (*owner != 0 && !model->reduced))
        return;
    uint8_t prev = node->fence;
    bool accepted =
        model_broken(model, BROKEN_EQUAL_ACCEPTED) ? attempt->p >= prev : attempt->p > prev;
    *owner = (uint8_t)(action.attempt + 1);
    note_residency(model, state, action.attempt, action.node);
    if (model_broken(model, VARIANT_INCREMENT)) {
        accepted = false;
        node->fence++;
    } else if (accepted || model_broken(model, BROKEN_VOTE_LOWERS)) {
        node->fence = attempt->p;
    }
    bool reads =
        attempt->phase == PHASE_VOTING || (model->library && attempt->phase == PHASE_RAISING);
    if (!reads || (cell->flags & (CELL_USED | CELL_GRANT)) != 0)
        return;
    if (!model->reduced || model->library) {
        cell->flags |= (uint16_t)(CELL_GRANT | (accepted ? CELL_ACCEPTED : 0));
        cell->prev = prev;
    } else if ((action.detail & 1U) != 0) {
        use_grant(model, attempt, action.node, prev, accepted);
    }
}

/* Lets the client receive an ACK. Returns false if that breaks the order of the fencing tokens. */
static bool read_ack(const struct model *model, struct model_state *state,
                     struct model_action action)
{
    struct model_cell *cell = &state->attempt[action.attempt].cell[action.node];

    if (model->library)
        return library_ack(model, state, action.attempt, action.node);
    if ((cell->flags & CELL_USED) != 0 || model_broken(model, BROKEN_ACKS_FROM_ANYONE))
        cell->flags |= CELL_ACKED;
    return true;
}

/* Executes RAISE on a node, and in a reduced model also its reply. Returns false if that breaks the
 * order of the fencing tokens. */
static bool raise_fence(const struct model *model, struct model_state *state,
                        struct model_action action)
{
    struct model_node *node = &state->node[action.node];
    struct model_attempt *attempt = &state->attempt[action.attempt];
    struct model_cell *cell = &attempt->cell[action.node];
    bool lost = node->owner[model_key(model, action.attempt)] != action.attempt + 1 &&
                !model_broken(model, BROKEN_RAISE_UNGUARDED);

    cell->flags &= (uint16_t)~CELL_RAISE;
    if (!lost && model_broken(model, BROKEN_RAISE_LOWERS))
        node->fence = attempt->value;
    else if (!lost)
        node->fence = larger(node->fence, attempt->value);
    if (attempt->phase != PHASE_RAISING || (lost && !model_broken(model, BROKEN_LOST_COUNTS)))
        return true;
    if (model->reduced)
        return read_ack(model, state, action);
    cell->flags |= CELL_ACK;
    return true;
}

/* Returns whether the fencing tokens of `a`, which returns now, and of `b`, which has returned
 * before, are in order. They must differ. That of `a` must be the larger one if `b` had returned
 * before `a` began. With `residencies` they must also follow the order in which nodes had the keys.
 */
static bool in_order(const struct model *model, const struct model_state *state, unsigned a,
                     unsigned b)
{
    const struct model_attempt *now = &state->attempt[a], *then = &state->attempt[b];

    if (model->apart && (now->seen & MODEL_BIT(b)) == 0)
        return true;
    if (now->value == then->value || ((now->seen & MODEL_BIT(b)) != 0 && now->value < then->value))
        return false;
    uint8_t both = now->counts & then->counts;
    for (unsigned n = 0; n < model->nodes && model->residencies; n++) {
        if ((both & MODEL_BIT(n)) == 0)
            continue;
        if ((now->cell[n].after & MODEL_BIT(b)) != 0 && now->value < then->value)
            return false;
        if ((then->cell[n].after & MODEL_BIT(a)) != 0 && now->value > then->value)
            return false;
    }
    return true;
}

/* Ends attempt `a` with the fencing token `fence`; `flags`: in the cells of the nodes that made it
 * certain. Returns false if that breaks the order of the fencing tokens. The holder may release at
 * any time from now on. */
bool model_finish(const struct model *model, struct model_state *state, unsigned a, uint8_t fence,
                  unsigned flags)
{
    struct model_attempt *attempt = &state->attempt[a];
    bool fine = true;

    attempt->phase = PHASE_DONE;
    attempt->value = fence;
    for (unsigned n = 0; n < model->nodes && model->residencies; n++)
        if ((attempt->cell[n].flags & flags) == flags)
            attempt->counts |= MODEL_BIT(n);
    clear_all(model, attempt, CELL_GRANT | CELL_ACK);
    if (model->dels)
        set_all(model, attempt, CELL_DEL);
    for (unsigned b = 0; b < model->attempts; b++)
        if (b != a && state->attempt[b].phase == PHASE_DONE &&
            model_key(model, a) == model_key(model, b))
            fine = fine && in_order(model, state, a, b);
    return fine;
}

/* Chooses f and sends RAISE to all nodes. Returns false if that breaks the order of the fencing
 * tokens, which it can do only without a second round (BROKEN_NO_ACKS). */
static bool second_round(const struct model *model, struct model_state *state, unsigned a)
{
    struct model_attempt *attempt = &state->attempt[a];
    uint8_t most = model_broken(model, BROKEN_PREV_IGNORED) ? attempt->p : attempt->value;

    attempt->value = (uint8_t)(most + (model_broken(model, BROKEN_NOT_ABOVE) ? 0 : 1));
    if (model_broken(model, BROKEN_NO_ACKS))
        return model_finish(model, state, a, attempt->value, CELL_USED);
    attempt->phase = PHASE_RAISING;
    clear_all(model, attempt, CELL_GRANT);
    set_all(model, attempt, CELL_RAISE);
    return true;
}

/* Ends the attempt without a fencing token. */
void model_give_up(const struct model *model, struct model_attempt *attempt)
{
    attempt->phase = PHASE_FAILED;
    clear_all(model, attempt, CELL_GRANT | CELL_ACK);
    if (model->dels)
        set_all(model, attempt, CELL_DEL);
}

/* Removes the record and the keys of the node. */
static void forget(const struct model *model, struct model_state *state, struct model_node *node)
{
    state->forgets--;
    node->fence = 0;
    if (model_broken(model, BROKEN_FORGETFUL))
        return;
    memset(node->owner, 0, sizeof node->owner);
    node->admitted = false;
    node->marks = 0;
}

/* Executes the DEL of attempt `a` on node `n`: deletes the key if it is this attempt's. */
static void delete_key(const struct model *model, struct model_state *state, unsigned a, unsigned n)
{
    uint8_t *owner = &state->node[n].owner[model_key(model, a)];

    state->attempt[a].cell[n].flags &= (uint16_t)~CELL_DEL;
    if (*owner == a + 1)
        *owner = 0;
}

/* Applies one action to the state. Returns false if that breaks the order of the fencing tokens. */
bool model_apply(const struct model *model, struct model_state *state, struct model_action action)
{
    unsigned a = action.attempt, n = action.node;
    struct model_attempt *attempt = &state->attempt[a < model->attempts ? a : 0];
    struct model_cell *cell = &attempt->cell[n];

    switch (action.kind) {
    case ACTION_START:
        start(model, state, a, action.detail);
        break;
    case ACTION_VOTE:
        vote(model, state, action);
        break;
    case ACTION_GRANT:
        cell->flags &= (uint16_t)~CELL_GRANT;
        return read_grant(model, state, action);
    case ACTION_FAST:
        return model_finish(model, state, a, attempt->p, CELL_USED | CELL_ACCEPTED);
    case ACTION_SLOW:
        return second_round(model, state, a);
    case ACTION_RAISE:
        return raise_fence(model, state, action);
    case ACTION_ACK:
        cell->flags &= (uint16_t)~CELL_ACK;
        return read_ack(model, state, action);
    case ACTION_RETURN:
        return model_finish(model, state, a, attempt->value, CELL_ACKED);
    case ACTION_GIVE_UP:
        model_give_up(model, attempt);
        break;
    case ACTION_DEL:
        delete_key(model, state, a, n);
        break;
    case ACTION_VANISH:
        state->node[n].owner[action.detail] = 0;
        break;
    case ACTION_HEAL:
        state->node[n].owner[model_key(model, a)] = (uint8_t)(a + 1);
        break;
    case ACTION_FORGET:
        forget(model, state, &state->node[n]);
        break;
    case ACTION_LOOK:
    case ACTION_SEED:
    case ACTION_ROLL_BACK:
        start_apply(model, state, action);
        break;
    default:
        readmit_apply(model, state, action);
        break;
    }
    return true;
}
