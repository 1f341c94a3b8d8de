/* SPDX-License-Identifier: MIT
 * Writes events in words, for the reader of a counterexample. Attempts are A, B, C, D; clients that
 * readmit nodes R1, R2; clients of the first start S1, S2; nodes have numbers from 1. `before` and
 * `after` are the states around the event. */
#include "search.h"

/* Writes the registers of all nodes; '?' marks a node that is not in use. */
static void registers(FILE *out, const struct model *model, const struct model_state *state)
{
    fprintf(out, "   F = (");
    for (unsigned n = 0; n < model->nodes; n++)
        fprintf(out, "%s%u%s", n > 0 ? ", " : "", state->node[n].fence,
                state->node[n].admitted ? "" : "?");
    fprintf(out, ")");
}

/* Writes that a node executes VOTE, its reply, and whether the client uses the reply. */
static void vote(FILE *out, const struct model *model, const struct model_state *before,
                 const struct model_state *after, struct model_action action)
{
    unsigned key = model_key(model, action.attempt);
    const struct model_attempt *then = &before->attempt[action.attempt];
    const struct model_attempt *now = &after->attempt[action.attempt];
    uint16_t was = then->cell[action.node].flags, is = now->cell[action.node].flags;
    char name = (char)('A' + action.attempt);

    fprintf(out, "node %u executes VOTE(%c, p = %u)", action.node + 1, name, then->p);
    if ((is & ~was & (CELL_GRANT | CELL_USED)) != 0)
        fprintf(out, ": GRANTED(prev %u, %s)%s", before->node[action.node].fence,
                (is & CELL_ACCEPTED) != 0 ? "accepted" : "not accepted",
                (is & CELL_USED) != 0 ? ", and the client uses it" : "");
    else
        fprintf(out, ": nobody uses the answer");
    if (before->node[action.node].owner[key] != 0)
        fprintf(out, " (a key that was there had vanished)");
}

/* Writes an event of a readmission. */
static void readmission(FILE *out, const struct model_state *before, struct model_action action)
{
    unsigned r = action.attempt, target = before->readmitter[r].node + 1U;

    switch (action.kind) {
    case ACTION_READMIT:
        fprintf(out, "client R%u sees that node %u has forgotten", r + 1, action.node + 1);
        break;
    case ACTION_READ:
        fprintf(out, "client R%u reads F = %u from node %u", r + 1, before->node[action.node].fence,
                action.node + 1);
        break;
    case ACTION_MERGE:
        fprintf(out, "client R%u writes F to node %u", r + 1, target);
        break;
    default:
        fprintf(out, "client R%u brings node %u back", r + 1, target);
        break;
    }
}

/* Writes an event of a first start. */
static void first_start(FILE *out, const struct model_state *before,
                        const struct model_state *after, struct model_action action)
{
    unsigned s = action.attempt, node = action.node + 1U;
    uint8_t then = before->starter[s].phase, now = after->starter[s].phase;

    switch (action.kind) {
    case ACTION_LOOK:
        fprintf(out, "client S%u looks at node %u", s + 1, node);
        if (now == START_OVER)
            fprintf(out, ": in use, no first start any more");
        else if (now == START_CERTAIN)
            fprintf(out, ": all nodes were empty at one time, a first start");
        else if (now != then)
            fprintf(out, now == START_SECOND_LOOK ? ", all are empty" : ": something has happened");
        break;
    case ACTION_SEED:
        fprintf(out, "client S%u takes node %u into use", s + 1, node);
        break;
    default:
        fprintf(out, "node %u restarts with what it had before it came into use", node);
        break;
    }
}

/* Writes what the library decided for attempt `a`, if anything. */
static void decision(FILE *out, const struct model_state *before, const struct model_state *after,
                     unsigned a)
{
    const struct model_attempt *then = &before->attempt[a], *now = &after->attempt[a];

    if (then->phase == now->phase)
        return;
    if (now->phase == PHASE_RAISING)
        fprintf(out, " and goes on with f = %u", now->value);
    else if (now->phase == PHASE_DONE)
        fprintf(out, " and returns: fence %u", now->value);
    else if (now->phase == PHASE_FAILED)
        fprintf(out, " and cannot succeed any more");
}

/* Writes one event, and the registers after it, as one line. */
void words_action(FILE *out, const struct model *model, const struct model_state *before,
                  const struct model_state *after, struct model_action action)
{
    char name = (char)('A' + action.attempt);
    unsigned node = action.node + 1U;
    unsigned value = after->attempt[action.attempt % MODEL_ATTEMPTS_MAX].value;

    fprintf(out, "  ");
    switch (action.kind) {
    case ACTION_START:
        fprintf(out, "%c begins with p = %u", name, after->attempt[action.attempt].p);
        break;
    case ACTION_VOTE:
        vote(out, model, before, after, action);
        break;
    case ACTION_GRANT:
        fprintf(out, "%c reads the answer of node %u", name, node);
        break;
    case ACTION_FAST:
        fprintf(out, "%c returns after one round: fence %u", name, value);
        break;
    case ACTION_SLOW:
        fprintf(out, "%c goes on with f = %u", name, value);
        break;
    case ACTION_RAISE:
        fprintf(out, "node %u executes RAISE(%c, f = %u)", node, name,
                before->attempt[action.attempt].value);
        break;
    case ACTION_ACK:
        fprintf(out, "%c reads the ACK of node %u", name, node);
        break;
    case ACTION_RETURN:
        fprintf(out, "%c returns after two rounds: fence %u", name, value);
        break;
    case ACTION_GIVE_UP:
        fprintf(out, "%c gives up", name);
        break;
    case ACTION_DEL:
        fprintf(out, "node %u executes DEL(%c)", node, name);
        break;
    case ACTION_VANISH:
        fprintf(out, "the key vanishes from node %u", node);
        break;
    case ACTION_HEAL:
        fprintf(out, "%c puts its key back on node %u", name, node);
        break;
    case ACTION_FORGET:
        fprintf(out, "node %u forgets", node);
        break;
    case ACTION_LOOK:
    case ACTION_SEED:
    case ACTION_ROLL_BACK:
        first_start(out, before, after, action);
        break;
    default:
        readmission(out, before, action);
        break;
    }
    if (model->library)
        decision(out, before, after, action.attempt);
    registers(out, model, after);
    fprintf(out, "\n");
}
