/* SPDX-License-Identifier: MIT
 * The script of the line on a real server does what the model of it (line.h) does. Random requests
 * of a few waiters are executed in both, while the lock's key appears, expires and disappears, and
 * waiters begin and stop listening. After each step the reply, the value of the key, and the
 * notifications that each waiter has got must be the same, those of changes of the lock included:
 * they show for whom the server tracks the lock's key.
 *
 * A waiter has two connections, as a client has: one for requests, and one that listens. */
#include "line.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "core/scripts.h"
#include "random.h"
#include "suite.h"

#define WAITERS 6
#define WALKS   40         /* sequences of steps, each with another number of heads */
#define STEPS   150        /* of a walk */
#define LOCK    "lock"     /* key of the lock */
#define LINE    "lock{#q}" /* key of its line */
#define TOKEN   "token"    /* of the waiter that has just been granted the lock */
#define OTHER   "other"    /* a token of another client */
#define TTL_MS  600000     /* of the lock's key: longer than the test */

/* One waiter. */
struct waiter {
    char id[SIM_LINE_ID_MAX];
    redisContext *requests, *listener;
    bool listens;     /* to its channel of the line */
    bool tracks;      /* by the model, the server tracks the lock's key for it */
    unsigned turns;   /* notifications of the line since the last step, by the model */
    unsigned changes; /* notifications of changes of the lock's key, by the model */
};

static struct cluster *cluster; /* one server */
static redisContext *third;     /* a connection that belongs to no waiter */
static struct waiter waiters[WAITERS];

/* Fixture: starts a server. */
static void setup(void)
{
    cluster = cluster_start(1);
}

/* Fixture: stops it. */
static void teardown(void)
{
    cluster_stop(cluster);
}

/* Returns a new connection to the server. */
static redisContext *connect_to_server(void)
{
    redisContext *made = redisConnect("127.0.0.1", cluster_port(cluster, 0));

    ck_assert(made != NULL && made->err == 0);
    return made;
}

/* Sends a command and returns the reply, which the caller frees. */
static redisReply *command(redisContext *on, int count, const char **words)
{
    redisReply *reply = redisCommandArgv(on, count, words, NULL);

    ck_assert_msg(reply != NULL, "%s", on->errstr);
    ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s: %s", words[0], reply->str);
    return reply;
}
#define COMMAND(on, ...)                                                                           \
    command(on, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)),                       \
            (const char *[]){__VA_ARGS__})
/* Sends a command and frees the reply. */
#define RUN(on, ...) freeReplyObject(COMMAND(on, __VA_ARGS__))

/* Begins or ends to listen to the waiter's channel of the line. */
static void set_listens(struct waiter *waiter, bool listens)
{
    char channel[48];

    snprintf(channel, sizeof channel, "redlock:q:%s", waiter->id);
    RUN(waiter->listener, listens ? "SUBSCRIBE" : "UNSUBSCRIBE", channel);
    waiter->listens = listens;
}

/* Connects the waiter number i as a client does: it listens, and has the server send changes of
 * keys to the connection that listens. */
static void begin_waiter(unsigned i)
{
    struct waiter *waiter = &waiters[i];
    char number[24];

    *waiter = (struct waiter){.requests = connect_to_server(), .listener = connect_to_server()};
    snprintf(waiter->id, sizeof waiter->id, "waiter%u", i);
    redisReply *reply = COMMAND(waiter->listener, "CLIENT", "ID");
    snprintf(number, sizeof number, "%lld", reply->integer);
    freeReplyObject(reply);
    RUN(waiter->listener, "SUBSCRIBE", "__redis__:invalidate");
    set_listens(waiter, true);
    RUN(waiter->requests, "CLIENT", "TRACKING", "ON", "REDIRECT", number, "OPTIN", "NOLOOP");
}

/* Closes the connections of a waiter. */
static void end_waiter(unsigned i)
{
    redisFree(waiters[i].requests);
    redisFree(waiters[i].listener);
}

/* Reads what the waiter has been sent, up to the reply to a PING, and checks that these are the
 * notifications that the model has counted. */
static void check_notified(struct waiter *waiter)
{
    unsigned turns = 0, changes = 0;
    redisReply *reply = NULL;
    bool is_pong = false;

    ck_assert_int_eq(redisAppendCommand(waiter->listener, "PING"), REDIS_OK);
    while (!is_pong) {
        ck_assert_int_eq(redisGetReply(waiter->listener, (void **)&reply), REDIS_OK);
        ck_assert(reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2);
        is_pong = strcmp(reply->element[0]->str, "pong") == 0;
        bool is_change = !is_pong && strcmp(reply->element[1]->str, "__redis__:invalidate") == 0;
        if (!is_pong && !is_change)
            ck_assert_str_eq(reply->element[2]->str, LOCK);
        changes += is_change;
        turns += !is_pong && !is_change;
        freeReplyObject(reply);
    }
    ck_assert_msg(turns == waiter->turns && changes == waiter->changes,
                  "%s: %u turns instead of %u, %u changes instead of %u", waiter->id, turns,
                  waiter->turns, changes, waiter->changes);
    waiter->turns = waiter->changes = 0;
}

/* The model's notification: counts it if the waiter listens. */
static bool notify(void *ctx, const char *id)
{
    (void)ctx;
    for (unsigned i = 0; i < WAITERS; i++) {
        if (strcmp(waiters[i].id, id) == 0 && waiters[i].listens) {
            waiters[i].turns++;
            return true;
        }
    }
    return false;
}

/* Changes the lock's key as a third party: sets it to TOKEN or OTHER, or deletes it. */
static void change_lock(unsigned how)
{
    redisReply *reply = how == 0
                            ? COMMAND(third, "DEL", LOCK)
                            : COMMAND(third, "SET", LOCK, how == 1 ? TOKEN : OTHER, "PX", "600000");
    bool changed = reply->type != REDIS_REPLY_INTEGER || reply->integer != 0;

    freeReplyObject(reply);
    if (!changed) /* there was no key to be deleted */
        return;
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i].changes += waiters[i].tracks;
        waiters[i].tracks = false;
    }
}

/* Returns the remaining TTL of the lock's key as PTTL does, but TTL_MS if there is one. */
static int64_t pttl_of_lock(void)
{
    redisReply *reply = COMMAND(third, "PTTL", LOCK);
    int64_t left = reply->integer;

    freeReplyObject(reply);
    return left > 0 ? TTL_MS : left;
}

/* Executes the script on the server as the waiter does, and returns its reply, which the caller
 * frees. */
static redisReply *execute(struct waiter *waiter, const struct sim_line_request *request)
{
    char what[2] = {request->what, '\0'}, state[2] = {request->state, '\0'}, beat[24], trip[24],
         heads[8], victim_beat[24];

    snprintf(trip, sizeof trip, "%llu", (unsigned long long)request->trip_us);
    snprintf(heads, sizeof heads, "%u", request->heads);
    snprintf(beat, sizeof beat, "%llu", (unsigned long long)request->beat);
    snprintf(victim_beat, sizeof victim_beat, "%llu", (unsigned long long)request->victim_beat);
    if (request->what != 'G') /* G reads the lock's key, which is not to be tracked for that */
        RUN(waiter->requests, "CLIENT", "CACHING", "YES");
    return COMMAND(waiter->requests, "EVAL", rl_script_line.text, "2", LINE, LOCK, what,
                   request->id, state, beat, trip, request->text,
                   request->what == 'D' ? request->victim : TOKEN, heads, victim_beat);
}

/* Replaces the fourth word of a reply, the remaining TTL, by TTL_MS if it is one. */
static void normalize(char *text, size_t size, const char *reply)
{
    unsigned place, length;
    char state;
    long long left;
    int used = 0;

    ck_assert_msg(sscanf(reply, "%u %c %u %lld%n", &place, &state, &length, &left, &used) == 4,
                  "%s", reply);
    snprintf(text, size, "%u %c %u %lld%s", place, state, length,
             left > 0 ? (long long)TTL_MS : left, reply + used);
}

/* Executes one random request in both, and compares. */
static void step(struct sim_line *line, struct sim_random *random, unsigned heads)
{
    static char value[SIM_LINE_VALUE_MAX];
    char victim[SIM_LINE_ID_MAX] = "nobody", expected[256], got[256];
    struct waiter *waiter = &waiters[sim_below(random, WAITERS)];
    struct sim_line_request request = {
        .what = "JJJFNGGLD"[sim_below(random, 9)],
        .id = waiter->id,
        .state = waiter->listens && !sim_chance(random, 125) ? 'w' : 'd',
        .beat = sim_below(random, 12),
        .trip_us = sim_below(random, 3) * 500,
        .text = sim_chance(random, 500) ? "host:1 17" : "",
        .victim = victim,
        .heads = heads,
    };
    struct sim_line_server server = {.pttl_ms = pttl_of_lock(), .notify = notify};

    if (line->count > 0 && sim_chance(random, 500)) {
        const struct sim_line_waiter *one = &line->waiters[sim_below(random, line->count)];
        snprintf(victim, sizeof victim, "%s", one->id);
        /* D removes no waiter with another beat. */
        request.victim_beat = one->beat + sim_chance(random, 300);
    }
    redisReply *token = COMMAND(third, "GET", LOCK);
    server.has_token = token->type == REDIS_REPLY_STRING && strcmp(token->str, TOKEN) == 0;
    freeReplyObject(token);
    waiter->tracks |=
        sim_line_execute(line, &request, &server, expected, sizeof expected) && request.what != 'G';

    redisReply *reply = execute(waiter, &request);
    normalize(got, sizeof got, reply->str);
    freeReplyObject(reply);
    ck_assert_msg(strcmp(got, expected) == 0, "%c of %s: \"%s\" instead of \"%s\"", request.what,
                  request.id, got, expected);
    sim_line_value(line, value, sizeof value);
    reply = COMMAND(third, "GET", LINE);
    ck_assert_str_eq(reply->type == REDIS_REPLY_STRING ? reply->str : "", value);
    freeReplyObject(reply);
}

START_TEST(the_script_does_what_the_model_does)
{
    third = connect_to_server();
    for (unsigned walk = 0; walk < WALKS; walk++) {
        struct sim_random random = {.word = walk + 1};
        struct sim_line line = {.count = 0};
        RUN(third, "FLUSHALL");
        for (unsigned i = 0; i < WAITERS; i++)
            begin_waiter(i);
        for (unsigned i = 0; i < STEPS; i++) {
            struct waiter *waiter = &waiters[sim_below(&random, WAITERS)];
            if (sim_chance(&random, 80))
                set_listens(waiter, !waiter->listens);
            if (sim_chance(&random, 300))
                change_lock((unsigned)sim_below(&random, 3));
            step(&line, &random, 1 + walk % 3);
            for (unsigned k = 0; k < WAITERS; k++)
                check_notified(&waiters[k]);
        }
        for (unsigned i = 0; i < WAITERS; i++)
            end_waiter(i);
    }
    redisFree(third);
}
END_TEST

/* Executes J of the waiter "me" and returns the reply as a text, which the caller frees. */
static char *join(void)
{
    return cluster_command(cluster, 0, "EVAL %s 2 " LINE " " LOCK " J me w 0 0 %s %s 1",
                           rl_script_line.text, "", "");
}

/* A user's lock, or any other key, may have the name of a line. */
START_TEST(a_key_that_is_not_a_line_is_left_alone)
{
    char *reply;

    ck_assert(cluster_replies(cluster, 0, "OK", "SET " LINE " token"));
    reply = join();
    ck_assert_str_eq(reply, "X");
    free(reply);
    ck_assert(cluster_replies(cluster, 0, "token", "GET " LINE));
    ck_assert_int_eq(cluster_integer(cluster, 0, "PTTL " LINE), -1);
    ck_assert(cluster_replies(cluster, 0, "1", "DEL " LINE));
    ck_assert(cluster_replies(cluster, 0, "1", "LPUSH " LINE " element"));
    reply = join();
    ck_assert_str_eq(reply, "X");
    free(reply);
    ck_assert_int_eq(cluster_integer(cluster, 0, "LLEN " LINE), 1);
}
END_TEST

/* A key of another type under the name of the lock denies every SET; the waiter learns that it is
 * there. */
START_TEST(a_lock_of_another_type_exists)
{
    char *reply;

    ck_assert(cluster_replies(cluster, 0, "1", "LPUSH " LOCK " element"));
    reply = join();
    ck_assert_str_eq(reply, "1 h 1 -1 me 0 0");
    free(reply);
}
END_TEST

/* The line expires after the last request, and no request makes its key last for ever. */
START_TEST(an_abandoned_line_expires)
{
    free(join());
    ck_assert_int_gt(cluster_integer(cluster, 0, "PTTL " LINE), 0);
    ck_assert_int_le(cluster_integer(cluster, 0, "PTTL " LINE), 10000);
}
END_TEST

/* An error of the server, here of a user who may not publish, leaves the line as it was. Such a
 * user begins no line. */
START_TEST(an_error_leaves_the_line_as_it_was)
{
    redisContext *limited = connect_to_server();
    char *before, *after;
    const char *words[] = {
        "EVAL", rl_script_line.text, "2", LINE, LOCK, "J", "17", "w", "0", "0", "", "", "1"};

    third = connect_to_server();
    RUN(third, "ACL", "SETUSER", "limited", "on", "nopass", "~*", "+@all", "-publish");
    RUN(limited, "AUTH", "limited", "");
    redisReply *none = redisCommandArgv(limited, 13, words, NULL);
    ck_assert(none != NULL && none->type == REDIS_REPLY_ERROR);
    freeReplyObject(none);
    ck_assert_int_eq(cluster_integer(cluster, 0, "EXISTS " LINE), 0);
    begin_waiter(0);
    begin_waiter(1);
    struct sim_line_request request = {.what = 'J', .state = 'w', .text = "", .heads = 1};
    for (unsigned i = 0; i < 2; i++) {
        request.id = waiters[i].id;
        freeReplyObject(execute(&waiters[i], &request));
    }
    before = cluster_command(cluster, 0, "GET " LINE);
    words[5] = "L";
    words[6] = waiters[0].id;
    redisReply *reply = redisCommandArgv(limited, 13, words, NULL);
    ck_assert(reply != NULL && reply->type == REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    after = cluster_command(cluster, 0, "GET " LINE);
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
    end_waiter(0);
    end_waiter(1);
    redisFree(limited);
    redisFree(third);
}
END_TEST

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("sim_line");
    TCase *tcase = tcase_create("line");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, the_script_does_what_the_model_does);
    tcase_add_test(tcase, a_key_that_is_not_a_line_is_left_alone);
    tcase_add_test(tcase, a_lock_of_another_type_exists);
    tcase_add_test(tcase, an_abandoned_line_expires);
    tcase_add_test(tcase, an_error_leaves_the_line_as_it_was);
    return suite_run(suite);
}
