/* SPDX-License-Identifier: MIT
 * The surroundings of a node under test. */
#include "node_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rl_reply_text reply_text; /* where the node keeps the text of a reply */
static char sent_text[1 << 20];         /* the result of rig_take_sent() */

#define PUSH  (3 | RL_TRACKER_CONNECTION) /* the transport's number of the second connection */
#define TRIAL (3 | RL_TRIAL_CONNECTION)   /* and of the one of a trial */

/* Opens the second connection. */
static void push_open(struct rig *rig)
{
    ck_assert(!rig->push_open);
    rig->push_open = true;
    rig->push_opens++;
}

/* Records bytes that the node sends on the second connection. */
static ssize_t push_send(struct rig *rig, const char *bytes, size_t len)
{
    ck_assert(rig->push_open);
    if (rig->push_broken)
        return -1;
    size_t taken = len < rig->push_room ? len : rig->push_room;
    ck_assert_uint_lt(rig->push_len + taken, sizeof rig->push_wire);
    memcpy(rig->push_wire + rig->push_len, bytes, taken);
    rig->push_len += taken;
    rig->push_room -= taken;
    return (ssize_t)taken;
}

/* Closes the second connection. */
static void push_close(struct rig *rig)
{
    ck_assert(rig->push_open);
    rig->push_open = false;
    rig->push_closes++;
    rig->push_len = 0;
}

/* Records bytes that the node sends on the connection of a trial. */
static ssize_t trial_send(struct rig *rig, const char *bytes, size_t len)
{
    ck_assert(rig->trial_open);
    size_t taken = len < rig->trial_room ? len : rig->trial_room;
    ck_assert_uint_lt(rig->trial_len + taken, sizeof rig->trial_wire);
    memcpy(rig->trial_wire + rig->trial_len, bytes, taken);
    rig->trial_len += taken;
    return (ssize_t)taken;
}

/* Opens a connection for the node. */
static void transport_open(void *ctx, unsigned node)
{
    struct rig *rig = ctx;

    if (node == PUSH) {
        push_open(rig);
        return;
    }
    if (node == TRIAL) {
        ck_assert(!rig->trial_open);
        rig->trial_open = true;
        rig->trial_opens++;
        rig->trial_len = 0;
        return;
    }
    ck_assert_uint_eq(node, 3);
    ck_assert(!rig->is_open);
    rig->is_open = true;
    rig->opens++;
}

/* Records bytes that the node sends on the first connection. Returns how many fit into
 * rig->room; -1: the connection is broken. */
static ssize_t transport_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    struct rig *rig = ctx;

    if (node == PUSH)
        return push_send(rig, bytes, len);
    if (node == TRIAL)
        return trial_send(rig, bytes, len);
    ck_assert_uint_eq(node, 3);
    ck_assert(rig->is_open);
    ck_assert_uint_gt(len, 0);
    if (rig->broken)
        return -1;
    size_t taken = len < rig->room ? len : rig->room;
    ck_assert_uint_le(rig->wire_len + taken, RIG_WIRE_MAX);
    memcpy(rig->wire + rig->wire_len, bytes, taken);
    rig->wire_len += taken;
    rig->room -= rig->room == SIZE_MAX ? 0 : taken;
    return (ssize_t)taken;
}

/* Closes a connection for the node. What was sent and not looked at is dropped. */
static void transport_close(void *ctx, unsigned node, bool abortive)
{
    struct rig *rig = ctx;

    if (node == PUSH) {
        push_close(rig);
        return;
    }
    if (node == TRIAL) {
        ck_assert(rig->trial_open);
        rig->trial_open = false;
        return;
    }
    ck_assert_uint_eq(node, 3);
    rig->is_open = false;
    rig->abortive = abortive;
    rig->closes++;
    rig->wire_len = 0;
}

/* Returns how many bytes are in a record that the kernel has in part, as the test says. */
static uint64_t transport_held(void *ctx, unsigned node)
{
    ck_assert_uint_eq(node, 3);
    return ((struct rig *)ctx)->held;
}

/* Returns the rig's virtual time as the boot clock. */
static struct rl_now read_clocks(void *ctx)
{
    return (struct rl_now){.boot_ns = ((struct rig *)ctx)->now_ns};
}

/* Records a vote and drops its claim. */
static void take_vote(struct rig *rig, const struct rl_inbox_vote *vote,
                      const struct rl_reply *reply)
{
    ck_assert_uint_lt(rig->vote_count, RIG_VOTES_MAX);
    ck_assert_uint_eq(vote->ballot.node, 3);
    rig->votes[rig->vote_count++] =
        (struct rig_vote){.ballot = vote->ballot, .claim = vote->claim, .has_reply = reply != NULL};
    rl_claim_drop(vote->claim);
}

/* Records a notification of a key. */
static void take_key(struct rig *rig)
{
    struct rl_arg key;

    ck_assert_uint_eq(rl_inbox_take_key(&rig->common.inbox, &key), 3);
    rig->turns += rig->common.inbox.is_turn;
    rig->pushes++;
    rig->pushed_len = key.len;
    if (key.len != 0)
        memcpy(rig->pushed, key.data, key.len);
    if (rig->pushed_fn != NULL)
        rig->pushed_fn(key);
}

/* Takes the first entry of the inbox, as the engine does. */
static void take_first(struct rig *rig)
{
    struct rl_inbox *inbox = &rig->common.inbox;
    enum rl_inbox_kind kind = (enum rl_inbox_kind)__builtin_ctz(inbox->waiting);
    struct rl_inbox_vote vote;

    switch (kind) {
    case RL_INBOX_REPLIED:
        take_vote(rig, rl_inbox_take_replied(inbox), inbox->reply);
        break;
    case RL_INBOX_CHANGED:
        ck_assert_uint_eq(rl_inbox_take_node(inbox, kind), 3);
        rig->changed++;
        rig->was_up = rl_node_is_up(&rig->node);
        break;
    case RL_INBOX_STEPPED:
        ck_assert_uint_eq(rl_inbox_take_node(inbox, kind), 3);
        rig->steps++;
        break;
    case RL_INBOX_VOTES:
        vote = rl_inbox_take_vote(inbox);
        take_vote(rig, &vote, NULL);
        break;
    case RL_INBOX_NOTIFIED:
        take_key(rig);
        break;
    case RL_INBOX_UNREAD:
        rl_node_next(&rig->node, rig->now_ns);
        break;
    case RL_INBOX_PUSH_UNREAD:
        rl_tracker_next(&rig->node, rig->now_ns);
        break;
    }
}

/* Drains the inbox, as the engine does after every call of the node. All other functions do
 * that as well. */
void rig_drain(struct rig *rig)
{
    uint64_t *undos = rig->common.inbox.undos;

    while (rig->common.inbox.waiting != 0)
        take_first(rig);
    rig->undone += (unsigned)undos[RL_UNDO_DONE];
    rig->given_up += (unsigned)undos[RL_UNDO_EXPIRED];
    rig->dropped += (unsigned)undos[RL_UNDO_DROPPED];
    memset(undos, 0, sizeof rig->common.inbox.undos);
}

/* Returns a fresh rig. There is one in the process, because it is large. */
struct rig *rig_new(void)
{
    static struct rig rig;
    static char wire[RIG_WIRE_MAX];

    memset(&rig, 0, sizeof rig);
    rig.mem = rl_mem_libc();
    rig.now_ns = 1000 * RL_SECOND;
    rig.room = SIZE_MAX;
    rig.push_room = sizeof rig.push_wire;
    rig.trial_room = sizeof rig.trial_wire;
    rig.wire = wire;
    rig.common = (struct rl_node_common){
        .mem = &rig.mem,
        .log = &rig.log,
        .transport = {.open = transport_open,
                      .send = transport_send,
                      .close = transport_close,
                      .held = transport_held,
                      .ctx = &rig},
        .clocks = {read_clocks, &rig},
        .inbox = {.mem = &rig.mem},
        .text = &reply_text,
        .admission = {.drift = {.ppm = 10000, .constant_us = 2000}, .max_ttl_ns = 30 * RL_SECOND},
        .connect_timeout_ns = 250 * RL_MS,
        .heartbeat_ns = RL_SECOND,
    };
    rl_node_init(&rig.node, &rig.common, 3);
    rig.node.name = "n3";
    return &rig;
}

/* Closes and frees everything, so that the sanitizers detect leaks. */
void rig_done(struct rig *rig)
{
    rl_node_close(&rig->node, REDLOCK_CAUSE_NONE, "client was closed", false, rig->now_ns);
    rig_drain(rig);
    rl_node_free(&rig->node);
    rl_inbox_free(&rig->common.inbox);
    rl_encoded_free(rig->common.mem, &rig->common.cache.encoded);
}

/* Updates the next time limit as the engine does: an earlier result stays valid until the node
 * reports a change, and is never too late. */
static void plan(struct rig *rig)
{
    struct rl_node_common *common = &rig->common;
    uint64_t wake_ns = rl_node_wake_ns(&rig->node);

    if (common->wake_known && common->wake_ns > rig->now_ns && rig->planned >= common->active) {
        ck_assert_uint_le(common->wake_ns, wake_ns);
        return;
    }
    common->wake_ns = wake_ns;
    common->wake_known = true;
    rig->planned = common->active;
}

/* Sends what waits, as the engine does at the end of a tick. */
void rig_flush(struct rig *rig)
{
    rig_drain(rig);
    while (rig->common.inbox.dirty != 0) {
        rig->common.inbox.dirty = 0;
        rl_node_flush(&rig->node, rig->now_ns);
        rig_drain(rig);
    }
    plan(rig);
}

/* Starts the node, which begins to connect. */
void rig_start(struct rig *rig)
{
    rl_node_start(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
}

/* Completes the connection; the node sends its greeting. */
void rig_connect(struct rig *rig)
{
    rl_node_opened(&rig->node, true, 0, NULL, rig->now_ns);
    rig_flush(rig);
}

/* Delivers bytes from the server. What the node sends in return waits for rig_flush(). */
void rig_receive(struct rig *rig, const char *bytes, size_t len)
{
    rl_node_received(&rig->node, bytes, len, rig->now_ns);
    rig_drain(rig);
}

/* Delivers bytes on the second connection. */
void rig_receive_push(struct rig *rig, const char *bytes, size_t len)
{
    rl_tracker_received(&rig->node, bytes, len, rig->now_ns);
    rig_drain(rig);
}

/* Delivers text from the server and sends what the node has in return. */
void rig_reply(struct rig *rig, const char *bytes)
{
    rig_receive(rig, bytes, strlen(bytes));
    rig_flush(rig);
}

/* Replies with a bulk string. */
static void reply_bulk(struct rig *rig, const char *text)
{
    char bytes[4096];

    snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);
    rig_reply(rig, bytes);
}

/* Replies to TIME as a server whose clock is ahead by `ahead_us`. */
void rig_reply_time(struct rig *rig, int64_t ahead_us)
{
    char bytes[96], us[24];
    int64_t time_us = RIG_EPOCH_US + (int64_t)(rig->now_ns / RL_US) + ahead_us;

    snprintf(us, sizeof us, "%lld", (long long)(time_us % 1000000));
    snprintf(bytes, sizeof bytes, "*2\r\n$10\r\n%lld\r\n$%zu\r\n%s\r\n",
             (long long)(time_us / 1000000), strlen(us), us);
    rig_reply(rig, bytes);
}

/* Replies to the greeting with these sections `server` and `replication` of INFO. */
void rig_greet_as(struct rig *rig, const char *server, const char *replication)
{
    static const enum rl_verb scripts[] = {RL_VERB_RELEASE, RL_VERB_EXTEND, RL_VERB_SHORTEN};

    rig_reply(rig, "+OK\r\n");
    reply_bulk(rig, server);
    reply_bulk(rig, replication);
    reply_bulk(rig, "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
    reply_bulk(rig, "loading:0\r\n");
    reply_bulk(rig, "used_cpu_user_main_thread:1.5\r\n");
    if (rig->node.db != 0)
        rig_reply(rig, "+OK\r\n");
    rig_reply_time(rig, 0);
    for (unsigned i = 0; i < 3; i++)
        reply_bulk(rig, rl_protocol_script(scripts[i], RL_FORM_SHA)->sha);
    if (!rig->skips_check)
        rig_reply(rig, ":1\r\n:1\r\n");
}

/* Replies to the whole greeting of a node without password, as a Redis 7.0 master. */
void rig_greet(struct rig *rig)
{
    rig_take_sent(rig);
    rig_greet_as(rig, "redis_version:7.0.15\r\nrun_id:0123abcd\r\nuptime_in_seconds:77\r\n",
                 "role:master\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
}

/* Starts the node, connects it and replies to its greeting: it is READY, and nothing is
 * recorded. */
void rig_ready(struct rig *rig)
{
    rig_start(rig);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), "");
}

/* Does the same as rig_ready(), with `rtt_ns` as the measured round trip. */
void rig_ready_with_rtt(struct rig *rig, uint64_t rtt_ns)
{
    rig_ready(rig);
    rig->node.detector.srtt_ns = rtt_ns;
}

/* Ends the first connection, as a reset by the network does. */
void rig_lose(struct rig *rig)
{
    rl_node_closed(&rig->node, REDLOCK_CAUSE_DISCONNECT, "connection reset", rig->now_ns);
    rig_flush(rig);
}

/* Advances time by `ns` without running the node, as if the process stood still. */
void rig_freeze(struct rig *rig, uint64_t ns)
{
    rig->now_ns += ns;
}

/* Advances time by `ns`; does what becomes due on the way, in order. */
void rig_pass(struct rig *rig, uint64_t ns)
{
    uint64_t end_ns = rig->now_ns + ns;

    for (unsigned expiries = 0;; expiries++) {
        uint64_t wake_ns = rl_node_wake_ns(&rig->node);
        if (wake_ns > end_ns)
            break;
        /* A timer that is always in the past would be a busy loop. */
        ck_assert_msg(expiries < 10000, "the node's timer expires without end");
        if (wake_ns > rig->now_ns)
            expiries = 0;
        rig->now_ns = wake_ns > rig->now_ns ? wake_ns : rig->now_ns;
        rl_node_tick(&rig->node, rig->now_ns);
        rig_flush(rig);
    }
    rig->now_ns = end_ns;
}

/* Returns a new claim with this token, a TTL of 30 s and the rig as owner. */
struct rl_claim *rig_claim(struct rig *rig, const char *token)
{
    struct rl_claim *claim = rl_claim_new(&rig->mem, (struct rl_arg){"key", 3}, 64);

    ck_assert_ptr_nonnull(claim);
    rig->common.cache.claim = NULL; /* like the engine, because another claim may get the same
                                     * address */
    rl_claim_set_token(claim, (struct rl_arg){token, strlen(token)});
    claim->owner = rig;
    claim->ttl_ms = claim->ttl_max_ms = 30000;
    return claim;
}

/* Makes the node send a request, as round `round`. Returns 0, or the cause (REDLOCK_CAUSE_*)
 * for which the node refused it. */
int rig_request(struct rig *rig, struct rl_claim *claim, uint32_t round, enum rl_verb verb)
{
    int cause = rl_node_request(&rig->node, claim, round, verb, rig->now_ns);

    rig_flush(rig);
    return cause;
}

/* Asks the node to undo the claim and sends it. Returns the vote of rl_node_undo(). */
enum rl_vote rig_undo(struct rig *rig, struct rl_claim *claim, uint32_t round)
{
    int cause = -1;
    enum rl_vote vote = rl_node_undo(&rig->node, claim, round, rig->now_ns, &cause);

    ck_assert_int_eq(vote == RL_VOTE_FAILED, cause != -1);
    rig_flush(rig);
    return vote;
}

/* Returns the short name of a script or of its SHA1; NULL if the text is neither. */
static const char *name_of(const char *text, size_t len)
{
    static const struct {
        enum rl_verb verb;
        const char *script, *sha;
    } table[] = {
        {RL_VERB_RELEASE, "<release>", "release"}, {RL_VERB_EXTEND, "<extend>", "extend"},
        {RL_VERB_SHORTEN, "<shorten>", "shorten"}, {RL_VERB_ACQUIRE, "<vote>", "vote"},
        {RL_VERB_RAISE, "<raise>", "raise"},       {RL_VERB_READ, "<read>", "read"},
        {RL_VERB_SEED, "<seed>", "seed"},          {RL_VERB_LINE_JOIN, "<line>", "line"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *script = rl_protocol_script(table[i].verb, RL_FORM_SHA)->text;
        if (len == strlen(script) && memcmp(text, script, len) == 0)
            return table[i].script;
        if (len == 40 && memcmp(text, rl_protocol_script(table[i].verb, RL_FORM_SHA)->sha, 40) == 0)
            return table[i].sha;
    }
    return NULL;
}

/* Decodes one command. Returns its length; 0 if it is incomplete. */
static size_t decode(const char *at, size_t len, char *to)
{
    const char *begin = at, *end = at + len;
    char copy[32];

    for (long left = -1; left != 0; left--) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (line == NULL || (size_t)(line - at) >= sizeof copy)
            return 0;
        memcpy(copy, at, (size_t)(line - at));
        copy[line - at] = '\0';
        ck_assert_int_eq(copy[0], left < 0 ? '*' : '$');
        long number = strtol(copy + 1, NULL, 10);
        at = line + 1;
        if (left < 0) {
            left = number + 1;
            continue;
        }
        if (end - at < number + 2)
            return 0;
        const char *name = name_of(at, (size_t)number);
        to += name != NULL ? sprintf(to, "%s ", name) : sprintf(to, "%.*s ", (int)number, at);
        at += number + 2;
    }
    to[-1] = '\n';
    return (size_t)(at - begin);
}

/* Returns the commands that the node sent since the last call, words separated by blanks, each
 * command ended by a newline, scripts and their hashes by name. An incomplete command ends with
 * "...". */
const char *rig_take_sent(struct rig *rig)
{
    size_t at = 0, out = 0;

    sent_text[0] = '\0';
    while (at < rig->wire_len) {
        size_t used = decode(rig->wire + at, rig->wire_len - at, sent_text + out);
        if (used == 0) {
            strcpy(sent_text + out, "...");
            break;
        }
        out = strlen(sent_text);
        at += used;
    }
    /* An incomplete command is returned again later, with the rest of it. */
    memmove(rig->wire, rig->wire + at, rig->wire_len - at);
    rig->wire_len -= at;
    return sent_text;
}

/* Returns the only vote since the last check, and forgets it. */
struct rl_ballot rig_only_vote(struct rig *rig)
{
    ck_assert_uint_eq(rig->vote_count, 1);
    rig->vote_count = 0;
    return rig->votes[0].ballot;
}

/* Checks that there was no vote since the last check. */
void rig_no_vote(const struct rig *rig)
{
    ck_assert_uint_eq(rig->vote_count, 0);
}

/* Checks that the only vote since the last check is this one, for this claim and round, and
 * forgets it. */
void rig_check_vote(struct rig *rig, const struct rl_claim *claim, enum rl_vote vote, int cause,
                    uint32_t round)
{
    const struct rl_claim *of = rig->votes[0].claim;
    struct rl_ballot ballot = rig_only_vote(rig);

    ck_assert_ptr_eq(of, claim);
    ck_assert_uint_eq(ballot.vote, vote);
    ck_assert_int_eq(ballot.cause, cause);
    ck_assert_uint_eq(ballot.round, round);
}

/* Drops the test's reference to a claim after rig_done(), and checks that it is the last one. */
void rig_drop(struct rl_claim *claim)
{
    ck_assert_uint_eq(claim->refs, 1);
    rl_claim_drop(claim);
}
