/* SPDX-License-Identifier: MIT
 * What the engines of a fuzzed script stand on: honest servers (test/io/fake_store.h) at the other
 * end of connections that carry what they are told to, and one time for all. */
#ifndef TEST_FUZZ_ENGINE_WORLD_H
#define TEST_FUZZ_ENGINE_WORLD_H

#include "engine/engine.h"
#include "fake_store.h"

#define ENGINES      2
#define NODES        3
#define WORLD_BYTES  ((size_t)256 << 10)
#define WORLD_KEY    "r"
#define WORLD_CONFIG "v1 fuzz;"

struct world_conn {
    bool open, pending; /* pending: how it ends was not told yet */
    struct fake_session session;
    size_t in_len, out_len;
    char in[WORLD_BYTES], out[WORLD_BYTES];
};

struct world_node {
    struct fake_store store;
    bool reachable;
    unsigned runs;
    char run_id[24];
};

struct world_client {
    struct rl_engine engine;
    uint64_t wake_ns, wall_us, random;
};

struct world {
    uint64_t now_ns;
    struct world_node nodes[NODES];
    struct world_client clients[ENGINES];
    struct world_conn conns[ENGINES][NODES];
};
extern struct world world;
/* Changes the parameters of each engine before world_begin() opens it; NULL: they stay. */
extern void (*world_adjust)(struct rl_engine_params *params);

void world_begin(const struct rl_engine_listener *listener);
void world_end(void);

/* Executes up to `count` commands that have come on this connection. */
void world_serve(unsigned client, unsigned node, unsigned count);
void world_serve_all(void);
/* Hands over up to `most` bytes of each connection, and what became of new ones. */
void world_deliver(unsigned client, size_t most);
void world_lose_connection(unsigned client, unsigned node, bool executed);
/* The records of all other nodes are in use: this one's may get lost. */
bool world_others_in_use(unsigned node);
/* A record is in use, but less than a majority. */
bool world_is_half_started(void);
void world_restart(unsigned node, bool keeps_keys, bool keeps_record);
/* Keys or scripts are gone, a wall clock or a server's jumps, others use the same register. */
void world_disturb(unsigned client, unsigned node, unsigned what);

#endif
