/* SPDX-License-Identifier: MIT
 * What a server tells about itself in INFO. */
#ifndef RL_NODE_INFO_H
#define RL_NODE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rl_info {
    char run_id[48];
    char role[16];
    char version[32]; /* "redis 7.0.15", "valkey 8.1.1" */
    unsigned major, minor;
    int is_valkey;
    uint64_t uptime_s;                /* by its wall clock, also when that was set */
    uint64_t cpu_user_us, cpu_sys_us; /* of its main thread: processor time; 0: not said */
    char replid[48];                  /* of its data: another one with each promotion */
    char replid2[48];                 /* "" or zeros: the data set never changed its master */
    int64_t second_offset;            /* second_repl_offset; 0: not said, -1: reset */
    uint64_t maxmemory;               /* 0: no limit */
    char policy[24];                  /* maxmemory_policy */
    uint64_t replicas;                /* attached to it */
    bool aof;                         /* keeps an append-only file */
    bool aof_failing;                 /* its last write or rewrite went wrong */
    bool loading;
    bool cluster; /* redis_mode is cluster */
    bool refused; /* a section was not told */
};

/* Reads the fields it knows out of an INFO text (any sections); absent or malformed fields are
 * left as they are. The text is not trusted. */
void rl_info_parse(struct rl_info *info, const char *text, size_t len);

/* It was a replica once, or was started from the data of one. */
bool rl_info_was_promoted(const struct rl_info *info);

/* It may remove keys that have not expired. */
bool rl_info_evicts(const struct rl_info *info);

/* RL_FEATURE_* that a server of this version should have. It still has to show it. */
unsigned rl_info_features(const struct rl_info *info);

#endif
