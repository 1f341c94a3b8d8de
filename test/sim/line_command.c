/* SPDX-License-Identifier: MIT
 * The script of the line as a command of a modelled server: takes the words of the call, executes
 * the model (line.h), and sends the notifications. */
#include "line_command.h"

#include "core/scripts.h"
#include "link.h"
#include "permit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_BIT   31    /* of sim_server.scripts */
#define LINE_KEEP_MS 10000 /* the key of a line expires that long after its last use */

/* What the notifications of one call need. */
struct turns {
    struct sim_call *call;
    struct rl_arg key; /* of the lock */
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

/* Sends the notification of a turn to the connection that listens for this waiter. Returns whether
 * there is one. A lost notification counts as sent. */
static bool notify(void *ctx, const char *id)
{
    struct turns *turns = ctx;
    struct sim_world *world = turns->call->world;
    struct sim_reply reply = {.len = 0};
    bool found = false;

    reply.len =
        (size_t)snprintf(reply.bytes, sizeof reply.bytes,
                         "*3\r\n$7\r\nmessage\r\n$%zu\r\nredlock:q:%s\r\n$%zu\r\n%.*s\r\n",
                         strlen(id) + 10, id, turns->key.len, (int)turns->key.len, turns->key.data);
    for (struct sim_conn *conn = world->conns; conn != NULL; conn = conn->next) {
        if (conn->node != turns->call->conn->node || !conn->server_open ||
            strcmp(conn->turns, id) != 0)
            continue;
        found = true;
        bool lost = world->plan.lost_notification != 0 &&
                    sim_chance(&world->random, world->plan.lost_notification);
        if (!lost)
            sim_link_reply(world, conn, &reply);
    }
    return found;
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
static void execute(struct sim_call *call)
{
    const struct sim_word *words = call->words;
    char id[SIM_LINE_ID_MAX], text[SIM_LINE_TEXT_MAX], victim[SIM_LINE_ID_MAX], reply[128],
        name[SIM_NAME_MAX];
    unsigned resource = sim_resource_of(words[4]);
    struct sim_key *key = sim_key_of(call, words[4]);
    int64_t now_ms = sim_server_now_ms(call->world, call->conn->node);
    unsigned place = resource_of_line(words[3]);
    struct sim_line *line = &call->server->lines[place];
    bool drops = words[5].text[0] == 'D';
    struct sim_line_request request = {
        .what = words[5].text[0],
        .id = text_of(id, sizeof id, words[6]),
        .state = words[7].text[0],
        .trip_us = (uint64_t)sim_integer_of(words[8]),
        .text = text_of(text, sizeof text, words[9]),
        .victim = drops ? text_of(victim, sizeof victim, words[10]) : "",
        .victim_beat = drops ? (uint64_t)sim_integer_of(words[12]) : 0,
        .heads = (unsigned)sim_integer_of(words[11]),
    };
    struct turns turns = {call, sim_key_name(resource, name)};
    struct sim_line_server server = {
        .has_token = sim_key_holds(key, words[10]),
        .pttl_ms = key->present ? key->expire_ms - now_ms : -2,
        .notify = notify,
        .ctx = &turns,
    };

    if (call->server->lines_expire_ms[place] < now_ms)
        line->count = 0;
    if (sim_line_execute(line, &request, &server, reply, sizeof reply))
        sim_key_requested(call, key);
    call->server->lines_expire_ms[place] = now_ms + LINE_KEEP_MS;
    sim_reply_add_text(call, reply, strlen(reply));
}

/* Executes EVAL or EVALSHA of the script of the line. Returns whether the command is that script.
 */
bool sim_line_script(struct sim_call *call, bool by_sha)
{
    if (!sim_is(call->words[1], by_sha ? rl_script_line.sha : rl_script_line.text))
        return false;
    if (by_sha && (call->server->scripts & 1u << SCRIPT_BIT) == 0) {
        sim_reply_add(call, "-NOSCRIPT No matching script. Please use EVAL.");
        return true;
    }
    call->server->scripts |= 1u << SCRIPT_BIT;
    if (call->server->full)
        sim_reply_add(call, "-OOM command not allowed when used memory > 'maxmemory'.");
    else
        execute(call);
    return true;
}
