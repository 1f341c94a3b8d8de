/* SPDX-License-Identifier: MIT
 * The script of the line as a command of a modelled server: takes the words of the call, executes
 * the model (line.h), and sends the notifications. */
#include "line_command.h"

#include "contention.h"
#include "core/scripts.h"
#include "link.h"
#include "oracle_line.h"
#include "permit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_BIT   31           /* of sim_server.scripts */
#define LINE_KEEP_MS 10000        /* the key of a line expires that long after its last use */
#define CHANNEL      "redlock:q:" /* before the id of a waiter: the channel of its turns */
#define CHANNEL_LEN  (sizeof CHANNEL - 1)

/* What the notifications of one request need. */
struct turns {
    struct sim_world *world;
    unsigned node;
    unsigned resource; /* number of the line */
    unsigned key;      /* number of the key of the lock */
    bool late;         /* the client had closed the connection when the request arrived */
    bool refused;      /* the user may not publish */
};

/* Copies a word into a text of `size` bytes. Ends the program if it is too long. */
static const char *text_of(char *text, size_t size, struct sim_word word)
{
    if (word.len >= size)
        abort();
    memcpy(text, word.text, word.len);
    text[word.len] = '\0';
    return text;
}

/* Returns the settings of the case of contention; without one, settings that disturb nothing. */
static const struct sim_contention *settings_of(const struct sim_world *world)
{
    static const struct sim_contention none;

    return world->plan.contention != NULL ? world->plan.contention : &none;
}

/* Returns the connection on which the server notifies the waiter with this id, or NULL. */
static struct sim_conn *listener_of(const struct turns *turns, const char *id)
{
    struct sim_conn *conn = turns->world->conns;

    while (conn != NULL &&
           (conn->node != turns->node || !conn->server_open || strcmp(conn->turns, id) != 0))
        conn = conn->next;
    return conn;
}

/* Returns whether the user may not publish on the node. */
static bool may_not_publish(const struct turns *turns)
{
    return (settings_of(turns->world)->no_publish >> turns->node & 1) != 0;
}

/* Sends the notification of a turn to the connection that listens for this waiter. Returns whether
 * there is one, or the waiter is one that never acquires. A lost notification counts as sent. */
static bool notify(void *ctx, const char *id)
{
    struct turns *turns = ctx;
    struct sim_world *world = turns->world;
    struct sim_reply reply = {.len = 0};
    char name[SIM_NAME_MAX];
    struct rl_arg key = sim_key_name(turns->key, name);
    struct sim_conn *conn = listener_of(turns, id);

    if (may_not_publish(turns)) {
        turns->refused = true;
        return true;
    }
    sim_oracle_turn(world, turns->node, turns->resource, id);
    sim_note(world, "line of r% on node %: turn of waiter %", turns->resource, turns->node,
             strtoull(id, NULL, 10), 0);
    if (conn == NULL)
        return settings_of(world)->idlers != 0 && strlen(id) == 1;
    world->notifications++;
    sim_contention_turn(world, conn->client);
    if (world->plan.lost_notification != 0 &&
        sim_chance(&world->random, world->plan.lost_notification))
        return true;
    reply.len = (size_t)snprintf(reply.bytes, sizeof reply.bytes,
                                 "*3\r\n$7\r\nmessage\r\n$%zu\r\n" CHANNEL "%s\r\n$%zu\r\n%.*s\r\n",
                                 strlen(id) + CHANNEL_LEN, id, key.len, (int)key.len, key.data);
    sim_link_reply(world, conn, &reply);
    return true;
}

/* Executes the request on the line of the resource. Writes the reply to `ret`, of `size` bytes, ""
 * for an error, which leaves the line as it was. Returns whether the script has read the lock's key
 * with PTTL. */
static bool execute(struct turns *turns, const struct sim_line_request *request, bool has_token,
                    char *ret, size_t size)
{
    static struct sim_line before;
    struct sim_world *world = turns->world;
    struct sim_server *node = &world->servers[turns->node];
    struct sim_line *line = &node->lines[turns->resource];
    const struct sim_key *key = &node->keys[turns->key];
    int64_t now_ms = sim_server_now_ms(world, turns->node);
    struct sim_line_server server = {
        .has_token = has_token,
        .pttl_ms = key->present ? key->expire_ms - now_ms : -2,
        .notify = notify,
        .ctx = turns,
    };

    if (node->lines_expire_ms[turns->resource] < now_ms)
        line->count = 0;
    before = *line;
    sim_note(world, "line of r% on node %: request % of waiter %", turns->resource, turns->node,
             (uint64_t)request->what, strtoull(request->id, NULL, 10));
    sim_oracle_line_begins(world, turns->node, turns->resource, request, has_token);
    bool tracks = sim_line_execute(line, request, &server, ret, size);
    if (before.count == 0 && line->count != 0) /* the script publishes to begin a line */
        turns->refused = turns->refused || may_not_publish(turns);
    if (turns->refused) {
        *line = before;
        ret[0] = '\0';
    }
    sim_oracle_line_ends(world, turns->node, turns->resource);
    if (turns->late)
        sim_oracle_line_late(world, turns->node, turns->resource, request->id);
    if (!turns->refused)
        node->lines_expire_ms[turns->resource] = now_ms + LINE_KEEP_MS;
    return tracks && !turns->refused;
}

/* Returns the number of the resource whose line has this key, a resource's name and "{#q}". The
 * line of the semaphore has "{#}" before that, and is kept with its first slot. */
static unsigned resource_of_line(struct sim_word word)
{
    char name[SIM_NAME_MAX + 8];

    text_of(name, sizeof name, word);
    char *end = strstr(name, "{#");
    if (end == NULL)
        abort();
    strcpy(end, strcmp(end, "{#}{#q}") == 0 ? "{#0}" : "");
    return sim_key_of_name(name, strlen(name));
}

/* Executes the script: the words are EVAL or EVALSHA, the script, 2, both keys and the arguments.
 */
static void run_script(struct sim_call *call)
{
    const struct sim_word *words = call->words;
    char id[SIM_LINE_ID_MAX], text[SIM_LINE_TEXT_MAX], victim[SIM_LINE_ID_MAX], reply[128];
    struct sim_key *key = sim_key_of(call, words[4]);
    bool drops = words[5].text[0] == 'D';
    struct sim_line_request request = {
        .what = words[5].text[0],
        .id = text_of(id, sizeof id, words[6]),
        .state = words[7].text[0],
        .beat = (uint64_t)sim_integer_of(words[8]),
        .trip_us = (uint64_t)sim_integer_of(words[9]),
        .text = text_of(text, sizeof text, words[10]),
        .victim = drops ? text_of(victim, sizeof victim, words[11]) : "",
        .victim_beat = drops ? (uint64_t)sim_integer_of(words[13]) : 0,
        .heads = (unsigned)sim_integer_of(words[12]),
    };
    struct turns turns = {.world = call->world,
                          .node = call->conn->node,
                          .resource = resource_of_line(words[3]),
                          .key = sim_resource_of(words[4]),
                          .late = !call->conn->client_open};

    if (execute(&turns, &request, sim_key_holds(key, words[11]), reply, sizeof reply))
        sim_key_requested(call, key);
    if (turns.refused)
        sim_reply_add(call, "-ERR The user executing the script can't publish to this channel");
    else
        sim_reply_add_text(call, reply, strlen(reply));
}

/* Executes the request J of a waiter without a connection, with this id, to the line of a resource.
 * It counts as listening. */
void sim_line_join_foreign(struct sim_world *world, unsigned node, unsigned resource,
                           const char *id)
{
    const struct sim_line_request request = {
        .what = 'J', .id = id, .state = 'w', .text = "", .victim = "", .heads = 1};
    struct turns turns = {.world = world, .node = node, .resource = resource, .key = resource};
    char reply[128];

    (void)execute(&turns, &request, false, reply, sizeof reply);
}

/* Executes EVAL or EVALSHA of the script of the line. Returns whether the command is that script.
 */
bool sim_line_script(struct sim_call *call, bool by_sha)
{
    const struct sim_contention *settings = settings_of(call->world);
    unsigned node = call->conn->node;

    if (!sim_is(call->words[1], by_sha ? rl_script_line.sha : rl_script_line.text))
        return false;
    if (by_sha && (call->server->scripts & 1u << SCRIPT_BIT) == 0) {
        sim_reply_add(call, "-NOSCRIPT No matching script. Please use EVAL.");
        return true;
    }
    call->server->scripts |= 1u << SCRIPT_BIT;
    if (call->server->full)
        sim_reply_add(call, "-OOM command not allowed when used memory > 'maxmemory'.");
    else if ((settings->no_getex >> node & 1) != 0)
        sim_reply_add(call, "-ERR Unknown Redis command called from script");
    else if ((settings->lines_taken >> node & 1) != 0)
        sim_reply_add_text(call, "X", 1);
    else
        run_script(call);
    return true;
}

/* Executes SUBSCRIBE: the connection receives notifications of changes, or of the turns of one
 * waiter. */
void sim_line_subscribe(struct sim_call *call)
{
    struct sim_word name = call->words[1];
    bool turns = name.len > CHANNEL_LEN && memcmp(name.text, CHANNEL, CHANNEL_LEN) == 0;

    if (turns && (settings_of(call->world)->no_turns >> call->conn->node & 1) != 0) {
        sim_reply_add(call, "-NOPERM No permissions to access a channel");
        return;
    }
    if (turns)
        snprintf(call->conn->turns, sizeof call->conn->turns, "%.*s", (int)(name.len - CHANNEL_LEN),
                 name.text + CHANNEL_LEN);
    else
        call->conn->subscribed = true;
    sim_reply_add(call, "*3\r\n$9\r\nsubscribe");
    sim_reply_add_text(call, name.text, name.len);
    sim_reply_add_number(call, 1);
}
