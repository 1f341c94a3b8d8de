/* SPDX-License-Identifier: MIT
 * Hostile and broken peers of TLS. Each case is simulated by four of five servers (the attempt must
 * fail in time, and name the cause and the reason for each of the four) and by two of five (the
 * lock must be acquired all the same, and released). No descriptor stays open.
 *
 * The peers are the servers of fake_redis.h with a fault of fake_tls.h or with a certificate that
 * the client must not accept. */
#include "certificates.h"
#include "fake_redis.h"
#include "fdcheck.h"
#include "suite.h"
#include "wait.h"

#include <redlock/redlock.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS       5
#define TIME_LIMIT_MS 10000
#define TTL_MS        30000
#define NODE_MS       2000 /* connect and node timeout where no server is silent */
#define SILENT_MS     300  /* the same where servers are */
#define RECORDS       12   /* records that a server writes up to the first replies, and more */

/* The causes that a failure may have. */
enum {
    BY_TLS = 1u << REDLOCK_CAUSE_TLS,
    REFUSED = 1u << REDLOCK_CAUSE_CONNECT,
    TIMED_OUT = 1u << REDLOCK_CAUSE_TIMEOUT,
    LOST = 1u << REDLOCK_CAUSE_DISCONNECT,
    PROTOCOL = 1u << REDLOCK_CAUSE_PROTOCOL
};

static struct fdcheck before;
static struct fake_redis *fake[SERVERS];
static redlock_t *client;
static redlock_report_t *report;

/* Fixture: starts five servers without faults. */
static void setup(void)
{
    fdcheck_begin(&before);
    for (size_t i = 0; i < SERVERS; i++)
        fake[i] = fake_redis_start(NULL);
}

/* Frees the client and its last report. */
static void disconnect(void)
{
    redlock_report_free(report);
    report = NULL;
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
    client = NULL;
}

/* Fixture: stops everything and checks that no descriptor is left open. */
static void teardown(void)
{
    for (size_t i = 0; i < SERVERS; i++)
        fake_redis_stop(fake[i]);
    const char *leaked = fdcheck_leaked(&before, TIME_LIMIT_MS);
    ck_assert_msg(leaked == NULL, "descriptors left open: %s", leaked);
}

/* Creates a client of the five servers, whose time limits are `limit_ms` (scaled). `host` replaces
 * 127.0.0.1 in their addresses, unless it is NULL. */
static void connect_to(const char *host, unsigned limit_ms)
{
    redlock_config_t *config = NULL;
    char url[200];

    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    for (size_t i = 0; i < SERVERS; i++) {
        const char *port = strrchr(fake_redis_url(fake[i]), ':');
        snprintf(url, sizeof url, "rediss://%s%s", host != NULL ? host : "127.0.0.1", port);
        ck_assert_int_eq(redlock_config_add_nodes(config, url), REDLOCK_OK);
    }
    const uint32_t ms = (uint32_t)wait_scaled_ms(limit_ms);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(config, ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_retry_ms(config, 5, 50), REDLOCK_OK);
    ck_assert_msg(redlock_new(&client, config) == REDLOCK_OK, "%s", redlock_config_error(config));
    redlock_config_free(config);
}

/* Has the first `count` servers speak TLS as the profile says; NULL: not at all. */
static void misbehave(size_t count, const struct fake_tls_profile *profile)
{
    for (size_t i = 0; i < count; i++)
        fake_redis_set_tls(fake[i], profile);
}

/* Tries to acquire the lock within `wait_ms` (scaled). */
static int acquire(redlock_lock_t **ret_lock, uint64_t wait_ms)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);

    opts.wait_ms = wait_scaled_ms(wait_ms);
    redlock_report_free(report);
    report = NULL;
    return redlock_acquire(client, "resource", &opts, ret_lock, &report);
}

/* Returns what the client knows about a server. */
static redlock_node_stats_t stats_of(size_t index)
{
    redlock_node_stats_t stats;

    ck_assert_int_eq(redlock_get_node_stats(client, index, &stats, sizeof stats), REDLOCK_OK);
    return stats;
}

/* Returns whether the server has failed for one of these causes, with a text that contains
 * `words`. */
static bool has_failed(size_t index, unsigned causes, const char *words)
{
    redlock_node_stats_t stats = stats_of(index);

    return (causes >> stats.cause & 1u) != 0 && strstr(stats.text, words) != NULL;
}

/* Waits until the first four servers have failed for one of these causes, with such a text. */
static void check_causes(const char *name, unsigned causes, const char *words)
{
    for (size_t i = 0; i < SERVERS - 1; i++) {
        bool failed = WAIT_UNTIL(has_failed(i, causes, words), TIME_LIMIT_MS);
        redlock_node_stats_t stats = stats_of(i);
        ck_assert_msg(failed, "%s: server %zu: %s: '%s', not '%s'", name, i,
                      redlock_cause_name(stats.cause), stats.text, words);
        for (const char *c = stats.text; *c != '\0'; c++)
            ck_assert_msg(*c >= 0x20 && *c < 0x7f, "%s: byte %d in '%s'", name, *c, stats.text);
    }
}

/* Checks that the lock can be acquired and released in time. */
static void check_works(const char *name)
{
    redlock_lock_t *lock = NULL;
    int status = acquire(&lock, TIME_LIMIT_MS);

    ck_assert_msg(status == REDLOCK_OK, "%s: %s: %s", name, redlock_strerror(status),
                  redlock_report_text(report));
    status = redlock_release(lock, NULL);
    redlock_lock_free(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s: release: %s", name, redlock_strerror(status));
}

/* Checks that no attempt succeeds while four servers misbehave. */
static void check_fails(const char *name, unsigned limit_ms)
{
    redlock_lock_t *lock = NULL;
    const uint64_t begin_ms = wait_now_ms();
    int status = acquire(&lock, 0);

    ck_assert_msg(status == REDLOCK_ENOQUORUM || status == REDLOCK_EEXCLUDED, "%s: %s: %s", name,
                  redlock_strerror(status), redlock_report_text(report));
    ck_assert_ptr_null(lock);
    ck_assert_uint_lt(wait_now_ms() - begin_ms, wait_scaled_ms(4 * limit_ms + 500));
}

/* Runs one kind of peer: four of five, which fail the attempt for one of `causes` and with `words`
 * in their texts; then two of five. */
static void run(const char *name, const char *host, const struct fake_tls_profile *profile,
                unsigned causes, const char *words)
{
    const unsigned limit_ms = (causes & TIMED_OUT) != 0 ? SILENT_MS : NODE_MS;
    const struct fake_tls_profile correct = {.version = 0};

    misbehave(SERVERS - 1, profile);
    connect_to(host, limit_ms);
    check_causes(name, causes, words);
    check_fails(name, limit_ms);
    disconnect();
    for (size_t i = 2; i < SERVERS; i++)
        fake_redis_set_tls(fake[i], &correct);
    connect_to(host, limit_ms);
    check_works(name);
    disconnect();
}

/* ---- what is no TLS, or TLS with a fault ---- */

static const struct {
    const char *name;
    struct fake_tls_profile profile;
    unsigned causes;
    const char *words;
} peers[] = {
    {"HTTP",
     {.fault = FAKE_TLS_PLAIN, .bytes = "HTTP/1.1 400 Bad Request\r\n\r\n"},
     BY_TLS,
     "does not speak TLS on this port; use its tls-port"},
    {"Redis",
     {.fault = FAKE_TLS_PLAIN, .bytes = "-ERR Protocol error\r\n"},
     BY_TLS,
     "does not speak TLS on this port; use its tls-port"},
    {"garbage",
     {.fault = FAKE_TLS_PLAIN, .bytes = "\x01\x02\x03\x04\x05\x06\x07\x08"},
     BY_TLS,
     "does not speak TLS on this port; use its tls-port"},
    {"only closes", {.fault = FAKE_TLS_PLAIN, .bytes = ""}, REFUSED, "does this port speak TLS?"},
    {"TLS 1.1", {.version = 0x0302}, BY_TLS, "neither TLS 1.2 nor TLS 1.3"},
    {"TLS 1.0", {.version = 0x0301}, BY_TLS, "neither TLS 1.2 nor TLS 1.3"},
    {"oversized record",
     {.fault = FAKE_TLS_INSERT, .bytes = "\x16\x03\x03\xff\xff"},
     BY_TLS,
     "TLS: "},
    {"oversized data",
     {.fault = FAKE_TLS_INSERT, .at = 6, .bytes = "\x17\x03\x03\xff\xff"},
     BY_TLS,
     "TLS: "},
    {"data in the handshake",
     {.fault = FAKE_TLS_INSERT, .bytes = "\x17\x03\x03\0\x05+OK\r\n", .len = 10},
     BY_TLS,
     "TLS: "},
    {"drips slowly", {.fault = FAKE_TLS_DRIP_SLOWLY}, TIMED_OUT, "no end of the TLS handshake"},
    {"silent", {.fault = FAKE_TLS_STALL}, TIMED_OUT, "no end of the TLS handshake"},
    {"silent in the middle",
     {.fault = FAKE_TLS_STALL, .at = 3},
     TIMED_OUT,
     "no end of the TLS handshake"},
    {"silent after the handshake", {.fault = FAKE_TLS_STALL, .at = 8}, TIMED_OUT, "no reply"},
};
#define PEERS (int)(sizeof peers / sizeof peers[0])

START_TEST(a_peer_without_correct_tls_is_named)
{
    run(peers[_i].name, NULL, &peers[_i].profile, peers[_i].causes, peers[_i].words);
}
END_TEST

/* A peer that sends one byte at a time, and one that asks for a new handshake, which the client
 * refuses, must not hinder the others. The first one even works. */
START_TEST(a_slow_peer_works)
{
    misbehave(SERVERS, &(struct fake_tls_profile){.fault = FAKE_TLS_DRIP});
    connect_to(NULL, NODE_MS);
    check_works("drips");
    disconnect();
}
END_TEST

START_TEST(a_new_handshake_is_refused)
{
    misbehave(2, &(struct fake_tls_profile){.fault = FAKE_TLS_RENEGOTIATE, .version = 0x0303});
    connect_to(NULL, NODE_MS);
    check_works("renegotiation");
    disconnect();
}
END_TEST

/* ---- alerts ---- */

static const struct {
    int code;
    const char *words;
} alerts[] = {
    {40, "give one and its key (cert, key)"},
    {42, "refuses the client's certificate; use one"},
    {45, "expired"},
    {48, "does not trust the issuer of the client's certificate; use one"},
    {70, "neither TLS 1.2"},
    {112, "give another one (sni)"},
    {80, "TLS: "},
    {116, "give one and its key (cert, key)"},
    {255, "TLS: "},
};
#define ALERTS (int)(sizeof alerts / sizeof alerts[0])

/* The alert instead of the first record. */
START_TEST(an_alert_is_named)
{
    /* Not on the stack, because the servers run longer than this function. */
    static char bytes[] = {21, 3, 3, 0, 2, 2, 0};
    const struct fake_tls_profile profile = {
        .fault = FAKE_TLS_INSERT, .bytes = bytes, .len = sizeof bytes};
    char name[32];

    bytes[sizeof bytes - 1] = (char)alerts[_i].code;
    snprintf(name, sizeof name, "alert %d", alerts[_i].code);
    run(name, NULL, &profile, BY_TLS, alerts[_i].words);
}
END_TEST

/* An alert before each later record: encrypted records are expected from the second one on, or in
 * TLS 1.2 after some more. */
START_TEST(an_alert_is_possible_at_each_step)
{
    static const char bytes[] = {21, 3, 3, 0, 2, 2, 40};
    const struct fake_tls_profile profile = {.version = _i % 2 == 0 ? 0x0304 : 0x0303,
                                             .fault = FAKE_TLS_INSERT,
                                             .at = (unsigned)_i / 2,
                                             .bytes = bytes,
                                             .len = sizeof bytes};

    run("alert", NULL, &profile, BY_TLS, "TLS: ");
}
END_TEST

/* ---- the end of the connection at each record ---- */

static const enum fake_tls_fault ends[] = {FAKE_TLS_CUT, FAKE_TLS_CUT_INSIDE, FAKE_TLS_RESET,
                                           FAKE_TLS_NOTIFY};
#define ENDS (int)(sizeof ends / sizeof ends[0])

/* The connections of four servers end before each record: in the handshake, in the greeting, at a
 * vote. With two such servers the lock is acquired. */
START_TEST(a_connection_may_end_at_each_record)
{
    const struct fake_tls_profile profile = {.version = _i % 2 == 0 ? 0x0304 : 0x0303,
                                             .fault = ends[_i / 2 % ENDS],
                                             .at = (unsigned)(_i / 2 / ENDS)};
    char name[64];

    snprintf(name, sizeof name, "TLS 1.%d, end %d, record %u", 3 - _i % 2, (int)profile.fault,
             profile.at);
    run(name, NULL, &profile, BY_TLS | REFUSED | LOST, "");
}
END_TEST

/* ---- certificates ---- */

static struct certificate *other_issuer, *intermediate, *no_issuer, *other_ca;

/* The certificates that no client may accept for 127.0.0.1, and the words that say why. */
static struct {
    const char *name;
    const char *host; /* NULL: 127.0.0.1 */
    struct certificate_terms terms;
    struct certificate **issuer; /* NULL: the trusted one */
    struct certificate **sent;   /* sent as intermediate; NULL: none */
    const char *words;
} chains[] = {
    {"self-signed",
     NULL,
     {.subject = "s", .names = "IP:127.0.0.1"},
     &no_issuer,
     NULL,
     "(self-signed); give its CA"},
    {"other CA", NULL, {.subject = "o", .names = "IP:127.0.0.1"}, &other_ca, NULL, "give its CA"},
    {"expired",
     NULL,
     {.subject = "e",
      .names = "IP:127.0.0.1",
      .from_s = -10 * CERTIFICATE_DAY_S,
      .until_s = -CERTIFICATE_DAY_S},
     NULL,
     NULL,
     "the certificate expired at 2"},
    {"not yet valid",
     NULL,
     {.subject = "n",
      .names = "IP:127.0.0.1",
      .from_s = CERTIFICATE_DAY_S,
      .until_s = 10 * CERTIFICATE_DAY_S},
     NULL,
     NULL,
     "is not valid before 2"},
    {"other address",
     NULL,
     {.subject = "a", .names = "IP:127.0.0.2"},
     NULL,
     NULL,
     "for \"127.0.0.2\", not for \"127.0.0.1\""},
    {"other name",
     "localhost",
     {.subject = "a", .names = "DNS:other.test"},
     NULL,
     NULL,
     "for \"other.test\", not for \"localhost\""},
    {"common name only",
     "localhost",
     {.subject = "localhost"},
     NULL,
     NULL,
     "no DNS name or IP address in subjectAltName; \"localhost\" is needed"},
    {"wildcard for a part",
     "localhost",
     {.subject = "w", .names = "DNS:local*"},
     NULL,
     NULL,
     "for \"local*\", not for \"localhost\""},
    {"wildcard alone",
     "localhost",
     {.subject = "w", .names = "DNS:*"},
     NULL,
     NULL,
     "for \"*\", not for"},
    {"address as DNS name",
     NULL,
     {.subject = "i", .names = "DNS:127.0.0.1"},
     NULL,
     NULL,
     "it has \"127.0.0.1\" as a DNS name"},
    {"for clients only",
     NULL,
     {.subject = "c", .names = "IP:127.0.0.1", .use = "clientAuth"},
     NULL,
     NULL,
     "was not accepted"},
    {"intermediate missing",
     NULL,
     {.subject = "m", .names = "IP:127.0.0.1"},
     &intermediate,
     NULL,
     "give its CA"},
    {"CA flag missing",
     NULL,
     {.subject = "f", .names = "IP:127.0.0.1"},
     &other_issuer,
     &other_issuer,
     "the certificate of the issuer was not accepted"},
};
#define CHAINS (int)(sizeof chains / sizeof chains[0])

/* Makes the issuers of the wrong chains. */
static void make_issuers(void)
{
    const struct certificate *root = fake_tls_issuer();

    other_ca = certificate_sign(
        &(struct certificate_terms){.subject = "Other CA", .is_issuer = true}, NULL);
    intermediate = certificate_sign(
        &(struct certificate_terms){.subject = "Intermediate", .is_issuer = true}, root);
    other_issuer = certificate_sign(
        &(struct certificate_terms){.subject = "No CA", .names = "DNS:x.test"}, root);
}

/* Frees the issuers. */
static void free_issuers(void)
{
    certificate_free(other_ca);
    certificate_free(intermediate);
    certificate_free(other_issuer);
}

START_TEST(a_wrong_certificate_is_refused)
{
    struct certificate *own = certificate_sign(
        &chains[_i].terms, chains[_i].issuer == NULL ? fake_tls_issuer() : *chains[_i].issuer);
    const struct fake_tls_profile profile = {
        .own = own, .intermediate = chains[_i].sent != NULL ? *chains[_i].sent : NULL};

    run(chains[_i].name, chains[_i].host, &profile, BY_TLS, chains[_i].words);
    certificate_free(own);
}
END_TEST

/* With the intermediate certificate the chain is complete, and a server may require a certificate
 * of the client, which has none. */
START_TEST(the_intermediate_makes_the_chain_complete)
{
    struct certificate *own = certificate_sign(
        &(struct certificate_terms){.subject = "complete", .names = "IP:127.0.0.1"}, intermediate);

    misbehave(SERVERS, &(struct fake_tls_profile){.own = own, .intermediate = intermediate});
    connect_to(NULL, NODE_MS);
    check_works("complete");
    disconnect();
    certificate_free(own);
}
END_TEST

START_TEST(a_missing_client_certificate_is_named)
{
    const struct fake_tls_profile profile = {.version = _i == 0 ? 0x0304 : 0x0303,
                                             .client_issuer = fake_tls_issuer()};

    run("no client certificate", NULL, &profile, BY_TLS, "give one and its key (cert, key)");
}
END_TEST

/* ---- after the handshake ---- */

/* Returns whether the client has connected anew to the first four servers. */
static bool all_connected_anew(void)
{
    for (size_t i = 0; i < SERVERS - 1; i++) {
        if (stats_of(i).reconnects == 0)
            return false;
    }
    return true;
}

/* A reply to no request ends the connection. */
START_TEST(data_that_nobody_asked_for_ends_the_connection)
{
    connect_to(NULL, NODE_MS);
    check_works("before");
    for (size_t i = 0; i < SERVERS - 1; i++)
        fake_redis_push(fake[i], "+OK\r\n");
    ck_assert(WAIT_UNTIL(all_connected_anew(), TIME_LIMIT_MS));
    check_works("after");
    disconnect();
}
END_TEST

/* Returns whether the first two servers have not replied, or have lost the connection because what
 * the client had to send was too much. */
static bool both_are_given_up(void)
{
    return has_failed(0, TIMED_OUT | LOST | REFUSED, "") &&
           has_failed(1, TIMED_OUT | LOST | REFUSED, "");
}

/* Two servers ask for new keys without end, and read nothing: each request makes the client send a
 * record. The others serve the client. (io_tls_bytes checks how much it keeps of what those two do
 * not read.) */
START_TEST(two_floods_of_requests_for_new_keys_do_no_harm)
{
    redlock_lock_t *lock = NULL;

    misbehave(2, &(struct fake_tls_profile){.fault = FAKE_TLS_FLOOD, .version = 0x0304});
    connect_to(NULL, SILENT_MS);
    check_works("flood");
    const uint64_t give_up_ms = wait_now_ms() + wait_scaled_ms(TIME_LIMIT_MS);
    for (int i = 0; i < 20 || (!both_are_given_up() && wait_now_ms() < give_up_ms); i++) {
        int status = acquire(&lock, TIME_LIMIT_MS);
        ck_assert_msg(status == REDLOCK_OK, "%s", redlock_strerror(status));
        redlock_lock_free(lock);
    }
    ck_assert_msg(both_are_given_up(), "%s / %s", stats_of(0).text, stats_of(1).text);
    disconnect();
}
END_TEST

/* Adds a group of cases with the fixtures. */
static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, (double)wait_scaled_ms(60000) / 1000.0);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("io_hostile_tls");
    TCase *faults = add_case(suite, "faults"), *alert = add_case(suite, "alerts"),
          *end = add_case(suite, "ends"), *chain = add_case(suite, "certificates");

    fake_tls_enable();
    make_issuers();
    tcase_add_loop_test(faults, a_peer_without_correct_tls_is_named, 0, PEERS);
    tcase_add_test(faults, a_slow_peer_works);
    tcase_add_test(faults, a_new_handshake_is_refused);
    tcase_add_test(faults, data_that_nobody_asked_for_ends_the_connection);
    tcase_add_test(faults, two_floods_of_requests_for_new_keys_do_no_harm);
    tcase_add_loop_test(alert, an_alert_is_named, 0, ALERTS);
    tcase_add_loop_test(alert, an_alert_is_possible_at_each_step, 0, 2 * 4);
    tcase_add_loop_test(end, a_connection_may_end_at_each_record, 0, 2 * ENDS * RECORDS);
    tcase_add_loop_test(chain, a_wrong_certificate_is_refused, 0, CHAINS);
    tcase_add_test(chain, the_intermediate_makes_the_chain_complete);
    tcase_add_loop_test(chain, a_missing_client_certificate_is_named, 0, 2);
    int status = suite_run(suite);
    free_issuers();
    return status;
}
