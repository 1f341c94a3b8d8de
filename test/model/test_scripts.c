/* SPDX-License-Identifier: MIT
 * The scripts on a real server do what the nodes of the model do. Random sequences of votes,
 * raises, deletions, lost keys, lost records and readmissions are executed in both. After each step
 * the replies, the register, the keys and the fingerprint must be the same.
 *
 * The model (model.h) has one node here; attempts a to d want one of two resources. Its numbers are
 * small (0 to 7); large() translates them into those of the server. A walk is one such sequence.
 * VOTE of the model is the script ACQUIRE of the library, DEL is RELEASE, and the end of a
 * readmission is SEED. Comments use the model's words. */
#include <hiredis/hiredis.h>
#include <string.h>

#include "cluster.h"
#include "core/protocol.h"
#include "core/wire_fence.h"
#include "model.h"
#include "suite.h"

#define WALKS   200             /* number of walks */
#define STEPS   200             /* largest number of events of a walk */
#define STRIPE  7               /* of both resources, as if their hashes were equal */
#define RECORD  "redlock:fence" /* key of the fence record */
#define CONFIG  "v1 test;"      /* fingerprint without the run */
#define RUN     "r1"            /* run of the server in the fingerprint */
#define TTL_MS  600000          /* longer than the test, so that no key expires */
#define TEXT(s) ((struct rl_arg){(s), strlen(s)})
#define NUMBERS 16 /* length of LARGE */

/* The key of each resource, and the token of each attempt. */
static const char *const KEYS[MODEL_KEYS_MAX] = {"lock:one", "lock:two"};
static const char *const TOKENS[MODEL_ATTEMPTS_MAX] = {"token-a", "token-b", "token-c", "token-d"};

/* The numbers on the server that stand for the small ones of the model, in the same order. They
 * have different lengths; some are neighbours that a double can just distinguish, and the last one
 * is the largest allowed. */
static const uint64_t LARGE[NUMBERS] = {
    0,
    1,
    9,
    10,
    99,
    100,
    999999999999999,
    1000000000000000,
    1787500000123455,
    1787500000123456,
    1787500000123457,
    4503599627370496,
    4503599627370497,
    9007199254740987,
    9007199254740988,
    9007199254740989,
};

static struct cluster *cluster;  /* one server */
static redisContext *connection; /* to that server */

/* The present walk. */
struct world {
    struct model model;
    struct model_state state; /* of the model */
    uint64_t random;          /* state of draw() */
    unsigned offset;          /* index in LARGE of the model's number 0 */
    unsigned marks;           /* number of marks that were left */
    char mark[MODEL_READMITTERS][RL_RECORD_MARK_LEN + 1]; /* that each client has read */
    /* Sums over all walks: votes with each of three replies, RAISEs with ACK and with LOST, and
     * SEEDs with a mark that was gone. */
    unsigned long long granted, denied, refused, raised, lost, stale;
};

/* Returns a random number below `below`. */
static unsigned draw(struct world *world, unsigned below)
{
    world->random = world->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)((world->random >> 33) % below);
}

/* Returns the number on the server for one of the model. 0 stays 0: a register that does not exist.
 */
static uint64_t large(const struct world *world, unsigned small)
{
    ck_assert_uint_lt(small + world->offset, NUMBERS);
    return small == 0 ? 0 : LARGE[small + world->offset];
}

/* Runs a command on the server, whose reply must be no error. The caller frees the reply. */
static redisReply *run(const struct rl_command *command)
{
    const char *words[RL_ARGS_MAX];
    size_t lens[RL_ARGS_MAX];

    for (size_t i = 0; i < command->count; i++) {
        words[i] = command->args[i].data;
        lens[i] = command->args[i].len;
    }
    redisReply *reply = redisCommandArgv(connection, (int)command->count, words, lens);
    ck_assert_msg(reply != NULL, "%s", connection->errstr);
    ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s", reply->str);
    return reply;
}

/* Returns what the reply to the script of `verb` means. */
static struct rl_result classify(enum rl_verb verb, const redisReply *reply)
{
    struct rl_reply text = {.kind = RL_REPLY_BULK, .text = reply->str, .len = (size_t)reply->len};

    ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
    return rl_protocol_classify(verb, RL_FORM_EVAL, 1, &text);
}

/* Runs the script of `verb` for a key with this token and number, and returns what the reply means.
 */
static struct rl_result run_script(enum rl_verb verb, const char *key, const char *token,
                                   uint64_t number)
{
    const struct rl_arguments arguments = {
        .key = TEXT(key),
        .token = TEXT(token),
        .ttl_ms = TTL_MS,
        .record = TEXT(RECORD),
        .config = TEXT(CONFIG),
        .fence = number,
        .stripe = STRIPE,
    };
    struct rl_command command;

    rl_protocol_format(&command, verb, RL_FORM_EVAL, &arguments);
    redisReply *reply = run(&command);
    struct rl_result result = classify(verb, reply);
    freeReplyObject(reply);
    return result;
}

/* Runs SEED with this mark and with the number on the server for `small`. Returns what the reply
 * means. */
static struct rl_result seed(const struct world *world, const char *mark, unsigned small)
{
    struct rl_command command;
    char numbers[32];

    snprintf(numbers, sizeof numbers, "%d:%llu", STRIPE, (unsigned long long)large(world, small));
    const struct rl_arguments arguments = {
        .record = TEXT(RECORD),
        .config = TEXT(CONFIG),
        .mark = TEXT(mark),
        .run = TEXT(RUN),
        .fences = TEXT(numbers),
    };
    rl_protocol_format(&command, RL_VERB_SEED, RL_FORM_EVAL, &arguments);
    redisReply *reply = run(&command);
    struct rl_result result = classify(RL_VERB_SEED, reply);
    freeReplyObject(reply);
    return result;
}

/* Lets client `r` read the record before the readmission and remember the mark in it. */
static void read_record(struct world *world, unsigned r)
{
    struct rl_command command;
    struct rl_record_text text;
    char mark[RL_RECORD_MARK_LEN + 1];

    snprintf(mark, sizeof mark, "mark-%u", world->marks++);
    const struct rl_arguments arguments = {
        .record = TEXT(RECORD), .config = TEXT(CONFIG), .run = TEXT(RUN), .mark = TEXT(mark)};
    rl_protocol_format(&command, RL_VERB_READ, RL_FORM_EVAL, &arguments);
    redisReply *reply = run(&command);
    struct rl_reply got = {.kind = RL_REPLY_BULK, .text = reply->str, .len = (size_t)reply->len};
    ck_assert(rl_wire_record_parse(&got, &text));
    ck_assert_uint_eq(text.config.len, 0);
    ck_assert_uint_le(text.mark.len, RL_RECORD_MARK_LEN);
    memcpy(world->mark[r], text.mark.data, text.mark.len);
    world->mark[r][text.mark.len] = '\0';
    freeReplyObject(reply);
}

/* Removes all keys and the record. */
static void flush_server(void)
{
    freeReplyObject(redisCommand(connection, "FLUSHALL"));
}

/* ---- one event in the model and on the server ---- */

/* Runs the vote of attempt `a` on the server and compares the reply with the model; `before`: its
 * state before the vote. */
static void vote(struct world *world, const struct model_state *before, unsigned a)
{
    const struct model_node *node = &before->node[0];
    unsigned key = model_key(&world->model, a);
    uint8_t p = before->attempt[a].p;
    struct rl_result result = run_script(RL_VERB_ACQUIRE, KEYS[key], TOKENS[a], large(world, p));

    if (!node->admitted) {
        world->refused++;
        ck_assert_int_eq(result.vote, RL_VOTE_FAILED);
        ck_assert_int_eq(result.record, RL_RECORD_MISSING);
        return;
    }
    ck_assert_uint_eq(result.register_value, large(world, node->fence));
    if (node->owner[key] != 0) {
        world->denied++;
        ck_assert_int_eq(result.vote, RL_VOTE_DENIED);
        return;
    }
    world->granted++;
    ck_assert_int_eq(result.vote, RL_VOTE_GRANTED);
    ck_assert_int_eq(result.accepted, world->state.node[0].fence == p && node->fence != p);
}

/* Runs the RAISE of attempt `a` on the server and compares the reply with the model. */
static void raise_fence(struct world *world, const struct model_state *before, unsigned a)
{
    unsigned key = model_key(&world->model, a);
    bool ours = before->node[0].owner[key] == a + 1;
    uint64_t number = large(world, before->attempt[a].value);
    struct rl_result result = run_script(RL_VERB_RAISE, KEYS[key], TOKENS[a], number);

    *(ours ? &world->raised : &world->lost) += 1;
    ck_assert_int_eq(result.vote, ours ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
}

/* Runs the DEL of attempt `a` on the server: deletes the key if it has this token. */
static void delete_key(const struct world *world, unsigned a)
{
    struct rl_command command;

    const struct rl_arguments arguments = {
        .key = TEXT(KEYS[model_key(&world->model, a)]),
        .token = TEXT(TOKENS[a]),
    };
    rl_protocol_format(&command, RL_VERB_RELEASE, RL_FORM_EVAL, &arguments);
    freeReplyObject(run(&command));
}

/* Executes an event on the server that the model has executed already; `before`: the model's state
 * before it. */
static void do_on_server(struct world *world, const struct model_state *before,
                         struct model_action action)
{
    switch (action.kind) {
    case ACTION_VOTE:
        vote(world, before, action.attempt);
        break;
    case ACTION_RAISE:
        raise_fence(world, before, action.attempt);
        break;
    case ACTION_DEL:
        delete_key(world, action.attempt);
        break;
    case ACTION_VANISH:
        freeReplyObject(redisCommand(connection, "DEL %s", KEYS[action.detail]));
        break;
    case ACTION_FORGET:
        flush_server();
        break;
    case ACTION_READMIT:
        read_record(world, action.attempt);
        break;
    case ACTION_ADMIT: {
        const struct model_readmitter *client = &before->readmitter[action.attempt];
        struct rl_result result = seed(world, world->mark[action.attempt], client->value);
        ck_assert_int_eq(result.vote, RL_VOTE_GRANTED);
        break;
    }
    default: /* happens in the client only */
        break;
    }
}

/* Checks a reply, which must be the text `expected`, or nil if that is NULL. `what` names the
 * reply. */
static void check_text(const char *what, const redisReply *reply, const char *expected)
{
    if (expected == NULL)
        ck_assert_msg(reply->type == REDIS_REPLY_NIL, "%s is %s", what, reply->str);
    else
        ck_assert_msg(reply->type == REDIS_REPLY_STRING && strcmp(reply->str, expected) == 0,
                      "%s is %s, not %s", what, reply->str, expected);
}

/* Compares the register, the keys and the fingerprint on the server with the model. */
static void compare(const struct world *world)
{
    const struct model_node *node = &world->state.node[0];
    char number[24];

    snprintf(number, sizeof number, "%llu", (unsigned long long)large(world, node->fence));
    redisReply *reply = redisCommand(connection, "HGET %s %d", RECORD, STRIPE);
    check_text("register", reply, node->fence == 0 ? NULL : number);
    freeReplyObject(reply);
    reply = redisCommand(connection, "HGET %s cfg", RECORD);
    check_text("fingerprint", reply, node->admitted ? CONFIG RUN : NULL);
    freeReplyObject(reply);
    for (unsigned key = 0; key < world->model.keys; key++) {
        unsigned owner = node->owner[key];
        reply = redisCommand(connection, "GET %s", KEYS[key]);
        check_text(KEYS[key], reply, owner == 0 ? NULL : TOKENS[owner - 1]);
        freeReplyObject(reply);
    }
}

/* Checks that a SEED with the mark of client `r` changes nothing if the mark is gone from the
 * record. Does nothing if the mark is still there. */
static void try_stale_mark(struct world *world, unsigned r)
{
    const struct model_node *node = &world->state.node[0];

    if (world->state.readmitter[r].phase != READMIT_BEGUN || (node->marks & MODEL_BIT(r)) != 0)
        return;
    struct rl_result result = seed(world, world->mark[r], 4);
    ck_assert_int_eq(result.vote, node->admitted ? RL_VOTE_GRANTED : RL_VOTE_DENIED);
    world->stale++;
    compare(world);
}

/* Draws a model and brings the server into its first state: a record in use, no keys. */
static void begin(struct world *world)
{
    world->offset = draw(world, 8);
    world->model = (struct model){.nodes = 1,
                                  .attempts = MODEL_ATTEMPTS_MAX,
                                  .keys = MODEL_KEYS_MAX,
                                  .proposals = 3,
                                  .initial = {(uint8_t)draw(world, 4)},
                                  .forgets = 2,
                                  .readmitters = MODEL_READMITTERS,
                                  .dels = true,
                                  .broken = BROKEN_READMIT_UNMERGED}; /* there are no other nodes */
    model_init(&world->model, &world->state);
    flush_server();
    struct rl_result result = seed(world, "*", world->model.initial[0]);
    ck_assert_int_eq(result.vote, RL_VOTE_GRANTED);
    if (world->model.initial[0] == 0) /* the model's 0 is a missing field */
        freeReplyObject(redisCommand(connection, "HDEL %s %d", RECORD, STRIPE));
    compare(world);
}

/* Returns whether the event is chosen rarely. Otherwise most events would be interruptions. */
static bool is_rare(struct model_action action)
{
    return action.kind == ACTION_FORGET || action.kind == ACTION_VANISH ||
           action.kind == ACTION_GIVE_UP || action.kind == ACTION_FAST || action.kind == ACTION_DEL;
}

/* Walks at random through a model and compares the server after each event, at most STEPS times. */
static void walk(struct world *world)
{
    struct model_action actions[MODEL_ACTIONS_MAX];

    begin(world);
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned count = model_actions(&world->model, &world->state, actions);
        if (count == 0)
            return;
        struct model_action action = actions[draw(world, count)];
        if (is_rare(action) && draw(world, 5) != 0)
            continue;
        if (action.kind == ACTION_ADMIT) /* as if the client had read other nodes */
            world->state.readmitter[action.attempt].value = (uint8_t)(1 + draw(world, 3));
        struct model_state before = world->state;
        model_apply(&world->model, &world->state, action);
        do_on_server(world, &before, action);
        compare(world);
        try_stale_mark(world, draw(world, MODEL_READMITTERS));
    }
}

START_TEST(scripts_do_what_the_model_says)
{
    struct world world = {0};

    for (unsigned i = 0; i < WALKS; i++) {
        world.random = 1 + i;
        walk(&world);
    }
    fprintf(stderr,
            "# %llu granted, %llu denied, %llu refused; %llu raised, %llu lost; %llu stale\n",
            world.granted, world.denied, world.refused, world.raised, world.lost, world.stale);
    ck_assert_uint_gt(world.granted, 200);
    ck_assert_uint_gt(world.denied, 20);
    ck_assert_uint_gt(world.refused, 20);
    ck_assert_uint_gt(world.raised, 20);
    ck_assert_uint_gt(world.lost, 20);
    ck_assert_uint_gt(world.stale, 10);
}
END_TEST

/* Starts one server and connects to it. */
static void setup(void)
{
    cluster = cluster_start(1);
    connection = redisConnect("127.0.0.1", cluster_port(cluster, 0));
    ck_assert_ptr_nonnull(connection);
    ck_assert_msg(connection->err == 0, "%s", connection->errstr);
}

/* Closes the connection and stops the server. */
static void teardown(void)
{
    redisFree(connection);
    cluster_stop(cluster);
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("model_scripts");
    TCase *tcase = tcase_create("scripts");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, scripts_do_what_the_model_says);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
