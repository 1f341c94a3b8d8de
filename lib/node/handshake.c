/* SPDX-License-Identifier: MIT
 * The greeting: what is said on every new connection, in one pipeline, before the first vote. A
 * TCP connection cannot outlive the server process, so what is learned here holds for every
 * command on this connection. No vote is sent before all answers are in: a SET pipelined behind a
 * SELECT that fails would land in database 0. */
#include "node/handshake.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <string.h>

/* A server that repeats a long word may repeat only its beginning, but not less than this. */
#define REPEATED_MIN 16

enum step {
    STEP_AUTH = 1,
    STEP_SELECT,
    STEP_SETNAME,
    STEP_INFO_SERVER,
    STEP_INFO_REPLICATION,
    STEP_INFO_MEMORY,
    STEP_INFO_PERSISTENCE,
    STEP_INFO_CPU,
    STEP_TIME,
    STEP_SCRIPT
};

static bool append(struct rl_node *node, enum step step, size_t argc, const struct rl_arg *args)
{
    if (!rl_encode_append(node->common->mem, &node->greeting.encoded, argc, args))
        return false;
    RL_ASSERT(node->greeting.steps < sizeof node->greeting.kinds);
    node->greeting.kinds[node->greeting.steps++] = (uint8_t)step;
    return true;
}

static bool append_auth(struct rl_node *node)
{
    if (node->password == NULL)
        return true;
    if (node->user == NULL)
        return append(node, STEP_AUTH, 2,
                      (struct rl_arg[]){rl_arg_of("AUTH"), rl_arg_of(node->password)});
    return append(
        node, STEP_AUTH, 3,
        (struct rl_arg[]){rl_arg_of("AUTH"), rl_arg_of(node->user), rl_arg_of(node->password)});
}

static bool append_select(struct rl_node *node)
{
    char number[16];

    if (node->db == 0)
        return true;
    snprintf(number, sizeof number, "%u", node->db);
    return append(node, STEP_SELECT, 2, (struct rl_arg[]){rl_arg_of("SELECT"), rl_arg_of(number)});
}

static bool append_script(struct rl_node *node, enum rl_verb verb)
{
    return append(node, STEP_SCRIPT, 3,
                  (struct rl_arg[]){rl_arg_of("SCRIPT"), rl_arg_of("LOAD"),
                                    rl_arg_of(rl_protocol_script(verb, RL_FORM_SHA)->text)});
}

/* A section at a time: servers before Redis 7 take no more. */
static bool append_info(struct rl_node *node, enum step step, const char *section)
{
    return append(node, step, 2, (struct rl_arg[]){rl_arg_of("INFO"), rl_arg_of(section)});
}

bool rl_greeting_prepare(struct rl_node *node)
{
    rl_greeting_free(node);
    node->greeting.time.received_ns = 0;
    bool ok = append_auth(node) && append_select(node) &&
              append(node, STEP_SETNAME, 3,
                     (struct rl_arg[]){rl_arg_of("CLIENT"), rl_arg_of("SETNAME"),
                                       rl_arg_of("redlock")}) &&
              append_info(node, STEP_INFO_SERVER, "server") &&
              append_info(node, STEP_INFO_REPLICATION, "replication") &&
              append_info(node, STEP_INFO_MEMORY, "memory") &&
              append_info(node, STEP_INFO_PERSISTENCE, "persistence") &&
              append_info(node, STEP_INFO_CPU, "cpu") &&
              append(node, STEP_TIME, 1, (struct rl_arg[]){rl_arg_of("TIME")}) &&
              append_script(node, RL_VERB_RELEASE) && append_script(node, RL_VERB_EXTEND) &&
              append_script(node, RL_VERB_SHORTEN);
    if (!ok)
        rl_greeting_free(node);
    return ok;
}

void rl_greeting_free(struct rl_node *node)
{
    rl_encoded_free(node->common->mem, &node->greeting.encoded);
    node->greeting.sent = 0;
    node->greeting.steps = node->greeting.done = 0;
}

void rl_greeting_flush(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_transport *transport = &node->common->transport;
    struct rl_greeting *greeting = &node->greeting;

    while (greeting->sent < greeting->encoded.len) {
        ssize_t sent =
            transport->send(transport->ctx, node->index, greeting->encoded.bytes + greeting->sent,
                            greeting->encoded.len - greeting->sent);
        if (sent < 0) {
            rl_node_close(node, REDLOCK_CAUSE_DISCONNECT, "connection lost", true, now_ns);
            return;
        }
        if (sent == 0)
            return;
        greeting->sent += (size_t)sent;
    }
}

static bool is_info(uint8_t step)
{
    return step >= STEP_INFO_SERVER && step <= STEP_INFO_CPU;
}

void rl_greeting_expect(struct rl_node *node)
{
    uint8_t step = node->greeting.kinds[node->greeting.done];

    rl_decoder_expect(&node->decoder, is_info(step) ? RL_INFO_MAX : RL_BULK_MAX,
                      step == STEP_TIME ? 2 : 0);
}

/* An error reply to a step: some are the end of the connection, some are a loss of comfort. */
static int judge_error(struct rl_node *node, uint8_t step, const struct rl_reply *reply)
{
    int cause = rl_wire_error_cause(reply->text, reply->len);

    if (step == STEP_AUTH) {
        /* A server that does not know AUTH repeats its arguments: such words are not for logs. */
        static const char TEXT[] = "the server does not support this login";
        size_t known_len = strnlen(node->password, REPEATED_MIN);
        bool safe = cause == REDLOCK_CAUSE_AUTH &&
                    memmem(reply->text, reply->len, node->password, known_len) == NULL;
        rl_connection_set_text(&node->conn, safe ? reply->text : TEXT,
                               safe ? reply->len : sizeof TEXT - 1);
        return REDLOCK_CAUSE_AUTH;
    }
    /* Loading and busy pass: a server that did not say who it is now may say it soon. */
    bool passes = cause == REDLOCK_CAUSE_LOADING || cause == REDLOCK_CAUSE_BUSY;
    if (step == STEP_SELECT || cause == REDLOCK_CAUSE_AUTH || passes) {
        rl_connection_set_text(&node->conn, reply->text, reply->len);
        return cause != REDLOCK_CAUSE_NONE ? cause : REDLOCK_CAUSE_ERROR_REPLY;
    }
    /* The user may lack the permission. Without INFO nothing is known of the server, without TIME
     * its clock is not watched, without SCRIPT LOAD the first script goes out in full. */
    if (is_info(step))
        rl_eligibility_refuse_info(&node->eligibility);
    return 0;
}

static enum rl_reply_kind kind_of(uint8_t step)
{
    if (step == STEP_TIME)
        return RL_REPLY_ARRAY;
    return is_info(step) || step == STEP_SCRIPT ? RL_REPLY_BULK : RL_REPLY_STATUS;
}

int rl_greeting_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    uint8_t step = node->greeting.kinds[node->greeting.done++];

    if (reply->kind == RL_REPLY_ERROR)
        return judge_error(node, step, reply);
    if (reply->kind != kind_of(step)) {
        rl_connection_set_text(&node->conn, "unexpected reply in the handshake", 33);
        return REDLOCK_CAUSE_PROTOCOL;
    }
    if (is_info(step))
        rl_eligibility_add_info(&node->eligibility, reply->text, reply->len);
    if (step == STEP_TIME && rl_wire_time_us(reply, &node->greeting.time.time_us))
        node->greeting.time.received_ns = now_ns;
    return 0;
}
