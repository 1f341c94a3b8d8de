/* SPDX-License-Identifier: MIT
 * The reductions of a model, and why they lose no outcome:
 *   - A reply is used at once or never. Its way back needs no state: a client that reads it later
 *     could as well have read it at once and decided later, because it may decide at any time.
 *     If the library decides, it does so as soon as it can; then replies are part of the state.
 *   - An ACK is always used: it only permits the client to return, and does not force it to.
 *   - A VOTE finds no key of another attempt. "The key vanishes, VOTE is granted" is one step. A
 *     VOTE that is denied is one that does not arrive. A key that vanishes otherwise only makes a
 *     RAISE fail, which is a RAISE that does not arrive. DEL is a key that vanishes.
 *   - No attempt gives up, unless another client waits for that: an attempt that gives up is one
 *     that never decides.
 *   - What no longer has an effect is removed: proposals of attempts without a VOTE under way, a
 *     RAISE that can only be LOST, an attempt that can no longer succeed.
 *   - When all attempts have ended, no fencing token can be returned any more.
 *   - Nodes have no names, and neither have attempts (pack.c).
 *
 * test_model.c compares the outcomes of both forms; walks use the form without reductions. */
#include "reduce.h"

/* Returns the number of cells that have the flag `have`, or may still get it because one of `may`
 * is under way. */
static unsigned possible(const struct model *model, const struct model_attempt *attempt,
                         unsigned have, unsigned may)
{
    unsigned count = 0;

    for (unsigned n = 0; n < model->nodes; n++)
        count += (attempt->cell[n].flags & (have | may)) != 0;
    return count;
}

/* Returns whether the attempt, which is under way, can still return a fencing token. */
static bool can_succeed(const struct model *model, const struct model_attempt *attempt)
{
    unsigned q = model_quorum(model);

    if ((model->broken & (BROKEN_FEWER_GRANTS | BROKEN_FEWER_ACKS)) != 0)
        return true;
    if (attempt->phase == PHASE_VOTING)
        return possible(model, attempt, CELL_USED, CELL_VOTE | CELL_GRANT) >= q;
    unsigned late = model->library ? CELL_VOTE | CELL_GRANT : 0;
    return possible(model, attempt, CELL_ACKED, CELL_RAISE | late) >= q;
}

/* Removes from the cell of attempt `a` and node `n` what can have no effect any more. */
static void reduce_cell(const struct model *model, const struct model_state *state, unsigned a,
                        unsigned n, struct model_cell *cell)
{
    uint8_t phase = state->attempt[a].phase;
    bool mine = state->node[n].owner[model_key(model, a)] == a + 1;
    bool guarded = (model->broken & (BROKEN_RAISE_UNGUARDED | BROKEN_LOST_COUNTS)) == 0;

    if (guarded && !mine && !model->heals && (cell->flags & CELL_VOTE) == 0)
        cell->flags &= (uint16_t)~CELL_RAISE;
    if (phase == PHASE_RAISING) {
        if ((cell->flags & CELL_GRANT) == 0)
            cell->flags &= (uint16_t)~CELL_ACCEPTED;
        if ((cell->flags & (CELL_RAISE | CELL_ACKED)) == 0)
            cell->flags &= (uint16_t)~CELL_USED;
    } else if (phase != PHASE_VOTING) {
        cell->flags &= CELL_VOTE | CELL_AGAIN | CELL_RAISE | CELL_RESIDED;
        cell->prev = 0;
    }
}

/* Removes from a state of a reduced model what can have no effect any more. */
void reduce_state(const struct model *model, struct model_state *state)
{
    for (unsigned a = 0; a < model->attempts; a++) {
        struct model_attempt *attempt = &state->attempt[a];
        if (attempt->phase == PHASE_IDLE)
            continue;
        for (unsigned n = 0; n < model->nodes; n++)
            reduce_cell(model, state, a, n, &attempt->cell[n]);
        if (model_under_way(attempt) && !can_succeed(model, attempt)) {
            attempt->phase = PHASE_FAILED;
            for (unsigned n = 0; n < model->nodes; n++)
                reduce_cell(model, state, a, n, &attempt->cell[n]);
        }
        if (attempt->phase != PHASE_VOTING && possible(model, attempt, CELL_VOTE, CELL_GRANT) == 0)
            attempt->p = 0;
        if (attempt->phase == PHASE_FAILED) {
            attempt->seen = 0;
            if (possible(model, attempt, CELL_RAISE, 0) == 0)
                attempt->value = 0;
        }
    }
}
