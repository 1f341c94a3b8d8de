/* SPDX-License-Identifier: MIT
 * A server process: starts it, loses its data, parses requests and sends replies.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. `node` is the server's number,
 * `resource` and `key` are numbers of keys (resources first, then the slots of the semaphore).
 * Former states of a key are kept while they would not have expired: a holder may still rely on
 * them. */
#include "server.h"

#include "link.h"
#include "oracle_close.h"
#include "permit.h"
#include "records.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 16 /* of a command */

/* Chooses the version, which decides about the commands that the server knows. */
static void choose_version(struct sim_world *world, struct sim_server *server)
{
    static const struct {
        unsigned major, minor;
        bool is_valkey;
    } versions[] = {{7, 0, false}, {7, 0, false}, {6, 2, false},
                    {8, 4, false}, {8, 1, true},  {9, 0, true}};
    unsigned at = (unsigned)sim_below(&world->random, sizeof versions / sizeof versions[0]);

    server->major = versions[at].major;
    server->minor = versions[at].minor;
    server->is_valkey = versions[at].is_valkey;
}

/* Sets up the server's version and clock as the plan says, and starts it. */
void sim_server_init(struct sim_world *world, unsigned node)
{
    struct sim_server *server = &world->servers[node];
    int64_t max = world->plan.ppm_max;

    choose_version(world, server);
    server->clock = (struct sim_clock){
        .true_ns = world->now_ns,
        .shown_ns = UINT64_C(1700000000) * RL_SECOND + sim_below(&world->random, RL_SECOND),
        .ppm = (int64_t)sim_below(&world->random, (uint64_t)(2 * max + 1)) - max,
    };
    sim_server_start(world, node);
    server->started_ns -= 3600 * RL_SECOND;
    server->idled_ns = 3600 * RL_SECOND;
    server->evicts = (world->plan.evicting >> node & 1) != 0;
    server->no_tracking = (world->plan.no_tracking >> node & 1) != 0;
}

/* Starts the server as a new process, with the keys that it has. */
void sim_server_start(struct sim_world *world, unsigned node)
{
    struct sim_server *server = &world->servers[node];

    server->up = true;
    server->hung = false;
    server->run_number = (uint32_t)sim_word(&world->random);
    server->scripts = 0;
    server->started_ns = sim_clock_read(&server->clock, world->now_ns);
    server->born_ns = world->now_ns;
    server->idled_ns = 0;
}

/* Returns what the server's clock shows, in ms. */
int64_t sim_server_now_ms(const struct sim_world *world, unsigned node)
{
    return (int64_t)(sim_clock_read(&world->servers[node].clock, world->now_ns) / RL_MS);
}

/* Returns whether the key, or an earlier state of it, is present and has not expired. */
static bool is_good(const struct sim_world *world, unsigned node, const struct sim_key *key)
{
    if (!key->present)
        return false;
    int64_t now_ms = sim_server_now_ms(world, node);
    return world->plan.early_expiry ? now_ms < key->expire_ms : now_ms <= key->expire_ms;
}

/* Returns whether the key has this token. */
static bool is_token(const struct sim_key *key, const struct sim_token *token)
{
    return key->token_len >= SIM_TOKEN_HEX && memcmp(key->token, token->text, SIM_TOKEN_HEX) == 0;
}

/* Returns whether the key is present and has not expired, with any token. */
bool sim_server_holds(const struct sim_world *world, unsigned node, unsigned key)
{
    return is_good(world, node, &world->servers[node].keys[key]);
}

/* Returns the same for a key with this token. */
bool sim_server_has(const struct sim_world *world, unsigned node, unsigned resource,
                    const struct sim_token *token)
{
    const struct sim_key *key = &world->servers[node].keys[resource];

    return is_good(world, node, key) && is_token(key, token);
}

/* Returns whether an earlier state of the key with this token would not have expired yet. */
bool sim_server_had(const struct sim_world *world, unsigned node, unsigned resource,
                    const struct sim_token *token)
{
    const struct sim_key *former = world->servers[node].former[resource];

    for (unsigned i = 0; i < SIM_FORMER_MAX; i++) {
        if (is_good(world, node, &former[i]) && is_token(&former[i], token))
            return true;
    }
    return false;
}

/* Returns the true time at which the key expires. */
static uint64_t expiry_ns(const struct sim_world *world, unsigned node, const struct sim_key *key)
{
    int64_t gone_ms = key->expire_ms + !world->plan.early_expiry;

    return sim_clock_when(&world->servers[node].clock, (uint64_t)gone_ms * RL_MS);
}

/* Returns the true time at which the key with this token expires, or would have expired had it
 * not been lost or shortened. 0: there is no such key. */
uint64_t sim_server_expires_ns(const struct sim_world *world, unsigned node, unsigned resource,
                               const struct sim_token *token)
{
    const struct sim_server *server = &world->servers[node];
    uint64_t expires_ns = 0;

    if (sim_server_has(world, node, resource, token))
        expires_ns = expiry_ns(world, node, &server->keys[resource]);
    for (unsigned i = 0; i < SIM_FORMER_MAX; i++) {
        const struct sim_key *one = &server->former[resource][i];
        if (is_good(world, node, one) && is_token(one, token))
            expires_ns = rl_max_u64(expires_ns, expiry_ns(world, node, one));
    }
    return expires_ns;
}

/* Forgets the earlier states of the key, because its owner has set or extended it. */
void sim_server_forget_former(struct sim_world *world, unsigned node, unsigned resource)
{
    const struct sim_key *key = &world->servers[node].keys[resource];
    struct sim_key *former = world->servers[node].former[resource];

    for (unsigned i = 0; i < SIM_FORMER_MAX; i++) {
        if (former[i].token_len == key->token_len &&
            memcmp(former[i].token, key->token, key->token_len) == 0)
            former[i].present = false;
    }
}

/* Keeps an earlier state of a key, in the place of the one that expires first. */
static void keep_former(struct sim_key former[SIM_FORMER_MAX], const struct sim_key *key)
{
    struct sim_key *first = &former[0];

    for (unsigned i = 1; i < SIM_FORMER_MAX; i++) {
        if (!former[i].present || (first->present && former[i].expire_ms < first->expire_ms))
            first = &former[i];
    }
    if (!first->present || first->expire_ms < key->expire_ms)
        *first = *key;
}

/* Returns the open connection with that client ID, or NULL. */
static struct sim_conn *conn_called(struct sim_world *world, unsigned node, uint32_t id)
{
    struct sim_conn *conn = world->conns;

    while (conn != NULL && (conn->node != node || conn->id != id || !conn->server_open))
        conn = conn->next;
    return conn;
}

/* Sends the notification that the key has changed to the client of `conn`, on its other connection,
 * unless it is lost. The server does not track the key for that client any more. */
static void notify_change(struct sim_world *world, struct sim_conn *conn, unsigned resource)
{
    struct sim_reply reply = {.len = 0};
    char name[SIM_NAME_MAX];
    struct rl_arg key = sim_key_name(resource, name);

    conn->tracked &= ~(1u << resource);
    struct sim_conn *to = conn_called(world, conn->node, conn->redirect);
    bool lost = world->plan.lost_notification != 0 &&
                sim_chance(&world->random, world->plan.lost_notification);
    if (to == NULL || !to->subscribed || lost)
        return;
    reply.len = (size_t)snprintf(reply.bytes, sizeof reply.bytes,
                                 "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"
                                 "*1\r\n$%zu\r\n%s\r\n",
                                 key.len, key.data);
    world->notifications++;
    sim_link_reply(world, to, &reply);
}

/* Notifies this connection that the key has changed, although it has not: a server does so to
 * forget a key that it tracks. */
void sim_server_forget_tracked(struct sim_world *world, struct sim_conn *conn, unsigned resource)
{
    notify_change(world, conn, resource);
}

/* Sends one notification to each client that tracks the key, but not to the client that made the
 * change. */
void sim_server_changed(struct sim_world *world, unsigned node, unsigned resource,
                        const struct sim_conn *by)
{
    for (struct sim_conn *conn = world->conns; conn != NULL; conn = conn->next) {
        if (conn->node != node || !conn->server_open || (conn->tracked >> resource & 1) == 0)
            continue;
        if (conn == by)
            conn->tracked &= ~(1u << resource);
        else
            notify_change(world, conn, resource);
    }
}

/* Executes SET NX PX for a foreign client. Returns whether the key was set. */
bool sim_server_set(struct sim_world *world, unsigned node, unsigned resource,
                    struct sim_word token, int64_t ttl_ms)
{
    struct sim_key *key = &world->servers[node].keys[resource];

    if (!world->servers[node].up || is_good(world, node, key))
        return false;
    *key = (struct sim_key){
        .present = true,
        .token_len = (uint32_t)token.len,
        .expire_ms = sim_server_now_ms(world, node) + ttl_ms,
        .set_ns = world->now_ns,
        .set_by = UINT8_MAX,
    };
    memcpy(key->token, token.text, token.len);
    sim_server_changed(world, node, resource, NULL);
    return true;
}

/* Executes compare-and-delete for a foreign client. */
void sim_server_delete(struct sim_world *world, unsigned node, unsigned resource,
                       struct sim_word token)
{
    struct sim_key *key = &world->servers[node].keys[resource];

    if (!is_good(world, node, key) || key->token_len != token.len ||
        memcmp(key->token, token.text, token.len) != 0)
        return;
    key->present = false;
    sim_server_changed(world, node, resource, NULL);
}

/* Removes the key, other than by its owner, and remembers its state. */
void sim_server_lose_key(struct sim_world *world, unsigned node, unsigned resource)
{
    struct sim_server *server = &world->servers[node];

    if (is_good(world, node, &server->keys[resource]))
        keep_former(server->former[resource], &server->keys[resource]);
    server->keys[resource].present = false;
    if (server->up)
        sim_server_changed(world, node, resource, NULL);
}

/* Makes the key expire after ttl_ms, if that is earlier than before, and remembers its state. */
void sim_server_shorten_key(struct sim_world *world, unsigned node, unsigned resource,
                            int64_t ttl_ms)
{
    struct sim_server *server = &world->servers[node];
    struct sim_key *key = &server->keys[resource];
    int64_t expire_ms = sim_server_now_ms(world, node) + ttl_ms;

    if (!server->up || !is_good(world, node, key) || key->expire_ms <= expire_ms)
        return;
    keep_former(server->former[resource], key);
    key->expire_ms = expire_ms;
    sim_server_changed(world, node, resource, NULL);
}

/* Removes all keys likewise. */
void sim_server_lose_keys(struct sim_world *world, unsigned node)
{
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++) {
        sim_server_lose_key(world, node, i);
        world->servers[node].lines[i].count = 0;
    }
}

/* Removes the fence record. */
void sim_server_lose_record(struct sim_world *world, unsigned node)
{
    memset(&world->servers[node].record, 0, sizeof world->servers[node].record);
    world->servers[node].record_lost = true;
    /* After the loss of all records, a first start follows, and fencing tokens begin anew. */
    for (unsigned i = 0; i < world->plan.nodes; i++) {
        if (world->servers[i].record.cfg[0] != '\0' || world->servers[i].record.count != 0)
            return;
    }
    world->fences_restarted = true;
}

/* Reads a number that follows its type byte. Returns false if it is not complete yet. */
static bool read_number(const char *in, size_t len, size_t *at, char type, size_t *ret)
{
    size_t value = 0, i = *at;

    if (i >= len)
        return false;
    if (in[i++] != type)
        abort(); /* the library itself has sent this */
    for (; i < len && in[i] != '\r'; i++)
        value = value * 10 + (size_t)(in[i] - '0');
    if (i + 2 > len)
        return false;
    *at = i + 2;
    *ret = value;
    return true;
}

/* Parses one request. Returns its length, or 0 if it is not complete yet. */
static size_t parse(const char *in, size_t len, struct sim_word *words, size_t *ret_count)
{
    size_t at = 0, count = 0, word_len = 0;

    if (!read_number(in, len, &at, '*', &count))
        return 0;
    if (count == 0 || count > WORDS_MAX)
        abort();
    for (size_t i = 0; i < count; i++) {
        if (!read_number(in, len, &at, '$', &word_len) || at + word_len + 2 > len)
            return 0;
        words[i] = (struct sim_word){in + at, word_len};
        at += word_len + 2;
    }
    *ret_count = count;
    return at;
}

/* Returns whether the server executes nothing now: it is down, stopped, or busy with a script. */
bool sim_server_stands_still(const struct sim_world *world, unsigned node)
{
    const struct sim_server *server = &world->servers[node];

    return !server->up || server->hung || server->blocked_ns > world->now_ns;
}

/* Sends the collected replies, and empties `reply`. */
static void send_reply(struct sim_world *world, struct sim_conn *conn, struct sim_reply *reply)
{
    if (reply->len > 0)
        sim_link_reply(world, conn, reply);
    reply->len = 0;
    reply->outcome_count = 0;
}

/* Has the server keep the connection, because it executes bytes of it later (`on`), or not. May
 * free the connection. */
void sim_server_keep(struct sim_world *world, struct sim_conn *conn, bool on)
{
    if (conn->kept == on)
        return;
    conn->kept = on;
    if (on)
        conn->refs++;
    else
        sim_conn_drop(world, conn);
}

/* Returns how long a server takes until it reads again from a client that has closed. With records,
 * the reset that the last reply has caused may arrive before. */
static uint64_t pause_ns(struct sim_world *world, const struct sim_conn *conn)
{
    uint64_t trip_ns = 2 * (world->plan.delay_ns * 4 + world->plan.jitter_ns);

    if (conn->records != NULL && sim_chance(&world->random, 500))
        return 2 * trip_ns;
    return sim_between(&world->random, 1, 100) * RL_US;
}

/* Decides whether a server reads more from a client that has closed, after it has sent replies or
 * found nothing to execute. With replies, it may read more before a reset arrives: plans the next
 * pass. Otherwise closes the connection on the server's side. */
static void end(struct sim_world *world, struct sim_conn *conn, bool executed)
{
    if (!executed || conn->in_len == 0 || conn->reset) {
        conn->server_open = false;
        sim_oracle_closed(world, conn);
        return;
    }
    sim_plan_event(world, world->now_ns + pause_ns(world, conn), SIM_SERVE, conn->node, 0, 0, NULL);
}

/* Executes the complete commands in the first `len` bytes of a connection, and sends the replies.
 * Begins no second command that ends after `most` bytes. Returns how many bytes were executed. */
static size_t execute_bytes(struct sim_world *world, struct sim_conn *conn, size_t len, size_t most)
{
    struct sim_word words[WORDS_MAX];
    struct sim_reply reply = {.len = 0};
    size_t used = 0, one, count = 0;

    while (conn->server_open && used < len &&
           (one = parse(conn->in + used, len - used, words, &count)) > 0 &&
           (used == 0 || used + one <= most)) {
        unsigned outcomes_before = reply.outcome_count;
        sim_command(world, conn, (unsigned)count, words, &reply);
        for (unsigned i = outcomes_before; i < reply.outcome_count; i++)
            reply.outcomes[i].end = (uint32_t)reply.len;
        used += one;
        if (reply.outcome_count == SIM_OUTCOMES_MAX || reply.len > sizeof reply.bytes / 2)
            send_reply(world, conn, &reply);
    }
    send_reply(world, conn, &reply);
    if (used > 0) {
        conn->in_len -= used;
        memmove(conn->in, conn->in + used, conn->in_len);
    }
    return used;
}

/* Reads records and executes the commands that are complete in them, one record after the other.
 * If the client has closed, only up to the first record whose commands get replies. Returns whether
 * a command was executed. */
static bool execute_records(struct sim_world *world, struct sim_conn *conn)
{
    bool executed = false;

    while (conn->server_open && !(executed && conn->ended) && sim_records_read(conn)) {
        size_t used = execute_bytes(world, conn, conn->records->read, SIZE_MAX);
        conn->records->read -= used;
        executed = executed || used > 0;
    }
    return executed;
}

/* Executes the complete commands of a connection. If the client has closed, one pass executes only
 * what the server reads at once. Drops the server's reference if there is no further pass. */
static void execute(struct sim_world *world, struct sim_conn *conn)
{
    bool executed;

    if (conn->records != NULL)
        executed = execute_records(world, conn);
    else
        executed = execute_bytes(world, conn, conn->in_len,
                                 conn->ended ? world->plan.read_max : SIZE_MAX) > 0;
    if (conn->ended)
        end(world, conn, executed);
    sim_server_keep(world, conn, conn->ended && conn->server_open);
}

/* Appends bytes that have arrived on the connection, and executes the complete commands. */
void sim_server_input(struct sim_world *world, struct sim_conn *conn, const char *bytes, size_t len)
{
    if (conn->in_len + len > conn->in_cap) {
        conn->in_cap = 2 * (conn->in_len + len);
        conn->in = realloc(conn->in, conn->in_cap);
        if (conn->in == NULL)
            abort();
    }
    memcpy(conn->in + conn->in_len, bytes, len);
    conn->in_len += len;
    if (sim_server_stands_still(world, conn->node))
        sim_server_keep(world, conn, true);
    else
        execute(world, conn);
}

/* Executes commands that have waited: those on present connections of the clients, or those on
 * others. */
static void serve(struct sim_world *world, unsigned node, bool present)
{
    for (struct sim_conn *conn = world->conns, *next; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->node == node && conn->server_open && (conn->in_len > 0 || conn->ended) &&
            sim_conn_is_present(world, conn) == present)
            execute(world, conn);
    }
}

/* Handles SIM_SERVE: executes the commands that have waited. A server reads from connections that
 * it has before it accepts those that have replaced them. */
void sim_server_serve(struct sim_world *world, unsigned node)
{
    if (sim_server_stands_still(world, node))
        return;
    serve(world, node, false);
    serve(world, node, true);
}
