/* SPDX-License-Identifier: MIT
 * The parameters of an engine. The api layer fills them from the configuration of the client. */
#ifndef RL_ENGINE_PARAMS_H
#define RL_ENGINE_PARAMS_H

#include "core/backoff.h"
#include "core/wire.h"
#include "node/admission.h"
#include "node/spec.h"
#include "platform/log.h"

/* The parameters of one engine. They do not change while it is open. All pointers and texts are
 * borrowed, and stay valid until the engine is closed. */
struct rl_engine_params {
    const struct rl_mem *mem;            /* the caller's allocator */
    const struct rl_log *log;            /* the caller's log function */
    const struct rl_node_spec *specs;    /* addresses of the servers, with their options: `nodes`
                                          * elements */
    unsigned nodes;                      /* nodes of the shard, 1 to RL_NODES_MAX */
    const char *user, *password;         /* login at servers whose spec has neither. user NULL: the
                                          * default user; password NULL: no login */
    const char *owner;                   /* label in tokens; not used if owner_len is 0 */
    size_t owner_len;                    /* bytes of `owner`, up to RL_OWNER_MAX */
    struct rl_admission_rules admission; /* whose votes count; the engine sets its `quorum` */
    struct rl_backoff backoff;           /* bounds of the pauses between attempts */
    uint64_t connect_timeout_ns;         /* limit for opening a connection, and again for its
                                          * greeting (the first requests of a connection) */
    uint64_t node_timeout_ns;            /* a server that has not replied for longer is suspect; 0:
                                          * the limit is derived from measured round trips */
    unsigned keepalive_s;                /* for the sockets: idle time before the kernel probes a
                                          * TCP connection; 0: it does not */
    uint64_t heartbeat_ns; /* time between two heartbeats while locks are active; a node that its
                              operator must repair has one each second at least */
    struct rl_arg fence_record; /* key of the fence record */
    struct rl_arg fence_config; /* fingerprint of the settings that all clients with the same
                                 * fence records must share; see rl_fence_fingerprint() */
    bool fence_run_bound;       /* fence records are volatile: bound to one run of their server */
    uint64_t fence_wait_ns;     /* wait before a gap in a fence record is filled: max_ttl with
                                 * drift, so that no attempt from before the gap can still win */
    bool notifications;         /* nodes may be asked for notifications */
    bool lines;                 /* waiters may use lines; needs notifications */
    uint32_t queue_max;         /* most locks in the queue of one resource in this client; 0: no
                                 * limit */
};

#endif
