/* SPDX-License-Identifier: MIT
 * Parses the reply to INFO, in which a server describes itself. */
#ifndef RL_NODE_INFO_H
#define RL_NODE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a server has said about itself. Zeroed by its owner, filled by rl_info_parse(); a field that
 * no reply contained is 0 or "". Texts are terminated and contain printable ASCII only. */
struct rl_info {
    char run_id[48];       /* the run id: random, and a new one with each start of the server */
    char role[16];         /* "master" or "slave" */
    char version[32];      /* "redis 7.0.15", "valkey 8.1.1" */
    unsigned major, minor; /* of the version; at most 9999 */
    int is_valkey;         /* 1: Valkey; 0: Redis or unknown */
    unsigned features;     /* RL_FEATURE_* (optional commands) that a server of this version should
                            * support; the server may refuse them all the same */
    uint64_t uptime_s;     /* seconds since the start of the server, by its wall clock: a clock step
                            * changes this number */
    uint64_t cpu_user_us;  /* processor time of the main thread in user mode, in microseconds; 0:
                            * unknown */
    uint64_t cpu_sys_us;   /* processor time of the main thread in the kernel, in microseconds; 0:
                            * unknown */
    char replid[48];       /* id of the data set; a new one with each promotion */
    char replid2[48];      /* id before the last promotion; "" or zeros: never promoted */
    int64_t second_offset; /* second_repl_offset: where in the data the last promotion took place;
                            * 0: unknown, -1: never promoted */
    uint64_t maxmemory;    /* limit of the memory for keys in bytes; 0: no limit */
    char policy[24];       /* maxmemory_policy: what the server does at that limit */
    uint64_t replicas;     /* replicas that are connected to the server */
    bool aof;              /* the server keeps an append-only file */
    bool aof_failing;      /* the last write or rewrite of that file has failed */
    bool loading;          /* the server is reading its data set from disk */
    char mode[16];         /* redis_mode: "standalone", "cluster" or "sentinel" */
    bool refused; /* a section was requested and the reply was an error; set by the owner */
    bool unknown; /* that error was not about a right of the user; set by the owner */
};

/* Number of the sections of INFO that clients read. */
#define RL_INFO_SECTIONS 5
/* Their names, in the order in which they are requested. Each one is requested by a command of its
 * own, because servers before Redis 7 accept only one section in a command. */
extern const char *const rl_info_sections[RL_INFO_SECTIONS];

/* Reads all known fields of an INFO text of `len` bytes, of any sections, into `info`. Fields of
 * `info` that the text does not contain, or that are malformed there, stay as they are. The text is
 * not trusted. */
void rl_info_parse(struct rl_info *info, const char *text, size_t len);

/* Returns true if the server has reported its run id and refused no section of INFO. */
bool rl_info_is_identified(const struct rl_info *info);

/* Returns true if the server reports that it is a replica. */
bool rl_info_is_replica(const struct rl_info *info);

/* Returns true if the server reports this mode, such as "sentinel". */
bool rl_info_has_mode(const struct rl_info *info, const char *mode);

/* Returns true if the server was a replica once and was promoted, or was started from the data of a
 * promoted server. */
bool rl_info_was_promoted(const struct rl_info *info);

/* Returns true if the server may remove keys before they expire: it has a limit of memory, and a
 * policy other than noeviction. */
bool rl_info_evicts(const struct rl_info *info);

#endif
