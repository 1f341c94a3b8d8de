/* SPDX-License-Identifier: MIT
 * A whole node under a script of events: what its engine asks, what its connection does, what its
 * server answers, byte by byte, and time. Checked all along: each question gets one vote and no
 * vote comes from nowhere; a SET leaves at most once, and never after it was taken back; a grant
 * means that the key was set. At the end the network heals, and no key is left that was taken back.
 *
 *     2 bytes failing allocation, 1 byte manners, then events of 1 byte and their arguments */
#include "node_rig.h"

#include "server.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define CLAIMS      8
#define ASKS_MAX    600
#define IN_FLIGHT   200
#define HEAL_STEPS  500
#define CLAIM_TTL_S 36000

enum ask_state { NEVER_ASKED, OPEN, MAYBE, CLOSED };

struct ask {
    uint8_t state; /* enum ask_state */
    uint8_t verb;
    uint16_t token;
};

static struct rig *rig;
static struct server server;
static struct rl_claim *claims[CLAIMS];
static unsigned tokens[CLAIMS]; /* the number of each claim's token */
static bool attempted[SERVER_TOKENS], undone[SERVER_TOKENS];
static struct ask asks[ASKS_MAX]; /* the place is the round */
static unsigned rounds, next_token, kept, heard;
static uint8_t manner_of_open; /* 0: told later, 1: fails at once, 2: stands at once */
static bool forged;            /* the server says what it likes: a vote proves nothing */

/* ---- the transport ---- */

static void transport_open(void *ctx, unsigned node)
{
    (void)node;
    (void)ctx;
    MUST(!rig->is_open);
    rig->is_open = true;
    if (manner_of_open == 1) {
        rig->is_open = false;
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    } else if (manner_of_open == 2) {
        rl_node_opened(&rig->node, true, 0, NULL, rig->now_ns);
    }
}

static ssize_t transport_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    (void)node;
    (void)ctx;
    MUST(rig->is_open && len > 0);
    if (rig->broken)
        return -1;
    size_t taken = len < rig->room ? len : rig->room;
    server_receive(&server, bytes, taken);
    rig->room -= rig->room == SIZE_MAX ? 0 : taken;
    return (ssize_t)taken;
}

/* What a graceful close leaves in the server's queue is executed; after a reset, some of it. */
static void transport_close(void *ctx, unsigned node, bool abortive)
{
    (void)node;
    (void)ctx;
    if (rig->is_open)
        server_hang_up(&server, abortive ? kept : UINT32_MAX);
    rig->is_open = false;
}

/* ---- votes ---- */

static void check_vote(const struct rig_vote *vote)
{
    const struct rl_ballot *ballot = &vote->ballot;

    MUST(ballot->round > 0 && ballot->round <= rounds);
    struct ask *ask = &asks[ballot->round - 1];
    bool release = ask->verb == RL_VERB_RELEASE;
    MUST(ask->state == OPEN || ask->state == MAYBE);
    MUST(ballot->verb == ask->verb || (release && ballot->verb == RL_VERB_SHORTEN));
    if (ballot->vote == RL_VOTE_SILENT) {
        /* No answer so far; a vote still follows. */
        MUST(!vote->has_reply && ballot->cause == REDLOCK_CAUSE_TIMEOUT);
        return;
    }
    MUST(ballot->vote == RL_VOTE_GRANTED || ballot->vote == RL_VOTE_DENIED ||
         ballot->vote == RL_VOTE_FAILED);
    MUST(vote->has_reply || ballot->vote == RL_VOTE_FAILED);
    MUST((ballot->cause != REDLOCK_CAUSE_NONE) == (ballot->vote == RL_VOTE_FAILED) ||
         (ask->verb == RL_VERB_EXTEND && ballot->vote == RL_VOTE_FAILED));
    ask->state = CLOSED;
    if (forged || ballot->vote != RL_VOTE_GRANTED)
        return;
    const struct server_token *token = &server.tokens[ask->token];
    if (ask->verb == RL_VERB_ACQUIRE || ask->verb == RL_VERB_HEAL)
        MUST(token->made > 0);
    if (ask->verb == RL_VERB_EXTEND)
        MUST(token->extended > 0);
}

/* What the node has told its engine since the last look. */
static void hear(void)
{
    for (unsigned i = 0; i < rig->vote_count; i++)
        check_vote(&rig->votes[i]);
    heard += rig->vote_count;
    rig->vote_count = 0;
}

/* ---- what an engine does ---- */

static unsigned note_ask(unsigned slot, enum rl_verb verb)
{
    asks[rounds] =
        (struct ask){.state = OPEN, .verb = (uint8_t)verb, .token = (uint16_t)tokens[slot]};
    return ++rounds;
}

static void forget_asks(unsigned token, enum ask_state state)
{
    for (unsigned i = 0; i < rounds; i++)
        if (asks[i].token == token && asks[i].state < CLOSED)
            asks[i].state = (uint8_t)state;
}

static void make_claim(unsigned slot)
{
    char text[16];

    if (next_token == SERVER_TOKENS)
        return;
    fuzz_alloc_exempt(true);
    tokens[slot] = next_token++;
    snprintf(text, sizeof text, "t%u", tokens[slot]);
    claims[slot] = rig_claim(rig, text);
    fuzz_alloc_exempt(false);
    claims[slot]->ttl_ms = claims[slot]->ttl_max_ms = CLAIM_TTL_S * UINT64_C(1000);
}

static void drop_claim(unsigned slot)
{
    if (claims[slot] == NULL)
        return;
    hear();
    forget_asks(tokens[slot], CLOSED);
    claims[slot]->owner = NULL;
    rl_claim_drop(claims[slot]);
    claims[slot] = NULL;
}

static void ask_node(unsigned slot, enum rl_verb verb)
{
    if (claims[slot] == NULL)
        make_claim(slot);
    if (claims[slot] == NULL || undone[tokens[slot]] || rounds == ASKS_MAX ||
        rl_pipeline_count(&rig->node.pipe) > IN_FLIGHT)
        return;
    /* One attempt sends one SET; it is told apart from a heal by its round only. */
    if (verb == RL_VERB_ACQUIRE && attempted[tokens[slot]])
        verb = RL_VERB_HEAL;
    attempted[tokens[slot]] |= verb == RL_VERB_ACQUIRE || verb == RL_VERB_HEAL;
    unsigned round = note_ask(slot, verb);
    claims[slot]->no_shorter = verb == RL_VERB_EXTEND && (round & 1) != 0;
    bool was_up = rl_node_is_up(&rig->node);
    int cause = rl_node_ask(&rig->node, claims[slot], round, verb, rig->now_ns);
    MUST(was_up || cause != REDLOCK_CAUSE_NONE);
    if (cause != REDLOCK_CAUSE_NONE)
        asks[round - 1].state = CLOSED;
}

static void undo_claim(unsigned slot, unsigned manner)
{
    int cause = REDLOCK_CAUSE_NONE;

    if (claims[slot] == NULL || undone[tokens[slot]] || rounds == ASKS_MAX)
        return;
    hear();
    forget_asks(tokens[slot], MAYBE); /* the round they belong to is over */
    undone[tokens[slot]] = true;
    if (manner & 2) {
        claims[slot]->undo_verb = RL_VERB_SHORTEN;
        claims[slot]->keep_until_ns = rig->now_ns + (manner >> 2) * 50 * RL_MS;
    }
    unsigned round = (manner & 1) != 0 ? note_ask(slot, RL_VERB_RELEASE) : 0;
    server_ban(&server, tokens[slot]);
    enum rl_vote vote = rl_node_undo(&rig->node, claims[slot], round, rig->now_ns, &cause);
    MUST((vote == RL_VOTE_FAILED) == (cause != REDLOCK_CAUSE_NONE));
    if (vote != RL_VOTE_NONE && round != 0)
        asks[round - 1].state = CLOSED;
}

/* ---- what the world does ---- */

static void deliver(size_t len)
{
    static char bytes[SERVER_BYTES];

    len = len < server.out_len ? len : server.out_len;
    if (len == 0 || !rig->is_open || rig->node.state < RL_NODE_GREETING)
        return;
    memcpy(bytes, server.out, len);
    server.out_len -= len;
    memmove(server.out, server.out + len, server.out_len);
    rl_node_received(&rig->node, bytes, len, rig->now_ns);
}

static void opened(unsigned how)
{
    if (!rig->is_open || rig->node.state != RL_NODE_CONNECTING)
        return;
    if (how & 1)
        rl_node_opened(&rig->node, true, 0, NULL, rig->now_ns);
    else
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
}

static void lose_connection(unsigned more)
{
    if (!rig->is_open)
        return;
    server_hang_up(&server, more);
    if (rig->node.state == RL_NODE_CONNECTING)
        opened(0);
    else
        rl_node_closed(&rig->node, REDLOCK_CAUSE_DISCONNECT, "connection reset", rig->now_ns);
}

static void forge(struct fuzz_input *input)
{
    size_t len;
    const char *bytes = fuzz_bytes(input, fuzz_byte(input), &len);

    if (forged && len > 0 && rig->is_open && rig->node.state >= RL_NODE_GREETING)
        rl_node_received(&rig->node, bytes, len, rig->now_ns);
}

static void pass(uint64_t ns, bool asleep)
{
    if (asleep)
        rig_freeze(rig, ns);
    else
        rig_pass(rig, ns);
}

/* The kernel takes bytes again, or fewer of them. */
static void set_room(unsigned room)
{
    rig->room = room == 255 ? SIZE_MAX : room * 7u;
    if (rig->room > 0 && rig->is_open)
        rl_node_flush(&rig->node, rig->now_ns);
}

static void play(struct fuzz_input *input)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_ACQUIRE, RL_VERB_EXTEND,
                                         RL_VERB_EXTEND,  RL_VERB_HEAL,    RL_VERB_GET,
                                         RL_VERB_PTTL,    RL_VERB_ACQUIRE};
    unsigned what = fuzz_byte(input), detail = fuzz_byte(input);

    switch (what % 16) {
    case 0:
    case 1:
        ask_node(detail % CLAIMS, verbs[detail / CLAIMS % 8]);
        break;
    case 2:
        undo_claim(detail % CLAIMS, detail / CLAIMS);
        break;
    case 3:
        drop_claim(detail % CLAIMS);
        break;
    case 4:
        opened(detail);
        break;
    case 5:
    case 6:
        for (unsigned i = 0; i <= detail / 16; i++)
            (void)server_execute(&server, HONESTLY);
        break;
    case 7:
        (void)server_execute(&server, (enum server_manner)(detail % SERVER_MANNERS));
        break;
    case 8:
        deliver(detail);
        break;
    case 9:
        deliver(SERVER_BYTES);
        break;
    case 10:
        lose_connection(detail);
        break;
    case 11:
        pass((uint64_t)detail * detail * 50 * RL_US, false);
        break;
    case 12:
        pass((uint64_t)detail * 10 * RL_MS, true);
        break;
    case 13:
        set_room(detail);
        break;
    case 14:
        kept = detail >> 4;
        manner_of_open = detail & 3;
        rig->broken = (detail & 4) != 0;
        server.has_scripts = (detail & 8) == 0;
        break;
    default:
        forge(input);
        break;
    }
}

static bool is_quiet(void)
{
    const struct rl_pipeline *pipe = &rig->node.pipe;

    for (uint64_t i = pipe->head; i != pipe->tail; i++)
        if (!rl_pipeline_at(pipe, i)->removed)
            return false;
    return rig->node.state == RL_NODE_READY && rl_node_undos_pending(&rig->node) == 0;
}

/* Everything works again, and the node has time: what is owed is paid. */
static void heal(void)
{
    rig->broken = false;
    manner_of_open = 0;
    for (unsigned i = 0; i < HEAL_STEPS; i++) {
        opened(1);
        set_room(255);
        deliver(SERVER_BYTES);
        rig_flush(rig);
        while (rig->is_open && server_execute(&server, HONESTLY)) {
            deliver(SERVER_BYTES);
            rig_flush(rig);
        }
        server.now_ns = rig->now_ns;
        hear();
        if (is_quiet())
            return;
        uint64_t wake_ns = rl_node_wake_ns(&rig->node);
        MUST(wake_ns != RL_NEVER);
        rig_pass(rig, rl_sub_sat(wake_ns, rig->now_ns));
    }
    fuzz_wrong(__FILE__, __LINE__, "the node settles");
}

static void prepare(unsigned manners)
{
    static const char *const infos[] = {
        "redis_version:7.0.15\r\nrun_id:0123abcd\r\nuptime_in_seconds:77777\r\nrole:master\r\n",
        "redis_version:8.4.0\r\nrun_id:0123abcd\r\nuptime_in_seconds:77777\r\nrole:master\r\n",
        "redis_version:7.2.4\r\nvalkey_version:9.0.0\r\nrun_id:0123abcd\r\nrole:master\r\n",
    };

    server_reset(&server);
    server.info = infos[manners % 3];
    server.knows_natives = (manners & 4) != 0;
    forged = (manners & 8) != 0;
    memset(asks, 0, sizeof asks);
    memset(undone, 0, sizeof undone);
    memset(attempted, 0, sizeof attempted);
    rounds = next_token = kept = 0;
    manner_of_open = 0;
    rig = rig_new();
    rig->common.transport =
        (struct rl_transport){transport_open, transport_send, transport_close, NULL};
    server.now_ns = rig->now_ns;
    rl_node_start(&rig->node, rig->now_ns);
}

static void check_nothing_is_left(void)
{
    for (unsigned i = 0; i < next_token; i++) {
        if (!undone[i] || forged)
            continue;
        /* release_after: kept for a while, by intention; 64 * 50 ms at most */
        if (server_has(&server, i))
            MUST(server.tokens[i].expires_ns <= server.now_ns + 4 * RL_SECOND);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};

    unsigned choice = fuzz_short(&input);
    prepare(fuzz_byte(&input));
    fuzz_alloc_choose(choice);
    while (input.left > 0) {
        play(&input);
        server.now_ns = rig->now_ns;
        rig_flush(rig);
        hear();
    }
    (void)fuzz_alloc_end();
    heal();
    check_nothing_is_left();
    rig_done(rig);
    hear();
    for (unsigned i = 0; i < rounds; i++)
        MUST(asks[i].state != OPEN);
    for (unsigned i = 0; i < CLAIMS; i++) {
        MUST(claims[i] == NULL || claims[i]->refs == 1);
        drop_claim(i);
    }
    return 0;
}
