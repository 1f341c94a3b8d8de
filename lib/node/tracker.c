/* SPDX-License-Identifier: MIT
 * Opens the second connection of a node, on which its server sends notifications.
 *
 * rl_tracker_tick() opens the connection, rl_tracker_opened() sends the greeting (AUTH, CLIENT
 * SETNAME, CLIENT ID, SUBSCRIBE), and take_greeting() reads the replies to it. Then track() sends
 * the request TRACK on the first connection: the server is requested to send notifications to the
 * second one. Notifications are on once TRACK and a REGISTER behind it, as a test, have got their
 * replies (rl_tracker_reply()). The request REGISTER, sent in front of the PTTL of a waiter, makes
 * the server track the key that the PTTL reads. An unexpected reply ends the second connection: the
 * timers of waiters make up for a lost notification, but not for one that is misread. */
#include "core/backoff.h"
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <string.h>

/* The Pub/Sub channel on which a server sends notifications of tracked keys. */
#define CHANNEL "__redis__:invalidate"
/* What precedes this client's id as a waiter in the name of the channel of its turns in lines. */
#define TURNS "redlock:q:"
/* The encoded command of RL_VERB_REGISTER. It is a constant, because rl_node_encode_verb() would
 * replace the encoded PTTL in the cache of rl_node_common, which all nodes of a round use. */
#define REGISTER "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n"
/* Bounds of the delay before the next second connection: each failure in a row doubles the delay.
 */
static const struct rl_backoff delays = {.min_ns = 50 * RL_MS, .max_ns = 5 * RL_SECOND};
/* Delay of the next second connection if `harmful` is set: a try may cost the first connection, and
 * with it the votes. */
#define HARMFUL_NS (30 * RL_SECOND)

/* The steps of the greeting, one for each command, in the order in which they are sent. AUTH is
 * left out if there is no password. SUBSCRIBE must be the last: no other command is allowed after
 * it. */
enum step {
    STEP_AUTH = 0,
    STEP_SETNAME,   /* CLIENT SETNAME */
    STEP_ID,        /* CLIENT ID */
    STEP_SUBSCRIBE, /* to CHANNEL */
    STEP_TURNS      /* SUBSCRIBE to the channel of this client's turns, if lines are used. In a
                     * command of its own, because a refused channel refuses the whole command */
};

/* Returns the number of the node's second connection, which the functions of the transport expect.
 */
static unsigned connection_number(const struct rl_node *node)
{
    return node->index | RL_TRACKER_CONNECTION;
}

/* Prepares a tracker in state OFF, for which no connection is planned. */
void rl_tracker_init(struct rl_node *node)
{
    node->tracker = (struct rl_tracker){.due_ns = RL_NEVER};
}

/* Returns true if the server sends notifications of tracked keys. */
bool rl_tracker_is_on(const struct rl_node *node)
{
    return node->tracker.on;
}

/* Returns true if the server notifies this client when it is its turn in a line. */
bool rl_tracker_hears_turns(const struct rl_node *node)
{
    return node->tracker.on && node->tracker.line && !node->line_access.refused;
}

/* Returns true if the server does so, or may do so once the second connection is there. */
bool rl_tracker_may_hear_turns(const struct rl_node *node)
{
    const struct rl_tracker *tracker = &node->tracker;

    return node->common->notifications && node->common->waiter != 0 && !node->line_access.refused &&
           tracker->state != RL_TRACKER_REFUSED &&
           (tracker->state != RL_TRACKER_LISTENING || tracker->line);
}

/* Returns true if a lock has waited for a key on this node. */
bool rl_tracker_is_wanted(const struct rl_node *node)
{
    return node->tracker.wanted;
}

/* Returns the state of the second connection. */
enum rl_tracker_state rl_tracker_state(const struct rl_node *node)
{
    return (enum rl_tracker_state)node->tracker.state;
}

/* Returns enum redlock_cause: why the server refused the second connection last. */
uint8_t rl_tracker_cause(const struct rl_node *node)
{
    return node->tracker.cause;
}

/* Returns in words why the server refused the second connection last; "": it never did. */
const char *rl_tracker_text(const struct rl_node *node)
{
    return node->tracker.text;
}

/* Returns when rl_tracker_tick() has something to do (boot clock), or RL_NEVER. */
uint64_t rl_tracker_due_ns(const struct rl_node *node)
{
    return node->tracker.due_ns;
}

/* Frees the encoded commands of the greeting, and counts none of their bytes as sent. */
static void forget_greeting(struct rl_node *node)
{
    struct rl_tracker *tracker = &node->tracker;

    rl_encoded_free(node->common->mem, &tracker->encoded);
    tracker->sent = 0;
}

/* Closes the second connection, if it is open or being opened, and plans no other one. Turns
 * notifications off, and reports that to the engine as a change of the node. */
static void close_connection(struct rl_node *node)
{
    struct rl_tracker *tracker = &node->tracker;
    const struct rl_transport *transport = &node->common->transport;
    bool was_on = tracker->on;

    rl_node_replan(node);
    if (tracker->state != RL_TRACKER_OFF && tracker->state != RL_TRACKER_REFUSED)
        transport->close(transport->ctx, connection_number(node), false);
    rl_decoder_close(&tracker->decoder);
    forget_greeting(node);
    rl_inbox_forget(&node->common->inbox, RL_INBOX_PUSH_UNREAD, node->index);
    tracker->next_key = 0;
    tracker->state = RL_TRACKER_OFF;
    tracker->tls = false;
    tracker->due_ns = RL_NEVER;
    tracker->on = tracker->line = false;
    if (was_on)
        rl_node_notify_changed(node);
}

/* Closes the second connection after a failure. Plans the next one if the first connection is
 * ready, with a delay that doubles with each failure and is shortened by a random part of up to a
 * quarter. A connection that was on for RL_LASTING_NS (one second) resets the delay. */
static void retry_later(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->on && rl_sub_sat(now_ns, tracker->on_ns) >= RL_LASTING_NS)
        tracker->failures = 0;
    uint64_t delay_ns =
        rl_backoff_connect_ns(&delays, tracker->failures, node->common->random >> 9);
    close_connection(node);
    tracker->failures++;
    if (rl_connection_is_ready(&node->conn))
        tracker->due_ns = rl_add_sat(now_ns, delay_ns);
}

/* Returns true if the text of the reply begins with the terminated string `text`. */
static bool begins(const struct rl_reply *reply, const char *text)
{
    return reply->len >= strlen(text) && memcmp(reply->text, text, strlen(text)) == 0;
}

/* Closes the second connection because of this reply, enters state REFUSED, and keeps the cause and
 * the text of the reply. Only plans the next try if the server is busy with a script, or has
 * reached its maximum of clients. Keeps a text of its own instead of a reply to AUTH: a server that
 * does not know AUTH repeats its arguments, and a password must not be logged. */
static void refuse(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    static const char UNEXPECTED[] = "unexpected reply";
    struct rl_tracker *tracker = &node->tracker;

    if (reply->kind == RL_REPLY_ERROR &&
        (begins(reply, "BUSY ") || rl_wire_is_full(reply->text, reply->len))) {
        retry_later(node, now_ns);
        return;
    }
    bool is_error = reply->kind == RL_REPLY_ERROR && reply->len > 0;
    const char *text = is_error ? reply->text : UNEXPECTED;
    size_t len = is_error ? reply->len : sizeof UNEXPECTED - 1;

    tracker->cause =
        is_error ? (uint8_t)rl_wire_error_cause(reply->text, reply->len) : REDLOCK_CAUSE_PROTOCOL;
    if (tracker->state == RL_TRACKER_GREETING && tracker->step == STEP_AUTH) {
        tracker->cause = REDLOCK_CAUSE_AUTH;
        text = "the server refuses the login";
        len = strlen(text);
    }
    rl_wire_copy_printable(tracker->text, sizeof tracker->text, text, len);
    close_connection(node);
    tracker->state = RL_TRACKER_REFUSED;
    rl_node_notify_changed(node); /* the node cannot keep lines */
}

/* Notes that a lock waits for a key on this node. The first call makes the second connection due
 * now, or when the first connection is ready. Does nothing if notifications are not configured. */
void rl_tracker_request(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->wanted || !node->common->notifications)
        return;
    tracker->wanted = true;
    rl_node_replan(node);
    if (rl_connection_is_ready(&node->conn))
        tracker->due_ns = now_ns;
}

/* Notes that the first connection has become ready. Makes the second connection due, if a lock has
 * waited for a key; after HARMFUL_NS, if the last try was harmful. */
void rl_tracker_node_ready(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    rl_node_replan(node);
    rl_line_access_reset(node);
    if (tracker->state == RL_TRACKER_REFUSED)
        tracker->state = RL_TRACKER_OFF;
    if (tracker->wanted)
        tracker->due_ns = rl_add_sat(now_ns, tracker->harmful ? HARMFUL_NS : 0);
}

void rl_tracker_login_changed(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->state != RL_TRACKER_REFUSED || tracker->cause != REDLOCK_CAUSE_AUTH)
        return;
    tracker->state = RL_TRACKER_OFF;
    if (tracker->wanted && rl_connection_is_ready(&node->conn))
        tracker->due_ns = now_ns;
    rl_node_replan(node);
}

/* Frees all memory of the tracker. Does not close the second connection. */
void rl_tracker_free(struct rl_node *node)
{
    rl_decoder_close(&node->tracker.decoder);
    forget_greeting(node);
}

/* Closes the second connection, because the first one is closed. If a reply to TRACK was still to
 * come, tracking may have broken the first connection: the next try is delayed. `retry` false: no
 * first connection follows, so no second one is wanted any more. */
void rl_tracker_node_lost(struct rl_node *node, bool retry)
{
    struct rl_tracker *tracker = &node->tracker;
    tracker->harmful = tracker->harmful || tracker->pending > 0;
    tracker->pending = 0;
    tracker->failures = 0;
    tracker->wanted = tracker->wanted && retry;
    close_connection(node);
}

/* Encodes the commands of the greeting, and sets `step` to the first of them. Returns false without
 * memory. */
static bool prepare(struct rl_node *node)
{
    const struct rl_mem *mem = node->common->mem;
    struct rl_encoded *to = &node->tracker.encoded;
    const struct rl_arg auth[] = {rl_arg_of("AUTH"),
                                  rl_arg_of(node->user != NULL ? node->user : ""),
                                  rl_arg_of(node->password != NULL ? node->password : "")};
    char turns[sizeof TURNS + 20];
    bool ok = true;

    snprintf(turns, sizeof turns, TURNS "%llu", (unsigned long long)node->common->waiter);
    if (node->password != NULL && node->user != NULL)
        ok = rl_encode_append(mem, to, 3, auth);
    else if (node->password != NULL)
        ok = rl_encode_append(mem, to, 2, (struct rl_arg[]){auth[0], auth[2]});
    node->tracker.step = node->password != NULL ? STEP_AUTH : STEP_SETNAME;
    return ok &&
           rl_encode_append(mem, to, 3,
                            (struct rl_arg[]){rl_arg_of("CLIENT"), rl_arg_of("SETNAME"),
                                              rl_arg_of("redlock-wake")}) &&
           rl_encode_append(mem, to, 2, (struct rl_arg[]){rl_arg_of("CLIENT"), rl_arg_of("ID")}) &&
           rl_encode_append(mem, to, 2,
                            (struct rl_arg[]){rl_arg_of("SUBSCRIBE"), rl_arg_of(CHANNEL)}) &&
           (node->common->waiter == 0 ||
            rl_encode_append(mem, to, 2,
                             (struct rl_arg[]){rl_arg_of("SUBSCRIBE"), rl_arg_of(turns)}));
}

/* Handles that the socket is connected, and the TLS handshake begins. */
void rl_tracker_connected(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->state != RL_TRACKER_CONNECTING)
        return;
    tracker->tls = true;
    tracker->due_ns =
        rl_add_sat(now_ns, rl_connection_handshake_ns(node, tracker->slow_handshakes));
    rl_node_replan(node);
}

/* Handles that the TLS handshake has failed, and the server is tried at its next address. */
void rl_tracker_next_address(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->state != RL_TRACKER_CONNECTING)
        return;
    tracker->tls = false;
    tracker->due_ns = rl_add_sat(now_ns, node->common->connect_timeout_ns);
    rl_node_replan(node);
}

/* Handles the end of an attempt to open the second connection: sends the greeting if the attempt
 * has succeeded (`ok`) and there is memory, else plans the next try. */
void rl_tracker_opened(struct rl_node *node, bool ok, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->state != RL_TRACKER_CONNECTING)
        return;
    if (!ok || !rl_decoder_open(&tracker->decoder, node->common->text) || !prepare(node)) {
        retry_later(node, now_ns);
        return;
    }
    rl_decoder_collect(&tracker->decoder, &tracker->texts);
    tracker->state = RL_TRACKER_GREETING;
    rl_node_replan(node);
    tracker->due_ns =
        rl_add_sat(now_ns, rl_connection_handshake_ns(node, tracker->slow_handshakes));
    rl_tracker_flush(node, now_ns);
}

/* Hands to the transport what it has not accepted yet of the greeting. If the connection is broken,
 * plans the next one. */
void rl_tracker_flush(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;
    const struct rl_transport *transport = &node->common->transport;

    while (tracker->state == RL_TRACKER_GREETING && tracker->sent < tracker->encoded.len) {
        ssize_t sent = transport->send(transport->ctx, connection_number(node),
                                       tracker->encoded.bytes + tracker->sent,
                                       tracker->encoded.len - tracker->sent);
        if (sent < 0)
            retry_later(node, now_ns);
        if (sent <= 0)
            return;
        tracker->sent += (size_t)sent;
    }
}

/* Appends TRACK to the pipeline of the first connection, and one REGISTER as a test of whether the
 * user may send it. If the next request happens to read a key, the server tracks that key, too,
 * which is harmless. Without memory or room, plans the next second connection. */
static void track(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;
    struct rl_request request = {.sent_ns = now_ns, .verb = RL_VERB_TRACK};
    const struct rl_encoded *encoded;
    char id[24];

    snprintf(id, sizeof id, "%llu", (unsigned long long)tracker->id);
    if (!rl_connection_is_ready(&node->conn) || rl_pipeline_is_full(&node->pipe) ||
        (encoded = rl_node_encode_verb(node, RL_VERB_TRACK, rl_arg_of(id))) == NULL) {
        retry_later(node, now_ns);
        return;
    }
    bool ok = rl_pipeline_push(&node->pipe, &request, encoded->bytes, encoded->len);
    tracker->pending += ok;
    ok = ok && rl_pipeline_push(&node->pipe, &request, REGISTER, sizeof REGISTER - 1);
    tracker->pending += ok;
    if (ok)
        rl_node_note_dirty(node);
    else
        retry_later(node, now_ns);
}

/* Returns true if the reply is the status OK. */
static bool is_ok(const struct rl_reply *reply)
{
    return reply->kind == RL_REPLY_STATUS && reply->len == 2 && memcmp(reply->text, "OK", 2) == 0;
}

/* Handles the reply on the first connection to TRACK, or to the REGISTER that was sent with TRACK.
 * After both replies are OK, turns notifications on and reports that any key may have changed. */
void rl_tracker_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    RL_ASSERT(tracker->pending > 0);
    if (--tracker->pending > 1 || tracker->state != RL_TRACKER_LISTENING)
        return; /* belongs to an earlier second connection, or the present one is closed */
    if (reply->kind == RL_REPLY_ERROR && begins(reply, "ERR The client ID you want")) {
        retry_later(node, now_ns); /* the server has closed the second connection already */
        return;
    }
    if (!is_ok(reply)) {
        tracker->harmful = reply->kind != RL_REPLY_ERROR;
        refuse(node, reply, now_ns);
        return;
    }
    if (tracker->pending > 0)
        return; /* the reply to REGISTER is still to come */
    tracker->on = true;
    tracker->on_ns = now_ns;
    tracker->harmful = false;
    rl_node_notify_changed(node);
    /* Changes before now were not notified. The empty key means: any key may have changed. */
    rl_inbox_add_key(&node->common->inbox, node->index, (struct rl_arg){NULL, 0});
}

/* Appends REGISTER to the pipeline of the first connection, if notifications are on: the server
 * then tracks the key of `claim`, which the caller's next request reads. */
void rl_tracker_register(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns)
{
    struct rl_request request = {
        .claim = claim, .sent_ns = now_ns, .verb = RL_VERB_REGISTER, .reported = true};

    /* Without memory the server sends no notification of this key; the waiter polls. */
    if (node->tracker.on)
        (void)rl_pipeline_push(&node->pipe, &request, REGISTER, sizeof REGISTER - 1);
}

/* Handles the reply to the REGISTER of rl_tracker_register(). Any reply but OK closes the second
 * connection. */
void rl_tracker_registered(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    if (is_ok(reply) || !node->tracker.on)
        return;
    node->tracker.harmful = reply->kind != RL_REPLY_ERROR;
    refuse(node, reply, now_ns);
}

/* Returns true if `arg` equals the terminated string `text`. */
static bool is_word(struct rl_arg arg, const char *text)
{
    return arg.data != NULL && arg.len == strlen(text) && memcmp(arg.data, text, arg.len) == 0;
}

/* Enters state LISTENING, because the greeting is complete, and requests tracking. */
static void begin_listening(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    tracker->state = RL_TRACKER_LISTENING;
    tracker->slow_handshakes = 0;
    rl_node_replan(node);
    tracker->due_ns = RL_NEVER;
    forget_greeting(node);
    track(node, now_ns);
}

/* Returns true if the reply to a SUBSCRIBE says that the server has accepted the channel. */
static bool is_subscribed(const struct rl_tracker *tracker, const struct rl_reply *reply)
{
    return reply->kind == RL_REPLY_ARRAY && tracker->texts.count == 3 &&
           is_word(tracker->texts.list[0], "subscribe");
}

/* Handles the reply to the next command of the greeting. An error is refused, except that of CLIENT
 * SETNAME, whose name nothing depends on, and that of the channel of turns, without which this
 * client cannot be a head. After the last reply enters state LISTENING and requests tracking. */
static void take_greeting(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (reply->kind == RL_REPLY_ERROR && tracker->step != STEP_SETNAME &&
        tracker->step != STEP_TURNS) {
        refuse(node, reply, now_ns);
        return;
    }
    switch (tracker->step++) {
    case STEP_ID:
        tracker->id = reply->kind == RL_REPLY_INTEGER ? (uint64_t)reply->integer : 0;
        if (tracker->id == 0)
            refuse(node, reply, now_ns);
        break;
    case STEP_SUBSCRIBE:
        if (!is_subscribed(tracker, reply))
            refuse(node, reply, now_ns);
        else if (node->common->waiter == 0)
            begin_listening(node, now_ns);
        break;
    case STEP_TURNS:
        tracker->line = is_subscribed(tracker, reply);
        rl_line_access_note_channel(node, tracker->line, reply);
        begin_listening(node, now_ns);
        break;
    default:
        break;
    }
}

/* Adds the next key of the notification that was read last to the inbox. A nil in place of the keys
 * means that any key may have changed; it is reported as the empty key. */
static void report_key(struct rl_node *node)
{
    struct rl_tracker *tracker = &node->tracker;
    struct rl_arg key = tracker->texts.list[tracker->next_key++];

    if (key.data == NULL)
        key.len = 0;
    if (tracker->next_key == tracker->texts.count)
        tracker->next_key = 0;
    rl_inbox_add_key(&node->common->inbox, node->index, key);
}

/* Returns true if `channel` is one of turns. The server sends only messages on channels that this
 * client has subscribed to. */
static bool is_turns_channel(struct rl_arg channel)
{
    return channel.data != NULL && channel.len > sizeof TURNS - 1 &&
           memcmp(channel.data, TURNS, sizeof TURNS - 1) == 0;
}

/* Handles a notification, an array of "message", the channel, and one or more keys: counts it and
 * reports its first key, or the turn of the key. Anything else closes the second connection, and
 * the next one is planned. */
static void take_notification(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    const struct rl_texts *texts = &node->tracker.texts;

    bool is_message =
        reply->kind == RL_REPLY_ARRAY && texts->count >= 3 && is_word(texts->list[0], "message");
    bool is_turn = is_message && texts->count == 3 && is_turns_channel(texts->list[1]);

    if (!is_message || (!is_turn && !is_word(texts->list[1], CHANNEL))) {
        retry_later(node, now_ns);
        return;
    }
    node->counters.notifications++;
    if (is_turn) {
        if (texts->list[2].len != 0) /* an empty key would mean that any key may have changed */
            rl_inbox_add_turn(&node->common->inbox, node->index, texts->list[2]);
        return;
    }
    node->tracker.next_key = 2;
    report_key(node);
}

/* Gives the received bytes to the decoder, and notes that rl_tracker_next() must be called. Plans
 * the next connection if the decoder cannot take them. */
void rl_tracker_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->state != RL_TRACKER_GREETING && tracker->state != RL_TRACKER_LISTENING)
        return;
    if (!rl_decoder_feed(&tracker->decoder, bytes, len)) {
        retry_later(node, now_ns);
        return;
    }
    rl_inbox_note(&node->common->inbox, RL_INBOX_PUSH_UNREAD, node->index);
}

/* Reports the next key of a notification, or reads and handles the next reply or notification. If
 * no complete one is left, removes the node from the set RL_INBOX_PUSH_UNREAD. If the bytes cannot
 * be parsed, plans the next connection. */
void rl_tracker_next(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;

    if (tracker->next_key != 0) {
        report_key(node);
        return;
    }
    int got = rl_decoder_next(&tracker->decoder);
    if (got == 0)
        rl_inbox_forget(&node->common->inbox, RL_INBOX_PUSH_UNREAD, node->index);
    else if (got < 0)
        retry_later(node, now_ns);
    else if (tracker->state == RL_TRACKER_GREETING)
        take_greeting(node, rl_decoder_reply(&tracker->decoder), now_ns);
    else
        take_notification(node, rl_decoder_reply(&tracker->decoder), now_ns);
}

/* Handles the end of the second connection: plans the next one. */
void rl_tracker_closed(struct rl_node *node, uint64_t now_ns)
{
    retry_later(node, now_ns);
}

/* Does what is due: opens the second connection, or gives up one that was not made or greeted in
 * time. */
void rl_tracker_tick(struct rl_node *node, uint64_t now_ns)
{
    struct rl_tracker *tracker = &node->tracker;
    const struct rl_transport *transport = &node->common->transport;

    if (tracker->due_ns > now_ns)
        return;
    if (tracker->state != RL_TRACKER_OFF) {
        tracker->slow_handshakes += tracker->tls;
        retry_later(node, now_ns);
        return;
    }
    tracker->state = RL_TRACKER_CONNECTING;
    tracker->due_ns = rl_add_sat(now_ns, node->common->connect_timeout_ns);
    transport->open(transport->ctx, connection_number(node));
}
