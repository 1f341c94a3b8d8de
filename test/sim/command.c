/* SPDX-License-Identifier: MIT
 * Executes the commands of a modelled server. Scripts are recognized by their whole text. An
 * unknown script ends the program, so that no script can change without its model.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. Each do_…() function executes one
 * command: its words are in the call, and its reply is appended there. Unknown commands end the
 * program, because the library must not send what the model does not know. */
#include "command.h"
#include "contention.h"
#include "core/scripts.h"
#include "line_command.h"
#include "permit.h"
#include "record.h"
#include "token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum script { SCRIPT_EXTEND, SCRIPT_RELEASE, SCRIPT_SHORTEN, SCRIPTS };

/* The library's scripts for one key, with their SHA1 hashes. */
static const struct {
    const char *sha, *text;
} scripts[SCRIPTS] = {
    [SCRIPT_EXTEND] = {"367d0abe679838553ab6fab13be5d9b0cfae092b",
                       "if redis.call('GET',KEYS[1])==ARGV[1] then "
                       "local left=redis.call('PTTL',KEYS[1]) local ttl=tonumber(ARGV[2]) "
                       "if left>ttl then ttl=left end "
                       "redis.call('PEXPIRE',KEYS[1],ttl) return 1 end return 0"},
    [SCRIPT_RELEASE] = {"5c714dd8ed5b943a1f472132e06290c53ab22693",
                        "if redis.call('GET',KEYS[1])==ARGV[1] then "
                        "return redis.call('DEL',KEYS[1]) end return 0"},
    [SCRIPT_SHORTEN] = {"68acc660facaa8309b44ff34c73caa7e7a12688a",
                        "if redis.call('GET',KEYS[1])==ARGV[1] then "
                        "return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0"},
};

/* Returns whether the word is exactly this text. */
bool sim_is(struct sim_word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.text, text, word.len) == 0;
}

/* Appends these bytes to the reply as they are. */
void sim_reply_add_bytes(struct sim_call *call, const char *bytes, size_t len)
{
    struct sim_reply *reply = call->reply;

    if (reply->len + len > sizeof reply->bytes)
        abort();
    memcpy(reply->bytes + reply->len, bytes, len);
    reply->len += len;
}

/* Appends a line and its line end to the reply. */
void sim_reply_add(struct sim_call *call, const char *line)
{
    sim_reply_add_bytes(call, line, strlen(line));
    sim_reply_add_bytes(call, "\r\n", 2);
}

/* Appends an integer reply (":5"). */
void sim_reply_add_number(struct sim_call *call, int64_t number)
{
    char line[32];

    snprintf(line, sizeof line, ":%" PRId64, number);
    sim_reply_add(call, line);
}

/* Appends a bulk string ("$3", then the bytes). */
void sim_reply_add_text(struct sim_call *call, const char *text, size_t len)
{
    char line[32];

    snprintf(line, sizeof line, "$%zu", len);
    sim_reply_add(call, line);
    sim_reply_add_bytes(call, text, len);
    sim_reply_add_bytes(call, "\r\n", 2);
}

/* Returns the number in the word. Ends the program if it has another character than digits or is
 * too large. */
int64_t sim_integer_of(struct sim_word word)
{
    int64_t value = 0;

    for (size_t i = 0; i < word.len; i++) {
        if (word.text[i] < '0' || word.text[i] > '9' || value > INT64_MAX / 16)
            abort();
        value = value * 10 + (word.text[i] - '0');
    }
    return value;
}

/* Returns the number of the key with this name. Ends the program if there is none. */
unsigned sim_resource_of(struct sim_word word)
{
    return sim_key_of_name(word.text, word.len);
}

/* Returns the server's key of this name. A key that has expired becomes absent first. */
struct sim_key *sim_key_of(struct sim_call *call, struct sim_word word)
{
    struct sim_key *key = &call->server->keys[sim_resource_of(word)];
    int64_t now_ms = sim_server_now_ms(call->world, call->conn->node);

    if (call->world->plan.early_expiry ? now_ms >= key->expire_ms : now_ms > key->expire_ms)
        key->present = false;
    return key;
}

/* Returns whether the key is present with this token as its value. */
bool sim_key_holds(const struct sim_key *key, struct sim_word token)
{
    return key->present && key->token_len == token.len &&
           memcmp(key->token, token.text, token.len) == 0;
}

/* Adds to the reply that the server has set (or `extended`) the key of the token with this
 * number, now. Ignores number 0. */
void sim_reply_outcome(struct sim_call *call, uint32_t token, bool extended)
{
    struct sim_reply *reply = call->reply;
    const struct sim_client *client = &call->world->clients[call->conn->client];

    if (token == 0)
        return;
    reply->outcomes[reply->outcome_count++] = (struct sim_outcome){
        .token = token,
        .extended = extended,
        .executed_boot_ns = sim_clock_read(&client->boot, call->world->now_ns),
    };
}

/* Notifies the connections that track the key, because it was changed by this call. */
void sim_key_changed(struct sim_call *call, const struct sim_key *key)
{
    sim_server_changed(call->world, call->conn->node, (unsigned)(key - call->server->keys),
                       call->conn);
}

/* Notifies likewise, and forgets the earlier states of the key, which its owner has set or
 * extended. */
void sim_key_renewed(struct sim_call *call, const struct sim_key *key)
{
    sim_server_forget_former(call->world, call->conn->node, (unsigned)(key - call->server->keys));
    sim_key_changed(call, key);
}

/* Makes the connection track the key, if CLIENT CACHING has requested that for this command. In
 * some cases of contention, the server forgets it at once. */
void sim_key_requested(struct sim_call *call, const struct sim_key *key)
{
    struct sim_world *world = call->world;
    unsigned number = (unsigned)(key - call->server->keys);

    if (call->conn->redirect == 0 || !call->conn->registers)
        return;
    call->conn->tracked |= 1u << number;
    if (world->plan.contention != NULL && world->plan.contention->early != 0 &&
        sim_chance(&world->random, world->plan.contention->early))
        sim_server_forget_tracked(world, call->conn, number);
}

/* Sets the key to the token with this TTL, and notes which client did so and when. */
void sim_put(struct sim_call *call, struct sim_key *key, struct sim_word token, int64_t ttl_ms)
{
    if (token.len > RL_TOKEN_MAX)
        abort();
    key->present = true;
    key->set_ns = call->world->now_ns;
    key->extended_ns = 0;
    key->late = !call->conn->client_open;
    key->set_by = call->conn->client;
    key->set_conn = call->conn->number;
    key->set_boot_ns = sim_clock_read(&call->world->clients[key->set_by].boot, call->world->now_ns);
    key->token_len = (uint32_t)token.len;
    memcpy(key->token, token.text, token.len);
    key->expire_ms = sim_server_now_ms(call->world, call->conn->node) + ttl_ms;
    sim_key_renewed(call, key);
}

/* Executes SET NX PX. Returns true if the key was set, false if it was present. The token enters
 * the table of tokens. */
bool sim_set(struct sim_call *call, struct sim_word name, struct sim_word token, int64_t ttl_ms)
{
    struct sim_key *key = sim_key_of(call, name);
    unsigned resource = sim_resource_of(name);
    unsigned node = call->conn->node;
    uint32_t number =
        sim_token_number(call->world, token.text, token.len, call->conn->client, 1u << resource);

    if (number == 0)
        abort();
    sim_token_at(call->world, number)->sets[node]++;
    sim_note(call->world, "node % sets r% for token %, was taken: %", node, resource, number,
             key->present);
    if (key->present)
        return false;
    sim_put(call, key, token, ttl_ms);
    sim_reply_outcome(call, number, false);
    return true;
}

/* Executes SET key token NX PX ttl. */
static void do_set(struct sim_call *call)
{
    const struct sim_word *words = call->words;

    if (call->server->full) {
        sim_reply_add(call, "-OOM command not allowed when used memory > 'maxmemory'.");
        return;
    }
    if (call->count != 6 || !sim_is(words[3], "NX") || !sim_is(words[4], "PX"))
        abort();
    if (sim_set(call, words[1], words[2], sim_integer_of(words[5])))
        sim_reply_add(call, "+OK");
    else
        sim_reply_add(call, "$-1");
}

/* Executes a script over one key: EVAL script 1 key token [ttl]. */
static void run_script(struct sim_call *call, enum script script)
{
    const struct sim_word *words = call->words;
    struct sim_key *key = sim_key_of(call, words[3]);
    struct sim_word token = words[4];
    int64_t now_ms = sim_server_now_ms(call->world, call->conn->node);
    uint32_t number = sim_token_find(call->world, token.text, token.len);
    bool ours = sim_key_holds(key, token);

    sim_note(call->world, "node % runs script % for token %, ours: %", call->conn->node, script,
             number, ours);
    if (!ours) {
        sim_reply_add_number(call, 0);
        return;
    }
    switch (script) {
    case SCRIPT_EXTEND:
        if (key->expire_ms < now_ms + sim_integer_of(words[5]))
            key->expire_ms = now_ms + sim_integer_of(words[5]);
        key->extended_ns = call->world->now_ns;
        sim_server_forget_former(call->world, call->conn->node, sim_resource_of(words[3]));
        sim_reply_outcome(call, number, true);
        break;
    case SCRIPT_SHORTEN:
        key->expire_ms = now_ms + sim_integer_of(words[5]);
        break;
    default:
        key->present = false;
        break;
    }
    sim_key_changed(call, key);
    sim_reply_add_number(call, 1);
}

/* Returns whether the call runs the script of the greeting, which has no key and changes nothing.
 */
static bool is_check(const struct sim_call *call)
{
    bool by_sha = sim_is(call->words[0], "EVALSHA");

    return (by_sha || sim_is(call->words[0], "EVAL")) &&
           sim_is(call->words[1], by_sha ? rl_script_check.sha : rl_script_check.text);
}

/* Executes EVAL and EVALSHA. */
static void do_eval(struct sim_call *call)
{
    bool by_sha = sim_is(call->words[0], "EVALSHA");

    if (is_check(call)) {
        sim_reply_add_number(call, 1);
        return;
    }
    for (unsigned i = 0; i < SCRIPTS; i++) {
        if (!sim_is(call->words[1], by_sha ? scripts[i].sha : scripts[i].text))
            continue;
        if (by_sha && (call->server->scripts & (1u << i)) == 0) {
            call->server->noscript_ns = call->world->now_ns;
            sim_reply_add(call, "-NOSCRIPT No matching script. Please use EVAL.");
            return;
        }
        call->server->scripts |= 1u << i;
        run_script(call, (enum script)i);
        return;
    }
    if (sim_record_script(call, by_sha) || sim_many_script(call) || sim_line_script(call, by_sha))
        return;
    abort(); /* the library has a script that the model does not know */
}

/* Executes SCRIPT LOAD. */
static void do_script(struct sim_call *call)
{
    for (unsigned i = 0; i < SCRIPTS; i++) {
        if (!sim_is(call->words[2], scripts[i].text))
            continue;
        call->server->scripts |= 1u << i;
        sim_reply_add_text(call, scripts[i].sha, strlen(scripts[i].sha));
        return;
    }
    abort();
}

/* Executes DELEX key IFEQ token and DELIFEQ key token. */
static void do_delete(struct sim_call *call)
{
    const struct sim_server *server = call->server;
    bool delex = sim_is(call->words[0], "DELEX");
    bool known = delex ? !server->is_valkey && server->major == 8 && server->minor >= 4
                       : server->is_valkey && server->major >= 9;

    if (!known) {
        sim_reply_add(call, "-ERR unknown command");
        return;
    }
    struct sim_key *key = sim_key_of(call, call->words[1]);
    struct sim_word token = call->words[delex ? 3 : 2];
    bool ours = sim_key_holds(key, token);
    sim_note(call->world, "node % deletes for token %, ours: %", call->conn->node,
             sim_token_find(call->world, token.text, token.len), ours, 0);
    if (ours) {
        key->present = false;
        sim_key_changed(call, key);
    }
    sim_reply_add_number(call, ours);
}

/* GET: replies the token of the key, or nil. */
static void do_get(struct sim_call *call)
{
    const struct sim_key *key = sim_key_of(call, call->words[1]);

    if (key->present)
        sim_reply_add_text(call, key->token, key->token_len);
    else
        sim_reply_add(call, "$-1");
}

/* GETRANGE, of the value of a line: replies that there is none. Only people read it. */
static void do_getrange(struct sim_call *call)
{
    sim_reply_add(call, "$0\r\n");
}

/* PTTL: replies the time to live in ms, or -2 if the key is absent. The connection tracks the
 * key if it has requested that. */
static void do_pttl(struct sim_call *call)
{
    const struct sim_key *key = sim_key_of(call, call->words[1]);

    sim_key_requested(call, key);
    sim_reply_add_number(call, key->present ? key->expire_ms -
                                                  sim_server_now_ms(call->world, call->conn->node)
                                            : -2);
}

/* Writes the section of INFO; returns its length. The run ID consists of the node's index and of
 * the number of its process. */
static int info_server(const struct sim_call *call, char *text, size_t size)
{
    const struct sim_server *server = call->server;
    uint64_t now_ns = sim_clock_read(&server->clock, call->world->now_ns);
    const char *valkey = !server->is_valkey   ? ""
                         : server->major == 9 ? "valkey_version:9.0.0\r\n"
                                              : "valkey_version:8.1.0\r\n";

    return snprintf(text, size,
                    "# Server\r\nredis_version:%u.%u.0\r\n%srun_id:%032x%08" PRIx32
                    "\r\nuptime_in_seconds:%" PRId64 "\r\n",
                    server->is_valkey ? 7 : server->major, server->is_valkey ? 2 : server->minor,
                    valkey, call->conn->node, server->run_number,
                    ((int64_t)now_ns - (int64_t)server->started_ns) / (int64_t)RL_SECOND);
}

/* Writes the section with the CPU time: 15 ms for the start, and a thousandth of the time since.
 * Steps of the server's clock do not change it. */
static int info_cpu(const struct sim_call *call, char *text, size_t size)
{
    const struct sim_server *server = call->server;
    uint64_t age_ns = call->world->now_ns - server->born_ns + server->idled_ns;
    uint64_t us = 15000 + age_ns / RL_MS;

    return snprintf(text, size,
                    "# CPU\r\nused_cpu_sys_main_thread:0.000000\r\n"
                    "used_cpu_user_main_thread:%" PRIu64 ".%06" PRIu64 "\r\n",
                    us / 1000000, us % 1000000);
}

/* INFO with a section: replies the fields of the section that the library reads. */
static void do_info(struct sim_call *call)
{
    const struct sim_server *server = call->server;
    char text[512];
    int len;

    if (sim_is(call->words[1], "server"))
        len = info_server(call, text, sizeof text);
    else if (sim_is(call->words[1], "replication"))
        len = snprintf(text, sizeof text,
                       "# Replication\r\nrole:%s\r\nmaster_replid2:%040" PRIx32
                       "\r\nsecond_repl_offset:%d\r\n",
                       server->replica ? "slave" : "master", server->replid2,
                       server->replid2 != 0 ? 1 : -1);
    else if (sim_is(call->words[1], "memory"))
        len = snprintf(text, sizeof text, "# Memory\r\nmaxmemory:%d\r\nmaxmemory_policy:%s\r\n",
                       server->full || server->evicts,
                       server->evicts ? "volatile-lru" : "noeviction");
    else if (sim_is(call->words[1], "persistence"))
        len = snprintf(text, sizeof text, "# Persistence\r\nloading:0\r\n");
    else if (sim_is(call->words[1], "cpu"))
        len = info_cpu(call, text, sizeof text);
    else
        abort();
    sim_reply_add_text(call, text, (size_t)len);
}

/* TIME: replies the seconds and microseconds of the server's clock. */
static void do_time(struct sim_call *call)
{
    uint64_t us = sim_clock_read(&call->server->clock, call->world->now_ns) / RL_US;
    char text[32];

    sim_reply_add(call, "*2");
    sim_reply_add_text(call, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, us / 1000000));
    sim_reply_add_text(call, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, us % 1000000));
}

/* Executes CLIENT SETNAME name, CLIENT ID, CLIENT TRACKING ON REDIRECT id OPTIN NOLOOP, CLIENT
 * CACHING YES. */
static void do_client(struct sim_call *call)
{
    if (sim_is(call->words[1], "SETNAME")) {
        sim_reply_add(call, "+OK");
    } else if (sim_is(call->words[1], "ID")) {
        call->conn->id = ++call->server->last_id;
        sim_reply_add_number(call, call->conn->id);
    } else if (call->server->no_tracking) {
        sim_reply_add(call, "-ERR unknown subcommand");
    } else if (sim_is(call->words[1], "CACHING")) {
        call->conn->registers = call->conn->redirect != 0;
        sim_reply_add(call, call->conn->registers ? "+OK" : "-ERR CLIENT CACHING without tracking");
    } else if (!sim_is(call->words[1], "TRACKING")) {
        abort(); /* the library has a subcommand that the model does not know */
    } else {
        call->conn->redirect = (uint32_t)sim_integer_of(call->words[4]);
        sim_reply_add(call, "+OK");
    }
}

/* PING: replies PONG. */
static void do_ping(struct sim_call *call)
{
    sim_reply_add(call, "+PONG");
}

/* AUTH: marks the connection as logged in. */
static void do_auth(struct sim_call *call)
{
    call->conn->logged_in = true;
    sim_reply_add(call, "+OK");
}

/* SELECT: marks the connection as having chosen its database. */
static void do_select(struct sim_call *call)
{
    call->conn->db_chosen = true;
    sim_reply_add(call, "+OK");
}

/* The commands that the model knows, with the function that executes each. */
static const struct {
    const char *name;
    void (*fn)(struct sim_call *call);
    bool writes; /* a replica refuses the command; it needs the chosen database */
} commands[] = {
    {"SET", do_set, true},
    {"EVALSHA", do_eval, true},
    {"EVAL", do_eval, true},
    {"DELEX", do_delete, true},
    {"DELIFEQ", do_delete, true},
    {"GET", do_get, false},
    {"PTTL", do_pttl, false},
    {"INFO", do_info, false},
    {"TIME", do_time, false},
    {"CLIENT", do_client, false},
    {"SUBSCRIBE", sim_line_subscribe, false},
    {"PING", do_ping, false},
    {"SCRIPT", do_script, false},
    {"SELECT", do_select, false},
    {"AUTH", do_auth, false},
    {"GETRANGE", do_getrange, false},
};

/* Executes one command of `count` words and appends its reply. Ends the program if the command
 * is unknown. */
void sim_command(struct sim_world *world, struct sim_conn *conn, unsigned count,
                 const struct sim_word *words, struct sim_reply *reply)
{
    struct sim_call call = {world, conn, &world->servers[conn->node], count, words, reply};

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (!sim_is(words[0], commands[i].name))
            continue;
        bool writes = commands[i].writes && !is_check(&call);
        world->commands += writes || commands[i].fn == do_get || commands[i].fn == do_pttl ||
                           (commands[i].fn == do_client && count == 3);
        if (world->plan.has_password && !conn->logged_in && commands[i].fn != do_auth)
            sim_reply_add(&call, "-NOAUTH Authentication required.");
        else if (world->plan.has_db && !conn->db_chosen && writes)
            abort(); /* the client uses the wrong database */
        else if (call.server->busy_ns > world->now_ns)
            sim_reply_add(&call, "-BUSY Redis is busy running a script.");
        else if (call.server->replica && writes)
            sim_reply_add(&call, "-READONLY You can't write against a read only replica.");
        else
            commands[i].fn(&call);
        conn->registers = conn->registers && commands[i].fn == do_client;
        return;
    }
    abort(); /* the library has a command that the model does not know */
}
