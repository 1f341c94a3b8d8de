/* SPDX-License-Identifier: MIT
 * TLS with real servers: which certificates are refused, with which words, and which are accepted;
 * certificates of clients; files that are renewed while a client runs; what is left on a stopped
 * server when the client ends; servers that stall in the handshake.
 * test_tls_host.c tests what TLS does to the program that uses the library.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client and waits until all
 * nodes are eligible. live_lock() acquires a lock, which must be granted. live_release() returns
 * the status of one call and keeps its report, which live_node() and live_text() read.
 * live_voters() counts the eligible nodes. WAIT_UNTIL(condition, ms) polls and returns false after
 * the deadline. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case
 * reaches. */
#include "certificates.h"
#include "live_events.h"
#include "suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOUR_S     3600
#define DAY_S      (24 * HOUR_S)
#define GOOD_NAMES "IP:127.0.0.1,DNS:localhost"
#define PATH_BYTES 256
#define STALLED    2     /* nodes that stall in the handshake */
#define QUEUED_MAX 20    /* SETs in the queue of a stopped server */
#define LEFT_MAX   2     /* keys that redlock_free() may leave on a stopped server */
#define STALL_MS   20000 /* longer than a case waits for anything */
#define CHANGED    "have changed and were read"
#define KEPT       "cannot be used, so the earlier ones stay"

static atomic_uint changed_lines, kept_lines; /* log lines with these texts */

/* Counts log lines about files that were read anew. */
static void count_line(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    if (strstr(message, CHANGED) != NULL)
        atomic_fetch_add(&changed_lines, 1);
    if (strstr(message, KEPT) != NULL)
        atomic_fetch_add(&kept_lines, 1);
}

/* Returns the path of a file in the directory of the servers; valid until the next call. */
static const char *path_of(const char *name)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", cluster_dir(live.cluster), name);
    return path;
}

/* Appends one file to another one, in the directory of the servers. With `fresh`, the other file is
 * replaced. */
static void put_file(const char *from, const char *to, bool fresh)
{
    char text[8192], target[PATH_BYTES], unfinished[PATH_BYTES + 8];
    size_t len = 0;
    snprintf(target, sizeof target, "%s", path_of(to));
    snprintf(unfinished, sizeof unfinished, "%s.new", target);
    const char *const parts[] = {fresh ? NULL : target, path_of(from)};
    for (unsigned i = 0; i < 2; i++) {
        FILE *in = parts[i] == NULL ? NULL : fopen(parts[i], "re");
        if (parts[i] == NULL)
            continue;
        ck_assert_ptr_nonnull(in);
        len += fread(text + len, 1, sizeof text - len, in);
        fclose(in);
    }
    FILE *out = fopen(unfinished, "we");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, len, out), len);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_eq(rename(unfinished, target), 0);
}

/* Returns how many connections of the library a server has. */
static unsigned count_connections(unsigned node)
{
    unsigned count = 0;
    char *list = cluster_command(live.cluster, node, "CLIENT LIST TYPE normal");
    ck_assert_ptr_nonnull(list);
    for (const char *at = list; (at = strstr(at, "name=redlock")) != NULL; at++)
        count++;
    free(list);
    return count;
}

/* Makes an issuer with this name. */
static void make_issuer(const char *name)
{
    certificate_make(cluster_dir(live.cluster), NULL,
                     &(struct certificate_terms){.subject = name, .is_issuer = true});
}

/* Makes a new certificate of `issuer` for a server, with these terms except the subject, and has
 * the server use it for new connections. */
static void certify(unsigned node, const char *issuer, const struct certificate_terms *terms)
{
    char name[24], command[PATH_BYTES + 64];
    struct certificate_terms own = *terms;
    snprintf(name, sizeof name, "server%u", node);
    own.subject = name;
    certificate_make(cluster_dir(live.cluster), issuer, &own);
    snprintf(command, sizeof command, "CONFIG SET tls-cert-file %s/%s.pem",
             cluster_dir(live.cluster), name);
    ck_assert(cluster_replies(live.cluster, node, "OK", command));
}

/* Makes new certificates for all servers. */
static void certify_all(const char *issuer, const struct certificate_terms *terms)
{
    for (unsigned i = 0; i < NODES; i++)
        certify(i, issuer, terms);
}

/* Gives all servers good certificates again, and has them ask clients for none. */
static void heal(void)
{
    cluster_command_all(live.cluster, "CONFIG SET tls-auth-clients no");
    certify_all("ca", &(struct certificate_terms){.names = GOOD_NAMES});
}

/* Returns a configuration of all nodes by this host, with parameters of their addresses in which
 * each "$" stands for the directory of the servers. The caller frees it. */
static redlock_config_t *config_with(const char *host, const char *parameters)
{
    char urls[4096], expanded[1024] = "";
    size_t len = 0;
    for (const char *at = parameters; *at != '\0'; at++) {
        const size_t used = strlen(expanded);
        if (*at == '$')
            snprintf(expanded + used, sizeof expanded - used, "%s", cluster_dir(live.cluster));
        else
            snprintf(expanded + used, sizeof expanded - used, "%c", *at);
    }
    for (unsigned i = 0; i < NODES; i++)
        len += (size_t)snprintf(urls + len, sizeof urls - len, "%srediss://%s:%d?%s",
                                i == 0 ? "" : ",", host, cluster_port(live.cluster, i), expanded);
    atomic_store(&changed_lines, 0);
    atomic_store(&kept_lines, 0);
    redlock_config_t *config = live_config_of(urls);
    ck_assert_int_eq(redlock_config_set_log(config, REDLOCK_LOG_INFO, count_line, NULL),
                     REDLOCK_OK);
    return config;
}

/* Creates live.client for nodes that do not become eligible. */
static void connect_in_vain(const char *host, const char *parameters)
{
    redlock_config_t *config = config_with(host, parameters);
    const int status = redlock_new(&live.client, config);
    ck_assert_msg(status == REDLOCK_OK, "%s", redlock_config_error(config));
    redlock_config_free(config);
}

/* Checks that no node is eligible for want of TLS, and that statistics and report say why with
 * these words. */
static void check_refused(const char *words)
{
    redlock_lock_t *lock = NULL;
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_msg(
            WAIT_UNTIL(live_node_stats(live.client, i).cause == REDLOCK_CAUSE_TLS, TIME_LIMIT_MS),
            "node %u: cause %d, \"%s\"", i, live_node_stats(live.client, i).cause,
            live_node_stats(live.client, i).text);
        const redlock_node_stats_t stats = live_node_stats(live.client, i);
        ck_assert_msg(strstr(stats.text, words) != NULL, "node %u: \"%s\"", i, stats.text);
    }
    CHECK_STATUS(live_acquire("refused", LONG_TTL_MS, 0, &lock), REDLOCK_EEXCLUDED);
    ck_assert_msg(live_node(0).cause == REDLOCK_CAUSE_TLS &&
                      strstr(live_node(0).text, words) != NULL,
                  "%s", live_text());
}

/* A certificate of the servers, and how a client that connects to `host` judges it. */
struct judged {
    const char *issuer;
    struct certificate_terms terms;
    const char *host;
    const char *parameters; /* of the addresses, as for config_with() */
    const char *words;      /* in the reason of the refusal; NULL: it is accepted */
};

static const struct judged refused[] = {
    {"other",
     {.names = GOOD_NAMES},
     "127.0.0.1",
     "cacert=$/ca.pem",
     "from an issuer that is trusted"},
    {"other",
     {.names = GOOD_NAMES},
     "127.0.0.1",
     "cacert=$/ca.pem&verify=chain",
     "from an issuer that is trusted"},
    {"ca",
     {.names = "IP:127.0.0.1,DNS:other.test"},
     "localhost",
     "cacert=$/ca.pem",
     "it is for \"127.0.0.1\", \"other.test\", not for \"localhost\""},
    {"ca",
     {.names = "IP:127.0.0.2,DNS:localhost"},
     "127.0.0.1",
     "cacert=$/ca.pem",
     "it is for \"127.0.0.2\", \"localhost\", not for \"127.0.0.1\""},
    {"ca",
     {.names = NULL},
     "127.0.0.1",
     "cacert=$/ca.pem",
     "it has no DNS name or IP address in subjectAltName; \"127.0.0.1\" is needed"},
    {"ca",
     {.names = GOOD_NAMES},
     "127.0.0.1",
     "cacert=$/ca.pem&sni=other.test",
     "not for \"other.test\""},
    {"ca",
     {.names = GOOD_NAMES, .from_s = -2 * DAY_S, .until_s = -HOUR_S},
     "127.0.0.1",
     "cacert=$/ca.pem",
     "the certificate expired at"},
    {"ca",
     {.names = GOOD_NAMES, .from_s = HOUR_S, .until_s = DAY_S},
     "127.0.0.1",
     "cacert=$/ca.pem",
     "the certificate is not valid before"},
    {"ca",
     {.names = GOOD_NAMES, .use = "clientAuth"},
     "127.0.0.1",
     "cacert=$/ca.pem",
     "the certificate was not accepted"},
};

static const struct judged accepted[] = {
    {"ca", {.names = GOOD_NAMES}, "127.0.0.1", "cacert=$/ca.pem", NULL},
    {"ca", {.names = GOOD_NAMES}, "localhost", "cacert=$/ca.pem", NULL},
    {"ca", {.names = "DNS:other.test"}, "127.0.0.1", "cacert=$/ca.pem&sni=other.test", NULL},
    {"ca", {.names = "DNS:other.test"}, "127.0.0.1", "cacert=$/ca.pem&verify=chain", NULL},
    {"other", {.names = "DNS:other.test"}, "127.0.0.1", "verify=none", NULL},
};

/* A certificate that must not be accepted is refused by each node, in words. */
START_TEST(wrong_certificates_are_refused)
{
    const struct judged *wrong = &refused[_i];
    live.heal = heal;
    make_issuer("other");
    certify_all(wrong->issuer, &wrong->terms);
    connect_in_vain(wrong->host, wrong->parameters);
    check_refused(wrong->words);
}
END_TEST

/* A certificate that the settings accept is accepted, and the facts say how far it is verified. */
START_TEST(certificates_are_accepted_as_configured)
{
    const struct judged *good = &accepted[_i];
    char parameters[256];
    const bool verified = strstr(good->parameters, "verify=none") == NULL;
    live.heal = heal;
    make_issuer("other");
    certify_all(good->issuer, &good->terms);
    snprintf(parameters, sizeof parameters, "fresh=1&%s", good->parameters);
    live.client = live_open(config_with(good->host, parameters));
    live_check_works();
    const redlock_node_stats_t stats = live_node_stats(live.client, 0);
    ck_assert_uint_ne(stats.facts & REDLOCK_FACT_TLS, 0);
    ck_assert_int_eq((stats.facts & REDLOCK_FACT_UNVERIFIED) == 0, verified);
    const int64_t days = (stats.certificate_expiry_s - (int64_t)time(NULL)) / DAY_S;
    ck_assert_msg(days == 29 || days == 30, "it expires in %d days", (int)days);
}
END_TEST

/* A client that was refused connects when the servers have good certificates, without a restart. */
START_TEST(a_client_gets_through_after_the_repair)
{
    live.heal = heal;
    certify_all("ca", &(struct certificate_terms){.names = "DNS:other.test"});
    connect_in_vain("127.0.0.1", "fresh=1&cacert=$/ca.pem");
    check_refused("not for \"127.0.0.1\"");
    heal();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    live_check_works();
}
END_TEST

/* Servers that ask for a certificate accept that of their issuer (_i = 0), and the report says
 * what is wrong without one (1), and with one of another issuer (2). */
START_TEST(certificates_of_clients)
{
    const char *dir = cluster_dir(live.cluster);
    live.heal = heal;
    make_issuer("other");
    certificate_make(dir, "ca",
                     &(struct certificate_terms){.subject = "mine", .use = "clientAuth"});
    certificate_make(dir, "other",
                     &(struct certificate_terms){.subject = "alien", .use = "clientAuth"});
    cluster_command_all(live.cluster, "CONFIG SET tls-auth-clients yes");
    if (_i == 0) {
        live.client = live_open(
            config_with("127.0.0.1", "fresh=1&cacert=$/ca.pem&cert=$/mine.pem&key=$/mine.key"));
        live_check_works();
    } else if (_i == 1) {
        connect_in_vain("127.0.0.1", "cacert=$/ca.pem");
        check_refused("the server requires a certificate of the client");
    } else {
        connect_in_vain("127.0.0.1", "cacert=$/ca.pem&cert=$/alien.pem&key=$/alien.key");
        check_refused("the server does not trust the issuer of the client's certificate; use one "
                      "that the CA in its tls-ca-cert-file has signed");
    }
}
END_TEST

/* Ends all connections of the library to a server, and waits until the node is eligible again. */
static void reconnect(unsigned node)
{
    const uint64_t before = live_node_stats(live.client, node).reconnects;
    free(cluster_command(live.cluster, node, "CLIENT KILL TYPE normal SKIPME yes"));
    ck_assert_msg(WAIT_UNTIL(live_node_stats(live.client, node).reconnects > before &&
                                 live_node_stats(live.client, node).eligible == 1,
                             TIME_LIMIT_MS),
                  "node %u: \"%s\"", node, live_node_stats(live.client, node).text);
}

/* All servers get certificates of a new issuer, one after the other, by a setting (_i = 0) or with
 * a restart (1). The client reads its file of issuers anew each time. A lock that it extends is
 * held all the time. */
START_TEST(a_rotation_loses_no_lock)
{
    const uint64_t ttl_ms = live_brief_ms(3000);
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(ttl_ms);
    events_reset();
    live.heal = heal;
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    make_issuer("next");
    put_file("ca.pem", "trusted.pem", true);
    live.client = live_open(config_with("127.0.0.1", "durable=1&cacert=$/trusted.pem"));
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    CHECK_STATUS(redlock_acquire(live.client, "kept", &opts, &lock, NULL), REDLOCK_OK);
    put_file("next.pem", "trusted.pem", false);
    for (unsigned i = 0; i < NODES; i++) {
        certify(i, "next", &(struct certificate_terms){.names = GOOD_NAMES});
        const uint64_t before = live_node_stats(live.client, i).reconnects;
        if (_i == 1)
            cluster_restart(live.cluster, i, true);
        else
            reconnect(i);
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).reconnects > before &&
                                 live_node_stats(live.client, i).eligible == 1,
                             TIME_LIMIT_MS));
    }
    ck_assert(WAIT_UNTIL(atomic_load(&changed_lines) == 1, TIME_LIMIT_MS));
    put_file("next.pem", "trusted.pem", true);
    for (unsigned i = 0; i < NODES; i++)
        reconnect(i);
    ck_assert_uint_eq(atomic_load(&changed_lines), 2);
    const unsigned extended = count_events(&client_events, REDLOCK_EVENT_EXTENDED);
    ck_assert(WAIT_UNTIL(count_events(&client_events, REDLOCK_EVENT_EXTENDED) > extended,
                         ttl_ms + TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_LOST), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A file that cannot be used leaves the earlier one in use, and is logged once, however often the
 * client connects. A usable one is read again. */
START_TEST(a_bad_file_keeps_the_earlier_one)
{
    put_file("ca.pem", "trusted.pem", true);
    live.client = live_open(config_with("127.0.0.1", "fresh=1&cacert=$/trusted.pem"));
    put_file("ca.key", "trusted.pem", true); /* a key is no certificate */
    for (unsigned i = 0; i < NODES; i++)
        reconnect(i);
    ck_assert_uint_eq(atomic_load(&kept_lines), 1);
    ck_assert_int_eq(unlink(path_of("trusted.pem")), 0);
    reconnect(0);
    ck_assert_uint_eq(atomic_load(&kept_lines), 2);
    put_file("ca.pem", "trusted.pem", true);
    for (unsigned i = 0; i < NODES; i++)
        reconnect(i);
    ck_assert_uint_eq(atomic_load(&kept_lines), 2);
    ck_assert_uint_eq(atomic_load(&changed_lines), 1);
    live_check_works();
}
END_TEST

/* Acquires `count` locks while node 0 is stopped, and then releases them: its server has that many
 * SETs and then that many undos in its queue, each in a record of its own. */
static void fill_queue(unsigned count)
{
    char name[32];
    redlock_lock_t *locks[QUEUED_MAX];
    cluster_command_all(live.cluster, "CONFIG RESETSTAT");
    live_pause(0, 1);
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "queued%u", i);
        locks[i] = live_lock(name, LONG_TTL_MS);
    }
    for (unsigned i = 0; i < count; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
    ck_assert_uint_eq(live_node_stats(live.client, 0).undos_pending, count);
}

static const unsigned queued[] = {1, 2, 5, QUEUED_MAX};

/* A shutdown that succeeds while the server is stopped leaves no key when the server continues. One
 * that fails meanwhile succeeds afterwards, and leaves none either. */
START_TEST(a_shutdown_leaves_no_key)
{
    live.silence = true;
    live_connect();
    fill_queue(queued[_i]);
    const int status = redlock_shutdown(live.client, 2 * live_unresponsive_ms());
    ck_assert_msg(status == REDLOCK_ENOQUORUM || (status == REDLOCK_OK && queued[_i] == 1), "%s",
                  redlock_error_name(status));
    if (status == REDLOCK_OK)
        live_disconnect();
    live_resume_all();
    if (status != REDLOCK_OK)
        CHECK_STATUS(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    live_disconnect();
    ck_assert(WAIT_UNTIL(live_calls(0, "evalsha") >= queued[_i], TIME_LIMIT_MS));
    ck_assert_uint_eq(cluster_count_all_keys(live.cluster), 0);
}
END_TEST

/* redlock_free() alone may leave keys on a stopped server, but not more than the server has read
 * records when it notices the end of the connection. A SET with its undo behind it leaves none. */
START_TEST(a_free_leaves_few_keys)
{
    live.node_time_ms = STALL_MS;
    live_connect();
    fill_queue(queued[_i]);
    live_disconnect();
    live_resume_all();
    ck_assert(WAIT_UNTIL(count_connections(0) == 0, TIME_LIMIT_MS));
    const size_t left = cluster_count_keys(live.cluster, 0);
    printf("# %2u SETs and %2u undos in the queue: %2u and %2u executed\n", queued[_i], queued[_i],
           (unsigned)live_calls(0, "set"), (unsigned)live_calls(0, "evalsha"));
    ck_assert_uint_le(left, queued[_i] == 1 ? 0 : LEFT_MAX);
    live_delete_leftovers();
}
END_TEST

/* Returns a socket that listens on a free port and never accepts: the kernel accepts, and the peer
 * says nothing. */
static int listen_in_silence(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* Two of five servers stall in the handshake: no attempt waits for them. */
START_TEST(a_stalled_handshake_costs_an_attempt_nothing)
{
    char urls[2048] = "";
    int fd[STALLED], port = 0;
    for (unsigned i = 0; i < NODES; i++) {
        const size_t len = strlen(urls);
        if (i < STALLED)
            fd[i] = listen_in_silence(&port);
        if (i < STALLED)
            snprintf(urls + len, sizeof urls - len, "rediss://127.0.0.1:%d,", port);
        else
            snprintf(urls + len, sizeof urls - len, "%s,", cluster_url(live.cluster, i));
    }
    urls[strlen(urls) - 1] = '\0';
    live.node_time_ms = live.connect_time_ms = STALL_MS;
    redlock_config_t *config = live_config_of(urls);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES - STALLED, TIME_LIMIT_MS));
    const uint64_t from_ms = wait_now_ms();
    for (unsigned i = 0; i < 20; i++)
        live_check_works();
    ck_assert_uint_lt(wait_now_ms() - from_ms, wait_scaled_ms(STALL_MS) / 2);
    for (unsigned i = 0; i < STALLED; i++) {
        ck_assert_int_eq(live_node_stats(live.client, i).eligible, 0);
        ck_assert_uint_eq(live_node_stats(live.client, i).granted, 0);
        close(fd[i]);
    }
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *tls_suite(void)
{
    Suite *suite = suite_create("live_tls");
    live_add_each(suite, "refused", wrong_certificates_are_refused,
                  sizeof refused / sizeof refused[0]);
    live_add_each(suite, "accepted", certificates_are_accepted_as_configured,
                  sizeof accepted / sizeof accepted[0]);
    live_add(suite, "repaired", a_client_gets_through_after_the_repair);
    live_add_each(suite, "clients", certificates_of_clients, 3);
    live_add_each(suite, "rotation", a_rotation_loses_no_lock, 2);
    live_add(suite, "bad file", a_bad_file_keeps_the_earlier_one);
    live_add_each(suite, "shutdown", a_shutdown_leaves_no_key, sizeof queued / sizeof queued[0]);
    live_add_each(suite, "free", a_free_leaves_few_keys, sizeof queued / sizeof queued[0]);
    live_add(suite, "stalled", a_stalled_handshake_costs_an_attempt_nothing);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without servers with TLS. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    if (cluster_tls_missing() != NULL)
        return suite_skip(cluster_tls_missing());
    live_start_servers_with(&(struct cluster_opts){.tls = true, .keep_data = true});
    const int status = suite_run_nofork(tls_suite());
    live_stop_servers();
    return status;
}
