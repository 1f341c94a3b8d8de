/* SPDX-License-Identifier: MIT
 * The surroundings of the engines in fuzz_engine.c: correct servers (test/io/fake_store.h),
 * connections that carry what the script lets through, and one time for all. Functions with
 * `client` and `node` take their indexes. */
#ifndef TEST_FUZZ_ENGINE_WORLD_H
#define TEST_FUZZ_ENGINE_WORLD_H

#include "engine/engine.h"
#include "fake_store.h"

#define ENGINES      2
#define NODES        3
#define WORLD_BYTES  ((size_t)256 << 10)
#define WORLD_KEY    "r"        /* the resource of all locks */
#define WORLD_CONFIG "v1 fuzz;" /* the configuration of the fence records */

/* One connection. in: bytes to the server; out: bytes to the client. */
struct world_conn {
    bool open, pending; /* pending: its open() has no result yet */
    struct fake_session session;
    size_t in_len, out_len;
    char in[WORLD_BYTES], out[WORLD_BYTES];
};

/* One server. runs counts its starts and makes the run_id. */
struct world_node {
    struct fake_store store;
    bool reachable; /* false: connections to it are refused, and it executes nothing */
    unsigned runs;
    char run_id[24];
};

/* One engine and what it gets from its environment. */
struct world_client {
    struct rl_engine engine;
    uint64_t wake_ns; /* when the engine wants its next tick */
    uint64_t wall_us; /* its wall clock at world time 0 */
    uint64_t random;  /* state of its random generator */
};

/* All of it: both engines, the servers and the connections between them. */
struct world {
    uint64_t now_ns; /* virtual time, the same for all */
    struct world_node nodes[NODES];
    struct world_client clients[ENGINES];
    struct world_conn conns[ENGINES][NODES];
};
extern struct world world;
/* Changes the parameters of each engine before world_begin() opens it. NULL: no change. */
extern void (*world_adjust)(struct rl_engine_params *params);

/* Opens both engines and starts all servers empty and reachable. */
void world_begin(void);
/* Closes both engines and frees the servers. */
void world_end(void);

/* Executes up to `count` commands that have arrived on this connection. */
void world_serve(unsigned client, unsigned node, unsigned count);
/* Executes all commands that have arrived on any connection. */
void world_serve_all(void);
/* Delivers up to `most` bytes of each connection, and the results of pending opens. */
void world_deliver(unsigned client, size_t most);
/* Ends a connection; with `executed`, the server executes what it has received. */
void world_lose_connection(unsigned client, unsigned node, bool executed);
/* Returns whether the records of all other nodes are in use, so that this node's may get lost. */
bool world_others_in_use(unsigned node);
/* Returns whether some record is in use, but less than a majority. */
bool world_is_half_started(void);
/* Restarts a server and ends its connections. Does nothing unless the records of all other
 * nodes are in use, because this node's record is lost. */
void world_restart(unsigned node, bool keeps_keys, bool keeps_record);
/* Causes a disturbance chosen by `what`: keys or scripts are lost, a wall clock or a server's clock
 * is stepped, another lock uses the same register. */
void world_disturb(unsigned client, unsigned node, unsigned what);

#endif
