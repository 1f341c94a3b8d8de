/* SPDX-License-Identifier: MIT
 * The fence algorithm as a state machine: nodes with one fence register and a key per resource,
 * attempts that vote, raise and return or give up, messages that arrive at any time or never, keys
 * that vanish at any moment, nodes that forget. There is no clock in it: the order of fences must
 * not depend on one.
 *
 * A state and an action give the next state; search.h tries all of them, walk.h a random one each
 * time. Every rule of the algorithm can be switched off (mutations.h): the model must then find a
 * sequence of events that breaks the order of the fences.
 */
#ifndef TEST_MODEL_MODEL_H
#define TEST_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_NODES_MAX    5
#define MODEL_ATTEMPTS_MAX 4
#define MODEL_KEYS_MAX     2
#define MODEL_READMITTERS  2
#define MODEL_STARTERS     2
#define MODEL_ACTIONS_MAX  256
#define MODEL_FENCE_MAX    15
#define MODEL_BIT(i)       ((uint8_t)(1U << (i)))

/* Rules switched off. */
enum broken {
    BROKEN_EQUAL_ACCEPTED = 1U << 0,   /* VOTE accepts p >= prev instead of p > prev */
    BROKEN_VOTE_LOWERS = 1U << 1,      /* VOTE stores p although prev is larger */
    BROKEN_VOTE_REPEATED = 1U << 2,    /* VOTE is executed again: it was sent again */
    BROKEN_RAISE_UNGUARDED = 1U << 3,  /* RAISE does not look who owns the key */
    BROKEN_RAISE_LOWERS = 1U << 4,     /* RAISE stores f although F is larger */
    BROKEN_LOST_COUNTS = 1U << 5,      /* the answer LOST is taken for an ACK */
    BROKEN_ACKS_FROM_ANYONE = 1U << 6, /* ACKs count from nodes whose vote was not used */
    BROKEN_FEWER_ACKS = 1U << 7,       /* q - 1 ACKs are enough */
    BROKEN_NO_ACKS = 1U << 8,          /* returns without a second round */
    BROKEN_FEWER_GRANTS = 1U << 9,     /* q - 1 grants are a quorum: counted from reachable nodes */
    BROKEN_FEWER_ACCEPTED = 1U << 10,  /* one round although only q - 1 nodes accepted p */
    BROKEN_NOT_ABOVE = 1U << 11,       /* f is the maximum, not one more */
    BROKEN_PREV_IGNORED = 1U << 12,    /* f is p + 1, whatever the nodes said */
    BROKEN_ONE_PREV_IGNORED = 1U << 13, /* f leaves out what one of the nodes said */
    BROKEN_P_NOT_IN_MAXIMUM = 1U << 14, /* f is one more than the largest prev; own p left out */
    BROKEN_FORGETFUL = 1U << 15,        /* a node that has forgotten F goes on voting */
    BROKEN_READMIT_EARLY = 1U << 16,    /* back without waiting for the attempts under way */
    BROKEN_READ_EARLY = 1U << 17,       /* reads the others first and waits then */
    BROKEN_READMIT_UNMERGED = 1U << 18, /* back without what the others know */
    BROKEN_READ_FEWER = 1U << 19,       /* asks q - 1 others */
    BROKEN_UNMARKED = 1U << 20,         /* does not notice that the node forgot once more */
    BROKEN_READMIT_TORN = 1U << 21,     /* writes the registers first and the fingerprint later */
    VARIANT_INCREMENT = 1U << 22,       /* VOTE increments F instead of proposing p */
    VARIANT_TWO_ROUNDS = 1U << 23,      /* the first round is never enough */
    BROKEN_START_ONCE = 1U << 24,       /* a first start although nodes were read only once */
    BROKEN_START_FEWER = 1U << 25,      /* a first start although one of the nodes was not read */
    BROKEN_SEED_UNMARKED = 1U << 26,    /* the first start takes in what is empty now */
    BROKEN_SEED_ANY_RUN = 1U << 27,     /* …or whose mark came back with a restart */
    BROKEN_VOTE_EARLY = 1U << 28,       /* attempts begin before a majority was seen in use */
};

struct model {
    unsigned nodes, attempts;
    unsigned keys;      /* resources that share the register; attempt i is for resource i % keys */
    unsigned proposals; /* p is any of 1 … proposals */
    uint8_t initial[MODEL_NODES_MAX];
    unsigned forgets;     /* how often a node may lose everything */
    unsigned readmitters; /* clients that bring forgetful nodes back */
    unsigned starters;    /* clients of the first start: no node is in use when all begins */
    bool p_is_time;       /* p is a clock that all clients agree on, instead of any number */
    bool apart;           /* fences of attempts that overlapped are not compared */
    bool dels;            /* DEL is a message; if not, a key vanishes instead */
    bool heals;           /* a holder puts its key back where it is gone */
    bool residencies;     /* also check fences against the order in which keys were held per node */
    bool library;         /* clients decide with the library's own code: see library.c */
    /* Fewer states, the same outcomes: see reduce.c. */
    bool reduced;
    uint32_t broken;
};

/* What is under way or known between one attempt and one node. The first five are all that a
 * reduced model has. */
enum {
    CELL_VOTE = 1U << 0,     /* VOTE is under way */
    CELL_ACCEPTED = 1U << 1, /* its answer said: p accepted */
    CELL_USED = 1U << 2,     /* its answer was used: the node is in Q */
    CELL_RAISE = 1U << 3,    /* RAISE is under way */
    CELL_ACKED = 1U << 4,    /* its ACK was counted */
    CELL_AGAIN = 1U << 5,    /* VOTE was sent twice, and the other one is still to come */
    CELL_GRANT = 1U << 6,    /* GRANTED is on its way back */
    CELL_ACK = 1U << 7,      /* ACK is on its way back */
    CELL_DEL = 1U << 8,      /* DEL is under way */
    CELL_RESIDED = 1U << 9,  /* the key was this attempt's once */
};

struct model_cell {
    uint16_t flags;
    uint8_t prev;  /* in the answer that is on its way */
    uint8_t after; /* attempts that had the key here before */
};

enum phase { PHASE_IDLE, PHASE_VOTING, PHASE_RAISING, PHASE_DONE, PHASE_FAILED };

struct model_attempt {
    uint8_t phase;
    uint8_t p;
    uint8_t value;  /* voting: maximum over Q; raising: f; done: the fence */
    uint8_t seen;   /* attempts that had returned before this one began */
    uint8_t counts; /* nodes that made the fence certain, for `residencies` */
    struct model_cell cell[MODEL_NODES_MAX];
};

struct model_node {
    uint8_t fence;                 /* F[s] */
    uint8_t owner[MODEL_KEYS_MAX]; /* 0: no such key; else attempt + 1 */
    bool admitted;                 /* has the fingerprint */
    uint8_t marks;                 /* of clients that want to bring it back, or to start with it */
    uint8_t marks_before;          /* of the latter, when it came into use */
};

enum { READMIT_IDLE, READMIT_BEGUN, READMIT_MERGED };

struct model_readmitter {
    uint8_t phase;
    uint8_t node;
    uint8_t value; /* maximum of what the others said */
    uint8_t read;  /* who said something */
    uint8_t waits; /* for attempts that were under way when the loss was seen */
};

/* A first start: every node is looked at twice. */
enum { START_FIRST_LOOK, START_SECOND_LOOK, START_CERTAIN, START_OVER };

struct model_starter {
    uint8_t phase;
    uint8_t read; /* nodes, by this look */
};

struct model_state {
    struct model_node node[MODEL_NODES_MAX];
    struct model_attempt attempt[MODEL_ATTEMPTS_MAX];
    struct model_readmitter readmitter[MODEL_READMITTERS];
    struct model_starter starter[MODEL_STARTERS];
    uint8_t forgets; /* left */
    uint8_t used;    /* nodes that came into use at some time */
};

enum action_kind {
    ACTION_START,     /* attempt, detail: p */
    ACTION_VOTE,      /* a node executes VOTE; reduced, detail: is the answer used? */
    ACTION_GRANT,     /* the client reads GRANTED */
    ACTION_FAST,      /* the client returns after one round */
    ACTION_SLOW,      /* the client sends RAISE */
    ACTION_RAISE,     /* a node executes RAISE */
    ACTION_ACK,       /* the client reads ACK */
    ACTION_RETURN,    /* the client returns after the second round */
    ACTION_GIVE_UP,   /* the client gives up */
    ACTION_DEL,       /* a node executes DEL */
    ACTION_VANISH,    /* a key is gone, detail: which */
    ACTION_HEAL,      /* a holder's key is put back */
    ACTION_FORGET,    /* a node loses everything */
    ACTION_READMIT,   /* a client sees it; attempt: the client */
    ACTION_READ,      /* …asks another node */
    ACTION_MERGE,     /* …writes what it read, without admitting yet */
    ACTION_ADMIT,     /* …brings the node back */
    ACTION_LOOK,      /* a client looks at a node before the first start; attempt: the client */
    ACTION_SEED,      /* …and then the node comes into use, if nothing has happened to it */
    ACTION_ROLL_BACK, /* a node restarts with what it had before it came into use */
};

struct model_action {
    uint8_t kind, attempt, node, detail;
};

void model_init(const struct model *model, struct model_state *state);

/* What can happen next; returns how many. None: nothing can happen, or nothing that matters. */
unsigned model_actions(const struct model *model, const struct model_state *state,
                       struct model_action actions[MODEL_ACTIONS_MAX]);

/* False if it broke the order of the fences. */
bool model_apply(const struct model *model, struct model_state *state, struct model_action action);

/* readmit.c: the part of actions and apply that brings forgetful nodes back. */
unsigned readmit_actions(const struct model *model, const struct model_state *state,
                         struct model_action *actions);
void readmit_apply(const struct model *model, struct model_state *state,
                   struct model_action action);

/* start.c: the part that takes all nodes into use for the first time. */
unsigned start_actions(const struct model *model, const struct model_state *state,
                       struct model_action *actions);
/* A majority of nodes has come into use at some time: clients may see that, and begin to vote. */
bool start_is_seen(const struct model *model, const struct model_state *state);
void start_apply(const struct model *model, struct model_state *state, struct model_action action);

/* library.c: the client reads GRANTED or ACK. */
bool library_grant(const struct model *model, struct model_state *state, unsigned a, unsigned n,
                   uint8_t prev, bool accepted);
bool library_ack(const struct model *model, struct model_state *state, unsigned a, unsigned n);

/* The client returns with a fence, which the nodes with these flags made certain; false: out of
 * order. */
bool model_finish(const struct model *model, struct model_state *state, unsigned a, uint8_t fence,
                  unsigned flags);
void model_give_up(const struct model *model, struct model_attempt *attempt);

unsigned model_quorum(const struct model *model);
bool model_under_way(const struct model_attempt *attempt);
bool model_ended(const struct model_attempt *attempt);
/* Nodes whose cell has all of these flags. */
unsigned model_count(const struct model *model, const struct model_attempt *attempt,
                     unsigned flags);

static inline bool model_broken(const struct model *model, uint32_t rule)
{
    return (model->broken & rule) != 0;
}

/* The mark of a client of the first start. */
static inline uint8_t model_start_mark(unsigned starter)
{
    return MODEL_BIT(MODEL_READMITTERS + starter);
}

static inline unsigned model_key(const struct model *model, unsigned attempt)
{
    return attempt % model->keys;
}

#endif
