/* SPDX-License-Identifier: MIT
 * A node without a network: a transport that remembers what it was given and takes no more than it
 * is told to, an inbox that is emptied as an engine does, and time that passes when told. */
#ifndef TEST_NODE_RIG_H
#define TEST_NODE_RIG_H

#include "node/node.h"

#include <redlock/redlock.h>

#define RIG_EPOCH_US  INT64_C(1700000000000000) /* its clock when our boot clock was 0 */
#define RIG_VOTES_MAX 512
#define RIG_WIRE_MAX  ((size_t)4 << 20)

struct rig_vote {
    struct rl_ballot ballot;
    const struct rl_claim *claim;
    bool has_reply;
};

struct rig {
    struct rl_node node;
    struct rl_node_common common;
    struct rl_mem mem;
    struct rl_log log;
    uint64_t now_ns;
    /* the transport */
    bool is_open, abortive, broken; /* abortive: how it was closed last */
    unsigned opens, closes;
    size_t room; /* how many bytes the kernel still takes */
    char *wire;  /* what was sent and not looked at yet */
    size_t wire_len;
    /* what was taken out of the inbox */
    struct rig_vote votes[RIG_VOTES_MAX];
    unsigned vote_count;
    unsigned changed, undone, given_up, dropped, steps;
    unsigned pushes; /* keys that changed */
    size_t pushed_len;
    char pushed[RL_KEY_MAX];              /* the last one */
    void (*pushed_fn)(struct rl_arg key); /* sees each key that changes; may be NULL */
    bool was_up;
    bool planned; /* somebody wanted a lock when the next time limit was found out */
    /* the second connection */
    bool push_open, push_broken;
    unsigned push_opens, push_closes;
    size_t push_room;
    char push_wire[1024];
    size_t push_len;
};

/* One rig in the process: it is large. A fresh one; nothing has happened yet. */
struct rig *rig_new(void);
/* Closes and frees everything; the sanitizers see what is left. */
void rig_done(struct rig *rig);

/* Starts the node and lets it begin to connect. */
void rig_start(struct rig *rig);
/* The connection stands; the greeting was sent. */
void rig_connect(struct rig *rig);
/* Answers the whole greeting of a node without password and database: a Redis 7.0 master. */
void rig_greet(struct rig *rig);
void rig_greet_as(struct rig *rig, const char *server, const char *replication);
/* The answer to TIME of a server whose clock is ahead by so much. */
void rig_reply_time(struct rig *rig, int64_t ahead_us);
/* All of it: READY, and nothing to look at. */
void rig_ready(struct rig *rig);
/* READY with a measured round trip of `rtt_ns`. */
void rig_ready_with_rtt(struct rig *rig, uint64_t rtt_ns);

/* Bytes from the server; what the node has to say in return waits. */
void rig_receive(struct rig *rig, const char *bytes, size_t len);
/* The same on the second connection. */
void rig_receive_push(struct rig *rig, const char *bytes, size_t len);
/* Text from the server; what the node has to say in return leaves at once. */
void rig_reply(struct rig *rig, const char *bytes);
void rig_lose(struct rig *rig);
/* Empties the inbox, as the engine does after every call of the node; all others below do so, too.
 */
void rig_drain(struct rig *rig);
/* Sends what waits, as the engine does at the end of a tick. */
void rig_flush(struct rig *rig);
/* Time passes, and what is due is done, in order. */
void rig_pass(struct rig *rig, uint64_t ns);
/* Time passes, but the process sleeps. */
void rig_freeze(struct rig *rig, uint64_t ns);

struct rl_claim *rig_claim(struct rig *rig, const char *token);
/* Asks and sends; the cause if it was refused. */
int rig_request(struct rig *rig, struct rl_claim *claim, uint32_t round, enum rl_verb verb);
enum rl_vote rig_undo(struct rig *rig, struct rl_claim *claim, uint32_t round);

/* The commands that have left since the last look, words joined by blanks, commands by newlines;
 * scripts and their hashes by name. Bytes of an unfinished command end it with "...". */
const char *rig_said(struct rig *rig);
/* The only vote since the last look. */
struct rl_ballot rig_only_vote(struct rig *rig);
void rig_no_vote(const struct rig *rig);
/* The only vote since the last look is this one. */
void rig_check_vote(struct rig *rig, const struct rl_claim *claim, enum rl_vote vote, int cause,
                    uint32_t round);
/* After rig_done(): nobody refers to the claim any more but the test, which gives it back. */
void rig_drop(struct rl_claim *claim);

#endif
