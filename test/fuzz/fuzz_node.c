/* SPDX-License-Identifier: MIT
 * Fuzzes a whole node with a script of events: requests of its engine, events of its connection,
 * replies of its server byte by byte, and time. Checks after each event: each request gets one
 * vote, and no vote comes without a request. A SET is never sent after its undo.
 * A grant means that the key was set. Fenced votes are requested once, and carry the fencing token
 * that the server had, from a record in use only; a token is raised only where the vote was
 * granted. At the end the server replies to everything, and no key is left that was undone.
 *
 *     2 bytes failing allocation, 1 byte behaviour of the server (texts of INFO, native
 * commands, forged replies, what is attested, whether the fence record is in use), then events of 1
 * byte and their arguments */
#include "ledger_node.h"
#include "server.h"

#include "core/protocol.h"
#include "core/wire_fence.h"

#include "alloc_fail.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define CLAIMS      8
#define IN_FLIGHT   200
#define HEAL_STEPS  500
#define CLAIM_TTL_S 36000

static struct rig *rig;
static struct server server;
static struct rl_claim *claims[CLAIMS];
static unsigned tokens[CLAIMS]; /* token number of each claim */
static bool attempted[SERVER_TOKENS], undone[SERVER_TOKENS];
static struct ledger_node ledger;
static unsigned next_token, kept;
static uint8_t
    manner_of_open; /* result of open(): 0: later, 1: failure at once, 2: success at once */

/* ---- the transport ---- */

/* Opens the connection, for the node: at once, with a refusal, or with a later result, as
 * manner_of_open says. */
static void transport_open(void *ctx, unsigned node)
{
    (void)ctx;
    if ((node & RL_TRIAL_CONNECTION) != 0)
        return;
    MUST(!rig->is_open);
    rig->is_open = true;
    if (manner_of_open == 1) {
        rig->is_open = false;
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    } else if (manner_of_open == 2) {
        rl_node_opened(&rig->node, true, 0, NULL, rig->now_ns);
    }
}

/* Takes bytes of the node for the server, as many as rig->room says. Returns their number; -1:
 * the connection is broken. */
static ssize_t transport_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    (void)ctx;
    if ((node & RL_TRIAL_CONNECTION) != 0)
        return (ssize_t)len;
    MUST(rig->is_open && len > 0);
    if (rig->broken)
        return -1;
    size_t taken = len < rig->room ? len : rig->room;
    server_receive(&server, bytes, taken);
    rig->room -= rig->room == SIZE_MAX ? 0 : taken;
    return (ssize_t)taken;
}

/* Closes the connection. After a graceful close the server executes what is in its queue; after a
 * reset, some of it. */
static void transport_close(void *ctx, unsigned node, bool abortive)
{
    (void)ctx;
    if ((node & RL_TRIAL_CONNECTION) != 0)
        return;
    if (rig->is_open)
        server_hang_up(&server, abortive ? kept : UINT32_MAX);
    rig->is_open = false;
}

/* Reads what the node has reported since the last call. */
static void take_reports(void)
{
    for (unsigned i = 0; i < rig->vote_count; i++)
        ledger_node_vote(&ledger, &rig->votes[i]);
    rig->vote_count = 0;
}

/* ---- what an engine does ---- */

/* Records a request in the ledger. Returns its round. */
static unsigned note_request(unsigned slot, enum rl_verb verb)
{
    const struct rl_claim *claim = claims[slot];
    bool fenced = claim->fenced && (verb == RL_VERB_ACQUIRE || verb == RL_VERB_RAISE);

    return ledger_node_request(&ledger, verb, tokens[slot], fenced, claim->fence);
}

/* Creates a claim with the next token. */
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

/* Drops the claim of the slot; its rounds end. */
static void drop_claim(unsigned slot)
{
    if (claims[slot] == NULL)
        return;
    take_reports();
    ledger_node_forget(&ledger, tokens[slot], LEDGER_CLOSED);
    claims[slot]->owner = NULL;
    rl_claim_drop(claims[slot]);
    claims[slot] = NULL;
}

/* Makes a request for the claim of the slot. */
static void request_of_node(unsigned slot, enum rl_verb verb)
{
    if (claims[slot] == NULL)
        make_claim(slot);
    if (claims[slot] == NULL || undone[tokens[slot]] || ledger_node_is_full(&ledger) ||
        rl_pipeline_count(&rig->node.pipe) > IN_FLIGHT)
        return;
    /* One attempt sends one SET; only the round distinguishes it from a heal. */
    if (verb == RL_VERB_ACQUIRE && attempted[tokens[slot]])
        verb = RL_VERB_HEAL;
    attempted[tokens[slot]] |= verb == RL_VERB_ACQUIRE || verb == RL_VERB_HEAL;
    unsigned round = note_request(slot, verb);
    bool was_up = rl_node_is_up(&rig->node);
    int cause = rl_node_request(&rig->node, claims[slot], round, verb, rig->now_ns);
    MUST(was_up || cause != REDLOCK_CAUSE_NONE);
    if (cause != REDLOCK_CAUSE_NONE)
        ledger_node_close(&ledger, round);
}

/* Gives a claim a fence, unless it has sent an ACQUIRE or a HEAL before. */
static void fence_claim(unsigned slot, unsigned detail)
{
    static const uint64_t proposals[] = {1, 100, 101, RL_FENCE_CORRUPT - 1};

    if (claims[slot] == NULL)
        make_claim(slot);
    if (claims[slot] == NULL || attempted[tokens[slot]])
        return;
    claims[slot]->fenced = true;
    claims[slot]->stripe = (uint16_t)(slot % SERVER_STRIPES);
    claims[slot]->proposal = proposals[detail % 4];
    claims[slot]->fence = claims[slot]->proposal + (detail >> 2 & 1);
}

/* Requests a RAISE under the conditions of the engine: the claim is fenced, was requested, and is
 * still needed. */
static void raise_claim(unsigned slot)
{
    if (claims[slot] != NULL && claims[slot]->fenced && attempted[tokens[slot]])
        request_of_node(slot, RL_VERB_RAISE);
}

/* Requests to read or seed the record, with a claim of its own for each request. */
static void request_record(enum rl_verb verb, bool forced)
{
    if (ledger_node_is_full(&ledger) || rl_pipeline_count(&rig->node.pipe) > IN_FLIGHT)
        return;
    fuzz_alloc_exempt(true);
    struct rl_claim *claim = rig_claim(rig, "0123456789abcdef1:2 3:4");
    fuzz_alloc_exempt(false);
    claim->is_record = true;
    claim->forced = forced;
    unsigned round = ledger_node_request(&ledger, verb, LEDGER_NO_TOKEN, false, 0);
    if (rl_node_request(&rig->node, claim, round, verb, rig->now_ns) != REDLOCK_CAUSE_NONE)
        ledger_node_close(&ledger, round);
    rl_claim_drop(claim);
}

/* Undoes the claim of the slot. */
static void undo_claim(unsigned slot, unsigned manner)
{
    int cause = REDLOCK_CAUSE_NONE;

    if (claims[slot] == NULL || undone[tokens[slot]] || ledger_node_is_full(&ledger))
        return;
    take_reports();
    ledger_node_forget(&ledger, tokens[slot],
                       LEDGER_MAYBE); /* the round they belong to has ended */
    undone[tokens[slot]] = true;
    if (manner & 2) {
        claims[slot]->undo_verb = RL_VERB_SHORTEN;
        claims[slot]->keep_until_ns = rig->now_ns + (manner >> 2) * 50 * RL_MS;
    }
    unsigned round = (manner & 1) != 0 ? note_request(slot, RL_VERB_RELEASE) : 0;
    server_ban(&server, tokens[slot]);
    enum rl_vote vote = rl_node_undo(&rig->node, claims[slot], round, rig->now_ns, &cause);
    MUST((vote == RL_VOTE_FAILED) == (cause != REDLOCK_CAUSE_NONE));
    if (vote != RL_VOTE_NONE && round != 0)
        ledger_node_close(&ledger, round);
}

/* ---- events of the surroundings ---- */

/* Delivers up to `len` bytes of the server's replies. */
static void deliver(size_t len)
{
    static char bytes[SERVER_BYTES];

    len = len < server.out_len ? len : server.out_len;
    if (len == 0 || !rig->is_open || rig->node.conn.state < RL_NODE_GREETING)
        return;
    memcpy(bytes, server.out, len);
    server.out_len -= len;
    memmove(server.out, server.out + len, server.out_len);
    rl_node_received(&rig->node, bytes, len, rig->now_ns);
    rig_drain(rig);
}

/* Completes the connection of a trial, or lets it fail; or lets the server reply on it. */
static void advance_trial(unsigned how)
{
    const char *reply = (how & 2) != 0 ? "+PONG\r\n" : "-BUSY script\r\n";

    if (rl_trial_is_connecting(&rig->node))
        rl_trial_opened(&rig->node, (how & 1) != 0);
    else
        rl_trial_received(&rig->node, reply, strlen(reply), rig->now_ns);
}

/* Completes the connection, or lets it fail. On a ready one, goes on with a trial. */
static void opened(unsigned how)
{
    if (rig->node.conn.state == RL_NODE_READY)
        advance_trial(how);
    if (!rig->is_open || rig->node.conn.state != RL_NODE_CONNECTING)
        return;
    if (how & 1)
        rl_node_opened(&rig->node, true, 0, NULL, rig->now_ns);
    else
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    rig_drain(rig);
}

/* Ends the connection; the server executes `more` commands before. */
static void lose_connection(unsigned more)
{
    if (!rig->is_open)
        return;
    server_hang_up(&server, more);
    if (rig->node.conn.state == RL_NODE_CONNECTING)
        opened(0);
    else
        rl_node_closed(&rig->node, REDLOCK_CAUSE_DISCONNECT, "connection reset", rig->now_ns);
    rig_drain(rig);
}

/* Delivers bytes of the input as replies. */
static void deliver_forged(struct fuzz_input *input)
{
    size_t len;
    const char *bytes = fuzz_bytes(input, fuzz_byte(input), &len);

    if (ledger.forged && len > 0 && rig->is_open && rig->node.conn.state >= RL_NODE_GREETING)
        rl_node_received(&rig->node, bytes, len, rig->now_ns);
    rig_drain(rig);
}

/* Advances time; with `asleep` the process is stopped meanwhile. */
static void pass(uint64_t ns, bool asleep)
{
    if (asleep)
        rig_freeze(rig, ns);
    else
        rig_pass(rig, ns);
}

/* Sets how many bytes the socket accepts. */
static void set_room(unsigned room)
{
    rig->room = room == 255 ? SIZE_MAX : room * 7u;
    if (rig->room > 0 && rig->is_open)
        rl_node_flush(&rig->node, rig->now_ns);
    rig_drain(rig);
}

/* Changes the record of the server as other clients may have left it. */
static void change_record(unsigned detail)
{
    static const char *const configs[] = {
        "cfg;" SERVER_RUN,   "cfg;" SERVER_RUN, "cfg;",           "", "cfg;0123abce",
        "other;" SERVER_RUN, "cfg;" SERVER_RUN, "cfg;" SERVER_RUN};
    static const char *const numbers[] = {
        "", "0", "100", "9007199254740989", "9007199254740990", "x", "007", "99999999999999999999"};
    struct server_record *record = &server.record;

    strcpy(record->config, configs[detail & 7]);
    record->mark[0] = '\0';
    for (unsigned i = 0; i < SERVER_STRIPES; i++)
        strcpy(record->numbers[i], numbers[((detail >> 3) + i * (detail >> 6)) & 7]);
}

/* Plays an event about fences. */
static void play_fences(unsigned what, unsigned detail)
{
    switch (what % 8) {
    case 0:
        fence_claim(detail % CLAIMS, detail / CLAIMS);
        request_of_node(detail % CLAIMS, RL_VERB_ACQUIRE);
        break;
    case 1:
        raise_claim(detail % CLAIMS);
        break;
    case 2:
        request_record(RL_VERB_READ, false);
        break;
    case 3:
        request_record(RL_VERB_SEED, (detail & 1) != 0);
        break;
    case 4:
        change_record(detail);
        break;
    case 5:
        server.has_fences = false;
        break;
    case 6:
        server.is_taken = (detail & 1) != 0;
        break;
    default: /* keys are lost before their expiry */
        for (unsigned i = 0; i < next_token; i++)
            server.tokens[i].expires_ns = 0;
        break;
    }
}

/* Plays one event of the script. */
static void play_event(struct fuzz_input *input)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_ACQUIRE, RL_VERB_EXTEND,
                                         RL_VERB_EXTEND,  RL_VERB_HEAL,    RL_VERB_GET,
                                         RL_VERB_PTTL,    RL_VERB_ACQUIRE};
    unsigned what = fuzz_byte(input), detail = fuzz_byte(input);

    if (what >= 192) {
        play_fences(what, detail);
        return;
    }
    switch (what % 16) {
    case 0:
    case 1:
        request_of_node(detail % CLAIMS, verbs[detail / CLAIMS % 8]);
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
        deliver_forged(input);
        break;
    }
}

/* Returns true if the node is READY and has neither requests nor pending undos. */
static bool is_quiet(void)
{
    return rig->node.conn.state == RL_NODE_READY && rl_pipeline_count(&rig->node.pipe) == 0 &&
           rl_node_undos_pending(&rig->node) == 0;
}

/* Makes the connection work and the server reply, and lets time pass, so that all pending undos are
 * sent. */
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
        take_reports();
        if (is_quiet())
            return;
        uint64_t wake_ns = rl_node_wake_ns(&rig->node);
        MUST(wake_ns != RL_NEVER);
        rig_pass(rig, rl_sub_sat(wake_ns, rig->now_ns));
    }
    fuzz_wrong(__FILE__, __LINE__, "the node settles");
}

/* Sets the node and its server up. */
static void set_up(unsigned manners)
{
    static const char *const infos[] = {
        "redis_version:7.0.15\r\nrun_id:" SERVER_RUN
        "\r\nuptime_in_seconds:77777\r\nrole:master\r\n",
        "redis_version:8.4.0\r\nrun_id:" SERVER_RUN
        "\r\nuptime_in_seconds:77777\r\nrole:master\r\n",
        "redis_version:7.2.4\r\nvalkey_version:9.0.0\r\nrun_id:" SERVER_RUN "\r\nrole:master\r\n",
    };

    server_reset(&server);
    server.info = infos[manners % 3];
    server.knows_natives = (manners & 4) != 0;
    ledger_node_reset(&ledger, &server, (manners & 8) != 0);
    ledger.run_bound = (manners & 16) != 0;
    ledger.attested = (manners & 32) != 0;
    memset(undone, 0, sizeof undone);
    memset(attempted, 0, sizeof attempted);
    next_token = kept = 0;
    manner_of_open = 0;
    rig = rig_new();
    rig->common.transport = (struct rl_transport){
        .open = transport_open, .send = transport_send, .close = transport_close};
    rig->common.fence_record = (struct rl_arg){"rec", 3};
    rig->common.fence_config = (struct rl_arg){"cfg;", 4};
    rig->common.fence_run_bound = ledger.run_bound;
    rl_node_attest(&rig->node, ledger.attested, false);
    if ((manners & 64) == 0)
        change_record(0);
    server.now_ns = rig->now_ns;
    rl_node_start(&rig->node, rig->now_ns);
}

/* Checks that no key is left that was undone. */
static void check_nothing_is_left(void)
{
    for (unsigned i = 0; i < next_token; i++) {
        if (!undone[i] || ledger.forged)
            continue;
        /* release_after: kept on purpose for a while, 7 * 50 ms at most */
        if (server_has(&server, i))
            MUST(server.tokens[i].expires_ns <= server.now_ns + 4 * RL_SECOND);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};

    unsigned choice = fuzz_short(&input);
    const int64_t live = alloc_fail_live();
    set_up(fuzz_byte(&input));
    fuzz_alloc_choose(choice);
    while (input.left > 0) {
        play_event(&input);
        server.now_ns = rig->now_ns;
        rig_flush(rig);
        take_reports();
    }
    (void)fuzz_alloc_end();
    heal();
    check_nothing_is_left();
    rig_done(rig);
    take_reports();
    ledger_node_end(&ledger);
    for (unsigned i = 0; i < CLAIMS; i++) {
        MUST(claims[i] == NULL || claims[i]->refs == 1);
        drop_claim(i);
    }
    MUST(alloc_fail_live() == live);
    return 0;
}
