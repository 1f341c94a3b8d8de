/* SPDX-License-Identifier: MIT
 * A world of modelled servers, links and clocks, in which several clients with the real engine
 * compete for locks. One event after the other; after each of them the oracle looks at everything.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "clock.h"
#include "engine/engine.h"
#include "plan.h"
#include "queue.h"

#define SIM_TOKEN_HEX 40
#define SIM_NOTES     6

enum sim_way { SIM_TO_SERVER = 0, SIM_TO_CLIENT = 1 };

enum sim_segment_kind { SIM_SYN, SIM_ACCEPT, SIM_REFUSE, SIM_DATA, SIM_FIN, SIM_RST };

/* What a reply says of a token: with it, a client may count a vote. */
struct sim_sent_text {
    uint32_t token;
    uint32_t end;              /* its reply ends at this byte of what is sent together */
    bool extended;             /* else: set */
    uint64_t executed_boot_ns; /* on the client's clock */
};

struct sim_segment {
    struct sim_segment *next;
    struct sim_conn *conn;
    uint8_t kind; /* enum sim_segment_kind */
    uint8_t way;  /* enum sim_way */
    uint8_t said_count;
    struct sim_sent_text said[SIM_NOTES];
    uint32_t len;
    char bytes[];
};

struct sim_path { /* one direction of a connection */
    uint64_t last_ns;
    uint64_t cut_ns;  /* what would arrive later is lost */
    uint64_t thaw_ns; /* what arrives earlier waits: TCP tries again ever more rarely */
    struct sim_segment *held_first, *held_last;
};

struct sim_conn {
    struct sim_conn *next; /* of the world */
    uint8_t client, node;
    bool client_open, server_open, ended; /* ended: the client said that it is done */
    bool reset;                           /* and takes no answer any more */
    bool logged_in, db_chosen;
    bool push;         /* the second connection of its client to this node */
    uint32_t id;       /* how the server calls it */
    bool subscribed;   /* to what other connections send it */
    uint32_t redirect; /* TRACKING is on: who hears of changes; 0: it is off */
    bool registers;    /* the next command registers the keys that it reads */
    unsigned tracked;  /* resources that were asked about, bit by bit */
    uint64_t made_ns;
    unsigned refs; /* segments under way, and the link */
    struct sim_path path[2];
    size_t in_flight;      /* bytes to the server */
    bool blocked;          /* the client waits for room */
    uint64_t unblocked_ns; /* when it last went on after a wait for room */
    char *in;              /* at the server, not executed yet */
    size_t in_len, in_cap;
};

struct sim_link {
    uint64_t delay_ns;
    uint64_t blocked_ns[2]; /* since when */
    unsigned blocks[2];     /* faults that hold this direction back */
    unsigned troubles;      /* faults that touch this link now */
    uint64_t troubled_ns;   /* when the last one ended */
    struct sim_conn *conn;  /* the client's present one */
    struct sim_conn *push;  /* and the one on which it is told of changes */
};

/* Losses that follow each other within a key's life: a fail-over brings an older version of the
 * same key, and a second one takes that away, too. */
#define SIM_GHOSTS 10

struct sim_key {
    bool present;
    uint32_t token_len;
    char token[RL_TOKEN_MAX + 1];
    int64_t expire_ms;
    uint64_t set_ns;      /* true time */
    uint64_t extended_ns; /* the same */
    bool late;            /* set on a connection that its client had closed by then */
    uint64_t set_boot_ns; /* on the clock of the client that set it */
    uint8_t set_by;
};

#define SIM_REGISTERS 8

struct sim_record {
    char cfg[200]; /* "": not in use */
    char mark[32];
    struct {
        unsigned stripe;
        uint64_t number;
    } registers[SIM_REGISTERS];
    unsigned count;
};

struct sim_server {
    bool up, hung, full, replica, silent;
    bool evicts; /* and says so */
    bool mute;   /* knows no TRACKING */
    uint32_t last_id;
    uint64_t blocked_ns, busy_ns;
    uint32_t life;       /* makes the run_id */
    uint32_t replid2;    /* 0: was never a replica */
    uint64_t started_ns; /* by its own clock */
    uint64_t born_ns;    /* in truth; before that it has idled for ... */
    uint64_t idled_ns;
    unsigned major, minor;
    bool is_valkey;
    struct sim_clock clock; /* in nanoseconds since its own 1970 */
    unsigned scripts;
    uint64_t noscript_ns; /* when it was last asked for a script that it did not know */
    struct sim_key keys[SIM_KEYS_MAX];
    struct sim_key ghosts[SIM_KEYS_MAX][SIM_GHOSTS]; /* what was there when keys were lost */
    struct sim_key copies[SIM_KEYS_MAX];             /* of the replica */
    struct sim_record record, record_copy;
    bool record_lost; /* at any time */
};

enum sim_doing {
    SIM_IDLE,
    SIM_ACQUIRING,
    SIM_HOLDING,
    SIM_EXTENDING,
    SIM_RELEASING,
    SIM_ASKING /* a question, or a release by token */
};

struct sim_slot {
    struct rl_lock *lock; /* NULL: none */
    uint8_t doing;        /* enum sim_doing */
    uint8_t resource;     /* the first of ... */
    uint8_t resources;    /* these, bit by bit */
    bool part;            /* a release by token of one of several: the lock is offered again */
    uint32_t asked_token; /* of that release */
    bool done;            /* the operation is over, its user not told yet */
    bool reported;        /* the user knows that the lock is held */
    bool ended;           /* the engine has let go of the lock */
    bool endangered, kept, forever;
    int status;
    uint32_t stamp; /* of the operation: older events mean nothing */
    uint64_t begun_ns, limit_ns, hold_until_ns, paused_ns;
    uint64_t may_find_ns; /* a permit: since when nothing keeps it from one that is free */
    uint64_t expired_ns;  /* since when the deadline has passed without a word; 0: it has not */
    uint64_t validity_min_ns;
    uint32_t token; /* that the lock works with; 0: none */
    unsigned rounds;
    uint64_t t1_boot_ns;    /* of its last round that succeeded; what was adopted has none */
    uint64_t began_boot_ns; /* the same, adopted or not */
    bool extended;          /* that was not the first one */
    struct rl_now deadline; /* as it was before the engine spoke last */
};

struct sim_inbox {
    struct sim_inbox *next;
    struct sim_conn *conn;
    struct sim_segment *segment; /* NULL: there is room again */
};

struct sim_client {
    struct sim_world *world;
    uint8_t index;
    bool alive, paused, in_turn;
    uint64_t paused_until_ns, ahead_ns, resumed_ns, paused_total_ns;
    struct sim_clock boot, raw, wall;
    bool frozen; /* all three stand */
    /* On its boot clock: when its wall clock was set ahead, after it had stood for long enough to
     * be noticed. What was held before is lost. */
    uint64_t corrected_boot_ns;
    struct rl_mem mem;
    struct rl_log log;
    struct rl_engine engine;
    struct rl_node_spec *specs;
    uint64_t turn_ns;
    uint32_t turn_stamp;
    struct sim_inbox *inbox_first, *inbox_last;
    bool no_memory;
    unsigned fail_of_1000;
    uint64_t allocated; /* pieces that were not freed yet */
    struct sim_slot slots[SIM_SLOTS_MAX];
};

struct sim_token {
    char text[SIM_TOKEN_HEX];
    uint64_t born_ns; /* no request with it left earlier */
    uint8_t client;
    uint8_t resources;   /* bit by bit */
    bool held;           /* somebody was told of it */
    bool excused;        /* its keys may stay until they expire */
    uint64_t over_ns;    /* when its attempt or its lock was over; 0: it is not */
    uint64_t keep_ns;    /* release_after: how long it may stay */
    uint64_t expires_ns; /* no key of it lives longer */
    uint8_t sets[SIM_NODES_MAX];
    uint64_t granted_boot_ns[SIM_NODES_MAX]; /* when the client learned of it; 0: it did not */
    uint64_t extended_boot_ns[SIM_NODES_MAX][SIM_CLIENTS_MAX]; /* giver and taker: each its own */
    uint8_t without_record; /* nodes that voted with no fence record in use */
};

/* A grant with a fence, as it was told. */
struct sim_grant {
    uint64_t number;
    uint64_t reported_ns;
    uint8_t resource;
    bool adopted;
};

struct sim_world {
    struct sim_plan plan;
    struct sim_random random;
    struct sim_queue queue;
    uint64_t now_ns;
    uint64_t born_ns, healed_ns;
    bool healed;
    struct sim_server servers[SIM_NODES_MAX];
    struct sim_client *clients;              /* as many as planned */
    struct sim_link (*links)[SIM_NODES_MAX]; /* of each client */
    struct sim_conn *conns;
    struct sim_token *tokens;
    uint32_t token_count, token_cap;
    uint32_t *token_index; /* twice as many places; 0: free */
    struct sim_grant *fences;
    uint32_t fence_count, fence_cap;
    uint64_t taken_ns[SIM_PERMITS_MAX]; /* each slot of the semaphore, last */
    bool fences_restarted;              /* by an operator, after a majority had forgotten */
    uint64_t offer_number;
    uint32_t offer; /* a token that somebody detached, for somebody to adopt */
    uint64_t hash;
    uint64_t events, injected[SIM_COUNTED], grants, operations, commands;
    bool trace;
    char violation[512];
};

/* Runs a seed to its end. The result stays in `world` until sim_world_free(). false: a violation,
 * world->violation says which. */
bool sim_world_run(struct sim_world *world, uint64_t seed, bool trace);
/* The same of a plan that no seed made. */
bool sim_world_run_plan(struct sim_world *world, const struct sim_plan *plan, bool trace);
void sim_world_free(struct sim_world *world);

void sim_plan_event(struct sim_world *world, uint64_t at_ns, enum sim_event_kind kind, unsigned who,
                    unsigned which, uint32_t stamp, void *data);

/* The first one counts. */
void sim_violate(struct sim_world *world, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Into the hash of the run; printed if the run is traced. `fmt` takes four uint64_t (PRIu64). */
void sim_note(struct sim_world *world, const char *fmt, uint64_t a, uint64_t b, uint64_t c,
              uint64_t d);

#endif
