/* SPDX-License-Identifier: MIT
 * What an engine is opened with. Addresses are parsed by the floor above, which needs nothing else
 * of the nodes' floor. */
#ifndef RL_ENGINE_PARAMS_H
#define RL_ENGINE_PARAMS_H

#include "core/backoff.h"
#include "core/wire.h"
#include "node/admission.h"
#include "node/spec.h"
#include "platform/log.h"

struct rl_engine_params {
    const struct rl_mem *mem;
    const struct rl_log *log;
    const struct rl_node_spec *specs;
    unsigned nodes;
    const char *user, *password; /* for specs without their own */
    const char *owner;           /* label in tokens */
    size_t owner_len;
    struct rl_admission_rules admission;
    struct rl_backoff backoff;
    uint64_t connect_timeout_ns, node_timeout_ns, heartbeat_ns;
    struct rl_arg fence_record, fence_config; /* borrowed */
    bool fence_run_bound;
    uint64_t fence_wait_ns; /* how long a node that forgot must wait */
    bool notifications;     /* nodes may be asked to tell of changes */
    uint32_t queue_max;     /* locks that may wait behind another one of this client; 0: no limit */
};

#endif
