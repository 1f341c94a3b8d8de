/* SPDX-License-Identifier: MIT
 * Sends the greeting and judges its replies. A TCP connection cannot outlive the server process, so
 * what the greeting shows holds for the whole connection, unless there is a proxy (heartbeat.c). No
 * request is sent before all replies have come: a SET pipelined after a SELECT that fails would
 * write to database 0. */
#include "node/greeting.h"

#include "core/cause.h"
#include "core/scripts.h"
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the password's beginning that are looked for in an error text: a server that repeats a
 * long word may repeat only its beginning. */
#define REPEATED_MIN 16

/* The commands of the greeting, in the order in which they are sent. AUTH and SELECT are left out
 * where they are not needed. */
enum step {
    STEP_AUTH = 1,
    STEP_SETNAME, /* CLIENT SETNAME */
    STEP_INFO,    /* INFO; one step for each of rl_info_sections */
    STEP_SELECT,  /* after INFO, which shows a Sentinel: that has no databases */
    STEP_TIME,
    STEP_SCRIPT,  /* SCRIPT LOAD; one step for each of three scripts */
    STEP_EVAL,    /* EVAL of rl_script_check */
    STEP_EVALSHA, /* EVALSHA of the same */
};

/* Appends one command of `argc` words to the greeting, as a step of this kind. Returns false
 * without memory, as do all append_ functions below. */
static bool append(struct rl_node *node, enum step step, size_t argc, const struct rl_arg *args)
{
    if (!rl_encode_append(node->common->mem, &node->greeting.encoded, argc, args))
        return false;
    RL_ASSERT(node->greeting.steps < sizeof node->greeting.kinds);
    node->greeting.kinds[node->greeting.steps++] = (uint8_t)step;
    return true;
}

/* Appends AUTH, if there is a password. */
static bool append_auth(struct rl_node *node)
{
    struct rl_greeting *greeting = &node->greeting;
    struct rl_arg words[3] = {rl_arg_of("AUTH")};
    size_t count = 1;

    if (node->password == NULL)
        return true;
    if (node->user != NULL)
        words[count++] = rl_arg_of(node->user);
    words[count++] = rl_arg_of(node->password);
    if (!append(node, STEP_AUTH, count, words))
        return false;
    greeting->password_len = words[count - 1].len;
    greeting->password_at = greeting->encoded.len - strlen("\r\n") - greeting->password_len;
    return true;
}

/* Appends SELECT, unless database 0 is used. */
static bool append_select(struct rl_node *node)
{
    char number[16];

    if (node->db == 0)
        return true;
    snprintf(number, sizeof number, "%u", node->db);
    return append(node, STEP_SELECT, 2, (struct rl_arg[]){rl_arg_of("SELECT"), rl_arg_of(number)});
}

/* Appends SCRIPT LOAD of the script that requests of this verb run. */
static bool append_script(struct rl_node *node, enum rl_verb verb)
{
    return append(node, STEP_SCRIPT, 3,
                  (struct rl_arg[]){rl_arg_of("SCRIPT"), rl_arg_of("LOAD"),
                                    rl_arg_of(rl_protocol_script(verb, RL_FORM_SHA)->text)});
}

/* Appends EVAL and EVALSHA of a script without keys. Both may be refused or unknown; a server that
 * runs no script must not be asked to set a key, because it could not delete it. */
static bool append_check(struct rl_node *node)
{
    struct rl_arg none = rl_arg_of("0"); /* number of keys */

    return append(node, STEP_EVAL, 3,
                  (struct rl_arg[]){rl_arg_of("EVAL"), rl_arg_of(rl_script_check.text), none}) &&
           append(node, STEP_EVALSHA, 3,
                  (struct rl_arg[]){rl_arg_of("EVALSHA"), rl_arg_of(rl_script_check.sha), none});
}

/* Appends one INFO for each section. */
static bool append_info(struct rl_node *node)
{
    bool ok = true;

    for (unsigned i = 0; ok && i < RL_INFO_SECTIONS; i++)
        ok = append(node, STEP_INFO, 2,
                    (struct rl_arg[]){rl_arg_of("INFO"), rl_arg_of(rl_info_sections[i])});
    return ok;
}

/* Encodes the commands of a new greeting. Returns false without memory; the greeting is empty then.
 */
bool rl_greeting_prepare(struct rl_node *node)
{
    rl_greeting_free(node);
    node->greeting.time.received_ns = 0;
    bool ok = append_auth(node) &&
              append(node, STEP_SETNAME, 3,
                     (struct rl_arg[]){rl_arg_of("CLIENT"), rl_arg_of("SETNAME"),
                                       rl_arg_of("redlock")}) &&
              append_info(node) && append_select(node) &&
              append(node, STEP_TIME, 1, (struct rl_arg[]){rl_arg_of("TIME")}) &&
              append_script(node, RL_VERB_RELEASE) && append_script(node, RL_VERB_EXTEND) &&
              append_script(node, RL_VERB_SHORTEN) && append_check(node);
    if (!ok)
        rl_greeting_free(node);
    return ok;
}

/* Frees the commands of the greeting, and leaves it without steps. Keeps `time`. */
void rl_greeting_free(struct rl_node *node)
{
    rl_encoded_free(node->common->mem, &node->greeting.encoded);
    node->greeting.sent = 0;
    node->greeting.steps = node->greeting.done = 0;
}

/* Hands to the transport what it has not accepted yet of the greeting. Closes the connection on an
 * error. */
void rl_greeting_flush(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_transport *transport = &node->common->transport;
    struct rl_greeting *greeting = &node->greeting;

    while (greeting->sent < greeting->encoded.len) {
        ssize_t sent =
            transport->send(transport->ctx, node->index, greeting->encoded.bytes + greeting->sent,
                            greeting->encoded.len - greeting->sent);
        if (sent < 0) {
            rl_node_close(node, REDLOCK_CAUSE_DISCONNECT,
                          rl_transport_reason(transport, node->index), true, now_ns);
            return;
        }
        if (sent == 0)
            return;
        greeting->sent += (size_t)sent;
    }
}

/* Sets the limits of the decoder for the reply to the next step: INFO has a long text, TIME an
 * array of two elements. */
void rl_greeting_expect(struct rl_node *node)
{
    uint8_t step = node->greeting.kinds[node->greeting.done];

    rl_decoder_expect(&node->decoder, step == STEP_INFO ? RL_INFO_MAX : RL_BULK_MAX,
                      step == STEP_TIME ? 2 : 0);
}

/* Keeps the text of the cause (enum redlock_cause), and returns the cause, for which the connection
 * must be closed. */
static int refuse(struct rl_node *node, int cause)
{
    const char *text = rl_cause_of(cause)->text;

    rl_connection_set_text(&node->conn, text, strlen(text));
    return cause;
}

/* Judges an error reply to EVAL or EVALSHA, whose cause is `cause`. Returns as judge_error().
 * EVALSHA may be unknown, because requests then use EVAL. Other errors say nothing about rights. */
static int judge_script_error(struct rl_node *node, uint8_t step, const struct rl_reply *reply,
                              int cause)
{
    if (cause == REDLOCK_CAUSE_NOPERM) {
        rl_connection_set_text(&node->conn, reply->text, reply->len);
        return cause;
    }
    return step == STEP_EVAL && rl_wire_is_unknown(reply->text, reply->len)
               ? refuse(node, REDLOCK_CAUSE_NO_SCRIPTS)
               : 0;
}

/* Judges an error reply to a step (enum step). Returns 0 if the connection can be used although the
 * step has failed. Else keeps the text of the error, or for AUTH a fixed text where the error might
 * repeat the password, and returns the enum redlock_cause for which the connection must be closed.
 */
static int judge_error(struct rl_node *node, uint8_t step, const struct rl_reply *reply)
{
    int cause = rl_wire_error_cause(reply->text, reply->len);

    if (rl_wire_is_full(reply->text, reply->len)) {
        /* This is no reply to the step, and says nothing about the user. */
        static const char FULL[] = "max number of clients reached";
        rl_connection_set_text(&node->conn, FULL, sizeof FULL - 1);
        return REDLOCK_CAUSE_ERROR_REPLY;
    }
    if (cause == REDLOCK_CAUSE_PROTECTED) /* no reply to the step either */
        return refuse(node, cause);
    if (step == STEP_AUTH) {
        /* A server that does not know AUTH repeats its arguments, and a password must not be
         * logged. */
        static const char TEXT[] = "the server does not support this login";
        const struct rl_greeting *greeting = &node->greeting;
        size_t known_len = rl_min_u64(greeting->password_len, REPEATED_MIN);
        const char *password = greeting->encoded.bytes + greeting->password_at;
        bool safe = cause == REDLOCK_CAUSE_AUTH &&
                    memmem(reply->text, reply->len, password, known_len) == NULL;
        rl_connection_set_text(&node->conn, safe ? reply->text : TEXT,
                               safe ? reply->len : sizeof TEXT - 1);
        return REDLOCK_CAUSE_AUTH;
    }
    /* The server is loading or busy: the next connection may succeed. */
    bool is_temporary = cause == REDLOCK_CAUSE_LOADING || cause == REDLOCK_CAUSE_BUSY;
    if (step == STEP_SELECT || cause == REDLOCK_CAUSE_AUTH || is_temporary) {
        rl_connection_set_text(&node->conn, reply->text, reply->len);
        return cause != REDLOCK_CAUSE_NONE ? cause : REDLOCK_CAUSE_ERROR_REPLY;
    }
    if (step == STEP_EVAL || step == STEP_EVALSHA)
        return judge_script_error(node, step, reply, cause);
    /* The user may lack the permission. Without INFO the server is not identified, which the
     * admission judges. Without TIME clock steps are not noticed. Without SCRIPT LOAD the first
     * EVALSHA is repeated as EVAL. */
    if (step == STEP_INFO)
        rl_eligibility_refuse_info(&node->eligibility, cause);
    return 0;
}

/* Returns the kind of reply that a step (enum step) must have. */
static enum rl_reply_kind kind_of(uint8_t step)
{
    if (step == STEP_TIME)
        return RL_REPLY_ARRAY;
    if (step == STEP_EVAL || step == STEP_EVALSHA)
        return RL_REPLY_INTEGER;
    return step == STEP_INFO || step == STEP_SCRIPT ? RL_REPLY_BULK : RL_REPLY_STATUS;
}

/* Judges the reply to the next step, and keeps what INFO and TIME show. Returns 0 if the greeting
 * goes on, or the enum redlock_cause for which the connection must be closed. */
int rl_greeting_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    uint8_t step = node->greeting.kinds[node->greeting.done++];

    if (reply->kind == RL_REPLY_ERROR)
        return judge_error(node, step, reply);
    if (reply->kind != kind_of(step)) {
        rl_connection_set_text(&node->conn, "unexpected reply in the greeting", 32);
        return REDLOCK_CAUSE_PROTOCOL;
    }
    if (step == STEP_INFO) {
        rl_eligibility_add_info(&node->eligibility, reply->text, reply->len);
        if (rl_info_has_mode(rl_eligibility_info(&node->eligibility), "sentinel"))
            return refuse(node, REDLOCK_CAUSE_SENTINEL);
    }
    if (step == STEP_TIME && rl_wire_time_us(reply, &node->greeting.time.time_us))
        node->greeting.time.received_ns = now_ns;
    return 0;
}
