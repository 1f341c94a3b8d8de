/* SPDX-License-Identifier: MIT
 * Judges votes by what was requested and executed. */
#include "ledger_node.h"

#include "core/protocol.h"
#include "core/wire_fence.h"

#include <string.h>

/* Empties the record, for a node of that server. */
void ledger_node_reset(struct ledger_node *ledger, const struct server *server, bool forged)
{
    memset(ledger->asks, 0, ledger->rounds * sizeof ledger->asks[0]);
    ledger->server = server;
    ledger->rounds = 0;
    ledger->forged = forged;
}

/* Records a request about a token; `number` is that of a RAISE. Returns its round, from 1. */
unsigned ledger_node_request(struct ledger_node *ledger, enum rl_verb verb, unsigned token,
                             bool fenced, uint64_t number)
{
    ledger->asks[ledger->rounds] = (struct ledger_ask){
        .state = LEDGER_OPEN,
        .verb = (uint8_t)verb,
        .fenced = fenced,
        .token = (uint16_t)token,
        .number = number,
    };
    return ++ledger->rounds;
}

/* Records that the request of that round has had its result and gets no vote. */
void ledger_node_close(struct ledger_node *ledger, unsigned round)
{
    ledger->asks[round - 1].state = LEDGER_CLOSED;
}

/* Sets the state of all open requests about a token. */
void ledger_node_forget(struct ledger_node *ledger, unsigned token, enum ledger_state state)
{
    for (unsigned i = 0; i < ledger->rounds; i++)
        if (ledger->asks[i].token == token && ledger->asks[i].state < LEDGER_CLOSED)
            ledger->asks[i].state = (uint8_t)state;
}

/* Checks, after the node was closed, that no request is left open. */
void ledger_node_end(const struct ledger_node *ledger)
{
    for (unsigned i = 0; i < ledger->rounds; i++)
        MUST(ledger->asks[i].state != LEDGER_OPEN);
}

/* Checks what a fenced grant or a RAISE must rest on. */
static void check_fenced(const struct ledger_node *ledger, const struct ledger_ask *ask,
                         const struct rl_ballot *ballot)
{
    const struct server_token *token = &ledger->server->tokens[ask->token];
    bool granted = ballot->vote == RL_VOTE_GRANTED;

    if (ask->verb == RL_VERB_ACQUIRE && granted) {
        MUST(ballot->record == RL_RECORD_ADMITTED && ballot->register_value == token->before);
        MUST(ballot->accepted == token->stored);
        MUST(ledger->run_bound ? token->this_run : ledger->attested);
    }
    if (ask->verb == RL_VERB_RAISE && granted)
        MUST(token->raised >= ask->number + 1);
    if (ask->verb == RL_VERB_RAISE && ballot->vote == RL_VOTE_DENIED)
        MUST(token->gone);
}

/* Checks a vote against its request and against what the server has executed. */
void ledger_node_vote(struct ledger_node *ledger, const struct rig_vote *vote)
{
    const struct rl_ballot *ballot = &vote->ballot;

    MUST(ballot->round > 0 && ballot->round <= ledger->rounds);
    struct ledger_ask *ask = &ledger->asks[ballot->round - 1];
    bool release = ask->verb == RL_VERB_RELEASE;
    MUST(ask->state == LEDGER_OPEN || ask->state == LEDGER_MAYBE);
    MUST(ballot->verb == ask->verb || (release && ballot->verb == RL_VERB_SHORTEN));
    if (ballot->vote == RL_VOTE_SUSPECT) {
        /* No reply so far; a vote still follows. */
        MUST(!vote->has_reply && ballot->cause == REDLOCK_CAUSE_TIMEOUT);
        return;
    }
    MUST(ballot->vote == RL_VOTE_GRANTED || ballot->vote == RL_VOTE_DENIED ||
         ballot->vote == RL_VOTE_FAILED);
    MUST(vote->has_reply || ballot->vote == RL_VOTE_FAILED);
    MUST((ballot->cause != REDLOCK_CAUSE_NONE) == (ballot->vote == RL_VOTE_FAILED) ||
         (ask->verb == RL_VERB_EXTEND && ballot->vote == RL_VOTE_FAILED));
    if (ballot->cause == REDLOCK_CAUSE_FENCE_RECORD)
        MUST(ballot->record > RL_RECORD_ADMITTED);
    if (ballot->vote == RL_VOTE_GRANTED && ask->fenced)
        MUST(ballot->register_value < RL_FENCE_CORRUPT);
    ask->state = LEDGER_CLOSED;
    if (ask->verb == RL_VERB_READ || ask->verb == RL_VERB_SEED) {
        MUST(ledger->forged || ballot->vote != RL_VOTE_GRANTED || ask->verb == RL_VERB_READ ||
             ledger->server->record.seeded > 0);
        return;
    }
    if (!ledger->forged && ask->fenced)
        check_fenced(ledger, ask, ballot);
    if (ledger->forged || ballot->vote != RL_VOTE_GRANTED)
        return;
    const struct server_token *token = &ledger->server->tokens[ask->token];
    if (ask->verb == RL_VERB_ACQUIRE || ask->verb == RL_VERB_HEAL)
        MUST(token->made > 0);
    if (ask->verb == RL_VERB_EXTEND)
        MUST(token->extended > 0);
}
