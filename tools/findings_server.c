/* SPDX-License-Identifier: MIT
 * Makes the findings of `redlock nodes` about one server: whether its votes count and it grants
 * locks, what it may lose, whether it notifies waiters, its certificate and those of this client,
 * its clock and its round trip.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "findings.h"

/* A server whose clock differs by more than this from the clock of this machine is a finding. */
#define CLOCK_APART_US INT64_C(60000000)
/* A certificate that expires within this many days is a finding. */
#define EXPIRY_DAYS   14
#define S_PER_DAY     INT64_C(86400)
#define EXPIRY_ADVICE "renew it, and let the server load it: CONFIG SET tls-cert-file, or a restart"
/* A server is slow if its round trip exceeds both SLOW_FROM_US and SLOW_FACTOR times the median of
 * the shard. */
#define SLOW_FACTOR  10
#define SLOW_FROM_US 5000

/* Returns true if a server for which the remedy is meant is a danger for the locks of others. */
static bool is_critical(const struct remedy *remedy)
{
    return !strcmp(remedy->code, "duplicate") || !strcmp(remedy->code, "clock_stopped");
}

/* Returns what to do about server `i`, which is excluded. A server that has run for long although
 * its quarantine is that of a restart is in quarantine for each new client. */
static const char *advice_for(const struct examination *exam, size_t i, const struct remedy *remedy)
{
    const redlock_node_stats_t *node = &exam->nodes[i];

    if (node->cause == REDLOCK_CAUSE_RESTARTED && node->quarantine_ms > 0 &&
        node->uptime_s * 1000 > 2 * exam->max_ttl_ms)
        return "each new client waits so long, because its uptime is not trusted: admission = "
               "proven, or its clock was set forward (then restart it)";
    return remedy->advice;
}

/* Adds one finding about server `i` if it is listed twice, is excluded, or failed in the probe (in
 * this order; only the first that applies). */
static void check_vote(struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    const struct trouble *trouble = &exam->troubles[i];
    const struct remedy *remedy = remedy_of(node->cause, node->text);

    if (exam->duplicate_of[i] >= 0)
        finding_add(exam, FINDING_CRIT, (int)i, "duplicate", "remove one of the two",
                    "same server as %s", exam->nodes[exam->duplicate_of[i]].node);
    else if (!node->eligible)
        finding_add(exam, is_critical(remedy) ? FINDING_CRIT : FINDING_WARN, (int)i, remedy->code,
                    advice_for(exam, i, remedy), "%s", *node->text ? node->text : "no reply yet");
    else if (trouble->cause)
        finding_add(exam, FINDING_WARN, (int)i, remedy_of(trouble->cause, trouble->text)->code,
                    remedy_of(trouble->cause, trouble->text)->advice, "%s", trouble->text);
}

/* Adds findings about server `i` whose data a restart or a fail-over would lose: append-only file,
 * replicas, and the attributes ?durable=1 and ?fresh=1 of its address. If the server gave no reply
 * to INFO, only that is a finding, because nothing else is known. */
static void check_data(struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    bool durable = node->facts & REDLOCK_FACT_DURABLE, aof = node->facts & REDLOCK_FACT_AOF;

    if (!(node->facts & REDLOCK_FACT_INFO)) {
        if (node->eligible)
            finding_add(
                exam, FINDING_WARN, (int)i, "no_info",
                "allow the user +info (redlock nodes --acl), or list the server itself instead of "
                "a proxy",
                "does not report its identity: restarts, evictions and replicas are not detected");
        return;
    }
    if (node->facts & REDLOCK_FACT_AOF_FAILING)
        finding_add(exam, FINDING_WARN, (int)i, "aof_failing", "check its disk and its log",
                    "fails to write its append-only file: a restart loses keys");
    if (durable && !aof)
        finding_add(exam, FINDING_CRIT, (int)i, "not_durable",
                    "remove ?durable=1, or set appendonly yes and appendfsync always",
                    "listed as durable, but keeps no append-only file");
    else if (!durable && !aof)
        finding_add(exam, FINDING_NOTE, (int)i, "no_aof",
                    "optional: appendonly yes with appendfsync always, and ?durable=1",
                    "keeps no append-only file: after a restart it is in quarantine for max_ttl");
    if (node->replicas > 0)
        finding_add(
            exam, FINDING_WARN, (int)i, "replicas",
            "do not fail over to a replica behind this address: it may lack the newest keys",
            "%" PRIu32 " replica%s attached", node->replicas,
            node->replicas == 1 ? " is" : "s are");
    if (node->facts & REDLOCK_FACT_FRESH && node->uptime_s > 3600)
        finding_add(exam, FINDING_NOTE, (int)i, "fresh", "remove ?fresh=1 from its address",
                    "listed as fresh, but up for %" PRIu64 " s", node->uptime_s);
}

/* Adds a finding if another shard lists server `i`, too. Exclusion is not at risk, because a name
 * belongs to one shard only; but both shards lose a vote together. */
static void check_elsewhere(struct examination *exam, size_t i)
{
    const struct elsewhere *elsewhere = &exam->elsewhere[i];

    if (elsewhere->node)
        finding_add(
            exam, FINDING_WARN, (int)i, "shared",
            "give each shard its own servers: if this one fails, both shards lose a vote, and it "
            "keeps the fence record of one of them only",
            "same server as %s of shard %s", elsewhere->node, elsewhere->shard);
}

/* Adds a finding if server `i` sends no notifications. It is only a note, because locks work
 * without notifications: waiters poll. */
static void check_notifications(struct examination *exam, size_t i)
{
    const struct notify_check *check = &exam->notify[i];
    bool lacks_right = check->cause == REDLOCK_CAUSE_NOPERM;

    if (check->state == NOTIFY_REFUSED)
        finding_add(exam, FINDING_NOTE, (int)i, "no_notifications",
                    lacks_right
                        ? "optional: give the user the rights that redlock nodes --acl prints"
                        : "optional: use a server with CLIENT TRACKING (Redis 6, Valkey)",
                    "sends no notification to waiters when a lock is released: %s", check->text);
    else if (check->state == NOTIFY_NOT_CONNECTED)
        finding_add(
            exam, FINDING_NOTE, (int)i, "no_notifications",
            "raise maxclients of the server, or check what limits its connections (proxy, "
            "firewall)",
            "sends no notification to waiters when a lock is released: a further connection was "
            "not established");
    else if (check->state == NOTIFY_NOT_RECEIVED)
        finding_add(
            exam, FINDING_NOTE, (int)i, "no_notifications",
            "check whether a proxy drops the push messages of CLIENT TRACKING",
            "sends no notification to waiters when a lock is released, although it accepted CLIENT "
            "TRACKING");
}

/* Adds a finding if server `i` has accepted CLIENT TRACKING, but keeps no lines for this user. It
 * is only a note, because waiters do without. */
static void check_line(struct examination *exam, size_t i)
{
    const struct notify_check *check = &exam->notify[i];
    bool tracks = check->state == NOTIFY_ON || check->state == NOTIFY_NOT_RECEIVED;

    if (tracks && check->line_state == REDLOCK_LINE_REFUSED)
        finding_add(
            exam, FINDING_NOTE, (int)i, "no_line",
            check->line_cause == REDLOCK_CAUSE_NOPERM
                ? "optional: give the user the rights that redlock nodes --acl prints, or --no-line"
                : "optional: use a server with GETEX (Redis 6.2, Valkey), or --no-line",
            "keeps no line, which would serve waiters in order of arrival: %s", check->line_text);
}

/* Adds a finding about server `i` if a certificate expires within EXPIRY_DAYS, or has expired.
 * `what` names it; `then` says what happens afterwards. `expiry_s` 0: it is not known when. */
static void check_expiry(struct examination *exam, size_t i, const char *code, const char *advice,
                         const char *what, int64_t expiry_s, const char *then)
{
    int64_t left_s = expiry_s - (int64_t)(unix_ms() / 1000), days = left_s / S_PER_DAY;
    char date[32];

    if (expiry_s == 0 || left_s >= EXPIRY_DAYS * S_PER_DAY)
        return;
    rfc3339((uint64_t)expiry_s * 1000, date);
    if (left_s < 0)
        finding_add(exam, FINDING_WARN, (int)i, code, advice, "%s has expired (%.10s): %s", what,
                    date, then);
    else
        finding_add(exam, FINDING_WARN, (int)i, code, advice,
                    "%s expires in %" PRId64 " day%s (%.10s): then %s", what, days,
                    days == 1 ? "" : "s", date, then);
}

/* Adds findings about server `i` if connections to it use TLS: its certificate is not verified, or
 * expires soon. A certificate that has expired refuses new connections, not those that are open. */
static void check_tls(struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];

    if (node->facts & REDLOCK_FACT_UNVERIFIED)
        finding_add(exam, FINDING_CRIT, (int)i, "tls_unverified",
                    "remove verify=none, and name the issuer of the certificate (cacert)",
                    "its certificate is not verified: any process that can answer in its place can "
                    "grant locks and read the password");
    check_expiry(exam, i, "certificate_expires", EXPIRY_ADVICE, "its certificate or that of its CA",
                 node->certificate_expiry_s, "no client can connect any more");
}

/* Adds findings if the certificate with which this client connects to server `i` expires soon, is
 * not valid yet, or is not meant for clients. */
static void check_own_certificate(struct examination *exam, size_t i)
{
    const struct client_files *files = &exam->files[i];
    char what[CLIENT_FILE_MAX + 40], date[32];

    snprintf(what, sizeof what, "the certificate of this client, %s,", files->certificate);
    check_expiry(exam, i, "client_certificate_expires", "renew it, in the same file", what,
                 files->certificate_expiry_s, "servers refuse this client");
    if (files->certificate_from_s > (int64_t)(unix_ms() / 1000))
        finding_add(exam, FINDING_WARN, (int)i, "client_certificate_future",
                    "correct the clock of this machine, or make the certificate anew",
                    "%s is not valid before %.10s: until then servers refuse this client", what,
                    rfc3339((uint64_t)files->certificate_from_s * 1000, date));
    if (files->not_for_clients)
        finding_add(exam, FINDING_WARN, (int)i, "client_certificate_purpose",
                    "make it anew: its extendedKeyUsage needs clientAuth, and its keyUsage, if it "
                    "has one, digitalSignature",
                    "%s is not for clients: servers refuse this client", what);
}

/* Adds findings about the files with which this client connects to server `i`: every user can read
 * the private key, its certificate is not fit, or the last trusted issuer expires soon. */
static void check_files(struct examination *exam, size_t i)
{
    const struct client_files *files = &exam->files[i];
    char what[CLIENT_FILE_MAX + 40];

    if (*files->readable_key)
        finding_add(exam, FINDING_WARN, (int)i, "key_readable",
                    "chmod 600; the user of the jobs must own it",
                    "every user of this machine can read the private key of this client, %s",
                    files->readable_key);
    check_own_certificate(exam, i);
    snprintf(what, sizeof what, "the trusted issuer in %s", files->issuers);
    check_expiry(exam, i, "issuer_expires",
                 "add a new issuer to the file, and then renew the certificates of the servers",
                 what, files->issuers_expiry_s, "this client accepts no server");
}

/* Adds findings about server `i`: its clock differs much from ours, or its round trip is long.
 * `median_us` is the median of the shard's round trips. */
static void check_time(struct examination *exam, size_t i, uint64_t median_us)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    int64_t offset_us = node->clock_offset_us;

    if (offset_us > CLOCK_APART_US || offset_us < -CLOCK_APART_US)
        finding_add(exam, FINDING_WARN, (int)i, "clock_apart",
                    "synchronise the clocks; slew them while locks are held",
                    "its clock is %" PRId64 " s %s the clock of this machine",
                    (offset_us < 0 ? -offset_us : offset_us) / 1000000,
                    offset_us < 0 ? "behind" : "ahead of");
    if (exam->rtt_us[i] > SLOW_FROM_US && exam->rtt_us[i] > SLOW_FACTOR * median_us)
        finding_add(exam, FINDING_NOTE, (int)i, "slow",
                    "nothing: a quorum does not wait for the slowest server",
                    "its round trip is %" PRIu64 " times the median", exam->rtt_us[i] / median_us);
}

/* Adds the findings about server `i`. */
void findings_of_server(struct examination *exam, size_t i, uint64_t median_us)
{
    check_vote(exam, i);
    check_data(exam, i);
    check_elsewhere(exam, i);
    check_notifications(exam, i);
    check_line(exam, i);
    check_tls(exam, i);
    check_files(exam, i);
    check_time(exam, i, median_us);
}
