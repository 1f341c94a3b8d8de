/* SPDX-License-Identifier: MIT
 * The readmission of a node that lost its record. A client sees that the fingerprint is missing and
 * leaves a mark. It waits until every attempt has ended that was under way then, reads the
 * registers of q other nodes, and writes the maximum together with the fingerprint if its mark is
 * still there. q is the quorum; broken rules are BROKEN_* in model.h. */
#include "model.h"

/* Returns whether all attempts have ended for which this client has to wait. In reality TTL and
 * drift say so, which is the only use of clocks. */
static bool has_waited(const struct model *model, const struct model_state *state,
                       const struct model_readmitter *client)
{
    for (unsigned a = 0; a < model->attempts; a++)
        if ((client->waits & MODEL_BIT(a)) != 0 && model_under_way(&state->attempt[a]))
            return false;
    return true;
}

/* Returns whether client `r` may readmit its node now. */
static bool may_admit(const struct model *model, const struct model_state *state, unsigned r)
{
    const struct model_readmitter *client = &state->readmitter[r];
    const struct model_node *node = &state->node[client->node];
    unsigned needed = model_quorum(model);

    if (model_broken(model, BROKEN_READ_FEWER))
        needed--;
    if (model_broken(model, BROKEN_READMIT_UNMERGED))
        needed = 0;
    if ((node->marks & MODEL_BIT(r)) == 0 && !model_broken(model, BROKEN_UNMARKED))
        return false;
    return (unsigned)__builtin_popcount(client->read) >= needed &&
           (has_waited(model, state, client) || model_broken(model, BROKEN_READMIT_EARLY));
}

/* Lists what client `r` may do, in `out`. Returns how many actions that are. */
static unsigned one_readmitter(const struct model *model, const struct model_state *state,
                               unsigned r, struct model_action *out)
{
    const struct model_readmitter *client = &state->readmitter[r];
    /* Without its mark, what the client has read is invalid, and it begins again. */
    bool idle =
        client->phase == READMIT_IDLE || ((state->node[client->node].marks & MODEL_BIT(r)) == 0 &&
                                          !model_broken(model, BROKEN_UNMARKED));
    bool may_read = has_waited(model, state, client) ||
                    (model->broken & (BROKEN_READMIT_EARLY | BROKEN_READ_EARLY)) != 0;
    unsigned count = 0;

    if (client->phase == READMIT_MERGED) {
        out[count++] = (struct model_action){ACTION_ADMIT, (uint8_t)r, client->node, 0};
        return count;
    }
    for (unsigned n = 0; n < model->nodes; n++) {
        const struct model_node *node = &state->node[n];
        if (idle) {
            if (!node->admitted)
                out[count++] = (struct model_action){ACTION_READMIT, (uint8_t)r, (uint8_t)n, 0};
        } else if (n != client->node && node->admitted && may_read &&
                   (client->read & MODEL_BIT(n)) == 0) {
            out[count++] = (struct model_action){ACTION_READ, (uint8_t)r, (uint8_t)n, 0};
        }
    }
    if (!idle && may_admit(model, state, r)) {
        uint8_t kind = model_broken(model, BROKEN_READMIT_TORN) ? ACTION_MERGE : ACTION_ADMIT;
        out[count++] = (struct model_action){kind, (uint8_t)r, client->node, 0};
    }
    return count;
}

/* Lists what all clients that readmit nodes may do. Returns how many actions that are. */
unsigned readmit_actions(const struct model *model, const struct model_state *state,
                         struct model_action *actions)
{
    unsigned count = 0;

    for (unsigned r = 0; r < model->readmitters; r++)
        count += one_readmitter(model, state, r, actions + count);
    return count;
}

/* Lets client `r` notice the loss on node `n` and leave its mark. */
static void begin(const struct model *model, struct model_state *state, unsigned r, uint8_t n)
{
    struct model_readmitter *client = &state->readmitter[r];

    *client = (struct model_readmitter){.phase = READMIT_BEGUN, .node = n};
    state->node[n].marks |= MODEL_BIT(r);
    for (unsigned a = 0; a < model->attempts; a++)
        if (model_under_way(&state->attempt[a]))
            client->waits |= MODEL_BIT(a);
}

/* Raises the register of the client's node to the maximum that the client has read. */
static void merge(struct model_state *state, const struct model_readmitter *client)
{
    struct model_node *node = &state->node[client->node];

    if (node->fence < client->value)
        node->fence = client->value;
}

/* Writes the fingerprint to the client's node, removes all marks there, and ends the readmission.
 */
static void admit(struct model_state *state, struct model_readmitter *client)
{
    state->node[client->node].admitted = true;
    state->node[client->node].marks = 0;
    *client = (struct model_readmitter){.phase = READMIT_IDLE};
}

/* Applies an action of a client that readmits a node. */
void readmit_apply(const struct model *model, struct model_state *state, struct model_action action)
{
    struct model_readmitter *client = &state->readmitter[action.attempt];

    switch (action.kind) {
    case ACTION_READMIT:
        begin(model, state, action.attempt, action.node);
        break;
    case ACTION_READ:
        client->read |= MODEL_BIT(action.node);
        if (client->value < state->node[action.node].fence)
            client->value = state->node[action.node].fence;
        break;
    case ACTION_MERGE:
        merge(state, client);
        client->phase = READMIT_MERGED;
        break;
    case ACTION_ADMIT:
        if (client->phase == READMIT_BEGUN)
            merge(state, client);
        admit(state, client);
        break;
    default:
        break;
    }
}
