/* SPDX-License-Identifier: MIT
 * The algorithm that chooses fencing tokens as a state machine: nodes with one fence register and a
 * key per resource, attempts that vote, raise and return or give up, messages that arrive at any
 * time or never, keys that vanish at any moment, nodes that lose their fence record. The model has
 * no clock, because the order of fencing tokens must not depend on one.
 *
 * An attempt proposes a number p and sends VOTE to all nodes. A node executes VOTE: it sets the key
 * if there is none, stores p in its register if p is larger (it accepts p), and replies GRANTED
 * with prev. If a quorum accepted p, p is the fencing token: one round. Otherwise the attempt
 * chooses f, one more than the maximum of p and the replies, and sends RAISE. A node executes
 * RAISE: if the key still has the attempt's token, it raises its register to f and replies ACK,
 * otherwise LOST. After q ACKs f is the fencing token: two rounds. A later attempt must get a
 * larger one; that is what "the order of the fencing tokens" means. DEL deletes the attempt's key.
 *
 * A state and an action give the next state. search.h tries all actions; walk.h tries a random one
 * each time. Every rule of the algorithm can be switched off (mutations.h). The model must then
 * find a sequence of events that breaks the order of the fencing tokens.
 *
 * A node is in use, or admitted, if its record has the fingerprint; otherwise it refuses VOTE. To
 * readmit a node is to take it into use again after it lost its record (readmit.c). The first start
 * takes nodes into use when none has ever been in use (start.c).
 *
 * In the comments, p is the proposal of an attempt, f the fencing token that it chooses, F the
 * register of a node, prev its value before a vote, and q the quorum. uint8_t sets have one bit per
 * number. */
#ifndef TEST_MODEL_MODEL_H
#define TEST_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_NODES_MAX    5
#define MODEL_ATTEMPTS_MAX 4
#define MODEL_KEYS_MAX     2   /* number of resources */
#define MODEL_READMITTERS  2   /* largest number of clients that readmit nodes */
#define MODEL_STARTERS     2   /* largest number of clients of the first start */
#define MODEL_ACTIONS_MAX  256 /* more than can be possible in one state */

#define MODEL_BIT(i)       ((uint8_t)(1U << (i))) /* the set that contains only number i */

/* Rules that are switched off (BROKEN_*) and other forms of the algorithm (VARIANT_*), as a set. */
enum broken {
    BROKEN_EQUAL_ACCEPTED = 1U << 0,   /* VOTE accepts p >= prev instead of p > prev */
    BROKEN_VOTE_LOWERS = 1U << 1,      /* VOTE stores p although prev is larger */
    BROKEN_VOTE_REPEATED = 1U << 2,    /* VOTE is executed twice, because it was sent again */
    BROKEN_RAISE_UNGUARDED = 1U << 3,  /* RAISE does not check whose token the key has */
    BROKEN_RAISE_LOWERS = 1U << 4,     /* RAISE stores f although F is larger */
    BROKEN_LOST_COUNTS = 1U << 5,      /* the reply LOST is taken for an ACK */
    BROKEN_ACKS_FROM_ANYONE = 1U << 6, /* ACKs count from nodes whose vote was not used */
    BROKEN_FEWER_ACKS = 1U << 7,       /* q - 1 ACKs are enough */
    BROKEN_NO_ACKS = 1U << 8,          /* returns without a second round */
    BROKEN_FEWER_GRANTS = 1U << 9,     /* q - 1 grants are a quorum, as if only reachable nodes were
                                        * counted */
    BROKEN_FEWER_ACCEPTED = 1U << 10,  /* one round although only q - 1 nodes accepted p */
    BROKEN_NOT_ABOVE = 1U << 11,       /* f is the maximum, not one more */
    BROKEN_PREV_IGNORED = 1U << 12,    /* f is p + 1, whatever the nodes replied */
    BROKEN_ONE_PREV_IGNORED = 1U << 13, /* f ignores the reply of one of the nodes */
    BROKEN_P_NOT_IN_MAXIMUM = 1U << 14, /* f is one more than the largest prev, without p */
    BROKEN_FORGETFUL = 1U << 15,        /* a node that has lost F goes on voting */
    BROKEN_READMIT_EARLY = 1U << 16,    /* readmits a node without waiting for the attempts under
                                         * way */
    BROKEN_READ_EARLY = 1U << 17,       /* reads the other nodes first and waits afterwards */
    BROKEN_READMIT_UNMERGED = 1U << 18, /* readmits a node without the values of the others */
    BROKEN_READ_FEWER = 1U << 19,       /* reads q - 1 other nodes */
    BROKEN_UNMARKED = 1U << 20,      /* does not notice that the node lost its record once more */
    BROKEN_READMIT_TORN = 1U << 21,  /* writes the registers first and the fingerprint later */
    VARIANT_INCREMENT = 1U << 22,    /* VOTE increments F instead of proposing p */
    VARIANT_TWO_ROUNDS = 1U << 23,   /* the first round is never enough */
    BROKEN_START_ONCE = 1U << 24,    /* a first start after nodes were read only once */
    BROKEN_START_FEWER = 1U << 25,   /* a first start although one of the nodes was not read */
    BROKEN_SEED_UNMARKED = 1U << 26, /* the first start seeds any node that is empty now */
    BROKEN_SEED_ANY_RUN = 1U << 27,  /* the first start seeds a node whose mark came back with a
                                      * restart */
    BROKEN_VOTE_EARLY = 1U << 28,    /* attempts begin before a majority was seen in use */
};

/* The size of a model and the rules that hold in it. */
struct model {
    unsigned nodes, attempts;
    unsigned keys;      /* resources that share the register; attempt i is for resource i % keys */
    unsigned proposals; /* p is any of 1 … proposals */
    uint8_t initial[MODEL_NODES_MAX]; /* F of each node at the beginning */
    unsigned forgets;                 /* how often nodes may lose their record, all together */
    unsigned readmitters;             /* number of clients that readmit such nodes */
    unsigned starters; /* number of clients of the first start: no node is in use at the
                        * beginning */
    bool p_is_time;    /* p is a clock on which all clients agree, instead of any number */
    bool apart;        /* the tokens of attempts that overlapped are not compared */
    bool dels;         /* DEL is a message; otherwise a key vanishes instead */
    bool heals;        /* a holder restores its key where it is gone */
    bool residencies;  /* also compares tokens with the order in which keys were held on each
                        * node */
    bool library;      /* clients decide with the library's own code (library.c) */
    bool reduced;      /* fewer states with the same outcomes (reduce.c) */
    uint32_t broken;   /* set of BROKEN_* and VARIANT_* */
};

/* Messages and knowledge between one attempt and one node. A reduced model has the first five only.
 */
enum {
    CELL_VOTE = 1U << 0,     /* VOTE is under way */
    CELL_ACCEPTED = 1U << 1, /* the reply to VOTE said that p was accepted */
    CELL_USED = 1U << 2,     /* the reply was used: the node belongs to the quorum Q */
    CELL_RAISE = 1U << 3,    /* RAISE is under way */
    CELL_ACKED = 1U << 4,    /* its ACK was counted */
    CELL_AGAIN = 1U << 5,    /* VOTE was sent twice, and the second one is still to come */
    CELL_GRANT = 1U << 6,    /* the reply GRANTED is under way */
    CELL_ACK = 1U << 7,      /* the reply ACK is under way */
    CELL_DEL = 1U << 8,      /* DEL is under way */
    CELL_RESIDED = 1U << 9,  /* the key was once this attempt's */
};

/* The messages and the knowledge between one attempt and one node. */
struct model_cell {
    uint16_t flags; /* set of CELL_* */
    uint8_t prev;   /* in the reply that is under way */
    uint8_t after;  /* set of the attempts that had the key here before */
};

/* The state of an attempt: not begun, first round, second round, returned a token, gave up. */
enum phase { PHASE_IDLE, PHASE_VOTING, PHASE_RAISING, PHASE_DONE, PHASE_FAILED };

/* One attempt of a client. */
struct model_attempt {
    uint8_t phase;  /* enum phase */
    uint8_t p;      /* its proposal */
    uint8_t value;  /* voting: maximum over Q; raising: f; done: the fencing token */
    uint8_t seen;   /* set of the attempts that had returned before this one began */
    uint8_t counts; /* set of the nodes that made the token certain, for `residencies` */
    struct model_cell cell[MODEL_NODES_MAX]; /* one for each node */
};

/* One server. */
struct model_node {
    uint8_t fence;                 /* F */
    uint8_t owner[MODEL_KEYS_MAX]; /* 0: no such key; otherwise attempt + 1 */
    bool admitted;                 /* it has the fingerprint */
    uint8_t marks;                 /* set of the clients that left a mark to readmit the node, or to
                                    * start with it */
    uint8_t marks_before; /* marks of the first start at the moment when it came into use */
};

/* The phases of a readmission: none; the mark is left and other nodes are read; the registers are
 * written but not the fingerprint (only with BROKEN_READMIT_TORN). */
enum { READMIT_IDLE, READMIT_BEGUN, READMIT_MERGED };

/* A client that readmits a node. */
struct model_readmitter {
    uint8_t phase; /* READMIT_* */
    uint8_t node;  /* the node that it readmits */
    uint8_t value; /* maximum of the other nodes' replies */
    uint8_t read;  /* set of the nodes that replied */
    uint8_t waits; /* set of the attempts to wait for: those under way when the loss was seen */
};

/* The phases of a first start: it reads every node once and a second time; it is certain that all
 * were empty at one time and seeds them; or it has ended, because a node is in use already. */
enum { START_FIRST_LOOK, START_SECOND_LOOK, START_CERTAIN, START_OVER };

/* A client of the first start. */
struct model_starter {
    uint8_t phase; /* START_* */
    uint8_t read;  /* set of the nodes that this phase has read */
};

/* All that changes. */
struct model_state {
    struct model_node node[MODEL_NODES_MAX];
    struct model_attempt attempt[MODEL_ATTEMPTS_MAX];
    struct model_readmitter readmitter[MODEL_READMITTERS];
    struct model_starter starter[MODEL_STARTERS];
    uint8_t forgets; /* number of losses that may still happen */
    uint8_t used;    /* set of the nodes that have come into use at some time */
};

enum action_kind {
    ACTION_START,     /* an attempt begins; detail: p */
    ACTION_VOTE,      /* a node executes VOTE; reduced, detail: whether the reply is used */
    ACTION_GRANT,     /* the client receives GRANTED */
    ACTION_FAST,      /* the client returns after one round */
    ACTION_SLOW,      /* the client sends RAISE */
    ACTION_RAISE,     /* a node executes RAISE */
    ACTION_ACK,       /* the client receives ACK */
    ACTION_RETURN,    /* the client returns after the second round */
    ACTION_GIVE_UP,   /* the client gives up */
    ACTION_DEL,       /* a node executes DEL */
    ACTION_VANISH,    /* a key vanishes, detail: which */
    ACTION_HEAL,      /* a holder's key is restored */
    ACTION_FORGET,    /* a node loses its record and keys */
    ACTION_READMIT,   /* a client sees that; attempt: the client */
    ACTION_READ,      /* the client reads another node */
    ACTION_MERGE,     /* the client writes what it has read, without the fingerprint yet */
    ACTION_ADMIT,     /* the client readmits the node */
    ACTION_LOOK,      /* a client reads a node before the first start; attempt: the client */
    ACTION_SEED,      /* the client takes the node into use, unless it has changed */
    ACTION_ROLL_BACK, /* a node restarts with its state from before it came into use */
};

/* One event. `kind` is an enum action_kind and decides which of the other fields are used: the
 * number of an attempt or client, the number of a node, and the detail described there. */
struct model_action {
    uint8_t kind, attempt, node, detail;
};

/* Sets the state in which every sequence of events begins. */
void model_init(const struct model *model, struct model_state *state);

/* Lists the possible actions and returns their number. 0: nothing can happen, or nothing that
 * matters. */
unsigned model_actions(const struct model *model, const struct model_state *state,
                       struct model_action actions[MODEL_ACTIONS_MAX]);

/* Applies an action. Returns false if it broke the order of the fencing tokens. */
bool model_apply(const struct model *model, struct model_state *state, struct model_action action);

/* The part of model_actions() and model_apply() that readmits nodes (readmit.c). */
unsigned readmit_actions(const struct model *model, const struct model_state *state,
                         struct model_action *actions);
void readmit_apply(const struct model *model, struct model_state *state,
                   struct model_action action);

/* The part of both that takes all nodes into use for the first time (start.c). */
unsigned start_actions(const struct model *model, const struct model_state *state,
                       struct model_action *actions);
/* Returns whether a majority of nodes has come into use at some time. Then clients may see that,
 * and begin to vote. */
bool start_is_seen(const struct model *model, const struct model_state *state);
void start_apply(const struct model *model, struct model_state *state, struct model_action action);

/* Apply the GRANTED and the ACK of node `n` to attempt `a` with the library's code (library.c).
 * Return false if that breaks the order of the fencing tokens. `prev`, `accepted`: in the reply. */
bool library_grant(const struct model *model, struct model_state *state, unsigned a, unsigned n,
                   uint8_t prev, bool accepted);
bool library_ack(const struct model *model, struct model_state *state, unsigned a, unsigned n);

/* Ends attempt `a` with the fencing token `fence`, which the nodes whose cells have all of `flags`
 * made certain. Returns false if that breaks the order of the fencing tokens. */
bool model_finish(const struct model *model, struct model_state *state, unsigned a, uint8_t fence,
                  unsigned flags);
/* Ends an attempt without a fencing token. */
void model_give_up(const struct model *model, struct model_attempt *attempt);

/* Returns q. */
unsigned model_quorum(const struct model *model);
/* Returns whether the attempt has begun and not ended. */
bool model_under_way(const struct model_attempt *attempt);
/* Returns whether the attempt has returned a fencing token or given up. */
bool model_ended(const struct model_attempt *attempt);
/* Returns the number of nodes whose cell has all of these flags. */
unsigned model_count(const struct model *model, const struct model_attempt *attempt,
                     unsigned flags);

/* Returns whether the rule is switched off. */
static inline bool model_broken(const struct model *model, uint32_t rule)
{
    return (model->broken & rule) != 0;
}

/* Returns the mark of a client of the first start, as a set for model_node.marks. */
static inline uint8_t model_start_mark(unsigned starter)
{
    return MODEL_BIT(MODEL_READMITTERS + starter);
}

/* Returns the number of the resource that an attempt wants. */
static inline unsigned model_key(const struct model *model, unsigned attempt)
{
    return attempt % model->keys;
}

#endif
