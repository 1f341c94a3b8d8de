/* SPDX-License-Identifier: MIT
 * Starts, stops and describes a set of servers. */
#include "cluster.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certificates.h"
#include "cluster_impl.h"
#include "wait.h"

#define READY_MS  10000
#define LINK_PORT 6379

static struct cluster *clusters;

/* Prints "test harness: …" with the last lines of the node's log (if any) and aborts. */
_Noreturn void cluster_die(const struct cluster *cluster, unsigned node, const char *text)
{
    fprintf(stderr, "test harness: node %u: %s\n", node, text);
    if (cluster != NULL && node < cluster->count) {
        char line[512];
        char path[SERVER_PATH_MAX + 8];
        snprintf(path, sizeof path, "%s/log", cluster->server[node].dir);
        FILE *log = fopen(path, "re");
        while (log != NULL && fgets(line, sizeof line, log) != NULL)
            fprintf(stderr, "    %s", line);
        if (log != NULL)
            fclose(log);
    }
    fflush(NULL);
    abort();
}

/* Aborts unless `node` is an index in this cluster. */
void cluster_check_node(const struct cluster *cluster, unsigned node)
{
    if (cluster == NULL || node >= cluster->count)
        cluster_die(NULL, node, "no such node in this cluster");
}

/* Removes one file or empty directory; nftw() calls this function. Returns 0, or -1 to end the
 * walk. */
static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

/* Removes a directory with all that is in it. Errors are ignored. */
static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Stops the clusters that this process has started; exit() calls this function. */
static void stop_all(void)
{
    struct cluster *next = NULL;
    for (struct cluster *cluster = clusters; cluster != NULL; cluster = next) {
        next = cluster->next;
        if (cluster->owner == getpid())
            cluster_stop(cluster);
    }
}

/* Adds the cluster to the list of those that stop_all() stops. */
static void remember(struct cluster *cluster)
{
    static bool registered;
    if (!registered)
        atexit(stop_all);
    registered = true;
    cluster->owner = getpid();
    cluster->next = clusters;
    clusters = cluster;
}

/* Removes the cluster from that list. */
static void forget(struct cluster *cluster)
{
    for (struct cluster **link = &clusters; *link != NULL; link = &(*link)->next) {
        if (*link == cluster) {
            *link = cluster->next;
            return;
        }
    }
}

/* Returns whether a server program is installed. If not, skip: suite_skip(CLUSTER_MISSING). */
bool cluster_available(void)
{
    return server_program() != NULL;
}

/* Returns why there can be no servers with TLS, or NULL. */
const char *cluster_tls_missing(void)
{
    if (!certificates_are_built())
        return CERTIFICATES_MISSING;
    return server_is_tls_built() ? NULL : "the server program is built without TLS";
}

/* Returns whether the environment asks for servers with TLS. */
static bool is_tls_wanted(void)
{
    const char *text = getenv("REDLOCK_TEST_TLS");
    return text != NULL && strcmp(text, "1") == 0;
}

/* Tells the runner that the environment has changed what this program tests
 * (test/runner/over_tls.py). */
static void print_mark(void)
{
    printf("# the servers speak TLS\n");
    fflush(stdout);
}

/* Returns whether the server replies to PING and is the process that this cluster started. */
static bool is_ready(struct cluster *cluster, unsigned node)
{
    /* The reply must come from our own process, not from another server on that address. */
    char expected[64];
    snprintf(expected, sizeof expected, "process_id:%d\r", (int)cluster->server[node].pid);
    char *info = cluster_command(cluster, node, "INFO server");
    const bool ours = info != NULL && strstr(info, expected) != NULL;
    free(info);
    return ours && cluster_replies(cluster, node, "PONG", "PING");
}

/* Waits until the server replies. Returns false if the process ended before. */
static bool wait_ready(struct cluster *cluster, unsigned node)
{
    struct server *server = &cluster->server[node];
    const bool over = WAIT_UNTIL(is_ready(cluster, node) || server_reap(server), READY_MS);
    if (!over)
        cluster_die(cluster, node, "server does not get ready within 10 s");
    return server->pid != 0;
}

/* Fills in the address of each server, and the list of all of them, separated by commas. */
static void write_urls(struct cluster *cluster)
{
    const char *password = cluster->opts.password;
    char credentials[80] = "";
    const char *fresh = cluster->guarded ? "" : "?fresh=1";
    char query[SERVER_PATH_MAX + 32];
    if (password != NULL)
        snprintf(credentials, sizeof credentials, ":%s@", password);
    snprintf(query, sizeof query, "%s", fresh);
    if (cluster->with_tls)
        snprintf(query, sizeof query, "%s%scacert=%s", fresh, cluster->guarded ? "?" : "&",
                 cluster->cacert);
    for (unsigned i = 0; i < cluster->count; i++) {
        const struct server *server = &cluster->server[i];
        const bool v6 = strchr(server->host, ':') != NULL;
        char url[URL_MAX];
        if (cluster->opts.unix_socket)
            snprintf(url, sizeof url, "unix://%s%s/sock%s", credentials, server->dir, fresh);
        else
            snprintf(url, sizeof url, v6 ? "%s%s[%s]:%d%s" : "%s%s%s:%d%s", cluster_scheme(cluster),
                     credentials, server->host, server->port, query);
        memcpy(cluster->url[i], url, sizeof url);
        if (i > 0)
            strcat(cluster->urls, ",");
        strcat(cluster->urls, url);
    }
}

/* Places the server at its end of link `node`. In a namespace of its own every port is free. */
static void use_link(struct cluster *cluster, unsigned node)
{
    struct server *server = &cluster->server[node];
    network_address(node, server->host, sizeof server->host);
    server->network = cluster->network.link[node];
    server->port = LINK_PORT;
}

/* Creates the file with the settings of a server's clocks, before the server starts. */
static void use_clock(struct cluster *cluster, unsigned node)
{
    struct server *server = &cluster->server[node];
    snprintf(server->clock_path, sizeof server->clock_path, "%s/clock%u", cluster->dir, node);
    cluster->clock[node] = clockshim_create(server->clock_path);
    if (cluster->clock[node] == NULL)
        cluster_die(cluster, node, "cannot make the file of its clocks");
}

/* Makes the certificate of a server, which names its address and localhost. */
static void use_certificate(struct cluster *cluster, unsigned node)
{
    struct server *server = &cluster->server[node];
    char name[24], names[80];
    snprintf(name, sizeof name, "server%u", node);
    snprintf(names, sizeof names, "IP:%s,DNS:localhost", server->host);
    snprintf(server->certificate, sizeof server->certificate, "%s/%s", cluster->dir, name);
    certificate_make(cluster->dir, "ca",
                     &(struct certificate_terms){.subject = name, .names = names});
}

/* Makes the issuer of the servers' certificates. */
static void make_issuer(struct cluster *cluster)
{
    const char *missing = cluster_tls_missing();
    if (missing != NULL)
        cluster_die(NULL, 0, missing);
    certificate_make(cluster->dir, NULL,
                     &(struct certificate_terms){.subject = "ca", .is_issuer = true});
    snprintf(cluster->cacert, sizeof cluster->cacert, "%s/ca.pem", cluster->dir);
    cluster->opts.cacert = cluster->cacert;
}

/* Starts all processes first and then waits for all: five servers start in the time of one. */
static void start_nodes(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++) {
        struct server *server = &cluster->server[i];
        snprintf(server->dir, sizeof server->dir, "%s/n%u", cluster->dir, i);
        snprintf(server->host, sizeof server->host, "%s", cluster->opts.host);
        if (mkdir(server->dir, 0700) != 0)
            cluster_die(cluster, i, "cannot make its directory");
        if (cluster->with_network)
            use_link(cluster, i);
        else if (!cluster->opts.unix_socket && !server_take_port(server))
            cluster_die(cluster, i, "no port is free");
        if (cluster->with_clocks)
            use_clock(cluster, i);
        if (cluster->with_tls)
            use_certificate(cluster, i);
        if (!server_spawn(server, &cluster->opts))
            cluster_die(cluster, i, "cannot start a server process");
    }
    for (unsigned i = 0; i < cluster->count; i++)
        if (!wait_ready(cluster, i))
            cluster_die(cluster, i, "server ends right after its start");
}

/* Starts servers as `opts` says and returns when each has replied to PING. Aborts if one does
 * not start. */
struct cluster *cluster_start_with(const struct cluster_opts *opts)
{
    if (opts->nodes > CLUSTER_NODES_MAX || !cluster_available())
        cluster_die(NULL, 0, opts->nodes > CLUSTER_NODES_MAX ? "too many nodes" : CLUSTER_MISSING);
    struct cluster *cluster = calloc(1, sizeof *cluster);
    if (cluster == NULL)
        cluster_die(NULL, 0, "out of memory");
    cluster->count = opts->nodes == 0 ? 5 : opts->nodes;
    for (unsigned i = 0; i < cluster->count; i++)
        cluster->server[i].port_fd = -1;
    cluster->opts.unix_socket = opts->unix_sockets;
    cluster->opts.keep_data = opts->keep_data;
    cluster->opts.host = opts->host == NULL ? "127.0.0.1" : opts->host;
    cluster->opts.password = opts->password;
    cluster->opts.args = opts->args;
    cluster->guarded = opts->guarded;
    cluster->with_clocks = opts->clocks;
    cluster->with_network = opts->network;
    cluster->with_tls = !opts->unix_sockets && (opts->tls || is_tls_wanted());
    if (cluster->with_tls && !opts->tls)
        print_mark();
    if (opts->network && !network_open(&cluster->network, cluster->count))
        cluster_die(NULL, 0, "cannot make network namespaces");
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || strlen(parent) > sizeof cluster->dir - 20)
        parent = "/tmp";
    snprintf(cluster->dir, sizeof cluster->dir, "%s/rltest-XXXXXX", parent);
    if (mkdtemp(cluster->dir) == NULL)
        cluster_die(NULL, 0, "cannot make a temporary directory");
    remember(cluster);
    if (cluster->with_tls)
        make_issuer(cluster);
    start_nodes(cluster);
    write_urls(cluster);
    if (opts->lasting)
        cluster_open_lasting(cluster);
    return cluster;
}

/* Starts `nodes` servers (0: five) with the default options; see cluster_start_with(). */
struct cluster *cluster_start(unsigned nodes)
{
    const struct cluster_opts opts = {.nodes = nodes};
    return cluster_start_with(&opts);
}

/* Kills the servers and removes the directory; also done at exit(). NULL: no-op. */
void cluster_stop(struct cluster *cluster)
{
    if (cluster == NULL)
        return;
    cluster_close_lasting(cluster);
    for (unsigned i = 0; i < cluster->count; i++) {
        server_kill(&cluster->server[i]);
        server_give_port(&cluster->server[i]);
        clockshim_close(cluster->clock[i]);
    }
    if (cluster->with_network)
        network_close(&cluster->network);
    remove_tree(cluster->dir);
    forget(cluster);
    free(cluster);
}

/* Returns the number of servers. */
unsigned cluster_nodes(const struct cluster *cluster)
{
    return cluster->count;
}

/* Returns the temporary directory of the cluster; n0, n1, … in it belong to one server each. */
const char *cluster_dir(const struct cluster *cluster)
{
    return cluster->dir;
}

/* Returns the addresses of all servers, separated by commas. */
const char *cluster_urls(const struct cluster *cluster)
{
    return cluster->urls;
}

/* Returns the address of one server. */
const char *cluster_url(const struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    return cluster->url[node];
}

/* Returns the TCP port of a server; 0: the server has a unix socket only. */
int cluster_port(const struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    return cluster->server[node].port;
}

/* Returns the beginning of the addresses. */
const char *cluster_scheme(const struct cluster *cluster)
{
    return cluster->with_tls ? "rediss://" : "redis://";
}

/* Returns the file of the issuers that a client must trust; NULL: the cluster has no TLS. */
const char *cluster_cacert(const struct cluster *cluster)
{
    return cluster->with_tls ? cluster->cacert : NULL;
}

/* Returns the process id of a server; 0: it is not running. */
pid_t cluster_pid(const struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    return cluster->server[node].pid;
}

/* Kills the server with SIGKILL and returns when the process is gone. */
void cluster_kill(struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    server_kill(&cluster->server[node]);
    cluster->paused[node] = false;
}

/* Starts the server again at the same address and returns when it replies to PING. A running
 * server is killed first. `with_data` needs keep_data; without it the server starts empty. */
void cluster_restart(struct cluster *cluster, unsigned node, bool with_data)
{
    cluster_kill(cluster, node);
    struct server *server = &cluster->server[node];
    if (with_data && !cluster->opts.keep_data)
        cluster_die(cluster, node, "a restart with data needs the option keep_data");
    if (!with_data) {
        remove_tree(server->dir);
        if (mkdir(server->dir, 0700) != 0)
            cluster_die(cluster, node, "cannot make its directory again");
    }
    if (!server_spawn(server, &cluster->opts) || !wait_ready(cluster, node))
        cluster_die(cluster, node, "server does not come back");
}
