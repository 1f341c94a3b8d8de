/* SPDX-License-Identifier: MIT
 * A record of the requests to a node and of its votes, compared with what its server has executed.
 */
#ifndef TEST_FUZZ_LEDGER_NODE_H
#define TEST_FUZZ_LEDGER_NODE_H

#include "node_rig.h"
#include "server.h"

#define LEDGER_ASKS_MAX 600
#define LEDGER_NO_TOKEN SERVER_TOKENS

/* State of a request: none made; a vote must come; a vote may come or not; no vote may come any
 * more. */
enum ledger_state { LEDGER_NEVER, LEDGER_OPEN, LEDGER_MAYBE, LEDGER_CLOSED };

/* One request. */
struct ledger_ask {
    uint8_t state;   /* enum ledger_state */
    uint8_t verb;    /* enum rl_verb */
    bool fenced;     /* the attempt wants a fencing token */
    uint16_t token;  /* index in server->tokens; LEDGER_NO_TOKEN: about the record */
    uint64_t number; /* fencing token of a RAISE */
};

/* All requests to one node. Only ledger_node.c changes it, except for the last three fields. */
struct ledger_node {
    const struct server *server;
    struct ledger_ask asks[LEDGER_ASKS_MAX]; /* the index is the round - 1 */
    unsigned rounds;                         /* number of requests so far */
    bool forged;    /* the server sends arbitrary replies, so that a vote proves nothing */
    bool run_bound; /* a fence record is valid for one run of its server only */
    bool attested;  /* the record survives restarts; required unless run_bound */
};

/* Empties the record, for a node of that server. */
void ledger_node_reset(struct ledger_node *ledger, const struct server *server, bool forged);
/* Returns whether the record has no room for another request. */
static inline bool ledger_node_is_full(const struct ledger_node *ledger)
{
    return ledger->rounds == LEDGER_ASKS_MAX;
}
/* Records a request about a token; `number` is that of a RAISE. Returns its round, from 1. */
unsigned ledger_node_request(struct ledger_node *ledger, enum rl_verb verb, unsigned token,
                             bool fenced, uint64_t number);
/* Records that the request of that round has had its result and gets no vote. */
void ledger_node_close(struct ledger_node *ledger, unsigned round);
/* Sets the state of all open requests about a token. */
void ledger_node_forget(struct ledger_node *ledger, unsigned token, enum ledger_state state);
/* Checks a vote against its request and against what the server has executed. */
void ledger_node_vote(struct ledger_node *ledger, const struct rig_vote *vote);
/* Checks, after the node was closed, that no request is left open. */
void ledger_node_end(const struct ledger_node *ledger);

#endif
