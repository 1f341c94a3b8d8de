/* SPDX-License-Identifier: MIT
 * Adds findings to an examination, and says what to do about each cause why the votes of a server
 * do not count.
 */
#include "findings.h"

#include <errno.h>
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

/* Remedies that the text of the library selects. Only the words with which it begins or ends
 * are compared: what is between them may come from a server. */
struct special {
    struct remedy remedy;
    const char *begin, *end; /* the text begins and ends with these words */
};

#define OWN_CERTIFICATE                                                                            \
    "give this client a certificate that the server trusts: --tls-cert, --tls-key"
#define RENEW      "renew the certificate, or correct the clock that is wrong"
#define CLOCK      "correct the clock that is wrong, or make the certificate anew"
#define NO_VERSION "change tls-protocols of the server: TLS 1.2 or 1.3 is needed"
#define THIS_PROCESS                                                                               \
    "check what the text names: it is a limit or a fault of this process, not of the server"

/* Connections with TLS that were not made; the last row is for all other texts. */
#define TLS(begin, advice)                                                                         \
    {                                                                                              \
        {REDLOCK_CAUSE_TLS, "tls", advice}, begin, ""                                              \
    }
/* Certificates of this client that the server refuses. */
#define REFUSED(begin, advice)                                                                     \
    {                                                                                              \
        {REDLOCK_CAUSE_TLS, "client_certificate_refused", advice}, begin, ""                       \
    }
static const struct special specials[] = {
    TLS("TLS: the server requires a certificate of the client", OWN_CERTIFICATE),
    TLS("TLS: the server refuses the handshake", OWN_CERTIFICATE "; or correct its tls-ciphers"),
    TLS("TLS: the server could not verify a signature", OWN_CERTIFICATE),
    REFUSED("TLS: the server does not trust the issuer", OWN_CERTIFICATE),
    REFUSED("TLS: the server refuses the client's certificate",
            "give this client a certificate (--tls-cert) that is valid now, is for clients "
            "(clientAuth), and is from a CA that the server trusts; the server's log has the "
            "reason"),
    REFUSED("TLS: the client's certificate has expired",
            "renew the certificate of this client (--tls-cert), or correct the clock of the "
            "server"),
    TLS("the certificate expired", RENEW),
    TLS("the certificate of the issuer expired", RENEW),
    TLS("the certificate is not valid before", CLOCK),
    TLS("the certificate of the issuer is not valid before", CLOCK),
    TLS("wrong certificate: it has \"", "make it anew, with IP:ADDRESS in its subjectAltName"),
    TLS("wrong certificate: ",
        "give the server a certificate with that name in its subjectAltName, or write ?sni=NAME in "
        "its address, with a name that it has"),
    TLS("the certificate is not from an issuer",
        "give the issuer of the server's certificate: --tls-cacert; the server must send "
        "intermediate certificates"),
    TLS("the certificate was not accepted: unsuitable certificate purpose",
        "make its certificate anew: its extendedKeyUsage needs serverAuth, and its keyUsage, if it "
        "has one, digitalSignature"),
    TLS("the server does not speak TLS",
        "use its tls-port (redis:// only in a network that you trust)"),
    TLS("TLS: the server supports neither", NO_VERSION),
    TLS("TLS: the server does not support TLS 1.",
        "change tls-protocols of the server, or openssl.cnf of this machine"),
    TLS("TLS: openssl.cnf of this machine", "correct the file: man 5 config"),
    TLS("TLS: the Diffie-Hellman parameters",
        "make longer ones, or leave tls-dh-params-file of the server out"),
    TLS("TLS: the server reports an internal error",
        "read the server's log; check its tls-protocols and tls-ciphers"),
    TLS("TLS: the server does not know the name",
        "give a name that the server knows: --tls-sni, or sni in its address"),
    TLS("TLS: the server demands another protocol", "use its tls-port"),
    TLS("TLS: the server demands stronger ciphers",
        "correct CipherString in openssl.cnf of this machine, or tls-ciphers of the server"),
    TLS("TLS: the server ", "read the server's log"),
    TLS("could not be checked: ", "check again; do not change the files meanwhile"),
    TLS("", "check the certificates of the server and of this client (--tls-cacert, --tls-cert, "
            "--tls-key, --tls-sni)"),
    {{REDLOCK_CAUSE_NO_INFO, "no_info",
      "list the server itself instead of a proxy, and do not rename INFO"},
     "does not know INFO",
     ""},
    {{REDLOCK_CAUSE_TIMEOUT, "unresponsive",
      "give a server that is far away a longer --connect-timeout; else check whether it hangs or "
      "its machine is overloaded"},
     "no reply to the greeting",
     ""},
    {{REDLOCK_CAUSE_TIMEOUT, "unresponsive",
      "give a server that is far away a longer --connect-timeout; else check address and firewall, "
      "and whether its machine is overloaded"},
     "no connection in time",
     ""},
    {{REDLOCK_CAUSE_CLOCK_STEP, "clock_stopped",
      "restart it, and repair what has stopped its clock (a suspended or virtual machine)"},
     "its clock stands still",
     ""},
    {{REDLOCK_CAUSE_NO_SOCKET, "descriptors",
      "raise ulimit -n (descriptors) or ulimit -u (threads) of this process"},
     "could not be checked: ",
     ""},
    {{REDLOCK_CAUSE_CONNECT, "connect", THIS_PROCESS}, "OpenSSL has failed on this machine", ""},
    {{REDLOCK_CAUSE_DISCONNECT, "disconnect", THIS_PROCESS},
     "OpenSSL has failed on this machine",
     ""},
    {{REDLOCK_CAUSE_CONNECT, "connect", THIS_PROCESS}, "out of memory", ""},
    {{REDLOCK_CAUSE_DISCONNECT, "disconnect", THIS_PROCESS}, "out of memory", ""},
    {{REDLOCK_CAUSE_DISCONNECT, "unresponsive",
      "check whether the server hangs or its machine is overloaded"},
     "the server reads nothing",
     ""},
    {{REDLOCK_CAUSE_CONNECT, "connect", "use its tls-port; read the server's log"},
     "the server has ended the TLS handshake",
     ""},
    {{REDLOCK_CAUSE_CONNECT, "connect", "read the server's log; with rediss://, use its tls-port"},
     "connection reset",
     ""},
    {{REDLOCK_CAUSE_TIMEOUT, "unresponsive",
      "use its tls-port; if it is that, the server or its machine is overloaded"},
     "no end of the TLS handshake",
     ""},
    {{REDLOCK_CAUSE_DISCONNECT, "disconnect",
      "write rediss:// in its address if it is a tls-port; else read the server's log"},
     "",
     "does this port expect TLS (rediss://)?"},
    {{REDLOCK_CAUSE_DISCONNECT, "disconnect", OWN_CERTIFICATE "; or read the server's log"},
     "",
     "does the server require a certificate of the client?"},
};

/* Returns whether the text begins and ends with the words of the row. */
static bool is_special(const struct special *row, const char *text)
{
    size_t len = strlen(text), end = strlen(row->end);

    return !strncmp(text, row->begin, strlen(row->begin)) && len >= end &&
           !strcmp(text + len - end, row->end);
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
        {REDLOCK_CAUSE_CLOCK_STEP, "clock_step",
         "stop what steps its clock (slew it instead), then wait"},
        {REDLOCK_CAUSE_NO_INFO, "no_info", "allow the user +info (redlock nodes --acl)"},
        {REDLOCK_CAUSE_OOM, "memory_full", "raise maxmemory, or use a server for locks alone"},
        {REDLOCK_CAUSE_CLUSTER, "cluster", "use servers without cluster mode"},
        {REDLOCK_CAUSE_PROTECTED, "protected_mode",
         "set requirepass, or before Redis 7 bind; or protected-mode no, if only trusted machines "
         "reach the server"},
        {REDLOCK_CAUSE_SENTINEL, "sentinel",
         "list independent masters; a master with replicas and fail-over loses locks"},
        {REDLOCK_CAUSE_NO_SCRIPTS, "no_scripts",
         "do not rename EVAL on the server, and use no proxy that lacks it"},
        {REDLOCK_CAUSE_NO_SOCKET, "descriptors", "raise ulimit -n of this process"},
        {REDLOCK_CAUSE_NO_MEMORY, "no_vote", "give this process more memory"},
    };
    static const struct remedy other = {0, "no_vote", "read the server's log"};
    static const struct remedy full = {
        0, "max_clients",
        "raise maxclients of the server, or end clients (CLIENT LIST shows them)"};

    if (cause == REDLOCK_CAUSE_ERROR_REPLY && strstr(text, "max number of clients"))
        return &full;
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
        if (specials[i].remedy.cause == cause && is_special(&specials[i], text))
            return &specials[i].remedy;
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (remedies[i].cause == cause)
            return &remedies[i];
    return &other;
}

/* Records that a server could not be checked because this process could not start a client. */
void trouble_incomplete(struct trouble *trouble, int error, const char *why)
{
    bool files = why && !strncmp(why, "TLS: ", strlen("TLS: "));
    bool few = error == REDLOCK_ESYS && (!files || strstr(why, strerror(EMFILE)) != NULL);

    trouble->unchecked = true;
    trouble->cause = few                       ? REDLOCK_CAUSE_NO_SOCKET
                     : error == REDLOCK_ENOMEM ? REDLOCK_CAUSE_NO_MEMORY
                                               : REDLOCK_CAUSE_TLS;
    snprintf(trouble->text, sizeof trouble->text, "could not be checked: %s",
             few           ? "this process has too few descriptors or threads"
             : why && *why ? why
                           : redlock_strerror(error));
}
