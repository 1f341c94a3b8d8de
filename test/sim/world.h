/* SPDX-License-Identifier: MIT
 * A world of modelled servers, links and clocks, in which several clients with the real engine
 * compete for locks. The world executes one event after the other, and after each of them the
 * oracle checks all invariants. Fields whose names end in _ns are true time of the world unless
 * their comment names another clock; in sets of resources or nodes, bit i stands for number i. */
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

/* What a reply says about one token. With it, a client may count a vote. */
struct sim_sent_text {
    uint32_t token;
    uint32_t end;  /* the reply ends at this byte of the segment */
    bool extended; /* true: the key was extended; false: it was set */
    uint64_t
        executed_boot_ns; /* when the server executed the command, on the client's boot clock */
};

/* A piece of one direction of a connection. Owned by the queue, a path's list or a client's inbox.
 */
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
    uint64_t cut_ns;  /* segments that would arrive later than this are lost */
    uint64_t thaw_ns; /* segments that would arrive earlier than this wait, as TCP retransmits at
                       * growing intervals */
    struct sim_segment *held_first, *held_last;
};

/* One connection, with what its client and its server each believe about it. link.c owns it. */
struct sim_conn {
    struct sim_conn *next; /* list of the world */
    uint8_t client, node;
    bool client_open, server_open, ended; /* ended: the server has read the client's FIN */
    bool reset; /* the client closed it abortively: replies to it are lost */
    bool logged_in, db_chosen;
    bool push;       /* the client's second connection to this node, for notifications */
    uint32_t id;     /* client ID on the server */
    bool subscribed; /* it receives what other connections redirect to it */
    uint32_t
        redirect;   /* client ID that receives this connection's notifications (TRACKING); 0: off */
    bool registers; /* the keys that the next command reads become tracked */
    unsigned tracked; /* set of the tracked resources */
    uint64_t made_ns;
    unsigned refs; /* segments under way, and 1 for the link */
    struct sim_path path[2];
    size_t in_flight;      /* bytes on the way to the server */
    bool blocked;          /* the client waits for room in the window */
    uint64_t unblocked_ns; /* when it last continued after such a wait */
    char *in;              /* bytes at the server that are not executed yet */
    size_t in_len, in_cap;
};

/* The network between one client and one node. link.c owns it; fault.c counts `troubles`. */
struct sim_link {
    uint64_t delay_ns;
    uint64_t blocked_ns[2]; /* since when each direction is blocked */
    unsigned blocks[2];     /* number of faults that block each direction */
    unsigned troubles;      /* number of faults that affect this link now */
    uint64_t troubled_ns;   /* when the last such fault ended */
    struct sim_conn *conn;  /* the client's present connection; NULL: none */
    struct sim_conn *push;  /* its present connection for notifications; NULL: none */
};

/* Number of earlier states of a key that are remembered. Several losses may follow each other
 * within one TTL: a fail-over restores an older version of the key, and a second one removes that
 * version as well. */
#define SIM_GHOSTS 10

/* The key of one resource on one server. */
struct sim_key {
    bool present;
    uint32_t token_len;
    char token[RL_TOKEN_MAX + 1];
    int64_t expire_ms;
    uint64_t set_ns;      /* true time */
    uint64_t extended_ns; /* true time; 0: never extended */
    bool late;            /* set on a connection that its client had closed by then */
    uint64_t set_boot_ns; /* on the boot clock of the client that set it */
    uint8_t set_by;
};

#define SIM_REGISTERS 8

/* The fence record of one server. record.c owns it. */
struct sim_record {
    char cfg[200]; /* "": not in use */
    char mark[32];
    struct {
        unsigned stripe;
        uint64_t number;
    } registers[SIM_REGISTERS];
    unsigned count;
};

/* One modelled server. server.c owns it; fault.c sets what is wrong with it. */
struct sim_server {
    bool up, hung, full, replica, silent;
    bool evicts; /* it evicts keys, and its INFO says so */
    bool mute;   /* it does not know TRACKING */
    uint32_t last_id;
    uint64_t blocked_ns, busy_ns;
    uint32_t life;       /* number of its process; makes the run_id */
    uint32_t replid2;    /* 0: it was never a replica */
    uint64_t started_ns; /* on its own clock */
    uint64_t born_ns;    /* true time; before it, the server was idle for idled_ns */
    uint64_t idled_ns;
    unsigned major, minor;
    bool is_valkey;
    struct sim_clock clock; /* nanoseconds since its own 1970 */
    unsigned scripts;
    uint64_t noscript_ns; /* when it last got a script that it did not know */
    struct sim_key keys[SIM_KEYS_MAX];
    struct sim_key ghosts[SIM_KEYS_MAX][SIM_GHOSTS]; /* keys that were lost before they expired */
    struct sim_key copies[SIM_KEYS_MAX];             /* the keys that its replica has */
    struct sim_record record, record_copy;
    bool record_lost; /* at any time */
};

enum sim_doing {
    SIM_IDLE,
    SIM_ACQUIRING,
    SIM_HOLDING,
    SIM_EXTENDING,
    SIM_RELEASING,
    SIM_ASKING /* an inspection, or a release by token */
};

/* One user of a client, who has at most one lock at a time. user.c owns it. */
struct sim_slot {
    struct rl_lock *lock; /* NULL: none */
    uint8_t doing;        /* enum sim_doing */
    uint8_t resource;     /* the first one of `resources` */
    uint8_t resources;    /* the resources of the lock, as a set */
    bool part;            /* a release by token of one of several resources: afterwards the lock is
                           * offered again */
    uint32_t asked_token; /* the token of that release */
    bool done;            /* the operation has ended, but its user does not know it yet */
    bool reported;        /* its user knows that the lock is held */
    bool ended;           /* the engine has freed the lock */
    bool endangered, kept, forever;
    int status;
    uint32_t stamp; /* number of the operation: events with an older one are ignored */
    uint64_t begun_ns, limit_ns, hold_until_ns, paused_ns;
    uint64_t may_find_ns; /* of a permit: since when no fault prevents that a free one is found */
    uint64_t expired_ns;  /* since when the deadline has passed without an event; 0: it has not */
    uint64_t validity_min_ns;
    uint32_t token; /* token number of the lock; 0: none */
    unsigned rounds;
    uint64_t t1_boot_ns;    /* boot clock at the start of its last successful round; 0 for an
                             * adopted lock */
    uint64_t began_boot_ns; /* the same, also for an adopted lock */
    bool extended;          /* that round was an extension */
    struct rl_now deadline; /* as it was before the engine's last report */
};

/* What waits for a client's next turn of its loop: a segment, or room on a connection. */
struct sim_inbox {
    struct sim_inbox *next;
    struct sim_conn *conn;
    struct sim_segment *segment; /* NULL: there is room again */
};

/* One client process. client.c owns it. */
struct sim_client {
    struct sim_world *world;
    uint8_t index;
    bool alive, paused, in_turn;
    uint64_t paused_until_ns, ahead_ns, resumed_ns, paused_total_ns;
    struct sim_clock boot, raw, wall;
    bool frozen; /* all three clocks stand still */
    /* When its wall clock was set ahead, on its boot clock, after the clocks had stood still for
     * long enough to be noticed. What was held before is lost. */
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
    uint64_t allocated; /* number of blocks that are not freed yet */
    struct sim_slot slots[SIM_SLOTS_MAX];
};

/* One token and all that was reported about it. token.c creates it; the oracle judges by it. */
struct sim_token {
    char text[SIM_TOKEN_HEX];
    uint64_t born_ns; /* earlier than any request with it */
    uint8_t client;
    uint8_t resources;   /* a set */
    bool held;           /* a user was told that the lock is held */
    bool excused;        /* its keys may stay until they expire */
    uint64_t over_ns;    /* when its attempt or its lock ended; 0: it has not */
    uint64_t keep_ns;    /* release_after: how long its keys may stay */
    uint64_t expires_ns; /* all its keys have expired by then */
    uint8_t sets[SIM_NODES_MAX];
    uint64_t granted_boot_ns[SIM_NODES_MAX]; /* when the client received the grant, on its boot
                                              * clock; 0: it did not */
    uint64_t extended_boot_ns[SIM_NODES_MAX][SIM_CLIENTS_MAX]; /* per client, because the detaching
                                                                * and the adopting client have
                                                                * clocks of their own */
    uint8_t without_record; /* set of the nodes that voted without a fence record in use */
};

/* One grant with a fencing token, as the user received it. */
struct sim_grant {
    uint64_t number;
    uint64_t reported_ns;
    uint8_t resource;
    bool adopted;
};

/* One run. world.c owns it. */
struct sim_world {
    struct sim_plan plan;
    struct sim_random random;
    struct sim_queue queue;
    uint64_t now_ns;
    uint64_t born_ns, healed_ns;
    bool healed;
    struct sim_server servers[SIM_NODES_MAX];
    struct sim_client *clients;              /* plan.clients of them */
    struct sim_link (*links)[SIM_NODES_MAX]; /* one row per client */
    struct sim_conn *conns;
    struct sim_token *tokens;
    uint32_t token_count, token_cap;
    uint32_t *token_index; /* hash table of token numbers with at least twice as many places as
                            * tokens; 0: free */
    struct sim_grant *fences;
    uint32_t fence_count, fence_cap;
    uint64_t taken_ns[SIM_PERMITS_MAX]; /* when each slot of the semaphore was acquired last */
    bool fences_restarted;              /* by an operator, after a majority had lost its records */
    uint64_t offer_number;
    uint32_t offer; /* number of a token that one user detached, for another to adopt; 0: none */
    uint64_t hash;
    uint64_t events, injected[SIM_COUNTED], grants, operations, commands;
    bool trace;
    char violation[512];
};

/* Runs a seed to its end. The result stays in `world` until sim_world_free(). Returns false if an
 * invariant was violated; world->violation says which. */
bool sim_world_run(struct sim_world *world, uint64_t seed, bool trace);
/* Runs a plan that was not made from a seed, as sim_world_run() does. */
bool sim_world_run_plan(struct sim_world *world, const struct sim_plan *plan, bool trace);
void sim_world_free(struct sim_world *world);

/* Appends an event to the queue. */
void sim_plan_event(struct sim_world *world, uint64_t at_ns, enum sim_event_kind kind, unsigned who,
                    unsigned which, uint32_t stamp, void *data);

/* Records a violation; later ones are ignored. */
void sim_violate(struct sim_world *world, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a note to the hash of the run, and prints it if the run is traced. `fmt` takes four uint64_t
 * (PRIu64). */
void sim_note(struct sim_world *world, const char *fmt, uint64_t a, uint64_t b, uint64_t c,
              uint64_t d);

#endif
