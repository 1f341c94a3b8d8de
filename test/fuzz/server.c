/* SPDX-License-Identifier: MIT
 * Commands in, replies out. */
#include "server.h"

#include "core/protocol.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Empties the server: no keys, no record, no bytes, scripts of locks loaded, those of fences
 * not. */
void server_reset(struct server *server)
{
    server->in_len = server->in_done = server->out_len = 0;
    server->received = 1;
    memset(server->tokens, 0, sizeof server->tokens);
    memset(&server->record, 0, sizeof server->record);
    server->has_scripts = true;
    server->has_fences = server->is_taken = false;
}

/* Adds bytes from the node to those that wait for server_execute(). */
void server_receive(struct server *server, const char *bytes, size_t len)
{
    MUST(len <= SERVER_BYTES - server->in_len);
    memcpy(server->in + server->in_len, bytes, len);
    server->in_len += len;
    server->received += len;
}

/* Returns whether the key with this token exists now. */
bool server_has(const struct server *server, unsigned token)
{
    return server->tokens[token].expires_ns > server->now_ns;
}

/* Forbids SETs of that token from here on: one that begins later in the stream ends the run as
 * an error. */
void server_ban(struct server *server, unsigned token)
{
    server->tokens[token].banned_from = server->received;
}

/* Appends a formatted text to the replies that wait to be delivered. */
void server_reply(struct server *server, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len =
        vsnprintf(server->out + server->out_len, SERVER_BYTES - server->out_len, format, args);
    va_end(args);
    MUST(len > 0 && (size_t)len < SERVER_BYTES - server->out_len);
    server->out_len += (size_t)len;
}

/* Reads the number of a line such as "*3" or "$5", which begins with `kind`, at *at. Returns
 * false if the line is not complete. */
static bool read_header(const char **at, const char *end, char kind, size_t *ret)
{
    const char *line_end = memchr(*at, '\n', (size_t)(end - *at));

    MUST(*at == end || **at == kind);
    if (line_end == NULL)
        return false;
    MUST(line_end - *at > 2 && line_end[-1] == '\r');
    *ret = 0;
    for (const char *digit = *at + 1; digit < line_end - 1; digit++) {
        MUST(*digit >= '0' && *digit <= '9' && *ret < SERVER_BYTES);
        *ret = *ret * 10 + (size_t)(*digit - '0');
    }
    *at = line_end + 1;
    return true;
}

/* Reads the next command and checks that it is well-formed. Returns false if it is not complete. */
static bool read_command(struct server *server, struct server_command *command)
{
    const char *at = server->in + server->in_done, *end = server->in + server->in_len;
    size_t count, len;

    command->place = server->received - (server->in_len - server->in_done);
    if (!read_header(&at, end, '*', &count))
        return false;
    MUST(count > 0 && count <= SERVER_WORDS_MAX);
    command->count = (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        if (!read_header(&at, end, '$', &len) || (size_t)(end - at) < len + 2)
            return false;
        MUST(at[len] == '\r' && at[len + 1] == '\n');
        command->words[i] = (struct server_word){at, len};
        at += len + 2;
    }
    server->in_done = (size_t)(at - server->in);
    return true;
}

/* Returns whether word i exists and is exactly `text`. */
bool server_word_is(const struct server_command *command, unsigned i, const char *text)
{
    return i < command->count && command->words[i].len == strlen(text) &&
           memcmp(command->words[i].at, text, command->words[i].len) == 0;
}

/* Returns word i as a decimal number. */
uint64_t server_word_number(const struct server_command *command, unsigned i)
{
    MUST(i < command->count && command->words[i].len < 20);
    return strtoull(command->words[i].at, NULL, 10);
}

/* Returns the token that word i names: "t" and its index in server->tokens. */
struct server_token *server_word_token(struct server *server, const struct server_command *command,
                                       unsigned i)
{
    MUST(i < command->count && command->words[i].len > 1 && command->words[i].at[0] == 't');
    uint64_t index = strtoull(command->words[i].at + 1, NULL, 10);
    MUST(index < SERVER_TOKENS);
    return &server->tokens[index];
}

/* Returns true if the key with this token exists. */
static bool is_there(const struct server *server, const struct server_token *token)
{
    return token->expires_ns > server->now_ns;
}

/* Checks a SET and, with `execute`, executes it. */
static void set(struct server *server, const struct server_command *command, bool execute)
{
    struct server_token *token = server_word_token(server, command, 2);
    uint64_t ttl_ns = server_word_number(command, 5) * RL_MS;

    MUST(server_word_is(command, 3, "NX") && command->count == 6);
    MUST(server_word_is(command, 4, "PX") && ttl_ns > 0);
    MUST(token->banned_from == 0 || command->place < token->banned_from);
    if (!execute)
        return;
    if (!is_there(server, token)) {
        token->made++;
        token->expires_ns = server->now_ns + ttl_ns;
        server_reply(server, "+OK\r\n");
    } else {
        server_reply(server, "$-1\r\n");
    }
}

/* Executes a compare-and-delete of the key with the token that word i names. */
static void delete (struct server *server, const struct server_command *command, unsigned i)
{
    struct server_token *token = server_word_token(server, command, i);
    bool there = is_there(server, token);

    token->expires_ns = 0;
    token->deleted += there;
    server_reply(server, ":%d\r\n", there);
}

/* Executes EXTEND or SHORTEN. */
static void expire(struct server *server, const struct server_command *command, bool shorten)
{
    struct server_token *token = server_word_token(server, command, 4);
    uint64_t end_ns = server->now_ns + server_word_number(command, 5) * RL_MS;
    bool there = is_there(server, token);

    if (there && (shorten || end_ns > token->expires_ns))
        token->expires_ns = end_ns;
    token->extended += there && !shorten;
    server_reply(server, ":%d\r\n", there);
}

/* Executes the script of a lock. */
static void run_script(struct server *server, const struct server_command *command)
{
    static const enum rl_verb verbs[] = {RL_VERB_RELEASE, RL_VERB_EXTEND, RL_VERB_SHORTEN};
    bool whole = server_word_is(command, 0, "EVAL");

    MUST(server_word_is(command, 2, "1"));
    if (!whole && !server->has_scripts) {
        server_reply(server, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (!server_word_is(command, 1,
                            whole ? rl_protocol_script(verbs[i], RL_FORM_SHA)->text
                                  : rl_protocol_script(verbs[i], RL_FORM_SHA)->sha))
            continue;
        if (verbs[i] == RL_VERB_RELEASE)
            delete (server, command, 4);
        else
            expire(server, command, verbs[i] == RL_VERB_SHORTEN);
        return;
    }
    fuzz_wrong(__FILE__, __LINE__, "a script of ours");
}

/* Executes a command and replies correctly. */
static void reply_correctly(struct server *server, const struct server_command *command)
{
    bool script = server_word_is(command, 0, "EVALSHA") || server_word_is(command, 0, "EVAL");
    bool native = server_word_is(command, 0, "DELEX") || server_word_is(command, 0, "DELIFEQ");

    if (script && server_word_is(command, 2, "0"))
        server_reply(server, ":1\r\n"); /* the script of the greeting */
    else if (script)
        run_script(server, command);
    else if (native && !server->knows_natives)
        server_reply(server, "-ERR unknown command\r\n");
    else if (native)
        delete (server, command, server_word_is(command, 0, "DELEX") ? 3 : 2);
    else if (server_word_is(command, 0, "INFO"))
        server_reply(server, "$%zu\r\n%s\r\n", strlen(server->info), server->info);
    else if (server_word_is(command, 0, "SCRIPT"))
        server_reply(server, "$40\r\n%040d\r\n", 0);
    else if (server_word_is(command, 0, "TIME"))
        server_reply(server, "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
    else if (server_word_is(command, 0, "GET"))
        server_reply(server, "$3\r\nabc\r\n");
    else if (server_word_is(command, 0, "GETRANGE"))
        server_reply(server, "$32\r\nredlock-line\n7 0 w 0 1700 owner\n\r\n");
    else if (server_word_is(command, 0, "PTTL"))
        server_reply(server, ":77\r\n");
    else if (server_word_is(command, 0, "PING"))
        server_reply(server, "+PONG\r\n");
    else
        server_reply(server, "+OK\r\n");
}

/* Replies with the error that `manner` means. */
static void refuse(struct server *server, const struct server_command *command,
                   enum server_manner manner)
{
    static const char *const words[SERVER_MANNERS] = {
        [1] = "-ERR something is wrong",
        [2] = "-LOADING Redis is loading the dataset in memory",
        [UNKNOWN_SCRIPT] = "-NOSCRIPT No matching script. Please use EVAL.",
        [4] = "-READONLY You can't write against a read only replica.",
        [5] = "-OOM command not allowed when used memory > 'maxmemory'.",
        [6] = "-NOPERM this user has no permissions",
        [7] = "-BUSY Redis is busy running a script.",
        [UNKNOWN_COMMAND] = "-ERR unknown command",
        [9] = ":5",
        [10] = "$-1",
        [11] = "-NOAUTH Authentication required.",
        [12] = "$4\r\nwhat",
        [13] = "$1\r\nM",
        [14] = "$7\r\nR other",
        [15] = "$1\r\nC",
        [16] = "-ERR Error running script (call to f_0): @user_script:1: @user_script: 1: "
               "-OOM command not allowed when used memory > 'maxmemory'.",
        [17] = "-MISCONF Redis is configured to save RDB snapshots",
    };

    if (manner == 10 && !server_word_is(command, 0, "SET"))
        manner = 1; /* nil is a valid reply to a SET only, which it denies */
    server_reply(server, "%s\r\n", words[manner]);
}

/* Executes the next command and replies as `manner` says. Returns false if no complete command
 * is there. */
bool server_execute(struct server *server, enum server_manner manner)
{
    struct server_command command;

    if (!read_command(server, &command))
        return false;
    bool honest = manner == HONESTLY;
    bool unknown = manner == UNKNOWN_SCRIPT || manner == UNKNOWN_COMMAND; /* EVALSHA was renamed */
    enum server_fenced fenced = server_fence(server, &command, honest, unknown);
    if (server_word_is(&command, 0, "SET"))
        set(server, &command, honest);
    else if (honest && fenced == SERVER_NOT_FENCED)
        reply_correctly(server, &command);
    if (!honest)
        refuse(server, &command, manner);
    return true;
}

/* Ends the connection. Of the commands that were received, `more` are still executed. */
void server_hang_up(struct server *server, unsigned more)
{
    while (more > 0 && server_execute(server, HONESTLY))
        more--;
    /* Checks the commands that are not executed as well. */
    while (server_execute(server, (enum server_manner)1))
        server->out_len = 0;
    server->in_len = server->in_done = server->out_len = 0;
}
