/* SPDX-License-Identifier: MIT
 * The baseline: SET NX PX and compare-and-delete on every server, with the formatter and the reader
 * of hiredis over plain sockets, one thread and one epoll.
 *
 * Every command goes to all servers, and the next command of a resource waits for all replies. So
 * all servers get the same bytes in the same order: each command is formatted once into one common
 * output buffer, and one queue holds the order of replies for all connections. At the end of a turn
 * of the loop each server gets the new bytes with one write. With TLS, baseline_tls.c sends and
 * receives. */
#include "baseline.h"

#include "baseline_tls.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOKEN_BYTES 20                  /* random bytes of a token */
#define TOKEN_HEX   (2 * TOKEN_BYTES)   /* digits of a token */
#define POOL_BYTES  (TOKEN_BYTES * 200) /* random bytes for 200 tokens */
#define READ_BYTES  16384               /* most bytes that one recv() reads */
#define COMMAND_MAX 512                 /* bytes of output reserved for each slot's command */
#define WAIT_MAX_MS 5000                /* time without any reply after which the run fails */

/* Deletes KEYS[1] if its value is the token ARGV[1]; returns 1 if it did, otherwise 0. */
const char baseline_release_script[] = "if redis.call('get',KEYS[1])==ARGV[1] then "
                                       "return redis.call('del',KEYS[1]) else return 0 end";

/* One resource that is acquired and released again and again. It has at most one command in flight,
 * which is sent to all servers. */
struct slot {
    char key[96];
    size_t key_len;
    char token[TOKEN_HEX + 1]; /* of the current pair */
    bool active;               /* a pair is in flight */
    bool releasing;            /* the command in flight is the release */
    bool held;                 /* a majority has granted the acquisition */
    unsigned replies;          /* replies to the command in flight */
    unsigned granted;          /* of these, replies that it was done */
    uint64_t start_ns;         /* of the pair */
};

/* One connection. */
struct peer {
    int fd;              /* non-blocking socket */
    struct ssl_st *ssl;  /* its TLS state; NULL: without TLS */
    redisReader *reader; /* parses replies; owned */
    size_t sent;         /* bytes of baseline.out that were written to this server */
    uint64_t next;       /* index in baseline.queue of the next reply */
    bool blocked;        /* the socket buffer is full and epoll watches EPOLLOUT */
};

/* The baseline. Owns everything except `result`. */
struct baseline {
    unsigned depth;  /* number of slots */
    unsigned quorum; /* grants that make a majority */
    unsigned peers;  /* number of connections */
    struct peer peer[SERVERS_MAX];
    int epoll;
    char sha[41];             /* hash of baseline_release_script */
    char ttl[24];             /* TTL of the keys in milliseconds, as a text */
    char *out;                /* common output: bytes that at least one server has not got yet */
    size_t out_len, out_size; /* bytes in `out`, room in `out` */
    /* Ring of `depth` slots, in the order of the commands. A slot has one command in flight, so the
     * ring cannot overflow. `queued` counts all commands until now. */
    unsigned *queue;
    uint64_t queued;
    struct slot *slots;
    unsigned char pool[POOL_BYTES]; /* random bytes, so that not every token is a system call */
    size_t pool_used;               /* bytes of pool[] that are used up */
    uint64_t todo;                  /* pairs that have not started */
    uint64_t running;               /* pairs in flight */
    struct result *result;          /* of the current run; borrowed */
};

/* Appends a command of the slot to the common output. Returns 0, or -1 if it does not fit. */
static int put_command(struct baseline *baseline, unsigned slot, int argc, const char **argv,
                       const size_t *argvlen)
{
    char *command = NULL;
    int len = (int)redisFormatCommandArgv(&command, argc, argv, argvlen);
    if (len < 0)
        return -1;
    if (baseline->out_len + (size_t)len > baseline->out_size) {
        free(command);
        return -1;
    }
    memcpy(baseline->out + baseline->out_len, command, (size_t)len);
    baseline->out_len += (size_t)len;
    free(command);
    baseline->queue[baseline->queued++ % baseline->depth] = slot;
    baseline->slots[slot].replies = 0;
    baseline->slots[slot].granted = 0;
    return 0;
}

/* Draws a new token, as hexadecimal digits. */
static void draw_token(struct baseline *baseline, char token[TOKEN_HEX + 1])
{
    if (baseline->pool_used == POOL_BYTES) {
        randombytes_buf(baseline->pool, POOL_BYTES);
        baseline->pool_used = 0;
    }
    sodium_bin2hex(token, TOKEN_HEX + 1, baseline->pool + baseline->pool_used, TOKEN_BYTES);
    baseline->pool_used += TOKEN_BYTES;
}

/* Appends the SET of the slot's next pair. Returns 0 or -1. */
static int start_acquire(struct baseline *baseline, unsigned index)
{
    struct slot *slot = &baseline->slots[index];
    slot->start_ns = result_now_ns();
    slot->active = true;
    slot->releasing = false;
    slot->held = false;
    draw_token(baseline, slot->token);
    const char *argv[] = {"SET", slot->key, slot->token, "NX", "PX", baseline->ttl};
    const size_t argvlen[] = {3, slot->key_len, TOKEN_HEX, 2, 2, strlen(baseline->ttl)};
    baseline->todo--;
    baseline->result->attempts++;
    baseline->running++;
    return put_command(baseline, index, 6, argv, argvlen);
}

/* Appends the compare-and-delete of the slot. Returns 0 or -1. */
static int start_release(struct baseline *baseline, unsigned index)
{
    struct slot *slot = &baseline->slots[index];
    slot->releasing = true;
    const char *argv[] = {"EVALSHA", baseline->sha, "1", slot->key, slot->token};
    const size_t argvlen[] = {7, 40, 1, slot->key_len, TOKEN_HEX};
    return put_command(baseline, index, 5, argv, argvlen);
}

/* Starts the next command of the slot after the replies of all servers to its last one. Returns 0
 * or -1. */
static int handle_all_replies(struct baseline *baseline, unsigned index)
{
    struct slot *slot = &baseline->slots[index];
    uint64_t now = result_now_ns();
    if (!slot->releasing) {
        slot->held = slot->granted >= baseline->quorum;
        if (slot->held)
            histogram_record(&baseline->result->acquire, now - slot->start_ns);
        return start_release(baseline, index);
    }
    if (slot->held && slot->granted >= baseline->quorum)
        histogram_record(&baseline->result->pair, now - slot->start_ns);
    else
        baseline->result->failed++;
    baseline->result->pairs++;
    slot->active = false;
    baseline->running--;
    return baseline->todo > 0 ? start_acquire(baseline, index) : 0;
}

/* Returns true if the server did what the slot's command requested. */
static bool is_grant(const struct slot *slot, const redisReply *reply)
{
    if (slot->releasing)
        return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    return reply->type == REDIS_REPLY_STATUS && reply->len == 2 && memcmp(reply->str, "OK", 2) == 0;
}

/* Sends as send() does, with TLS if the connection has it. */
static ssize_t peer_send(const struct peer *peer, const char *bytes, size_t len)
{
    return peer->ssl != NULL ? baseline_tls_send(peer->ssl, bytes, len)
                             : send(peer->fd, bytes, len, MSG_NOSIGNAL);
}

/* Receives as recv() does, with TLS if the connection has it. */
static ssize_t peer_receive(const struct peer *peer, char *bytes, size_t size)
{
    return peer->ssl != NULL ? baseline_tls_receive(peer->ssl, bytes, size)
                             : recv(peer->fd, bytes, size, 0);
}

/* Receives once from a server and handles the replies. Returns 1, 0 if nothing has arrived, or -1
 * if the connection has ended or a reply is not valid. */
static int read_peer(struct baseline *baseline, struct peer *peer)
{
    char bytes[READ_BYTES];
    ssize_t got = peer_receive(peer, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0 || redisReaderFeed(peer->reader, bytes, (size_t)got) != REDIS_OK)
        return -1;
    for (;;) {
        void *object = NULL;
        if (redisReaderGetReply(peer->reader, &object) != REDIS_OK)
            return -1;
        redisReply *reply = object;
        if (reply == NULL)
            return 1;
        if (peer->next == baseline->queued) {
            freeReplyObject(reply);
            return -1;
        }
        unsigned index = baseline->queue[peer->next++ % baseline->depth];
        struct slot *slot = &baseline->slots[index];
        slot->granted += is_grant(slot, reply);
        freeReplyObject(reply);
        if (++slot->replies == baseline->peers && handle_all_replies(baseline, index) != 0)
            return -1;
    }
}

/* Sets whether epoll watches the socket for room to write. Returns 0 or -1. */
static int set_blocked(struct baseline *baseline, unsigned index, bool blocked)
{
    struct peer *peer = &baseline->peer[index];
    if (peer->blocked == blocked)
        return 0;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    if (blocked)
        event.events |= EPOLLOUT;
    peer->blocked = blocked;
    return epoll_ctl(baseline->epoll, EPOLL_CTL_MOD, peer->fd, &event);
}

/* Writes the new bytes to each server with one call. Bytes that all servers have taken leave the
 * buffer; as a rule that empties it. Returns 0, or -1 if a connection has ended. */
static int write_peers(struct baseline *baseline)
{
    size_t sent_by_all = baseline->out_len;
    if (baseline->out_len == 0)
        return 0;
    for (unsigned i = 0; i < baseline->peers; i++) {
        struct peer *peer = &baseline->peer[i];
        if (peer->sent < baseline->out_len) {
            ssize_t put =
                peer_send(peer, baseline->out + peer->sent, baseline->out_len - peer->sent);
            if (put < 0 && errno != EAGAIN && errno != EINTR)
                return -1;
            peer->sent += put > 0 ? (size_t)put : 0;
        }
        if (set_blocked(baseline, i, peer->sent < baseline->out_len) != 0)
            return -1;
        if (peer->sent < sent_by_all)
            sent_by_all = peer->sent;
    }
    baseline->out_len -= sent_by_all;
    memmove(baseline->out, baseline->out + sent_by_all, baseline->out_len);
    for (unsigned i = 0; i < baseline->peers; i++)
        baseline->peer[i].sent -= sent_by_all;
    return 0;
}

/* Runs the loop once. Returns 0, or -1 after an error or WAIT_MAX_MS without any reply. */
static int turn(struct baseline *baseline)
{
    struct epoll_event events[SERVERS_MAX];
    int count = epoll_wait(baseline->epoll, events, SERVERS_MAX, WAIT_MAX_MS);
    if (count < 0 && errno == EINTR)
        return 0;
    if (count <= 0)
        return -1;
    for (int i = 0; i < count; i++) {
        struct peer *peer = &baseline->peer[events[i].data.u32];
        if ((events[i].events & ~(uint32_t)EPOLLOUT) == 0)
            continue;
        int status;
        do {
            status = read_peer(baseline, peer);
        } while (status > 0 && peer->ssl != NULL && baseline_tls_has_more(peer->ssl));
        if (status < 0)
            return -1;
    }
    return write_peers(baseline);
}

/* Runs `pairs` pairs with up to `depth` in flight, and adds them to `result`. Returns 0, or -1
 * after an error of any connection or WAIT_MAX_MS without a reply. */
int baseline_run(struct baseline *baseline, uint64_t pairs, struct result *result)
{
    uint64_t start_ns = result_now_ns();
    baseline->result = result;
    baseline->todo = pairs;
    for (unsigned i = 0; i < baseline->depth && baseline->todo > 0; i++) {
        if (start_acquire(baseline, i) != 0)
            return -1;
    }
    if (write_peers(baseline) != 0)
        return -1;
    while (baseline->running > 0) {
        if (turn(baseline) != 0)
            return -1;
    }
    result->elapsed_ns += result_now_ns() - start_ns;
    return 0;
}

/* Connects to a server and loads the script. Returns 0, or -1 and a text in `error`. */
static int open_peer(struct baseline *baseline, const struct server *server, bool tls, char *error,
                     size_t error_size)
{
    if (servers_load_script(server, baseline_release_script, baseline->sha) != 0) {
        snprintf(error, error_size, "%s:%s: SCRIPT LOAD failed: is the server running?",
                 server->host, server->port);
        return -1;
    }
    struct peer *peer = &baseline->peer[baseline->peers];
    peer->fd = servers_connect(server, tls, error, error_size);
    if (peer->fd < 0)
        return -1;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = baseline->peers};
    baseline->peers++;
    if (tls && (peer->ssl = baseline_tls_open(peer->fd, server, error, error_size)) == NULL)
        return -1;
    peer->reader = redisReaderCreate();
    if (peer->reader == NULL || epoll_ctl(baseline->epoll, EPOLL_CTL_ADD, peer->fd, &event) != 0) {
        snprintf(error, error_size, "%s:%s: %s", server->host, server->port, strerror(errno));
        return -1;
    }
    return 0;
}

/* Connects to all servers and prepares `depth` slots with the keys <prefix><number>. Returns NULL
 * and a text in `error` on failure. */
struct baseline *baseline_open(const struct servers *servers, unsigned depth, const char *prefix,
                               uint64_t ttl_ms, char *error, size_t error_size)
{
    struct baseline *baseline = calloc(1, sizeof *baseline);
    if (baseline == NULL || sodium_init() < 0) {
        snprintf(error, error_size, "out of memory or no random numbers");
        free(baseline);
        return NULL;
    }
    baseline->depth = depth;
    baseline->quorum = (unsigned)servers->count / 2 + 1;
    baseline->pool_used = POOL_BYTES;
    baseline->epoll = epoll_create1(EPOLL_CLOEXEC);
    baseline->out_size = (size_t)depth * COMMAND_MAX; /* a slot has one command in flight */
    baseline->out = malloc(baseline->out_size);
    baseline->queue = calloc(depth, sizeof *baseline->queue);
    baseline->slots = calloc(depth, sizeof *baseline->slots);
    snprintf(baseline->ttl, sizeof baseline->ttl, "%llu", (unsigned long long)ttl_ms);
    if (baseline->epoll < 0 || baseline->out == NULL || baseline->queue == NULL ||
        baseline->slots == NULL) {
        snprintf(error, error_size, "out of memory or descriptors");
        baseline_close(baseline);
        return NULL;
    }
    for (unsigned i = 0; i < depth; i++) {
        struct slot *slot = &baseline->slots[i];
        slot->key_len = (size_t)snprintf(slot->key, sizeof slot->key, "%s%u", prefix, i);
    }
    for (size_t i = 0; i < servers->count; i++) {
        if (open_peer(baseline, &servers->list[i], servers->tls, error, error_size) != 0) {
            baseline_close(baseline);
            return NULL;
        }
    }
    return baseline;
}

/* Closes the connections and frees the baseline; NULL does nothing. */
void baseline_close(struct baseline *baseline)
{
    if (baseline == NULL)
        return;
    for (unsigned i = 0; i < baseline->peers; i++) {
        if (baseline->peer[i].reader != NULL)
            redisReaderFree(baseline->peer[i].reader);
        baseline_tls_close(baseline->peer[i].ssl);
        close(baseline->peer[i].fd);
    }
    if (baseline->epoll >= 0)
        close(baseline->epoll);
    free(baseline->out);
    free(baseline->queue);
    free(baseline->slots);
    free(baseline);
}
