/* SPDX-License-Identifier: MIT
 * Adds findings to an examination, and says what to do about each cause why the votes of a server
 * do not count.
 */
#include "findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Adds a finding to exam->findings; drops it if the array is full. `node` is the index of the
 * server, or -1 for the whole shard. `code` and `advice` are constants that live for ever. `format`
 * and what follows make the text of the finding, as with printf(). */
void finding_add(struct examination *exam, enum severity severity, int node, const char *code,
                 const char *advice, const char *format, ...)
{
    va_list values;

    if (exam->finding_count == FINDINGS_MAX)
        return;
    struct finding *finding = &exam->findings[exam->finding_count++];
    *finding = (struct finding){.severity = severity, .node = node, .code = code, .advice = advice};
    va_start(values, format);
    vsnprintf(finding->text, sizeof finding->text, format, values);
    va_end(values);
}

/* Returns the remedy for a TLS connection that was not made. The text of the library says which of
 * the certificates is wrong, and how. */
static const struct remedy *remedy_of_tls(const char *text)
{
    static const struct {
        const char *words; /* a part of the text; "": any */
        struct remedy remedy;
    } rows[] = {
        {"client",
         {0, "tls",
          "give this client a certificate that the server trusts: --tls-cert, --tls-key"}},
        {"expired", {0, "tls", "renew the certificate, or correct the clock that is wrong"}},
        {"not valid before",
         {0, "tls", "correct the clock that is wrong, or make the certificate anew"}},
        {"wrong certificate",
         {0, "tls",
          "give the server a certificate with that name in its subjectAltName, or --tls-sni with "
          "the name that it has"}},
        {"issuer that is trusted",
         {0, "tls", "give the issuer of the server's certificate: --tls-cacert"}},
        {"does not speak TLS", {0, "tls", "write redis:// in its address, or set its tls-port"}},
        {"",
         {0, "tls",
          "check the certificates of the server and of this client (--tls-cacert, --tls-cert, "
          "--tls-key, --tls-sni)"}},
    };
    size_t i = 0;

    while (!strstr(text, rows[i].words))
        i++;
    return &rows[i].remedy;
}

/* Returns the remedy for a cause; for a cause without one of its own, the remedy "no_vote". Never
 * NULL. The text of the finding, which explains the cause, comes from the library. It alone shows
 * that a server accepts no further client. */
const struct remedy *remedy_of(int cause, const char *text)
{
    static const struct remedy remedies[] = {
        {REDLOCK_CAUSE_TIMEOUT, "unresponsive",
         "check whether the server hangs or its machine is overloaded"},
        {REDLOCK_CAUSE_RESOLVE, "resolve",
         "check the name in the list of servers, and the name service"},
        {REDLOCK_CAUSE_CONNECT, "connect", "start the server, or check address and firewall"},
        {REDLOCK_CAUSE_DISCONNECT, "disconnect", "read the server's log: it closed the connection"},
        {REDLOCK_CAUSE_PROTOCOL, "protocol",
         "make sure that a Redis or Valkey server is at that address; if it uses TLS, the address "
         "begins with rediss://"},
        {REDLOCK_CAUSE_AUTH, "auth", "check user and password"},
        {REDLOCK_CAUSE_NOPERM, "noperm",
         "give the user the rights that redlock nodes --acl prints"},
        {REDLOCK_CAUSE_READONLY, "readonly", "list its master instead"},
        {REDLOCK_CAUSE_REPLICA, "replica",
         "list its master instead; a replica may lack the newest keys"},
        {REDLOCK_CAUSE_LOADING, "loading", "wait until the server has loaded its data"},
        {REDLOCK_CAUSE_RESTARTED, "restarted",
         "wait (redlock nodes --wait); a server that loses no keys in a restart (appendfsync "
         "always) may be listed with ?durable=1"},
        {REDLOCK_CAUSE_PROMOTED, "promoted",
         "restart it without its data, and use no fail-over: until then each new client begins the "
         "quarantine anew"},
        {REDLOCK_CAUSE_EVICTING, "evicting",
         "set maxmemory-policy to noeviction: eviction removes locks"},
        {REDLOCK_CAUSE_DUPLICATE, "duplicate", "remove one of the two addresses"},
        {REDLOCK_CAUSE_CLOCK_STEP, "clock_step", "wait, and have the clock slewed, not stepped"},
        {REDLOCK_CAUSE_NO_INFO, "no_info", "allow the user +info (redlock nodes --acl)"},
        {REDLOCK_CAUSE_OOM, "memory_full", "raise maxmemory, or use a server for locks alone"},
        {REDLOCK_CAUSE_CLUSTER, "cluster", "use servers without cluster mode"},
        {REDLOCK_CAUSE_NO_SOCKET, "descriptors", "raise ulimit -n of this process"},
    };
    static const struct remedy other = {0, "no_vote", "read the server's log"};
    static const struct remedy full = {
        0, "max_clients",
        "raise maxclients of the server, or end clients (CLIENT LIST shows them)"};

    if (cause == REDLOCK_CAUSE_ERROR_REPLY && strstr(text, "max number of clients"))
        return &full;
    if (cause == REDLOCK_CAUSE_TLS)
        return remedy_of_tls(text);
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (remedies[i].cause == cause)
            return &remedies[i];
    return &other;
}

/* Records that a server could not be checked because this process could not start a client. */
void trouble_incomplete(struct trouble *trouble, int error)
{
    trouble->cause = REDLOCK_CAUSE_NO_SOCKET;
    snprintf(trouble->text, sizeof trouble->text, "could not be checked: %s",
             error == REDLOCK_ESYS ? "this process has too few descriptors or threads"
                                   : redlock_strerror(error));
}
