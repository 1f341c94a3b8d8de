/* SPDX-License-Identifier: MIT
 * The proxy's loop: epoll, one timer, and pairs of connections. */
#include "delay.h"

#include "delay_way.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS   256 /* epoll events handled in one turn of the loop */
#define LINE_MAX 128 /* bytes of a control line, with the NUL */

/* The kinds of descriptors in epoll. */
enum source_kind { SOURCE_CONTROL, SOURCE_TIMER, SOURCE_LISTENER, SOURCE_CLIENT, SOURCE_SERVER };

/* What the data of an epoll event points to. */
struct source {
    enum source_kind kind;
    void *owner;     /* the struct link, pair or delay that contains this source */
    uint32_t events; /* that epoll watches; 0: not registered */
    int fd;
};

/* One server: the socket that stands in for it, and its address. */
struct link {
    struct source listener;
    struct sockaddr_storage address; /* of the server */
    socklen_t address_len;
    uint64_t delay_ns, jitter_ns; /* of bytes that are read from now on */
    bool stalled;                 /* forwards nothing until "go" */
};

/* One accepted connection and the connection to the server that belongs to it. Both directions are
 * independent. The pair lives until both directions have ended, or one connection breaks. */
struct pair {
    struct pair *next, **back; /* list of pairs; `back` points to what points here */
    struct link *link;
    struct source ends[2];    /* 0: the client's connection, 1: the server's */
    struct delay_way ways[2]; /* ways[i] holds what was read from ends[i] */
    bool connecting;          /* the connection to the server is not yet established */
    bool dead;                /* closed; freed at the end of the turn */
};

/* The proxy. Owns its links, its pairs and all descriptors except the control pipe. */
struct delay {
    int epoll;
    struct source timer; /* a timerfd, set to the earliest time in the heap */
    struct source control;
    struct link links[DELAY_NODES_MAX];
    size_t count;           /* of links */
    struct pair *pairs;     /* all open pairs */
    struct pair *dead;      /* closed pairs, freed at the end of the turn */
    size_t pair_count;      /* number of open pairs */
    struct delay_heap heap; /* directions with bytes that wait for their time */
    uint64_t random;        /* state of the generator for the jitter */
    char line[LINE_MAX];    /* beginning of a control line, with a NUL */
    size_t line_len;
};

/* Returns CLOCK_MONOTONIC in nanoseconds. */
static uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Returns the next random number of the jitter (splitmix64). */
static uint64_t draw(struct delay *delay)
{
    uint64_t word = delay->random += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* Changes the events that epoll watches. 0 removes the source. Returns 0 or -1. */
static int watch(struct delay *delay, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = source}};
    if (source->events == events)
        return 0;
    int op = source->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    source->events = events;
    return epoll_ctl(delay->epoll, op, source->fd, &event);
}

/* ---- pairs ---- */

/* Frees a closed pair with its chunks. */
static void pair_free(struct pair *pair)
{
    delay_way_free(&pair->ways[0]);
    delay_way_free(&pair->ways[1]);
    free(pair);
}

/* Closes both connections, with a reset if `abort`. The pair is freed at the end of the turn,
 * because events of this turn may still point to it. */
static void pair_end(struct delay *delay, struct pair *pair, bool abort)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (pair->dead)
        return;
    for (unsigned i = 0; i < 2; i++) {
        delay_heap_remove(&delay->heap, &pair->ways[i]);
        if (abort)
            (void)setsockopt(pair->ends[i].fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        (void)close(pair->ends[i].fd);
    }
    *pair->back = pair->next;
    if (pair->next != NULL)
        pair->next->back = pair->back;
    pair->dead = true;
    pair->next = delay->dead;
    delay->dead = pair;
    delay->pair_count--;
}

/* Frees the pairs that were closed in this turn, to which no event points any more. */
static void free_dead(struct delay *delay)
{
    while (delay->dead != NULL) {
        struct pair *pair = delay->dead;
        delay->dead = pair->next;
        pair_free(pair);
    }
}

/* Watches the events that the pair can use now: reading stops at DELAY_HELD_MAX bytes, and writing
 * is only watched while a receiver is blocked. */
static void pair_watch(struct delay *delay, struct pair *pair)
{
    for (unsigned i = 0; i < 2 && !pair->dead; i++) {
        const struct delay_way *from = &pair->ways[i], *to = &pair->ways[1 - i];
        bool reads = !from->read_ended && from->held < DELAY_HELD_MAX && !pair->connecting;
        bool writes = to->blocked || (pair->connecting && i == 1);
        if (watch(delay, &pair->ends[i], (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u)) != 0)
            pair_end(delay, pair, true);
    }
}

/* Puts a direction into the heap, or removes it while it cannot forward anything. */
static void way_plan(struct delay *delay, struct pair *pair, struct delay_way *way)
{
    if (way->first != NULL && !way->blocked && !pair->link->stalled && !pair->connecting)
        delay_heap_put(&delay->heap, way);
    else
        delay_heap_remove(&delay->heap, way);
}

/* Forwards what is due in the direction that was read from ends[from]. */
static void pair_flush(struct delay *delay, struct pair *pair, unsigned from, uint64_t now_ns)
{
    struct delay_way *way = &pair->ways[from];
    if (pair->dead || pair->connecting || pair->link->stalled)
        return;
    switch (delay_way_flush(way, pair->ends[1 - from].fd, now_ns)) {
    case DELAY_FLUSH_ABORT:
        pair_end(delay, pair, true);
        return;
    case DELAY_FLUSH_EOF:
        (void)shutdown(pair->ends[1 - from].fd, SHUT_WR);
        if (pair->ways[1 - from].done) {
            pair_end(delay, pair, false);
            return;
        }
        break;
    default:
        break;
    }
    way_plan(delay, pair, way);
    pair_watch(delay, pair);
}

/* Reads from ends[from] and gives the bytes the time at which they are forwarded. */
static void pair_read(struct delay *delay, struct pair *pair, unsigned from, uint64_t now_ns)
{
    const struct link *link = pair->link;
    uint64_t jitter_ns = link->jitter_ns == 0 ? 0 : draw(delay) % (link->jitter_ns + 1);
    if (!delay_way_read(&pair->ways[from], pair->ends[from].fd,
                        now_ns + link->delay_ns + jitter_ns)) {
        pair_end(delay, pair, true);
        return;
    }
    way_plan(delay, pair, &pair->ways[from]);
    pair_watch(delay, pair);
}

/* Handles an epoll event of one end of a pair. */
static void pair_event(struct delay *delay, struct pair *pair, unsigned end, uint32_t events)
{
    uint64_t now_ns = now();
    if (pair->dead)
        return;
    if (pair->connecting) {
        int error = 0;
        socklen_t len = sizeof error;
        if (end == 0)
            return;
        (void)getsockopt(pair->ends[1].fd, SOL_SOCKET, SO_ERROR, &error, &len);
        if (error != 0) {
            pair_end(delay, pair, true);
            return;
        }
        pair->connecting = false;
        pair_watch(delay, pair);
        return;
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        pair_read(delay, pair, end, now_ns);
    if (events & EPOLLOUT)
        pair_flush(delay, pair, 1 - end, now_ns);
    /* The connection is broken and not read any more, so epoll would report the error again and
     * again. */
    if ((events & EPOLLERR) && !pair->dead && pair->ways[end].read_ended)
        pair_end(delay, pair, true);
}

/* Disables Nagle's algorithm, which would add delays. Returns 0 or -1. */
static int socket_prepare(int fd)
{
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Opens a connection to the server for an accepted client. Closes `client` on failure. */
static void pair_begin(struct delay *delay, struct link *link, int client)
{
    int server = socket(link->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pair *pair = calloc(1, sizeof *pair);
    if (server < 0 || pair == NULL || socket_prepare(client) != 0 || socket_prepare(server) != 0 ||
        !delay_heap_reserve(&delay->heap, 2 * (delay->pair_count + 1)) ||
        (connect(server, (struct sockaddr *)&link->address, link->address_len) != 0 &&
         errno != EINPROGRESS)) {
        if (server >= 0)
            (void)close(server);
        (void)close(client);
        free(pair);
        return;
    }
    pair->link = link;
    pair->ends[0] = (struct source){SOURCE_CLIENT, pair, 0, client};
    pair->ends[1] = (struct source){SOURCE_SERVER, pair, 0, server};
    pair->ways[0].owner = pair->ways[1].owner = pair;
    pair->connecting = true;
    pair->next = delay->pairs;
    pair->back = &delay->pairs;
    if (pair->next != NULL)
        pair->next->back = &pair->next;
    delay->pairs = pair;
    delay->pair_count++;
    pair_watch(delay, pair);
}

/* Accepts all waiting connections. */
static void link_accept(struct delay *delay, struct link *link)
{
    for (;;) {
        int client = accept4(link->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0)
            return;
        pair_begin(delay, link, client);
    }
}

/* ---- control ---- */

/* Stops or continues forwarding for all pairs of a link. */
static void stall(struct delay *delay, struct link *link, bool stalled)
{
    struct pair *next;
    link->stalled = stalled;
    for (struct pair *pair = delay->pairs; pair != NULL; pair = next) {
        next = pair->next;
        if (pair->link != link)
            continue;
        way_plan(delay, pair, &pair->ways[0]);
        way_plan(delay, pair, &pair->ways[1]);
    }
}

/* Executes one control line; see delay_run(). Ignores what it does not understand. */
static void execute_line(struct delay *delay, const char *line)
{
    char word[16], time[32] = "";
    unsigned node = 0;
    uint64_t us = 0;
    int got = sscanf(line, "%15s %u %31s", word, &node, time);
    if (got < 2 || node >= delay->count)
        return;
    struct link *link = &delay->links[node];
    if (strcmp(word, "stall") == 0)
        stall(delay, link, true);
    else if (strcmp(word, "go") == 0)
        stall(delay, link, false);
    else if (strcmp(word, "delay") == 0 && delay_parse_time(time, strlen(time), &us))
        link->delay_ns = us * 1000;
    else if (strcmp(word, "jitter") == 0 && delay_parse_time(time, strlen(time), &us))
        link->jitter_ns = us * 1000;
}

/* Reads and executes control lines. Returns false at the end of the pipe. */
static bool read_control(struct delay *delay, int control)
{
    ssize_t got = read(control, delay->line + delay->line_len, LINE_MAX - 1 - delay->line_len);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got == 0)
        return false;
    delay->line_len += (size_t)got;
    delay->line[delay->line_len] = '\0';
    char *end;
    while ((end = strchr(delay->line, '\n')) != NULL) {
        *end = '\0';
        execute_line(delay, delay->line);
        delay->line_len -= (size_t)(end + 1 - delay->line);
        memmove(delay->line, end + 1, delay->line_len + 1);
    }
    if (delay->line_len == LINE_MAX - 1)
        delay->line_len = 0; /* longer than any command: discard it */
    return true;
}

/* ---- the loop ---- */

/* Forwards all bytes that are due. */
static void flush_due(struct delay *delay)
{
    uint64_t now_ns = now();
    while (delay->heap.count > 0 && delay->heap.list[1]->heap_due_ns <= now_ns) {
        struct delay_way *way = delay->heap.list[1];
        struct pair *pair = way->owner;
        pair_flush(delay, pair, way == &pair->ways[1], now_ns);
    }
}

/* Sets the timer to the earliest time in the heap, or stops it. */
static void set_timer(struct delay *delay)
{
    struct itimerspec when = {.it_value = {0, 0}};
    if (delay->heap.count > 0) {
        uint64_t due_ns = delay->heap.list[1]->heap_due_ns;
        when.it_value.tv_sec = (time_t)(due_ns / UINT64_C(1000000000));
        when.it_value.tv_nsec = (long)(due_ns % UINT64_C(1000000000));
    }
    (void)timerfd_settime(delay->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Handles one epoll event. Returns false at the end of the control pipe. */
static bool handle(struct delay *delay, struct source *source, uint32_t events)
{
    uint64_t ticks;
    switch (source->kind) {
    case SOURCE_CONTROL:
        return read_control(delay, source->fd);
    case SOURCE_TIMER:
        (void)!read(source->fd, &ticks, sizeof ticks);
        return true;
    case SOURCE_LISTENER:
        link_accept(delay, source->owner);
        return true;
    default:
        pair_event(delay, source->owner, source->kind == SOURCE_SERVER, events);
        return true;
    }
}

/* Forwards bytes until the pipe `control` ends, and executes its lines. Returns 0, or -1 with
 * errno. */
int delay_run(struct delay *delay, int control)
{
    struct epoll_event events[EVENTS];
    bool running = true;
    delay->control = (struct source){SOURCE_CONTROL, delay, 0, control};
    if (watch(delay, &delay->control, EPOLLIN) != 0)
        return -1;
    while (running) {
        int count = epoll_wait(delay->epoll, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            return -1;
        for (int i = 0; i < count; i++)
            running = handle(delay, events[i].data.ptr, events[i].events) && running;
        flush_due(delay);
        free_dead(delay);
        set_timer(delay);
    }
    return 0;
}

/* ---- opening ---- */

/* Opens the listening socket of a link and stores its port in `node`. Returns 0, or -1 with
 * errno. */
static int listen_for(struct delay_node *node, struct link *link)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    link->listener = (struct source){SOURCE_LISTENER, link, 0, fd};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return -1;
    node->local_port = ntohs(address.sin_port);
    link->delay_ns = node->delay_us * 1000;
    link->jitter_ns = node->jitter_us * 1000;
    return 0;
}

/* Looks up the address of the server. Returns 0, or -1 and a text in `error`. */
static int resolve(const struct delay_node *node, struct link *link, char *error, size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int failure = getaddrinfo(node->host, node->port, &hints, &list);
    if (failure != 0) {
        snprintf(error, size, "%s: %s", node->host, gai_strerror(failure));
        return -1;
    }
    memcpy(&link->address, list->ai_addr, list->ai_addrlen);
    link->address_len = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

/* Raises the limit of open files to what the process may have. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Opens a listening socket for each node and stores its port in local_port. Returns NULL and a text
 * in `error` on failure. */
struct delay *delay_open(struct delay_node *nodes, size_t count, uint64_t seed, char *error,
                         size_t error_size)
{
    struct delay *delay = calloc(1, sizeof *delay);
    if (delay == NULL)
        return NULL;
    raise_limit(); /* two descriptors for each connection */
    delay->random = seed;
    delay->epoll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    delay->timer = (struct source){SOURCE_TIMER, delay, 0, timer};
    bool fine = delay->epoll >= 0 && timer >= 0 && watch(delay, &delay->timer, EPOLLIN) == 0;
    error[0] = '\0';
    for (size_t i = 0; fine && i < count && i < DELAY_NODES_MAX; i++) {
        struct link *link = &delay->links[delay->count++];
        link->listener.fd = -1;
        fine = resolve(&nodes[i], link, error, error_size) == 0 &&
               listen_for(&nodes[i], link) == 0 && watch(delay, &link->listener, EPOLLIN) == 0;
    }
    if (fine)
        return delay;
    if (error[0] == '\0')
        snprintf(error, error_size, "cannot listen: %s", strerror(errno));
    delay_close(delay);
    return NULL;
}

/* Closes all connections and listening sockets and frees the proxy; NULL does nothing. */
void delay_close(struct delay *delay)
{
    if (delay == NULL)
        return;
    while (delay->pairs != NULL)
        pair_end(delay, delay->pairs, false);
    free_dead(delay);
    for (size_t i = 0; i < delay->count; i++) {
        if (delay->links[i].listener.fd >= 0)
            (void)close(delay->links[i].listener.fd);
    }
    if (delay->timer.fd >= 0)
        (void)close(delay->timer.fd);
    if (delay->epoll >= 0)
        (void)close(delay->epoll);
    free(delay->heap.list);
    free(delay);
}
