/* SPDX-License-Identifier: MIT
 * Fuzzes the second connection of a node, on which the server sends notifications, next to the
 * first one: arbitrary bytes in pieces, between replies on the first one, closes, broken and
 * blocked sockets, time. Checks after each event: nothing on the second connection ends the first
 * one or is a vote; each notified key was in the bytes received; there are no notifications while
 * the first connection is down. At the end notifications of a correct server arrive again.
 *
 *     2 bytes failing allocation, then events of 1 byte and their arguments */
#include "fuzz.h"
#include "node_rig.h"

#include <string.h>

#define EVENTS_MAX 400
#define LOG_MAX    ((size_t)64 * 1024)
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"
#define PUSH       "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"

static struct rig *rig;
static struct rl_claim *claim;
static unsigned requests, votes; /* GETs on the first connection */
/* The bytes received on the open second connection. */
static char received[LOG_MAX];
static size_t received_len;

/* Checks that a notified key was in the received bytes. */
static void on_pushed(struct rl_arg key)
{
    MUST(rig->node.conn.state == RL_NODE_READY);
    MUST(rig->node.tracker.state == RL_TRACKER_LISTENING);
    MUST(key.len <= RL_TEXTS_BYTES_MAX);
    if (key.len != 0)
        MUST(memmem(received, received_len, key.data, key.len) != NULL);
}

/* Counts the votes, which must be of GETs. */
static void take_votes(void)
{
    rig_drain(rig);
    for (unsigned i = 0; i < rig->vote_count; i++) {
        const struct rig_vote *vote = &rig->votes[i];
        MUST(vote->claim == claim && vote->ballot.verb == RL_VERB_GET && votes < requests);
        votes++;
    }
    rig->vote_count = 0;
}

/* Checks the state of both connections. */
static void check(void)
{
    take_votes();
    const struct rl_tracker *tracker = &rig->node.tracker;
    bool in_use = tracker->state == RL_TRACKER_CONNECTING ||
                  tracker->state == RL_TRACKER_GREETING || tracker->state == RL_TRACKER_LISTENING;

    MUST(rig->push_open == in_use);
    MUST(!tracker->on || (tracker->state == RL_TRACKER_LISTENING && rl_node_is_up(&rig->node)));
    MUST(!tracker->on || tracker->pending == 0); /* the reply was to the last request */
    MUST(rig->node.conn.state == RL_NODE_READY || !in_use);
    MUST(memchr(tracker->text, '\0', sizeof tracker->text) != NULL);
    for (const char *c = tracker->text; *c != '\0'; c++)
        MUST(*c >= 0x20 && *c < 0x7f);
}

/* Delivers bytes on the second connection, and checks that the first one and its requests are
 * unaffected. */
static void receive(const char *bytes, size_t len)
{
    take_votes();
    unsigned state = rig->node.conn.state, closes = rig->closes;

    if (!rig->push_open || received_len + len > LOG_MAX)
        return;
    memcpy(received + received_len, bytes, len);
    received_len += len;
    rl_tracker_received(&rig->node, bytes, len, rig->now_ns);
    rig_drain(rig);
    MUST(rig->node.conn.state == state && rig->closes == closes && rig->vote_count == 0);
    if (!rig->push_open)
        received_len = 0;
    rig_flush(rig);
}

/* Delivers text on the second connection. */
static void receive_text(const char *text)
{
    receive(text, strlen(text));
}

/* Clears what the rig has recorded, which is not needed here. */
static void clear_recorded(void)
{
    rig->wire_len = 0;
    if (rig->push_open)
        rig->push_len = 0;
    rig->push_room = sizeof rig->push_wire / 2;
}

/* Connects the first connection again. */
static void reconnect_first(void)
{
    if (rig->node.conn.state == RL_NODE_READY)
        return;
    unsigned opens = rig->opens;
    for (unsigned i = 0; i < 1000 && !rig->is_open && rig->opens == opens; i++)
        rig_pass(rig, 10 * RL_MS);
    if (!rig->is_open)
        return;
    rl_node_opened(&rig->node, true, 0, NULL, rig->now_ns);
    rig_flush(rig);
    rig->wire_len = 0;
    if (rig->node.conn.state == RL_NODE_GREETING)
        rig_greet_as(rig, "redis_version:7.0.15\r\nrun_id:0123abcd\r\nuptime_in_seconds:77\r\n",
                     "role:master\r\n");
}

/* Sends a GET on the first connection. */
static void send_get(void)
{
    take_votes();
    if (rig->node.conn.state == RL_NODE_READY && requests - votes < 100 &&
        rl_node_request(&rig->node, claim, 1, RL_VERB_GET, rig->now_ns) == REDLOCK_CAUSE_NONE)
        requests++;
    rig_flush(rig);
}

/* Delivers bytes of the input on the second connection. */
static void receive_piece(struct fuzz_input *input)
{
    size_t len;
    const char *bytes = fuzz_bytes(input, (size_t)fuzz_byte(input) + 1, &len);

    receive(bytes, len);
}

/* Delivers a reply on the first connection. */
static void reply_on_first(struct fuzz_input *input)
{
    static const char *const answers[] = {"+OK\r\n",      "$-1\r\n",
                                          "-ERR no\r\n",  ":1\r\n",
                                          "$2\r\nab\r\n", "-ERR The client ID you want\r\n"};

    if (rig->node.conn.state == RL_NODE_READY)
        rig_reply(rig, answers[fuzz_below(input, 6)]);
}

/* Plays one event of the script. */
static void step(struct fuzz_input *input)
{
    static const char *const lines[] = {
        "+OK\r\n",      ":77\r\n",  SUBSCRIBED, PUSH "*1\r\n$3\r\nkey\r\n",
        PUSH "*-1\r\n", "-ERR\r\n", PUSH,       "*2\r\n",
        "$3\r\nkey\r\n"};

    switch (fuzz_byte(input) % 12) {
    case 0:
    case 1:
        receive_piece(input);
        return;
    case 2:
    case 3:
        receive_text(lines[fuzz_below(input, sizeof lines / sizeof lines[0])]);
        return;
    case 4:
        reply_on_first(input);
        return;
    case 5:
        rl_tracker_request(&rig->node, rig->now_ns);
        rl_node_tick(&rig->node, rig->now_ns);
        return;
    case 6:
        if (rig->push_open)
            rl_tracker_opened(&rig->node, fuzz_byte(input) % 8 != 0, rig->now_ns);
        rig_flush(rig);
        return;
    case 7:
        rig->push_broken = fuzz_byte(input) % 4 == 1;
        rig->push_room = fuzz_byte(input);
        rl_tracker_flush(&rig->node, rig->now_ns);
        return;
    case 8:
        if (rig->push_open)
            rl_tracker_closed(&rig->node, rig->now_ns);
        return;
    case 9:
        rig_pass(rig, fuzz_short(input) * RL_MS);
        return;
    case 10:
        send_get();
        return;
    default:
        if (rig->is_open && fuzz_byte(input) % 4 == 0)
            rig_lose(rig);
        reconnect_first();
        return;
    }
}

/* Makes the server correct and memory available from here on. */
static void heal(void)
{
    rig->push_broken = false;
    if (rig->is_open)
        rig_lose(rig);
    reconnect_first();
    MUST(rig->node.conn.state == RL_NODE_READY);
    rl_tracker_request(&rig->node, rig->now_ns);
    for (unsigned i = 0; i < 2000 && !rig->push_open; i++)
        rig_pass(rig, 50 * RL_MS);
    MUST(rig->push_open);
    received_len = 0;
    clear_recorded();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_text("+OK\r\n:77\r\n" SUBSCRIBED);
    rig_flush(rig);
    rig_reply(rig, "+OK\r\n+OK\r\n"); /* TRACKING, CACHING */
    MUST(rl_tracker_is_on(&rig->node));
    unsigned pushes = rig->pushes;
    receive_text(PUSH "*1\r\n$3\r\nkey\r\n");
    MUST(rig->pushes == pushes + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned choice = fuzz_short(&input);

    rig = rig_new();
    rig->common.notifications = true;
    rig->pushed_fn = on_pushed;
    requests = votes = 0;
    received_len = 0;
    claim = rig_claim(rig, "token");
    rig_ready(rig);
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
    fuzz_alloc_choose(choice);
    for (unsigned i = 0; i < EVENTS_MAX && input.left > 0; i++) {
        unsigned opens = rig->push_opens;
        step(&input);
        if (rig->push_opens != opens)
            received_len = 0;
        check();
        clear_recorded();
    }
    (void)fuzz_alloc_end();
    heal();
    check();
    claim->owner = NULL;
    rig_done(rig);
    rig_drop(claim);
    return 0;
}
