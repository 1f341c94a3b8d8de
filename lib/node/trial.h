/* SPDX-License-Identifier: MIT
 * Trials: another connection to a server whose first connection has become silent, to find out
 * whether the server is busy or the network has dropped the connection.
 *
 * Networks forget connections that were idle, without telling either end. A request on such a
 * connection is lost, and a busy or stopped server looks the same. The server itself tells them
 * apart: it reads older connections first. So if it replies to a PING on a new connection while the
 * first connection stays silent, that one is closed and replaced at once, as after any loss. If the
 * first connection replies, or is closed, the trial ends, and nothing is lost.
 *
 * A trial begins when a node becomes suspect and its first connection was idle before the request
 * that has no reply. A connection in use is not put on trial: networks do not forget it, and a
 * trial costs a busy server work, with TLS a handshake. For the same reason, a node whose trial did
 * not show that the connection is dead gets no other one for some time. */
#ifndef RL_NODE_TRIAL_H
#define RL_NODE_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rl_node;

/* The states of a trial. */
enum rl_trial_state {
    RL_TRIAL_OFF = 0,        /* there is none */
    RL_TRIAL_CONNECTING = 1, /* its connection is being opened */
    RL_TRIAL_WAITING = 2,    /* PING was sent on its connection */
    RL_TRIAL_REPLIED = 3 /* the server has replied; soon the first connection is replaced, unless
                          * that replies as well */
};

/* The trial of a node. Owner: trial.c. Invariant: in each state but OFF the node is suspect, and
 * the connection of the trial was opened and not closed. */
struct rl_trial {
    uint8_t state;       /* enum rl_trial_state */
    uint64_t replied_ns; /* in state REPLIED: boot clock when the reply arrived */
    uint64_t begun_ns; /* boot clock: when the last trial began; 0: there was none, or it has shown
                        * that the connection was dead */
};

/* Returns true while the connection of the trial is being opened. */
bool rl_trial_is_connecting(const struct rl_node *node);

/* Begins a trial, unless one is not allowed now, or the first connection was not idle. Called when
 * the node has become suspect. */
void rl_trial_begin(struct rl_node *node, uint64_t now_ns);

/* Ends the trial, if there is one. Called when the node is not suspect any more, and when the
 * connection of the trial has ended. */
void rl_trial_end(struct rl_node *node);

/* Handles the end of the attempt to open the connection of the trial; `ok`: it has succeeded. */
void rl_trial_opened(struct rl_node *node, bool ok);

/* Handles `len` bytes that have arrived on the connection of the trial. */
void rl_trial_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns);

/* Returns when rl_trial_tick() has something to do (boot clock); RL_NEVER: nothing is planned. */
uint64_t rl_trial_due_ns(const struct rl_node *node);

/* Closes the first connection, and has the next one opened at once, if the server has replied on
 * the connection of the trial. */
void rl_trial_tick(struct rl_node *node, uint64_t now_ns);

#endif
