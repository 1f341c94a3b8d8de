/* SPDX-License-Identifier: MIT
 * What a server tells about itself in INFO. */
#ifndef RL_NODE_INFO_H
#define RL_NODE_INFO_H

#include <stddef.h>
#include <stdint.h>

struct rl_info {
    char run_id[48];
    char role[16];
    char version[32]; /* "redis 7.0.15", "valkey 8.1.1" */
    unsigned major, minor;
    int is_valkey;
    uint64_t uptime_s;
};

/* Reads the fields it knows out of an INFO text (any sections); absent or malformed fields are
 * left as they are. The text is not trusted. */
void rl_info_parse(struct rl_info *info, const char *text, size_t len);

/* RL_FEATURE_* that a server of this version should have. It still has to show it. */
unsigned rl_info_features(const struct rl_info *info);

#endif
