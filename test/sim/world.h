/* SPDX-License-Identifier: MIT
 * A world of modelled servers, links and clocks, in which several clients with the real engine
 * compete for locks. The world executes one event after the other, and after each of them the
 * oracle checks all invariants. Fields whose names end in _ns are points in true time of the world,
 * or durations, unless their comment names another clock. In sets of keys, resources, nodes or
 * clients, bit i stands for number i. Parameters named `client`, `node`, `user`, `resource` or
 * `key` of type unsigned are indexes. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "clock.h"
#include "engine/engine.h"
#include "line.h"
#include "plan.h"
#include "queue.h"

#define SIM_TOKEN_HEX    40
#define SIM_OUTCOMES_MAX 6 /* of one segment */

/* The directions of a connection. */
enum sim_way { SIM_TO_SERVER = 0, SIM_TO_CLIENT = 1 };

enum sim_segment_kind {
    SIM_SYN,    /* the client connects */
    SIM_ACCEPT, /* the server accepts the connection */
    SIM_REFUSE, /* the server refuses it */
    SIM_DATA,
    SIM_FIN, /* one side has closed the connection; all it has sent arrives before */
    SIM_RST  /* one side has reset the connection */
};

/* The outcome of a command for one token: its key was set or extended. When the reply that reports
 * it has arrived, the client may count a vote. */
struct sim_outcome {
    uint32_t token; /* number of the token */
    uint32_t end;   /* the reply to the command ends at this byte of the bytes sent together */
    bool extended;  /* true: the key was extended; false: it was set */
    uint64_t
        executed_boot_ns; /* when the server executed the command, on the client's boot clock */
};

/* What arrives at once in one direction of a connection. Owned by the queue of events, by the list
 * of a path or by a client's inbox. */
struct sim_segment {
    struct sim_segment *next;
    struct sim_conn *conn;
    uint8_t kind; /* enum sim_segment_kind */
    uint8_t way;  /* enum sim_way */
    uint8_t outcome_count;
    struct sim_outcome outcomes[SIM_OUTCOMES_MAX]; /* of the replies that end in this segment */
    uint32_t len;                                  /* of `bytes`; 0 unless `kind` is SIM_DATA */
    char bytes[];
};

/* One direction of a connection. link.c owns it. */
struct sim_path {
    uint64_t last_ns; /* arrival of the segment that was sent last; a later one arrives after it */
    uint64_t cut_ns;  /* segments that would arrive later than this are lost */
    uint64_t thaw_ns; /* segments that would arrive earlier than this wait, as TCP retransmits at
                       * growing intervals */
    struct sim_segment *held_first, *held_last; /* segments that wait for the end of a block */
};

/* One connection, with what its client and its server each know about it. link.c owns it; server.c
 * changes the fields of the server's side. */
struct sim_conn {
    struct sim_conn *next;         /* list of the world */
    uint8_t client, node;          /* indexes of its two ends */
    bool client_open, server_open; /* whether each side regards it as open */
    bool ended;                    /* the client's FIN or reset has arrived at the server */
    bool reset;                    /* the client closed it abortively: replies to it are lost */
    bool logged_in, db_chosen;     /* the server has executed AUTH, SELECT */
    bool push;   /* the client's second connection to this node, for notifications */
    bool trial;  /* the connection of a trial */
    uint32_t id; /* client ID on the server */
    char turns[SIM_LINE_ID_MAX]; /* it receives the turns of the waiter with this id; "": of none */
    bool subscribed;             /* it receives what other connections redirect to it */
    uint32_t
        redirect;   /* client ID that receives this connection's notifications (TRACKING); 0: off */
    bool registers; /* the keys that the next command reads become tracked */
    unsigned tracked;        /* set of the tracked keys */
    uint64_t made_ns;        /* when the client began to connect */
    unsigned refs;           /* segments under way, and 1 for the link */
    struct sim_path path[2]; /* by enum sim_way */
    size_t in_flight;        /* bytes on the way to the server */
    bool blocked;            /* the client waits for room in the window */
    uint64_t unblocked_ns;   /* when it last continued after such a wait */
    char *in;                /* bytes at the server that are not executed yet */
    size_t in_len, in_cap;
    bool kept;       /* the server has bytes to execute later, and a reference */
    uint32_t number; /* of all connections of the run, from 1 */
    bool fin;        /* the client's FIN has arrived, and with it all that it has sent */
    /* The client has ended and closed the connection without a reset. Set by oracle_close.c: */
    bool left;     /* nothing may be left that was set on it, if the server reads all of it */
    bool whole;    /* the network has taken all that the client has sent */
    bool promised; /* the server reads all of it: there is no more than it reads at least */
    struct sim_records *records; /* of the bytes to the server; NULL: they are in no records */
};

/* The network between one client and one node. link.c owns it; fault.c counts `troubles`. */
struct sim_link {
    uint64_t delay_ns;      /* of one way, without jitter */
    uint64_t blocked_ns[2]; /* by enum sim_way: since when the direction is blocked */
    unsigned blocks[2];     /* number of faults that block each direction */
    unsigned troubles;      /* number of faults that affect this link now */
    uint64_t troubled_ns;   /* when the last such fault began or ended; 0: there was none */
    struct sim_conn *conn;  /* the client's present connection; NULL: none */
    struct sim_conn *push;  /* its present connection for notifications; NULL: none */
    struct sim_conn *trial; /* that of a trial; NULL: none */
};

/* Number of earlier states of a key that are remembered. Several losses may follow each other
 * within one TTL: a fail-over restores an older version of the key, and a second one removes that
 * version as well. */
#define SIM_FORMER_MAX 10

/* The key of one resource or slot on one server, or an earlier state of it. */
struct sim_key {
    bool present; /* set and not deleted; it may have expired */
    uint32_t token_len;
    char token[RL_TOKEN_MAX + 1]; /* without an end */
    int64_t expire_ms;            /* on the server's clock */
    uint64_t set_ns;              /* true time */
    uint64_t extended_ns;         /* true time; 0: never extended */
    bool late;                    /* set on a connection that its client had closed by then */
    uint64_t set_boot_ns;         /* on the boot clock of the client that set it */
    uint32_t set_conn;            /* number of the connection; 0: a foreign client */
    uint8_t set_by;               /* index of that client; UINT8_MAX: a foreign client */
};

#define SIM_REGISTERS 8

/* The fence record of one server. record.c owns it. */
struct sim_record {
    char cfg[200]; /* fingerprint of the configuration, then the run ID if records are bound to a
                    * process; "": the record is not in use */
    char mark[32]; /* of the first start that has read the record and may seed it; "": none */
    struct {
        unsigned stripe;
        uint64_t number; /* the largest fencing token */
    } registers[SIM_REGISTERS];
    unsigned count;
};

/* One modelled server. server.c owns it; fault.c sets what is wrong with it. */
struct sim_server {
    bool up;
    bool hung;             /* its process is stopped */
    bool full;             /* memory is full: commands that need memory fail */
    bool replica;          /* it is a replica: commands that write fail */
    uint64_t demoted_ns;   /* until when it was a replica last; 0: it never was */
    bool silent;           /* if it is down: its whole machine is, and connections get no reset */
    bool evicts;           /* it evicts keys, and its INFO says so */
    bool no_tracking;      /* it does not know TRACKING */
    uint32_t last_id;      /* the client ID that it assigned last */
    uint64_t blocked_ns;   /* until then it executes nothing, because a script runs */
    uint64_t busy_ns;      /* until then it replies -BUSY */
    uint32_t run_number;   /* random number of its process; a part of the run_id */
    uint32_t replid2;      /* 0: it was never a replica */
    uint64_t started_ns;   /* on its own clock */
    uint64_t born_ns;      /* true time of its start, for the CPU time in INFO */
    uint64_t idled_ns;     /* how long it ran before born_ns */
    unsigned major, minor; /* version; of Valkey if is_valkey */
    bool is_valkey;
    struct sim_clock clock; /* nanoseconds since its own 1970 */
    unsigned scripts;       /* set of the scripts that it has in its cache */
    uint64_t noscript_ns;   /* when it last got a script that it did not know */
    struct sim_key keys[SIM_KEYS_MAX];
    struct sim_key former[SIM_KEYS_MAX][SIM_FORMER_MAX]; /* states of keys that were lost, or
                                                          * shortened by a third party, before they
                                                          * expired */
    struct sim_key copies[SIM_KEYS_MAX];                 /* the keys that its replica has */
    struct sim_line lines[SIM_KEYS_MAX];                 /* the line of each key */
    int64_t lines_expire_ms[SIM_KEYS_MAX]; /* on its clock: when the key of each line expires */
    struct sim_record record, record_copy;
    bool record_lost; /* it has lost its record at some time */
};

/* What a user does now. */
enum sim_doing {
    SIM_IDLE, /* it has no lock and pauses */
    SIM_ACQUIRING,
    SIM_HOLDING,
    SIM_EXTENDING,
    SIM_RELEASING,
    SIM_REQUESTING /* an inspection, or a release by token */
};

/* One user of a client, with at most one lock at a time. user.c owns it. */
struct sim_user {
    struct rl_lock *lock; /* NULL: none */
    uint8_t doing;        /* enum sim_doing */
    uint8_t resource;     /* number of the first key in `resources` */
    uint8_t resources;    /* the keys of the lock, as a set; of a permit: of its slot */
    bool part;            /* a release by token of one of several resources: afterwards the lock is
                           * offered again */
    uint32_t released_token; /* the token of that release */
    bool done;               /* the operation has ended, but its user does not know it yet */
    bool reported;           /* its user knows that the lock is held */
    bool ended;              /* the engine does not use the lock any more */

    int status;        /* REDLOCK_*: how the last operation ended */
    uint32_t stamp;    /* number of the operation: events with an older one are ignored */
    uint64_t begun_ns; /* when the operation began */
    uint64_t limit_ns; /* how long it may take; RL_NEVER: no limit */

    uint64_t paused_ns;   /* paused_total_ns of the client when the time limit began */
    uint64_t may_find_ns; /* of a permit: since when no fault prevents that a free one is found */
    uint64_t expired_ns;  /* since when the deadline has passed without an event; 0: it has not */
    uint64_t validity_min_ns; /* the validity that the user requires of a grant */
    uint32_t token;           /* token number of the lock; 0: none */
    unsigned rounds;          /* number of operations that it has still to begin */
    uint32_t attempts;        /* of its present acquisition, as far as it has followed them */
    uint64_t t1_boot_ns;      /* boot clock at the start of its last successful round; 0 for an
                               * adopted lock */
    uint64_t began_boot_ns;   /* the same, also for an adopted lock */
    bool extended;            /* the last successful round was an extension */
    struct rl_now deadline;   /* as it was before the engine's last report */
};

/* An item that waits for the client's next turn of its loop: a segment, or the event that a
 * connection has room again. */
struct sim_inbox {
    struct sim_inbox *next;
    struct sim_conn *conn;
    struct sim_segment *segment; /* owned; NULL: there is room again */
};

/* One client process. client.c owns it. */
struct sim_client {
    struct sim_world *world;
    uint8_t index;
    bool alive;               /* there is a process */
    uint64_t paused_until_ns; /* the process runs again from then on */
    uint64_t ahead_ns; /* within a turn: how long the process has lost the processor since the turn
                        * began; its present is now_ns + ahead_ns */
    uint64_t resumed_ns;              /* end of its last pause; 0: it was never paused */
    uint64_t paused_total_ns;         /* sum of its pauses */
    struct sim_clock boot, raw, wall; /* CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME */
    bool frozen;                      /* all three clocks stand still */
    /* When its wall clock was set ahead, on its boot clock, after the clocks had stood still for
     * long enough to be noticed. Locks that were held before are lost. 0: never. */
    uint64_t corrected_boot_ns;
    /* Clocks of the engine when announcements were taken last, or when they were read later for a
     * turn or a call of a user. What is taken next was not decided before that. */
    struct rl_now decided_from;
    struct rl_mem mem;
    struct rl_log log;
    struct rl_engine engine;
    struct rl_node_spec *specs; /* one per node */
    uint64_t turn_ns;           /* when the loop turns next; UINT64_MAX: not planned */
    uint32_t turn_stamp; /* number of the planned turn; events with an older one are ignored */
    struct sim_inbox *inbox_first, *inbox_last;

    unsigned fail_of_1000; /* of 1000 allocations, the number that fail */
    uint64_t allocated;    /* number of blocks that are not freed yet */
    bool leaving;          /* it shuts down: its locks have ended, and undos are under way */
    bool settled;          /* its shutdown has succeeded */
    uint32_t leave_stamp;  /* number of the shutdown; events with an older one are ignored */
    struct sim_user users[SIM_USERS_MAX];
};

/* One token, and all replies about it that clients have received. token.c creates it; the oracle
 * uses it to check votes and leftover keys. */
struct sim_token {
    char text[SIM_TOKEN_HEX];
    uint64_t born_ns;  /* when it was first seen */
    uint8_t client;    /* index of the client that created it */
    uint8_t resources; /* the keys that it may be set under, as a set */
    bool held;         /* the engine has acquired or extended a lock with it */
    bool excused;      /* its keys may stay until they expire: a user wanted that, or a server has
                        * lost the undo */
    bool closed;       /* they may stay, because its client was closed; but see oracle_close.c */
    uint64_t ended_ns; /* when its attempt or its lock ended; 0: it has not */

    uint8_t sets[SIM_NODES_MAX]; /* per node: how many requests to set its keys were executed */
    uint64_t granted_boot_ns[SIM_NODES_MAX]; /* when the client received the grant, on its boot
                                              * clock; 0: it did not */
    /* When the server executed the extension whose reply the client received last, on that client's
     * boot clock; 0: none. Per client, because the detaching and the adopting client have clocks of
     * their own. */
    uint64_t extended_boot_ns[SIM_NODES_MAX][SIM_CLIENTS_MAX];
    uint8_t without_record; /* set of the nodes that voted without a fence record in use */
};

/* One lock that was granted with a fencing token. fence.c owns it. */
struct sim_grant {
    uint64_t number; /* the fencing token */
    uint64_t reported_ns;
    uint8_t resource;
};

/* One waiter that has joined a line and has not left it. oracle_line.c owns it. */
struct sim_joined {
    char id[SIM_LINE_ID_MAX];
    uint8_t node, resource;
    bool late;      /* its last request came on a connection that the client had closed */
    int64_t order;  /* of its arrival, lower first; negative if it has joined in front */
    int64_t ready;  /* the same of the time since when it can be notified; INT64_MAX: it cannot */
    uint64_t at_ns; /* when the server has executed its last request */
};

/* One run. world.c owns it. */
struct sim_world {
    struct sim_plan plan;
    struct sim_random random;
    struct sim_queue queue;
    uint64_t now_ns;
    uint64_t born_ns;   /* when the run began */
    bool healed;        /* all faults have ended */
    uint64_t healed_ns; /* when they ended, or when the last pause of a client ends */
    struct sim_server servers[SIM_NODES_MAX];
    struct sim_client *clients;              /* plan.clients of them */
    struct sim_link (*links)[SIM_NODES_MAX]; /* one row per client */
    struct sim_conn *conns;                  /* list of all connections */
    uint32_t conn_count;                     /* connections that were made */
    struct sim_token *tokens;                /* token number i is at index i - 1 */
    uint32_t token_count, token_cap;
    uint32_t *token_index;    /* hash table of token numbers with at least twice as many places as
                               * tokens; 0: free */
    struct sim_grant *fences; /* grants with a fencing token, in order */
    uint32_t fence_count, fence_cap;
    struct sim_joined *joined; /* the waiters of all lines */
    uint32_t joined_count, joined_cap;
    int64_t arrivals;                   /* waiters that have joined a line */
    uint64_t taken_ns[SIM_PERMITS_MAX]; /* when each slot of the semaphore was acquired last */
    bool fences_restarted; /* an operator restarted the records after a majority had lost them, or
                            * all servers have lost them */
    uint32_t offer; /* number of a token that one user detached, for another to adopt; 0: none */
    uint64_t offer_number; /* its fencing token; 0: none */
    uint64_t hash;         /* of all notes; equal runs have equal hashes */
    uint64_t events, injected[SIM_COUNTED], grants, operations; /* how many occurred */
    uint64_t commands;      /* that servers have executed, without greetings and heartbeats */
    uint64_t notifications; /* that servers have sent */
    bool trace;             /* print the notes */
    char violation[512];    /* the first one; "": none */
};

/* Runs a seed to its end. The result stays in `world` until sim_world_free(). Returns false if an
 * invariant was violated; world->violation says which. */
bool sim_world_run(struct sim_world *world, uint64_t seed, bool trace);
/* Runs a plan that was not made from a seed, as sim_world_run() does. */
bool sim_world_run_plan(struct sim_world *world, const struct sim_plan *plan, bool trace);
void sim_world_free(struct sim_world *world);

/* Appends an event to the queue, at now_ns if `at_ns` has passed. The other parameters are the
 * fields of struct sim_event. */
void sim_plan_event(struct sim_world *world, uint64_t at_ns, enum sim_event_kind kind,
                    unsigned target, unsigned item, uint32_t stamp, void *data);

/* Records a violation; later ones are ignored. */
void sim_violate(struct sim_world *world, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a note to the hash of the run, and prints it if the run is traced. Each single % in `fmt`
 * stands for the next of the four numbers. */
void sim_note(struct sim_world *world, const char *fmt, uint64_t a, uint64_t b, uint64_t c,
              uint64_t d);

#endif
