/* SPDX-License-Identifier: MIT
 * The faults of a chaos run. A fault begins on one target, a server or a client, and may have a
 * length, after which it ends. chaos.c calls faults_begin_one() at random times; this file draws
 * the kind and the target, refuses what would hit too many servers at once, and logs the fault.
 * Functions with `node` take the number of a server. */
#include <stdlib.h>
#include <string.h>

#include "chaos.h"
#include "history.h"
#include "wait.h"

#define LOSERS_MAX     2                /* number of losers at the same time */
#define LOSER_MS       (4 * MAX_TTL_MS) /* how long a server stays a loser after its fault */
#define DOWN_MAX       2                /* number of servers that do not reply at the same time */
#define DOWN_MAX_WORST 4                /* the same, for one of 16 faults */

/* What a fault affects. A server that loses something that it should keep is a loser for a while.
 */
enum fault_flags {
    ON_CLIENT = 1,   /* the target is a client, not a server */
    NEEDS_LINKS = 2, /* only possible if the servers have links */
    DOWN = 4,        /* the server does not reply meanwhile */
    LOSES = 8,       /* the server loses keys, fencing tokens or time */
    OWN_CLOCK = 16,  /* only for clients with a clock of their own: this library's */
    FORGETS = 32     /* the server loses its fence record, which is volatile here */
};

/* A kind of fault. */
struct kind {
    const char *name;               /* as in the log */
    unsigned flags, ms_min, ms_max; /* length; 0: the fault has none */
    void (*begin)(unsigned target);
    void (*end)(unsigned target); /* NULL: the fault has no length */
};

/* Ends the server with SIGKILL. */
static void kill_server(unsigned node)
{
    cluster_kill(chaos.cluster, node);
}

/* Starts a killed server again with the data it had on disk. */
static void start_with_data(unsigned node)
{
    cluster_restart(chaos.cluster, node, true);
}

/* Starts a killed server again without data. */
static void start_empty(unsigned node)
{
    cluster_restart(chaos.cluster, node, false);
}

/* Ends the server without saving and starts it again at once with the data on disk. */
static void restart_at_once(unsigned node)
{
    free(cluster_command(chaos.cluster, node, "SHUTDOWN NOSAVE FORCE"));
    cluster_restart(chaos.cluster, node, true);
}

/* Stops the server's process, so that it does not reply. */
static void stop_server(unsigned node)
{
    cluster_pause(chaos.cluster, node);
}

/* Continues a stopped server. */
static void continue_server(unsigned node)
{
    cluster_resume(chaos.cluster, node);
}

/* Cuts the server's link in the direction from the clients to the server. */
static void cut_there(unsigned node)
{
    cluster_cut(chaos.cluster, node, NETWORK_CUT_THERE);
}

/* Cuts the server's link in the direction from the server to the clients. */
static void cut_back(unsigned node)
{
    cluster_cut(chaos.cluster, node, NETWORK_CUT_BACK);
}

/* Cuts the server's link in both directions. */
static void cut_both(unsigned node)
{
    cluster_cut(chaos.cluster, node, NETWORK_CUT_BOTH);
}

/* Repairs the server's link. */
static void repair_link(unsigned node)
{
    cluster_cut(chaos.cluster, node, NETWORK_WHOLE);
}

/* Closes the server's connections with clients; clients may connect again at once. */
static void cut_connections(unsigned node)
{
    free(cluster_command(chaos.cluster, node, "CLIENT KILL TYPE normal"));
}

/* Steps a server's clock ahead. It stays ahead, because stepping back would be another fault. */
static void step_ahead(unsigned node)
{
    cluster_clock_step(chaos.cluster, node, 100 + chance(60000));
}

static int64_t stepped_back_ms[NODES]; /* by how much step_back() stepped a server's clock */

/* Steps a server's clock back, by up to ten minutes. */
static void step_back(unsigned node)
{
    stepped_back_ms[node] = 100 + chance(600000);
    cluster_clock_step(chaos.cluster, node, -stepped_back_ms[node]);
}

/* Steps a server's clock forward again, as far as step_back() stepped it back. */
static void step_forward(unsigned node)
{
    cluster_clock_step(chaos.cluster, node, stepped_back_ms[node]);
}

/* Lets a server's clock run 0.5 % fast (5000 of a million), half of the tolerated drift. */
static void run_slightly_fast(unsigned node)
{
    cluster_clock_rate(chaos.cluster, node, 5000); /* half of the tolerated drift */
}

/* Lets a server's clock run 8.3 % fast, more than the tolerated drift. */
static void run_fast(unsigned node)
{
    cluster_clock_rate(chaos.cluster, node, 83333); /* as fast as chrony may slew */
}

/* Lets a server's clock run at its right rate. */
static void run_at_right_rate(unsigned node)
{
    cluster_clock_rate(chaos.cluster, node, 0);
}

/* Removes the scripts that the server has cached. */
static void flush_scripts(unsigned node)
{
    free(cluster_command(chaos.cluster, node, "SCRIPT FLUSH"));
}

/* Removes all keys of the server, fence record included. */
static void flush_keys(unsigned node)
{
    free(cluster_command(chaos.cluster, node, "FLUSHALL"));
}

/* Lets the server refuse writes for lack of memory. */
static void fill_memory(unsigned node)
{
    free(cluster_command(chaos.cluster, node, "CONFIG SET maxmemory 1"));
}

/* Lets the server accept writes again. */
static void empty_memory(unsigned node)
{
    free(cluster_command(chaos.cluster, node, "CONFIG SET maxmemory 0"));
}

/* All kinds: name, flags, shortest and longest length in ms, function that begins the fault,
 * function that ends it. */
static const struct kind kinds[] = {
    {"kill_keep", DOWN | FORGETS, 5, 1500, kill_server, start_with_data},
    {"kill_lose", DOWN | LOSES, 5, 1500, kill_server, start_empty},
    {"restart", FORGETS, 0, 0, restart_at_once, NULL},
    {"stop", DOWN, 5, 2500, stop_server, continue_server},
    {"cut_there", DOWN | NEEDS_LINKS, 50, 2500, cut_there, repair_link},
    {"cut_back", DOWN | NEEDS_LINKS, 50, 2500, cut_back, repair_link},
    {"cut_both", DOWN | NEEDS_LINKS, 50, 2500, cut_both, repair_link},
    {"cut_connections", 0, 0, 0, cut_connections, NULL},
    {"clock_ahead", LOSES, 0, 0, step_ahead, NULL},
    {"clock_back", LOSES, 200, 2000, step_back, step_forward},
    {"clock_little_fast", 0, 1000, 5000, run_slightly_fast, run_at_right_rate},
    {"clock_fast", LOSES, 1000, 3000, run_fast, run_at_right_rate},
    {"script_flush", 0, 0, 0, flush_scripts, NULL},
    {"flushall", LOSES, 0, 0, flush_keys, NULL},
    {"memory_full", 0, 50, 1500, fill_memory, empty_memory},
    {"client_stop", ON_CLIENT, 5, 2500, client_stop, client_continue},
    {"client_clock", ON_CLIENT | OWN_CLOCK, 0, 0, client_step_clock, NULL},
    {"client_kill", ON_CLIENT, 5, 300, client_kill, client_start},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* The state of a server or client. */
struct target {
    const struct kind *kind; /* its present fault; NULL: none */
    uint64_t until_ms;       /* when that fault ends */
    uint64_t loser_until_ms; /* a server counts as a loser until then */
    bool forgot;             /* the server may have lost its fence record */
};

static struct target servers[NODES], clients[CLIENTS_MAX];
/* The kinds in a random order, of which the first `undrawn` have not been drawn yet. */
static unsigned deck[KINDS], undrawn;

/* Returns the next kind. Every kind is drawn once before any is drawn again, so that none is rarer
 * than the others. */
static unsigned next_kind(void)
{
    if (undrawn == 0) {
        for (undrawn = 0; undrawn < KINDS; undrawn++)
            deck[undrawn] = undrawn;
        for (unsigned i = KINDS - 1; i > 0; i--) {
            const unsigned other = chance(i + 1), kept = deck[i];
            deck[i] = deck[other];
            deck[other] = kept;
        }
    }
    return deck[undrawn - 1];
}

/* Returns whether this run uses fencing tokens. */
static bool is_fenced(void)
{
    return strcmp(chaos.fences, "fenced") == 0;
}

/* Returns whether a fault of this kind makes a server lose something. A lost fence record counts in
 * fenced runs only: if too many servers lose theirs, no lock is granted until an operator
 * intervenes. */
static bool loses(const struct kind *kind)
{
    return (kind->flags & LOSES) != 0 || (is_fenced() && (kind->flags & FORGETS) != 0);
}

/* Returns whether the server's fence record is in use. Clients take a lost record into use again,
 * which is slow on a busy machine. */
static bool has_record(unsigned node)
{
    char *config = cluster_command(chaos.cluster, node, "HGET redlock:fence cfg");
    char *info = cluster_command(chaos.cluster, node, "INFO server");
    char *run = info != NULL ? strstr(info, "run_id:") : NULL;
    bool used = false;

    if (config != NULL && run != NULL) {
        run += strlen("run_id:");
        run[strcspn(run, "\r\n")] = '\0';
        used = *run != '\0' && strstr(config, run) != NULL;
    }
    free(config);
    free(info);
    return used;
}

/* Returns whether the server is a loser or may lack its fence record; `node`: its number. */
static bool counts_as_loser(struct target *server, unsigned node)
{
    if (server->loser_until_ms > wait_now_ms())
        return true;
    server->forgot = server->forgot && is_fenced() && !has_record(node);
    return server->forgot;
}

/* Returns whether a fault of this kind may begin without too many servers down or losers. */
static bool is_allowed(const struct kind *kind)
{
    unsigned down = 0, losers = 0;
    for (unsigned i = 0; i < NODES; i++) {
        down += servers[i].kind != NULL && (servers[i].kind->flags & DOWN) != 0;
        losers += loses(kind) && counts_as_loser(&servers[i], i);
    }
    if (loses(kind) && losers >= LOSERS_MAX)
        return false;
    return (kind->flags & DOWN) == 0 || down < (chance(16) == 0 ? DOWN_MAX_WORST : DOWN_MAX);
}

/* Returns a random server or client for the fault and its number, or NULL if that one has a fault
 * already or no process. */
static struct target *choose_target(const struct kind *kind, unsigned *ret_number)
{
    const bool on_client = (kind->flags & ON_CLIENT) != 0;
    const unsigned clients_fit = (kind->flags & OWN_CLOCK) != 0 ? OURS : clients_count();
    *ret_number = chance(on_client ? clients_fit : NODES);
    struct target *target = on_client ? &clients[*ret_number] : &servers[*ret_number];
    const bool free = target->kind == NULL && (!on_client || client_runs(*ret_number));
    return free ? target : NULL;
}

/* Logs "fault" or "heal" with the kind and the target. */
static void log_fault(const char *word, const struct kind *kind, unsigned number)
{
    if ((kind->flags & ON_CLIENT) != 0)
        history_write(history_now_ns(), "%s %s %s", word, kind->name, client_name(number));
    else
        history_write(history_now_ns(), "%s %s %u", word, kind->name, number);
}

/* Draws a kind and a target and begins the fault. Does nothing if the fault would hit too many
 * servers or the target has one already; the kind is then drawn again next time. */
void faults_begin_one(void)
{
    unsigned number = 0;
    const struct kind *kind = &kinds[next_kind()];
    if ((kind->flags & NEEDS_LINKS) != 0 && !chaos.network) {
        undrawn--;
        return;
    }
    struct target *target = is_allowed(kind) ? choose_target(kind, &number) : NULL;
    if (target == NULL)
        return;
    undrawn--;
    const uint64_t now_ms = wait_now_ms();
    const uint64_t until_ms =
        now_ms + kind->ms_min + (kind->ms_max > 0 ? chance(kind->ms_max - kind->ms_min) : 0);
    log_fault("fault", kind, number);
    kind->begin(number);
    if (loses(kind)) {
        target->loser_until_ms = until_ms + LOSER_MS;
        target->forgot = true;
    }
    if (kind->end != NULL) {
        target->kind = kind;
        target->until_ms = until_ms;
    } else {
        log_fault("heal", kind, number);
    }
}

/* Ends the present fault of a target and logs that; `number`: of the server or client. */
static void end_one(struct target *target, unsigned number)
{
    const struct kind *kind = target->kind;
    target->kind = NULL;
    kind->end(number);
    log_fault("heal", kind, number);
}

/* Ends the faults that were to end by `now_ms` (wait_now_ms()). */
static void end_before(uint64_t now_ms)
{
    for (unsigned i = 0; i < NODES; i++)
        if (servers[i].kind != NULL && servers[i].until_ms <= now_ms)
            end_one(&servers[i], i);
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        if (clients[i].kind != NULL && clients[i].until_ms <= now_ms)
            end_one(&clients[i], i);
}

/* Ends the faults whose time has passed. */
void faults_end_due(void)
{
    end_before(wait_now_ms());
}

/* Ends all faults. */
void faults_end_all(void)
{
    end_before(UINT64_MAX);
}
