/* SPDX-License-Identifier: MIT
 * Questions to a node and the votes that answer them, next to what its server has executed. */
#ifndef TEST_FUZZ_LEDGER_NODE_H
#define TEST_FUZZ_LEDGER_NODE_H

#include "node_rig.h"
#include "server.h"

#define LEDGER_ASKS_MAX 600
#define LEDGER_NO_TOKEN SERVER_TOKENS

enum ledger_state { LEDGER_NEVER, LEDGER_OPEN, LEDGER_MAYBE, LEDGER_CLOSED };

struct ledger_ask {
    uint8_t state; /* enum ledger_state; MAYBE: a vote may come, or not */
    uint8_t verb;
    bool fenced;
    uint16_t token;
    uint64_t number; /* RAISE */
};

struct ledger_node {
    const struct server *server;
    struct ledger_ask asks[LEDGER_ASKS_MAX]; /* the place is the round */
    unsigned rounds;
    bool forged;    /* the server says what it likes: a vote proves nothing */
    bool run_bound; /* a record is good for one run of its server */
    bool attested;  /* it survives restarts; needed unless it is bound */
};

void ledger_node_reset(struct ledger_node *ledger, const struct server *server, bool forged);
static inline bool ledger_node_is_full(const struct ledger_node *ledger)
{
    return ledger->rounds == LEDGER_ASKS_MAX;
}
/* A question. Returns its round. */
unsigned ledger_node_request(struct ledger_node *ledger, enum rl_verb verb, unsigned token,
                             bool fenced, uint64_t number);
/* It was answered at once. */
void ledger_node_close(struct ledger_node *ledger, unsigned round);
/* All questions about a token that are open. */
void ledger_node_forget(struct ledger_node *ledger, unsigned token, enum ledger_state state);
void ledger_node_vote(struct ledger_node *ledger, const struct rig_vote *vote);
/* The node is closed: no question is left open. */
void ledger_node_end(const struct ledger_node *ledger);

#endif
