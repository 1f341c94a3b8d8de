/* SPDX-License-Identifier: MIT
 * The floor: SET NX PX and compare-and-delete on every server, hiredis formatter and reader over
 * our own sockets, one thread, one epoll.
 *
 * Every command goes to all servers and the next one of a resource waits for all answers, so all
 * servers get the same bytes in the same order: each command is formatted once into one buffer, and
 * one queue says for all connections whose answer comes next. At the end of a turn of the loop each
 * server gets what is new with one write. */
#include "floor.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOKEN_BYTES 20
#define TOKEN_HEX   (2 * TOKEN_BYTES)
#define POOL_BYTES  (TOKEN_BYTES * 200)
#define READ_BYTES  16384
#define COMMAND_MAX 512
#define WAIT_MAX_MS 5000

const char floor_release_script[] = "if redis.call('get',KEYS[1])==ARGV[1] then "
                                    "return redis.call('del',KEYS[1]) else return 0 end";

/* One resource that is locked and unlocked over and over. */
struct slot {
    char key[96];
    size_t key_len;
    char token[TOKEN_HEX + 1];
    bool active, releasing, held;
    unsigned answers, granted;
    uint64_t start_ns;
};

struct peer {
    int fd;
    redisReader *reader;
    size_t sent;   /* bytes of the common output that are written */
    uint64_t next; /* place in the common queue of the next answer */
    bool blocked;  /* the socket took less than we had: EPOLLOUT is on */
};

struct floor {
    unsigned depth, quorum, peers;
    struct peer peer[SERVERS_MAX];
    int epoll;
    char sha[41];
    char ttl[24];
    char *out; /* common output */
    size_t out_len, out_size;
    unsigned *queue; /* common queue of slots, a ring of `depth` places */
    uint64_t queued;
    struct slot *slots;
    unsigned char pool[POOL_BYTES]; /* random bytes, so that a token is no system call */
    size_t pool_used;
    uint64_t todo, running; /* pairs to start, pairs in flight */
    struct result *result;
};

static int put_command(struct floor *floor, unsigned slot, int argc, const char **argv,
                       const size_t *argvlen)
{
    char *command = NULL;
    int len = (int)redisFormatCommandArgv(&command, argc, argv, argvlen);
    if (len < 0)
        return -1;
    if (floor->out_len + (size_t)len > floor->out_size) {
        free(command);
        return -1;
    }
    memcpy(floor->out + floor->out_len, command, (size_t)len);
    floor->out_len += (size_t)len;
    free(command);
    floor->queue[floor->queued++ % floor->depth] = slot;
    floor->slots[slot].answers = 0;
    floor->slots[slot].granted = 0;
    return 0;
}

static void draw_token(struct floor *floor, char token[TOKEN_HEX + 1])
{
    if (floor->pool_used == POOL_BYTES) {
        randombytes_buf(floor->pool, POOL_BYTES);
        floor->pool_used = 0;
    }
    sodium_bin2hex(token, TOKEN_HEX + 1, floor->pool + floor->pool_used, TOKEN_BYTES);
    floor->pool_used += TOKEN_BYTES;
}

static int start_acquire(struct floor *floor, unsigned index)
{
    struct slot *slot = &floor->slots[index];
    slot->start_ns = result_now_ns();
    slot->active = true;
    slot->releasing = false;
    slot->held = false;
    draw_token(floor, slot->token);
    const char *argv[] = {"SET", slot->key, slot->token, "NX", "PX", floor->ttl};
    const size_t argvlen[] = {3, slot->key_len, TOKEN_HEX, 2, 2, strlen(floor->ttl)};
    floor->todo--;
    floor->result->attempts++;
    floor->running++;
    return put_command(floor, index, 6, argv, argvlen);
}

static int start_release(struct floor *floor, unsigned index)
{
    struct slot *slot = &floor->slots[index];
    slot->releasing = true;
    const char *argv[] = {"EVALSHA", floor->sha, "1", slot->key, slot->token};
    const size_t argvlen[] = {7, 40, 1, slot->key_len, TOKEN_HEX};
    return put_command(floor, index, 5, argv, argvlen);
}

/* All servers have answered the slot's command: the next step of its closed loop. */
static int answered(struct floor *floor, unsigned index)
{
    struct slot *slot = &floor->slots[index];
    uint64_t now = result_now_ns();
    if (!slot->releasing) {
        slot->held = slot->granted >= floor->quorum;
        if (slot->held)
            histogram_record(&floor->result->acquire, now - slot->start_ns);
        return start_release(floor, index);
    }
    if (slot->held && slot->granted >= floor->quorum)
        histogram_record(&floor->result->pair, now - slot->start_ns);
    else
        floor->result->failed++;
    floor->result->pairs++;
    slot->active = false;
    floor->running--;
    return floor->todo > 0 ? start_acquire(floor, index) : 0;
}

static bool is_grant(const struct slot *slot, const redisReply *reply)
{
    if (slot->releasing)
        return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    return reply->type == REDIS_REPLY_STATUS && reply->len == 2 && memcmp(reply->str, "OK", 2) == 0;
}

static int read_peer(struct floor *floor, struct peer *peer)
{
    char bytes[READ_BYTES];
    ssize_t got = recv(peer->fd, bytes, sizeof bytes, 0);
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
            return 0;
        if (peer->next == floor->queued) {
            freeReplyObject(reply);
            return -1;
        }
        unsigned index = floor->queue[peer->next++ % floor->depth];
        struct slot *slot = &floor->slots[index];
        slot->granted += is_grant(slot, reply);
        freeReplyObject(reply);
        if (++slot->answers == floor->peers && answered(floor, index) != 0)
            return -1;
    }
}

static int set_blocked(struct floor *floor, unsigned index, bool blocked)
{
    struct peer *peer = &floor->peer[index];
    if (peer->blocked == blocked)
        return 0;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    if (blocked)
        event.events |= EPOLLOUT;
    peer->blocked = blocked;
    return epoll_ctl(floor->epoll, EPOLL_CTL_MOD, peer->fd, &event);
}

/* One write per server with everything that is new since the last turn. What all of them have taken
 * leaves the buffer: as a rule that is all there is. */
static int write_peers(struct floor *floor)
{
    size_t sent_by_all = floor->out_len;
    if (floor->out_len == 0)
        return 0;
    for (unsigned i = 0; i < floor->peers; i++) {
        struct peer *peer = &floor->peer[i];
        if (peer->sent < floor->out_len) {
            ssize_t put =
                send(peer->fd, floor->out + peer->sent, floor->out_len - peer->sent, MSG_NOSIGNAL);
            if (put < 0 && errno != EAGAIN && errno != EINTR)
                return -1;
            peer->sent += put > 0 ? (size_t)put : 0;
        }
        if (set_blocked(floor, i, peer->sent < floor->out_len) != 0)
            return -1;
        if (peer->sent < sent_by_all)
            sent_by_all = peer->sent;
    }
    floor->out_len -= sent_by_all;
    memmove(floor->out, floor->out + sent_by_all, floor->out_len);
    for (unsigned i = 0; i < floor->peers; i++)
        floor->peer[i].sent -= sent_by_all;
    return 0;
}

static int turn(struct floor *floor)
{
    struct epoll_event events[SERVERS_MAX];
    int count = epoll_wait(floor->epoll, events, SERVERS_MAX, WAIT_MAX_MS);
    if (count < 0 && errno == EINTR)
        return 0;
    if (count <= 0)
        return -1;
    for (int i = 0; i < count; i++) {
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 &&
            read_peer(floor, &floor->peer[events[i].data.u32]) != 0)
            return -1;
    }
    return write_peers(floor);
}

int floor_run(struct floor *floor, uint64_t pairs, struct result *result)
{
    uint64_t start_ns = result_now_ns();
    floor->result = result;
    floor->todo = pairs;
    for (unsigned i = 0; i < floor->depth && floor->todo > 0; i++) {
        if (start_acquire(floor, i) != 0)
            return -1;
    }
    if (write_peers(floor) != 0)
        return -1;
    while (floor->running > 0) {
        if (turn(floor) != 0)
            return -1;
    }
    result->elapsed_ns += result_now_ns() - start_ns;
    return 0;
}

static int open_peer(struct floor *floor, const struct server *server, char *error,
                     size_t error_size)
{
    if (servers_load_script(server, floor_release_script, floor->sha) != 0) {
        snprintf(error, error_size, "%s:%s: SCRIPT LOAD failed: is the server running?",
                 server->host, server->port);
        return -1;
    }
    struct peer *peer = &floor->peer[floor->peers];
    peer->fd = servers_connect(server, error, error_size);
    if (peer->fd < 0)
        return -1;
    peer->reader = redisReaderCreate();
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = floor->peers};
    floor->peers++;
    if (peer->reader == NULL || epoll_ctl(floor->epoll, EPOLL_CTL_ADD, peer->fd, &event) != 0) {
        snprintf(error, error_size, "%s:%s: %s", server->host, server->port, strerror(errno));
        return -1;
    }
    return 0;
}

struct floor *floor_open(const struct servers *servers, unsigned depth, const char *prefix,
                         uint64_t ttl_ms, char *error, size_t error_size)
{
    struct floor *floor = calloc(1, sizeof *floor);
    if (floor == NULL || sodium_init() < 0) {
        snprintf(error, error_size, "out of memory or no random numbers");
        free(floor);
        return NULL;
    }
    floor->depth = depth;
    floor->quorum = (unsigned)servers->count / 2 + 1;
    floor->pool_used = POOL_BYTES;
    floor->epoll = epoll_create1(EPOLL_CLOEXEC);
    floor->out_size = (size_t)depth * COMMAND_MAX; /* a slot has one command on its way */
    floor->out = malloc(floor->out_size);
    floor->queue = calloc(depth, sizeof *floor->queue);
    floor->slots = calloc(depth, sizeof *floor->slots);
    snprintf(floor->ttl, sizeof floor->ttl, "%llu", (unsigned long long)ttl_ms);
    if (floor->epoll < 0 || floor->out == NULL || floor->queue == NULL || floor->slots == NULL) {
        snprintf(error, error_size, "out of memory or descriptors");
        floor_close(floor);
        return NULL;
    }
    for (unsigned i = 0; i < depth; i++) {
        struct slot *slot = &floor->slots[i];
        slot->key_len = (size_t)snprintf(slot->key, sizeof slot->key, "%s%u", prefix, i);
    }
    for (size_t i = 0; i < servers->count; i++) {
        if (open_peer(floor, &servers->list[i], error, error_size) != 0) {
            floor_close(floor);
            return NULL;
        }
    }
    return floor;
}

void floor_close(struct floor *floor)
{
    if (floor == NULL)
        return;
    for (unsigned i = 0; i < floor->peers; i++) {
        if (floor->peer[i].reader != NULL)
            redisReaderFree(floor->peer[i].reader);
        close(floor->peer[i].fd);
    }
    if (floor->epoll >= 0)
        close(floor->epoll);
    free(floor->out);
    free(floor->queue);
    free(floor->slots);
    free(floor);
}
