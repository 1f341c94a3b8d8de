/* SPDX-License-Identifier: MIT
 * Sends commands to single servers over a plain blocking connection that shares no code with the
 * library. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "cluster.h"
#include "cluster_impl.h"
#include "wait.h"

#define ANSWER_MS 5000

/* Connects to a server without TLS and logs in. Returns the connection, or NULL if the server
 * cannot be reached. */
redisContext *cluster_connect(const struct cluster *cluster, unsigned node)
{
    const struct server *server = &cluster->server[node];
    const uint64_t ms = wait_scaled_ms(ANSWER_MS);
    const struct timeval timeout = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    redisContext *context = NULL;
    if (server_has_socket(server, &cluster->opts)) {
        char path[SERVER_PATH_MAX + 8];
        server_socket_path(server, path, sizeof path);
        context = redisConnectUnixWithTimeout(path, timeout);
    } else {
        context = redisConnectWithTimeout(server->host, server->port, timeout);
    }
    if (context == NULL || context->err != 0 || redisSetTimeout(context, timeout) != REDIS_OK) {
        if (context != NULL)
            redisFree(context);
        return NULL;
    }
    if (cluster->opts.password != NULL)
        freeReplyObject(redisCommand(context, "AUTH %s", cluster->opts.password));
    return context;
}

/* Opens one connection to each server, for the commands of the harness. */
void cluster_open_lasting(struct cluster *cluster)
{
    cluster->lasting = calloc(cluster->count, sizeof *cluster->lasting);
    if (cluster->lasting == NULL)
        cluster_die(NULL, 0, "out of memory");
    for (unsigned i = 0; i < cluster->count; i++)
        cluster->lasting[i] = cluster_connect(cluster, i);
}

/* Closes those connections. Does nothing if there are none. */
void cluster_close_lasting(struct cluster *cluster)
{
    for (unsigned i = 0; cluster->lasting != NULL && i < cluster->count; i++)
        if (cluster->lasting[i] != NULL)
            redisFree(cluster->lasting[i]);
    free(cluster->lasting);
    cluster->lasting = NULL;
}

/* Returns whether the server has closed the connection: between two commands nothing else can make
 * it readable. */
static bool is_closed(const redisContext *context)
{
    char byte;

    return context->err != 0 || recv(context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* Returns a connection to the server, which give_back() takes after use, or NULL if the server
 * cannot be reached. */
static redisContext *take_connection(const struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    if (cluster->lasting == NULL)
        return cluster_connect(cluster, node);
    redisContext *context = cluster->lasting[node];
    if (context != NULL && is_closed(context)) {
        redisFree(context);
        context = NULL;
    }
    cluster->lasting[node] = context == NULL ? cluster_connect(cluster, node) : context;
    return cluster->lasting[node];
}

/* Closes a connection of take_connection() unless it is a lasting one. */
static void give_back(const struct cluster *cluster, redisContext *context)
{
    if (cluster->lasting == NULL && context != NULL)
        redisFree(context);
}

/* Sends one command to a server. Returns the reply, which the caller frees; NULL: no reply in
 * time. */
static redisReply *ask(const struct cluster *cluster, unsigned node, const char *format,
                       va_list arguments)
{
    redisContext *context = take_connection(cluster, node);
    if (context == NULL)
        return NULL;
    redisReply *reply = redisvCommand(context, format, arguments);
    give_back(cluster, context);
    return reply;
}

/* Prints a reply as text, in the form that cluster_command() returns. */
static void print_reply(FILE *out, const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        fprintf(out, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        fputs("(nil)", out);
        break;
    case REDIS_REPLY_ERROR:
        fputs("(error) ", out);
        fwrite(reply->str, 1, (size_t)reply->len, out);
        break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < reply->elements; i++) {
            if (i > 0)
                fputc('\n', out);
            print_reply(out, reply->element[i]);
        }
        break;
    default:
        fwrite(reply->str, 1, (size_t)reply->len, out);
        break;
    }
}

/* Returns the reply as text, which the caller frees, and frees the reply. */
static char *text_of(redisReply *reply)
{
    char *text = NULL;
    size_t size = 0;
    if (reply == NULL)
        return NULL;
    FILE *out = open_memstream(&text, &size);
    if (out != NULL) {
        print_reply(out, reply);
        fclose(out);
    }
    freeReplyObject(reply);
    return text;
}

/* Sends one command, formatted as by redisCommand() ("GET %s", key), on a connection of its own
 * unless `lasting` was chosen. Returns the reply as text: the bytes, a decimal number, "(nil)",
 * "(error) …"; arrays have one element per line. */
char *cluster_command(const struct cluster *cluster, unsigned node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(cluster, node, format, arguments);
    va_end(arguments);
    return text_of(reply);
}

/* Sends one command and returns its integer reply. Any other reply aborts the test. */
int64_t cluster_integer(const struct cluster *cluster, unsigned node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(cluster, node, format, arguments);
    va_end(arguments);
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER) {
        char *text = text_of(reply);
        char message[512];
        snprintf(message, sizeof message, "\"%s\" replied %s instead of an integer", format,
                 text == NULL ? "nothing" : text);
        cluster_die(cluster, node, message);
    }
    const int64_t value = reply->integer;
    freeReplyObject(reply);
    return value;
}

/* Sends one command and returns whether the reply is exactly `text`. */
bool cluster_replies(const struct cluster *cluster, unsigned node, const char *text,
                     const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *answer = text_of(ask(cluster, node, format, arguments));
    va_end(arguments);
    const bool equal = answer != NULL && strcmp(answer, text) == 0;
    free(answer);
    return equal;
}

/* Returns whether the server's process runs and is not paused. */
static bool is_running(const struct cluster *cluster, unsigned node)
{
    return cluster->server[node].pid != 0 && !cluster->paused[node];
}

/* Sends the same command to each running server and ignores the replies. */
void cluster_command_all(const struct cluster *cluster, const char *command)
{
    for (unsigned i = 0; i < cluster->count; i++)
        if (is_running(cluster, i))
            free(cluster_command(cluster, i, command));
}

struct key_list {
    char **key;
    size_t count;
};

/* Appends the name of a key of database `db` to the list. */
static void append_key(struct key_list *list, unsigned db, const redisReply *name)
{
    char *key = NULL;
    if (name->len == sizeof CLUSTER_RECORD - 1 &&
        memcmp(name->str, CLUSTER_RECORD, sizeof CLUSTER_RECORD - 1) == 0)
        return;
    char **grown = realloc(list->key, (list->count + 2) * sizeof *grown);
    if (grown == NULL ||
        asprintf(&key, db == 0 ? "%.0u%.*s" : "db%u:%.*s", db, (int)name->len, name->str) < 0)
        cluster_die(NULL, 0, "out of memory");
    grown[list->count++] = key;
    grown[list->count] = NULL;
    list->key = grown;
}

/* Adds the keys of one database to the list with one pass of SCAN. Returns false if there was no
 * reply. */
static bool scan_database(redisContext *context, unsigned db, struct key_list *list)
{
    char cursor[32] = "0";
    freeReplyObject(redisCommand(context, "SELECT %u", db));
    do {
        redisReply *page = redisCommand(context, "SCAN %s COUNT 1000", cursor);
        if (page == NULL || page->type != REDIS_REPLY_ARRAY || page->elements != 2) {
            freeReplyObject(page);
            return false;
        }
        snprintf(cursor, sizeof cursor, "%s", page->element[0]->str);
        for (size_t i = 0; i < page->element[1]->elements; i++)
            append_key(list, db, page->element[1]->element[i]);
        freeReplyObject(page);
    } while (strcmp(cursor, "0") != 0);
    return true;
}

/* Returns all keys of the server, in every database: an array ended by NULL, with "key" in
 * database 0 and "db3:key" in others, to be freed with cluster_keys_free(). Keys past their TTL
 * and the fence record are left out. */
char **cluster_keys(const struct cluster *cluster, unsigned node)
{
    struct key_list list = {calloc(1, sizeof(char *)), 0};
    redisContext *context = take_connection(cluster, node);
    redisReply *info = context == NULL ? NULL : redisCommand(context, "INFO keyspace");
    if (list.key == NULL || info == NULL || info->type != REDIS_REPLY_STRING)
        cluster_die(cluster, node, "does not tell its keys");
    for (const char *at = strstr(info->str, "\ndb"); at != NULL; at = strstr(at + 1, "\ndb"))
        if (!scan_database(context, (unsigned)strtoul(at + 3, NULL, 10), &list))
            cluster_die(cluster, node, "stopped answering SCAN");
    freeReplyObject(info);
    freeReplyObject(redisCommand(context, "SELECT 0"));
    give_back(cluster, context);
    return list.key;
}

/* Frees the array of cluster_keys() and its texts. */
void cluster_keys_free(char **keys)
{
    for (char **key = keys; key != NULL && *key != NULL; key++)
        free(*key);
    free(keys);
}

/* Returns the number of keys that cluster_keys() would return. */
size_t cluster_count_keys(const struct cluster *cluster, unsigned node)
{
    size_t count = 0;
    char **keys = cluster_keys(cluster, node);
    while (keys[count] != NULL)
        count++;
    cluster_keys_free(keys);
    return count;
}

/* Returns the number of keys on all running servers. A paused server must be resumed first. */
size_t cluster_count_all_keys(const struct cluster *cluster)
{
    size_t count = 0;
    for (unsigned i = 0; i < cluster->count; i++)
        if (is_running(cluster, i))
            count += cluster_count_keys(cluster, i);
    return count;
}
