/* SPDX-License-Identifier: MIT
 * Searches all that can happen in a small world, to find which keys count in an extension. There is
 * one holder under test. Servers execute its requests late or never, lose all their keys, or belong
 * to a third client. Another client comes, gets a majority and leaves again (a visit). A visit must
 * never be hidden: no extension may succeed on the vote of a server whose key was restored after
 * the visit. A model of its own checks that a key that was restored, or whose SET has no known
 * outcome, counts only after it was seen and a later round succeeded without it.
 *
 * One race is left out, and counted: a visit while the SET of the acquisition itself is still on
 * its way to a slow server, which then grants it in time. If such late grants did not count, every
 * lock on a bare majority would depend on each single node of it. */
#include "walk.h"

#include <stdlib.h>

#define QUEUE_MAX 4

enum key { NOBODY, OURS, FOREIGN };

enum standing {
    NOT_THERE,    /* known not to have the key */
    AWAITED,      /* the SET of the acquisition has no answer yet */
    NOT_SEEN,     /* restored, or its SET has no known outcome */
    SEEN,         /* seen since */
    ON_PROBATION, /* and a round has begun since */
    COUNTED
};

struct request {
    uint8_t verb;
    bool vote_failed; /* its vote failed; it may still be executed */
    uint32_t round;
};

struct server {
    uint8_t key, standing, queued;
    bool was_free; /* at the time of a visit */
    struct request queue[QUEUE_MAX];
};

struct world {
    struct rig rig;
    struct world_limits left;
    bool hides; /* this round has counted a vote from after a visit */
    struct server server[WALK_NODES_MAX];
};

static struct world_tally tally;
static bool orphans_allowed;

/* ---- states that were searched before: a set of hashes ---- */

#define SEEN_BITS 24
static uint64_t *searched;

/* Mixes a word into a hash. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

/* Returns a hash of all that matters about one server. */
static uint64_t describe(const struct world *world, unsigned node)
{
    const struct server *server = &world->server[node];
    const struct rl_lease *lease = &world->rig.lease;
    const struct rl_round *round = &lease->round;
    const rl_nodes masks[] = {round->requested, round->granted,   round->denied,
                              round->failed,    round->excluded,  lease->ours,
                              lease->fresh,     lease->confirmed, lease->probation};
    uint64_t word = server->key | (uint64_t)server->standing << 2 | (uint64_t)server->was_free << 5;

    for (unsigned i = 0; i < sizeof masks / sizeof masks[0]; i++)
        word = word << 1 | ((masks[i] >> node) & 1);
    for (unsigned i = 0; i < server->queued; i++) {
        const struct request *request = &server->queue[i];
        word = word << 6 | 1u << 5 | (uint64_t)request->vote_failed << 4 |
               (uint64_t)(request->round == round->number) << 3 | request->verb;
    }
    return word;
}

/* Adds the state to the set. Returns false if it was searched already, perhaps with its servers in
 * another order. */
static bool is_new(const struct world *world)
{
    unsigned nodes = world->left.nodes;
    uint64_t words[WALK_NODES_MAX];

    for (unsigned i = 0; i < nodes; i++) {
        uint64_t word = describe(world, i);
        unsigned at = i;
        for (; at > 0 && words[at - 1] > word; at--)
            words[at] = words[at - 1];
        words[at] = word;
    }
    const struct world_limits *left = &world->left;
    uint64_t hash = mix(world->rig.lease.state, world->rig.lease.round.outcome);
    hash = mix(hash, world->hides | left->flushes << 1 | left->visits << 5 | left->failures << 9 |
                         left->rounds << 13 | left->foreign << 17);
    for (unsigned i = 0; i < nodes; i++)
        hash = mix(hash, words[i]);
    hash |= 1; /* 0 marks an empty entry */
    uint64_t at = hash >> (64 - SEEN_BITS);
    while (searched[at] != 0 && searched[at] != hash)
        at = (at + 1) & ((UINT64_C(1) << SEEN_BITS) - 1);
    if (searched[at] == hash)
        return false;
    searched[at] = hash;
    tally.states++;
    MUST(tally.states < UINT64_C(3) << (SEEN_BITS - 2), "too many states to remember");
    return true;
}

/* ---- the holder's side ---- */

static void search(const struct world *world);

/* Appends a request to the server's queue. */
static void enqueue(struct world *world, unsigned node, enum rl_verb verb)
{
    struct server *server = &world->server[node];

    MUST(server->queued < QUEUE_MAX, "queue of node %u", node);
    server->queue[server->queued++] =
        (struct request){.verb = (uint8_t)verb, .round = world->rig.lease.round.number};
}

/* Returns the nodes that can get a request: not those with an unanswered one. */
static rl_nodes reachable(const struct world *world)
{
    rl_nodes up = rl_nodes_all(world->left.nodes);

    for (unsigned i = 0; i < world->left.nodes && !orphans_allowed; i++)
        for (unsigned j = 0; j < world->server[i].queued; j++)
            if (world->server[i].queue[j].vote_failed)
                up &= ~RL_NODE(i);
    return up;
}

/* Checks that the lease knows each server that may have the key. */
static void check_ours(const struct world *world, rl_nodes ours)
{
    for (unsigned i = 0; i < world->left.nodes && !orphans_allowed; i++) {
        const struct server *server = &world->server[i];
        bool may_have_key = server->key == OURS;
        for (unsigned j = 0; j < server->queued; j++)
            may_have_key = may_have_key || server->queue[j].verb != RL_VERB_EXTEND;
        MUST(!may_have_key || (ours & RL_NODE(i)) != 0, "a key of ours may stay on node %u", i);
    }
}

/* Checks a successful round, and starts the next state of each key in the model. */
static void note_won(struct world *world)
{
    const struct rl_effects *fx = &world->rig.fx;

    MUST(!world->hides, "the extension hides that another client was there");
    tally.extended++;
    for (unsigned i = 0; i < world->left.nodes; i++) {
        struct server *server = &world->server[i];
        if (server->standing == ON_PROBATION)
            server->standing = COUNTED;
        MUST((fx->heal & RL_NODE(i)) == 0 || server->standing == NOT_THERE, "heals node %u", i);
    }
}

/* Applies the effects of the last step. Returns false if this branch ends here. */
static bool apply_effects(struct world *world, uint8_t before)
{
    const struct rl_effects *fx = &world->rig.fx;
    uint8_t state = world->rig.lease.state;

    walk_tally.steps++;
    if (state == RL_STATE_ENDED) {
        if ((fx->flags & RL_FX_LOST) == 0)
            return false; /* no majority at first */
        tally.lost++;
        for (unsigned i = 0; i < world->left.nodes; i++)
            if (world->server[i].was_free) {
                tally.found_out++;
                break;
            }
        check_ours(world, fx->undo);
        return false;
    }
    if (before == RL_STATE_ACQUIRING && state == RL_STATE_HELD)
        for (unsigned i = 0; i < world->left.nodes; i++)
            world->server[i].was_free = false;
    if (fx->flags & RL_FX_EXTENDED)
        note_won(world);
    for (unsigned i = 0; i < world->left.nodes; i++) {
        if (fx->request & RL_NODE(i))
            enqueue(world, i, (enum rl_verb)world->rig.lease.round.verb);
        if (fx->heal & RL_NODE(i)) {
            enqueue(world, i, RL_VERB_HEAL);
            world->server[i].standing = NOT_SEEN;
        }
    }
    if (state != RL_STATE_ACQUIRING)
        check_ours(world, world->rig.lease.ours);
    return true;
}

/* Records in the model what a vote says about the key on that node. */
static void note_vote(struct world *world, unsigned node, const struct request *request,
                      enum rl_vote vote)
{
    struct server *server = &world->server[node];

    if (request->round != world->rig.lease.round.number)
        return;
    if (request->verb == RL_VERB_EXTEND) {
        if (vote == RL_VOTE_DENIED)
            server->standing = NOT_THERE;
        if (vote != RL_VOTE_GRANTED)
            return;
        world->hides = world->hides || (server->standing == COUNTED && server->was_free);
        if (server->standing < SEEN)
            server->standing = SEEN;
    } else if (vote == RL_VOTE_DENIED) {
        server->standing = NOT_THERE;
    } else if (request->verb == RL_VERB_ACQUIRE) {
        server->standing = vote == RL_VOTE_GRANTED ? COUNTED : NOT_SEEN;
    } else if (vote == RL_VOTE_GRANTED) {
        server->standing = SEEN;
    }
}

/* Passes the reply to a request to the lease. Returns false if this branch ends here. */
static bool deliver(struct world *world, unsigned node, const struct request *request,
                    enum rl_vote vote)
{
    uint8_t before = world->rig.lease.state;
    bool races = request->verb == RL_VERB_ACQUIRE && vote == RL_VOTE_GRANTED &&
                 request->round == world->rig.lease.round.number && world->server[node].was_free;

    if (races) {
        tally.races++;
        return false;
    }
    note_vote(world, node, request, vote);
    world->rig.view.up = reachable(world);
    rig_ballot(&world->rig, (struct rl_ballot){
                                .node = (uint8_t)node,
                                .vote = (uint8_t)vote,
                                .cause = vote == RL_VOTE_FAILED ? REDLOCK_CAUSE_TIMEOUT : 0,
                                .verb = request->verb,
                                .round = request->round,
                            });
    return apply_effects(world, before);
}

/* ---- the possible events ---- */

/* Starts an extension and searches on. */
static void try_extension(const struct world *world)
{
    struct world next = *world;

    if (world->left.rounds == 0)
        return;
    for (unsigned i = 0; i < world->left.nodes; i++)
        if (world->server[i].queued + 2 > QUEUE_MAX)
            return;
    next.left.rounds--;
    next.hides = false;
    rl_nodes uncounted = 0;
    for (unsigned i = 0; i < next.left.nodes; i++) {
        struct server *server = &next.server[i];
        if (server->standing == AWAITED)
            server->standing = NOT_SEEN;
        if (server->standing == SEEN)
            server->standing = ON_PROBATION;
        if (server->standing != COUNTED)
            uncounted |= RL_NODE(i);
    }
    next.rig.view.up = reachable(&next);
    walk_enter('X', 0, 0);
    rig_extend(&next.rig, 0);
    MUST(next.rig.lease.round.excluded == uncounted, "excluded %x, must not count %x",
         next.rig.lease.round.excluded, uncounted);
    if (apply_effects(&next, world->rig.lease.state))
        search(&next);
    walk_leave();
}

/* Lets the server execute a request and searches on. */
static void try_execution(const struct world *world, unsigned node, unsigned at)
{
    struct world next = *world;
    struct server *server = &next.server[node];
    struct request request = server->queue[at];
    bool granted = request.verb == RL_VERB_EXTEND ? server->key == OURS : server->key == NOBODY;

    for (unsigned i = at + 1; i < server->queued; i++)
        server->queue[i - 1] = server->queue[i];
    server->queued--;
    if (request.verb != RL_VERB_EXTEND && granted)
        server->key = OURS;
    walk_enter(request.vote_failed ? 'q' : 'x', node, request.verb);
    if (request.vote_failed ||
        deliver(&next, node, &request, granted ? RL_VOTE_GRANTED : RL_VOTE_DENIED))
        search(&next);
    walk_leave();
}

/* Fails all pending requests of this server at once, as a timeout or a lost connection does. */
static void try_failure(const struct world *world, unsigned node)
{
    struct world next = *world;
    bool any = false;

    if (world->left.failures == 0)
        return;
    next.left.failures--;
    walk_enter('f', node, 0);
    bool goes_on = true;
    for (unsigned i = 0; goes_on && i < world->server[node].queued; i++) {
        struct request request = next.server[node].queue[i];
        if (request.vote_failed)
            continue;
        any = true;
        next.server[node].queue[i].vote_failed = true;
        goes_on = deliver(&next, node, &request, RL_VOTE_FAILED);
    }
    if (any && goes_on)
        search(&next);
    walk_leave();
}

/* Tries all events of one server. */
static void try_server(const struct world *world, unsigned node)
{
    const struct server *server = &world->server[node];
    struct world next;

    bool first = true; /* of the requests, which are in order */
    for (unsigned i = 0; i < server->queued; i++) {
        bool orphan = orphans_allowed && server->queue[i].vote_failed;
        if (orphan || first)
            try_execution(world, node, i);
        first = first && orphan;
    }
    try_failure(world, node);
    if (world->left.flushes > 0 && server->key == OURS) {
        next = *world;
        next.left.flushes--;
        next.server[node].key = NOBODY;
        walk_enter('F', node, 0);
        search(&next);
        walk_leave();
    }
    if (server->key == FOREIGN || (world->left.foreign > 0 && server->key == NOBODY)) {
        next = *world;
        next.left.foreign -= server->key == NOBODY;
        next.server[node].key = server->key == NOBODY ? FOREIGN : NOBODY;
        walk_enter('C', node, 0);
        search(&next);
        walk_leave();
    }
}

/* Lets the other client set the key on each free server, hold the lock, and release it. */
static void try_visit(const struct world *world)
{
    struct world next = *world;
    unsigned free = 0;

    if (world->left.visits == 0)
        return;
    for (unsigned i = 0; i < world->left.nodes; i++) {
        if (world->server[i].key != NOBODY)
            continue;
        free++;
        next.server[i].was_free = true;
    }
    if (free < world->left.nodes / 2 + 1)
        return;
    next.left.visits--;
    walk_enter('V', 0, 0);
    search(&next);
    walk_leave();
}

/* Searches all that can still happen from this state. */
static void search(const struct world *world)
{
    if (!is_new(world))
        return;
    for (unsigned i = 0; i < world->left.nodes; i++)
        try_server(world, i);
    if (world->rig.lease.state == RL_STATE_ACQUIRING)
        return;
    try_visit(world);
    try_extension(world);
}

/* Searches all sequences of events within the limits. Returns what was met; ends the program at
 * a violation. */
struct world_tally walk_world(const struct world_limits *limits)
{
    struct world world;

    memset(&world, 0, sizeof world);
    memset(&tally, 0, sizeof tally);
    orphans_allowed = limits->orphans;
    searched = calloc(UINT64_C(1) << SEEN_BITS, sizeof *searched);
    MUST(searched != NULL, "no memory");
    world.left = *limits;
    rig_init(&world.rig, limits->nodes);
    rig_start(&world.rig);
    for (unsigned i = 0; i < limits->nodes; i++) {
        world.server[i].standing = AWAITED;
        enqueue(&world, i, RL_VERB_ACQUIRE);
    }
    search(&world);
    free(searched);
    return tally;
}
