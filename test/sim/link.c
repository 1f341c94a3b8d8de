/* SPDX-License-Identifier: MIT
 * Connections and segments: sends, delays, holds back and delivers them.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. A path is one direction of a
 * connection, a segment what arrives at once on it. Each link has a present connection for
 * requests and one for notifications (`push`); connections that the client has closed live on
 * until nothing is under way on them. */
#include "link.h"

#include "client.h"
#include "oracle_close.h"
#include "records.h"
#include "server.h"

#include <redlock/redlock.h>
#include <stdlib.h>
#include <string.h>

/* The longest pause between two retransmissions of a blocked sender. */
#define THAW_MAX_NS (3 * RL_SECOND)

/* Creates a segment, which refers to its connection. */
static struct sim_segment *new_segment(struct sim_conn *conn, enum sim_segment_kind kind,
                                       enum sim_way way, const char *bytes, size_t len)
{
    struct sim_segment *segment = malloc(sizeof *segment + len);

    if (segment == NULL)
        abort();
    segment->next = NULL;
    segment->conn = conn;
    segment->kind = (uint8_t)kind;
    segment->way = (uint8_t)way;
    segment->outcome_count = 0;
    segment->len = (uint32_t)len;
    if (len > 0)
        memcpy(segment->bytes, bytes, len);
    conn->refs++;
    return segment;
}

/* Removes one reference to the connection, and frees it with the last one. */
void sim_conn_drop(struct sim_world *world, struct sim_conn *conn)
{
    if (--conn->refs > 0)
        return;
    struct sim_conn **at = &world->conns;
    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    sim_records_free(conn);
    free(conn->in);
    free(conn);
}

/* Frees a segment and its reference to the connection. */
static void drop_segment(struct sim_world *world, struct sim_segment *segment)
{
    struct sim_conn *conn = segment->conn;

    free(segment);
    sim_conn_drop(world, conn);
}

/* Returns the link between the two ends of the connection. */
static struct sim_link *link_of(struct sim_world *world, const struct sim_conn *conn)
{
    return &world->links[conn->client][conn->node];
}

/* Returns the node of a connection of the transport. Its number contains the node's index, and a
 * bit for the connection for notifications or for that of a trial. */
static unsigned node_of(unsigned number)
{
    return number & (RL_TRACKER_CONNECTION - 1);
}

/* Returns where the link stores the present connection with that number. */
static struct sim_conn **present(struct sim_client *client, unsigned number)
{
    struct sim_link *link = &client->world->links[client->index][node_of(number)];

    if ((number & RL_TRIAL_CONNECTION) != 0)
        return &link->trial;
    return (number & RL_TRACKER_CONNECTION) != 0 ? &link->push : &link->conn;
}

/* Returns whether the connection is the client's present one to its node, of either kind. */
bool sim_conn_is_present(const struct sim_world *world, const struct sim_conn *conn)
{
    const struct sim_link *link = &world->links[conn->client][conn->node];

    return conn == (conn->push ? link->push : conn->trial ? link->trial : link->conn);
}

/* Appends a segment to those that are held back. */
static void hold(struct sim_path *path, struct sim_segment *segment)
{
    segment->next = NULL;
    if (path->held_last != NULL)
        path->held_last->next = segment;
    else
        path->held_first = segment;
    path->held_last = segment;
}

/* Sends a segment, wait_ns from now: plans its arrival. */
static void dispatch(struct sim_world *world, struct sim_segment *segment, uint64_t wait_ns)
{
    struct sim_conn *conn = segment->conn;
    struct sim_link *link = link_of(world, conn);
    struct sim_path *path = &conn->path[segment->way];
    uint64_t delay_ns = link->delay_ns;

    if (world->plan.jitter_ns != 0)
        delay_ns += sim_below(&world->random, world->plan.jitter_ns);
    uint64_t at_ns = world->now_ns + wait_ns + delay_ns;
    if (at_ns <= path->last_ns)
        at_ns = path->last_ns + 1;
    path->last_ns = at_ns;
    sim_plan_event(world, at_ns, SIM_ARRIVE, 0, 0, 0, segment);
}

/* Sends a segment without bytes. */
static void send_control(struct sim_world *world, struct sim_conn *conn, enum sim_segment_kind kind,
                         enum sim_way way)
{
    dispatch(world, new_segment(conn, kind, way, NULL, 0), 0);
}

/* Opens a connection for the engine. */
static void link_open(void *ctx, unsigned number)
{
    struct sim_client *client = ctx;
    struct sim_world *world = client->world;
    unsigned node = node_of(number);
    struct sim_conn *conn = calloc(1, sizeof *conn);

    if (conn == NULL)
        abort();
    conn->client = client->index;
    conn->node = (uint8_t)node;
    conn->push = (number & RL_TRACKER_CONNECTION) != 0;
    conn->trial = (number & RL_TRIAL_CONNECTION) != 0;
    conn->refs = 1;
    conn->made_ns = world->now_ns;
    conn->path[0].cut_ns = conn->path[1].cut_ns = UINT64_MAX;
    conn->number = ++world->conn_count;
    if ((world->plan.records >> node & 1) != 0)
        sim_records_begin(conn);
    conn->next = world->conns;
    world->conns = conn;
    *present(client, number) = conn;
    conn->client_open = true;
    sim_note(world, "client % connects to node %, for notifications: %", client->index, node,
             conn->push, 0);
    dispatch(world, new_segment(conn, SIM_SYN, SIM_TO_SERVER, NULL, 0), client->ahead_ns);
}

/* Hands bytes of the client to the network, as many as the window takes. Returns their number. */
size_t sim_link_dispatch(struct sim_client *client, struct sim_conn *conn, const char *bytes,
                         size_t len)
{
    struct sim_world *world = client->world;
    size_t room = world->plan.window - conn->in_flight;
    size_t take = len < room ? len : room;

    if (take == 0)
        return 0;
    conn->in_flight += take;
    sim_note(world, "client % sends % bytes to node %", client->index, take, conn->node, 0);
    dispatch(world, new_segment(conn, SIM_DATA, SIM_TO_SERVER, bytes, take), client->ahead_ns);
    return take;
}

/* Sends bytes for the engine, as many as the window takes, or in records. Returns how many were
 * accepted, or -1 if the connection is closed. */
static ssize_t link_send(void *ctx, unsigned number, const char *bytes, size_t len)
{
    struct sim_client *client = ctx;
    struct sim_conn *conn = *present(client, number);

    if (!conn->client_open)
        return -1;
    if (conn->records != NULL)
        return (ssize_t)sim_records_send(client, conn, bytes, len);
    size_t take = sim_link_dispatch(client, conn, bytes, len);
    conn->blocked = take < len;
    return (ssize_t)take;
}

/* Implements rl_transport.held. */
static uint64_t link_held(void *ctx, unsigned number)
{
    const struct sim_conn *conn = *present(ctx, number);

    return conn != NULL && conn->records != NULL ? sim_records_held(conn) : 0;
}

/* Implements rl_transport.reach. */
static uint64_t link_reach(void *ctx, unsigned number, uint64_t unread)
{
    struct sim_client *client = ctx;
    const struct sim_conn *conn = *present(client, number);

    return conn != NULL && conn->records != NULL ? sim_records_reach(conn, unread)
                                                 : client->world->plan.read_max;
}

/* Frees all segments that are held back in a direction. */
static void drop_held(struct sim_world *world, struct sim_path *path)
{
    while (path->held_first != NULL) {
        struct sim_segment *segment = path->held_first;
        path->held_first = segment->next;
        drop_segment(world, segment);
    }
    path->held_last = NULL;
}

/* Breaks a direction: a prefix of the segments under way still arrives, and none of those that are
 * held back. */
static void cut(struct sim_world *world, struct sim_conn *conn, enum sim_way way)
{
    struct sim_path *path = &conn->path[way];
    bool blocked = link_of(world, conn)->blocks[way] > 0;

    if (blocked || path->last_ns <= world->now_ns)
        path->cut_ns = world->now_ns;
    else
        path->cut_ns = sim_between(&world->random, world->now_ns, path->last_ns);
    drop_held(world, path);
}

/* Sends a reset after the segments that still arrive. It is the only segment that passes a broken
 * direction. */
static void reset(struct sim_world *world, struct sim_conn *conn, enum sim_way way)
{
    if (link_of(world, conn)->blocks[way] == 0)
        send_control(world, conn, SIM_RST, way);
}

/* Closes a connection for the engine. */
static void link_close(void *ctx, unsigned number, bool abortive)
{
    struct sim_client *client = ctx;
    struct sim_world *world = client->world;
    struct sim_conn *conn = *present(client, number);

    sim_note(world, "client % closes node %, abortive: %", client->index, node_of(number), abortive,
             0);
    if (conn == NULL)
        return;
    if (!abortive && !client->alive)
        sim_oracle_closes(client, conn);
    *present(client, number) = NULL;
    if (conn->client_open && abortive) {
        cut(world, conn, SIM_TO_SERVER);
        reset(world, conn, SIM_TO_SERVER);
    } else if (conn->client_open) {
        dispatch(world, new_segment(conn, SIM_FIN, SIM_TO_SERVER, NULL, 0), client->ahead_ns);
    }
    conn->client_open = false;
    sim_conn_drop(world, conn);
}

/* Returns the functions with which the client's engine connects, sends and closes. */
struct rl_transport sim_link_transport(struct sim_client *client)
{
    return (struct rl_transport){
        .open = link_open,
        .send = link_send,
        .close = link_close,
        .held = link_held,
        .reach = link_reach,
        .ctx = client,
    };
}

/* Sends bytes `from` to `to` of a reply, with the outcomes that end in them. */
static void reply_part(struct sim_world *world, struct sim_conn *conn,
                       const struct sim_reply *reply, size_t from, size_t to)
{
    struct sim_segment *segment =
        new_segment(conn, SIM_DATA, SIM_TO_CLIENT, reply->bytes + from, to - from);

    for (unsigned i = 0; i < reply->outcome_count; i++) {
        if (reply->outcomes[i].end > from && reply->outcomes[i].end <= to)
            segment->outcomes[segment->outcome_count++] = reply->outcomes[i];
    }
    dispatch(world, segment, 0);
}

/* Sends a server's replies to the client, with their outcomes. Sometimes in two segments. */
void sim_link_reply(struct sim_world *world, struct sim_conn *conn, const struct sim_reply *reply)
{
    size_t first = 0;

    if (reply->len > 1 && sim_chance(&world->random, world->plan.split)) {
        first = (size_t)sim_between(&world->random, 1, reply->len - 1);
        reply_part(world, conn, reply, 0, first);
    }
    reply_part(world, conn, reply, first, reply->len);
}

/* Closes the connection on the side of the server. */
void sim_link_hang_up(struct sim_world *world, struct sim_conn *conn)
{
    if (!conn->server_open)
        return;
    conn->server_open = false;
    send_control(world, conn, SIM_FIN, SIM_TO_CLIENT);
}

/* Delivers a segment to its server. */
static void arrive_at_server(struct sim_world *world, struct sim_segment *segment)
{
    struct sim_conn *conn = segment->conn;
    struct sim_server *server = &world->servers[conn->node];

    switch (segment->kind) {
    case SIM_SYN:
        if (!server->up && server->silent)
            return;
        conn->server_open = server->up;
        send_control(world, conn, server->up ? SIM_ACCEPT : SIM_REFUSE, SIM_TO_CLIENT);
        return;
    case SIM_DATA:
        conn->in_flight -= segment->len;
        if (conn->blocked && conn->client_open) {
            conn->blocked = false;
            conn->unblocked_ns = world->now_ns;
            sim_client_inbox(world, conn, NULL);
        }
        if (conn->server_open)
            sim_server_input(world, conn, segment->bytes, segment->len);
        else if (server->up ||
                 !server->silent) /* the client's kernel repeats the data until then */
            send_control(world, conn, SIM_RST, SIM_TO_CLIENT);
        return;
    case SIM_FIN:
        conn->ended = conn->fin = true;
        sim_server_serve(world, conn->node);
        return;
    default: /* SIM_RST; the server still executes a part of what it has received */
        conn->ended = conn->reset = true;
        sim_server_serve(world, conn->node);
        return;
    }
}

/* Handles a reply to a client that has closed: its kernel sends a reset and discards all that it
 * has not delivered yet. */
static void refuse(struct sim_world *world, struct sim_conn *conn)
{
    if (conn->path[SIM_TO_SERVER].cut_ns == UINT64_MAX)
        cut(world, conn, SIM_TO_SERVER);
    reset(world, conn, SIM_TO_SERVER);
}

/* Delivers a segment to its client. Returns true if the client keeps it. */
static bool arrive_at_client(struct sim_world *world, struct sim_segment *segment)
{
    struct sim_conn *conn = segment->conn;

    if (!conn->client_open) {
        if (segment->kind == SIM_DATA && conn->server_open)
            refuse(world, conn);
        return false;
    }
    sim_client_inbox(world, conn, segment);
    return true;
}

/* Handles SIM_ARRIVE: delivers the segment to the server or to the client's inbox, or holds it
 * back if its direction is blocked. */
void sim_link_arrive(struct sim_world *world, struct sim_segment *segment)
{
    struct sim_conn *conn = segment->conn;
    struct sim_path *path = &conn->path[segment->way];

    if (world->now_ns > path->cut_ns && segment->kind != SIM_RST) {
        if (segment->kind == SIM_DATA && segment->way == SIM_TO_SERVER)
            conn->in_flight -= segment->len;
        drop_segment(world, segment);
        return;
    }
    if (link_of(world, conn)->blocks[segment->way] > 0 || world->now_ns < path->thaw_ns) {
        hold(path, segment);
        return;
    }
    if (segment->way == SIM_TO_CLIENT && arrive_at_client(world, segment))
        return;
    if (segment->way == SIM_TO_SERVER)
        arrive_at_server(world, segment);
    drop_segment(world, segment);
}

/* Handles SIM_THAW: delivers the segments that a block has held back in this direction. */
void sim_link_thaw(struct sim_world *world, struct sim_conn *conn, enum sim_way way)
{
    struct sim_path *path = &conn->path[way];
    struct sim_segment *segment = path->held_first;

    /* Delivers the segments that were held back, in order and at once, before those under way. If
     * the client has closed, a reply to one segment may cause a reset before the next one arrives.
     */
    while (link_of(world, conn)->blocks[way] == 0 && path->thaw_ns <= world->now_ns &&
           (segment = path->held_first) != NULL) {
        bool provokes_reset = way == SIM_TO_SERVER && segment->kind == SIM_DATA &&
                              !conn->client_open && conn->server_open &&
                              !sim_server_stands_still(world, conn->node);
        path->held_first = segment->next;
        if (path->held_first == NULL)
            path->held_last = NULL;
        sim_link_arrive(world, segment);
        if (provokes_reset && sim_chance(&world->random, 500))
            refuse(world, conn);
    }
    sim_conn_drop(world, conn);
}

/* Counts one fault more (`by` 1) or less (-1) that blocks this direction of a link. The last
 * one's end lets the segments continue. */
void sim_link_block(struct sim_world *world, unsigned client, unsigned node, enum sim_way way,
                    int by)
{
    struct sim_link *link = &world->links[client][node];

    if (link->blocks[way] == 0)
        link->blocked_ns[way] = world->now_ns;
    link->blocks[way] = (unsigned)((int)link->blocks[way] + by);
    if (link->blocks[way] > 0)
        return;
    uint64_t most_ns = rl_min_u64(world->now_ns - link->blocked_ns[way], THAW_MAX_NS);
    for (struct sim_conn *conn = world->conns; conn != NULL; conn = conn->next) {
        struct sim_path *path = &conn->path[way];
        if (conn->client != client || conn->node != node || path->held_first == NULL)
            continue;
        /* Each connection retransmits by its own timer. */
        bool late = sim_chance(&world->random, 500);
        path->thaw_ns = world->now_ns + (late ? sim_below(&world->random, most_ns + 1) : 0);
        conn->refs++;
        sim_plan_event(world, path->thaw_ns, SIM_THAW, 0, way, 0, conn);
    }
}

/* Returns whether a segment is held back by a block on any connection. */
bool sim_link_holds(const struct sim_world *world)
{
    for (const struct sim_conn *conn = world->conns; conn != NULL; conn = conn->next) {
        if (conn->path[0].held_first != NULL || conn->path[1].held_first != NULL)
            return true;
    }
    return false;
}

/* Breaks a present connection of the link, after a prefix of the segments under way. Each side
 * notices at its own time, or never: the network has forgotten the connection then. */
void sim_link_break(struct sim_world *world, unsigned client, unsigned node)
{
    const struct sim_link *link = &world->links[client][node];
    struct sim_conn *conn =
        link->push != NULL && sim_chance(&world->random, 400) ? link->push : link->conn;

    if (conn == NULL)
        return;
    cut(world, conn, SIM_TO_SERVER);
    cut(world, conn, SIM_TO_CLIENT);
    if (sim_chance(&world->random, 700))
        send_control(world, conn, SIM_RST, SIM_TO_CLIENT);
    /* The server may learn of the break much later, or never. */
    if (sim_chance(&world->random, 500))
        send_control(world, conn, SIM_RST, SIM_TO_SERVER);
}

/* Ends all connections of a client whose process has died. */
void sim_link_client_died(struct sim_world *world, unsigned client)
{
    for (unsigned node = 0; node < world->plan.nodes; node++) {
        struct sim_link *link = &world->links[client][node];
        struct sim_conn *conns[] = {link->conn, link->push, link->trial};
        link->conn = link->push = link->trial = NULL;
        for (unsigned i = 0; i < sizeof conns / sizeof conns[0]; i++) {
            if (conns[i] == NULL)
                continue;
            conns[i]->client_open = false;
            send_control(world, conns[i], SIM_FIN, SIM_TO_SERVER);
            sim_conn_drop(world, conns[i]);
        }
    }
}

/* Ends all connections of a server that has died. The clients of a `silent` one get no reset. */
void sim_link_server_died(struct sim_world *world, unsigned node, bool silent)
{
    for (struct sim_conn *conn = world->conns, *next; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->node != node || !conn->server_open)
            continue;
        conn->server_open = false;
        conn->in_len = 0;
        if (!silent)
            send_control(world, conn, SIM_RST, SIM_TO_CLIENT);
        sim_server_keep(world, conn, false);
    }
}

/* Frees all connections and segments, and empties the queue of events. */
void sim_link_free(struct sim_world *world)
{
    struct sim_event event;

    while (sim_queue_pop(&world->queue, &event)) {
        if (event.kind == SIM_ARRIVE)
            drop_segment(world, event.data);
        if (event.kind == SIM_THAW)
            sim_conn_drop(world, event.data);
    }
    for (struct sim_conn *conn = world->conns, *next; conn != NULL; conn = next) {
        next = conn->next;
        conn->refs++;
        sim_server_keep(world, conn, false);
        drop_held(world, &conn->path[0]);
        drop_held(world, &conn->path[1]);
        sim_conn_drop(world, conn);
    }
}
