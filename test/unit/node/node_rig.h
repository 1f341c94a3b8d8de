/* SPDX-License-Identifier: MIT
 * A node without a network: a transport that keeps what it was given and accepts no more than
 * `room` bytes, an inbox that is drained as the engine does, and virtual time. */
#ifndef TEST_NODE_RIG_H
#define TEST_NODE_RIG_H

#include "node/node.h"

#include <redlock/redlock.h>

#define RIG_EPOCH_US                                                                               \
    INT64_C(1700000000000000) /* the server's clock when the client's boot clock                   \
                               * was 0 */
#define RIG_VOTES_MAX 512
#define RIG_WIRE_MAX  ((size_t)4 << 20)

/* One vote from the inbox. The claim may be freed already and is for comparison only. has_reply: a
 * reply of the server led to the vote. */
struct rig_vote {
    struct rl_ballot ballot;
    const struct rl_claim *claim;
    bool has_reply;
};

/* A node with its surroundings and what it has reported. */
struct rig {
    struct rl_node node;          /* the node under test, number 3 */
    struct rl_node_common common; /* what nodes of one engine share */
    struct rl_mem mem;            /* libc's allocator, unless the test changes it */
    struct rl_log log;            /* logs nothing */
    uint64_t now_ns;              /* virtual time, begins at 1000 s */
    /* The first connection: */
    bool is_open;
    bool abortive;          /* the last close asked for a reset */
    bool broken;            /* set by the test: sending fails */
    unsigned opens, closes; /* number of calls of the transport */
    size_t room;            /* bytes that the kernel still accepts; SIZE_MAX: no limit */
    bool skips_check; /* set by the test: rig_greet_as() leaves the replies to EVAL and EVALSHA,
                       * the end of the greeting, to the test */
    uint64_t held;    /* set by the test: bytes in a record that the kernel has in part */
    char *wire;       /* bytes that were sent and not returned by rig_take_sent() yet */
    size_t wire_len;
    /* Taken from the inbox since rig_new() (numbers of reports) or the last check (votes): */
    struct rig_vote votes[RIG_VOTES_MAX];
    unsigned vote_count;
    unsigned changed;                     /* reports that the state of the node has changed */
    unsigned undone, given_up, dropped;   /* undos: confirmed; key has expired; no memory */
    unsigned steps;                       /* reports that the server's clock has jumped ahead */
    unsigned pushes;                      /* notifications of keys, those of turns included */
    unsigned turns;                       /* notifications of turns in lines */
    size_t pushed_len;                    /* length of pushed; 0: all keys have changed */
    char pushed[RL_KEY_MAX];              /* the key of the last notification */
    void (*pushed_fn)(struct rl_arg key); /* receives each notified key; may be NULL */
    bool was_up;                          /* the node was up at its last report of a change */
    bool planned; /* a lock needed the node when the next time limit was computed */
    /* The second connection, on which the server sends notifications: */
    bool push_open, push_broken; /* as is_open and broken */
    unsigned push_opens, push_closes;
    size_t push_room;     /* bytes that the kernel still accepts */
    char push_wire[1024]; /* bytes that the node has sent */
    size_t push_len;
    /* The connection of a trial: */
    bool trial_open;
    unsigned trial_opens;
    size_t trial_room; /* bytes that the kernel accepts */
    char trial_wire[64];
    size_t trial_len;
};

/* Returns a fresh rig. There is one in the process, because it is large. */
struct rig *rig_new(void);
/* Closes and frees everything, so that the sanitizers detect leaks. */
void rig_done(struct rig *rig);

/* Starts the node, which begins to connect. */
void rig_start(struct rig *rig);
/* Completes the connection; the node sends its greeting. */
void rig_connect(struct rig *rig);
/* Replies to the whole greeting of a node without password, as a Redis 7.0 master. */
void rig_greet(struct rig *rig);
/* Replies to the greeting with these sections `server` and `replication` of INFO. */
void rig_greet_as(struct rig *rig, const char *server, const char *replication);
/* Replies to TIME as a server whose clock is ahead by `ahead_us`. */
void rig_reply_time(struct rig *rig, int64_t ahead_us);
/* Starts the node, connects it and replies to its greeting: it is READY, and nothing is
 * recorded. */
void rig_ready(struct rig *rig);
/* Does the same as rig_ready(), with `rtt_ns` as the measured round trip. */
void rig_ready_with_rtt(struct rig *rig, uint64_t rtt_ns);

/* Delivers bytes from the server. What the node sends in return waits for rig_flush(). */
void rig_receive(struct rig *rig, const char *bytes, size_t len);
/* Delivers bytes on the second connection. */
void rig_receive_push(struct rig *rig, const char *bytes, size_t len);
/* Delivers text from the server and sends what the node has in return. */
void rig_reply(struct rig *rig, const char *bytes);
/* Ends the first connection, as a reset by the network does. */
void rig_lose(struct rig *rig);
/* Drains the inbox, as the engine does after every call of the node. All other functions do that as
 * well. */
void rig_drain(struct rig *rig);
/* Sends what waits, as the engine does at the end of a tick. */
void rig_flush(struct rig *rig);
/* Advances time by `ns`; does what becomes due on the way, in order. */
void rig_pass(struct rig *rig, uint64_t ns);
/* Advances time by `ns` without running the node, as if the process stood still. */
void rig_freeze(struct rig *rig, uint64_t ns);

/* Returns a new claim with this token, a TTL of 30 s and the rig as owner. */
struct rl_claim *rig_claim(struct rig *rig, const char *token);
/* Makes the node send a request, as round `round`. Returns 0, or the cause (REDLOCK_CAUSE_*)
 * for which the node refused it. */
int rig_request(struct rig *rig, struct rl_claim *claim, uint32_t round, enum rl_verb verb);
/* Asks the node to undo the claim and sends it. Returns the vote of rl_node_undo(). */
enum rl_vote rig_undo(struct rig *rig, struct rl_claim *claim, uint32_t round);

/* Returns the commands that the node sent since the last call, words separated by blanks, each
 * command ended by a newline, scripts and their hashes by name. An incomplete command ends with
 * "...". */
const char *rig_take_sent(struct rig *rig);
/* Returns the only vote since the last check, and forgets it. */
struct rl_ballot rig_only_vote(struct rig *rig);
/* Checks that there was no vote since the last check. */
void rig_no_vote(const struct rig *rig);
/* Checks that the only vote since the last check is this one, for this claim and round, and
 * forgets it. */
void rig_check_vote(struct rig *rig, const struct rl_claim *claim, enum rl_vote vote, int cause,
                    uint32_t round);
/* Drops the test's reference to a claim after rig_done(), and checks that it is the last one. */
void rig_drop(struct rl_claim *claim);

#endif
