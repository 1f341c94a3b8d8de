/* SPDX-License-Identifier: MIT
 * Says in words why a certificate was not accepted, with the names and dates in it. */
#include "node/tls_parts.h"
#include "platform/clock.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Returns the wall clock. */
int64_t rl_tls_now_s(void)
{
    return (int64_t)(rl_clock_wall_us() / 1000000);
}

/* Writes a date of a certificate as "2026-11-24 15:00:59 UTC". `text` has 40 bytes. */
static void write_date(char text[40], const ASN1_TIME *date)
{
    struct tm parts;

    if (ASN1_TIME_to_tm(date, &parts) != 1 ||
        strftime(text, 40, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        snprintf(text, 40, "an unknown time");
}

/* Writes the wall clock in the same form. */
static void write_now(char text[40])
{
    time_t now = (time_t)rl_tls_now_s();
    struct tm parts;

    if (gmtime_r(&now, &parts) == NULL || strftime(text, 40, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        snprintf(text, 40, "an unknown time");
}

/* Writes one name of a certificate to `text` of `size` bytes. The server chooses the bytes of a DNS
 * name: those that no host name has become '?'. */
static void write_name(char *text, size_t size, const GENERAL_NAME *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".:*_-";
    const ASN1_STRING *value = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char *bytes = ASN1_STRING_get0_data(value);
    size_t len = (size_t)ASN1_STRING_length(value), i;

    if (name->type == GEN_DNS) {
        for (i = 0; i < len && i < size - 1; i++)
            text[i] =
                (char)(memchr(allowed, bytes[i], sizeof allowed - 1) != NULL ? bytes[i] : '?');
        text[i] = '\0';
    } else if ((len != 4 && len != 16) ||
               inet_ntop(len == 4 ? AF_INET : AF_INET6, bytes, text, (socklen_t)size) == NULL) {
        snprintf(text, size, "?");
    }
}

/* Appends one name of a certificate, in quotes, to a list in `text` of `size` bytes. If it has no
 * room, appends "..." in its place, or the beginning of the name if it is the first one. Returns
 * false if the list is full. */
static bool append_name(char *text, size_t size, const GENERAL_NAME *name)
{
    static const char more[] = ", ...";
    char shown[RL_HOST_MAX + 1];
    size_t len = strlen(text);

    write_name(shown, sizeof shown, name);
    if (len + strlen(", \"\"") + strlen(shown) + sizeof more <= size) {
        snprintf(text + len, size - len, "%s\"%s\"", len > 0 ? ", " : "", shown);
        return true;
    }
    if (len > 0)
        snprintf(text + len, size - len, "%s", more);
    else
        snprintf(text, size, "\"%.*s...\"", (int)(size - sizeof "\"...\""), shown);
    return false;
}

/* Writes the names of a certificate, those in subjectAltName, to `text` of `size` bytes; "" if it
 * has none. */
static void write_names(char *text, size_t size, X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool more = true;

    text[0] = '\0';
    for (int i = 0; more && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS || name->type == GEN_IPADD)
            more = append_name(text, size, name);
    }
    GENERAL_NAMES_free(names);
}

/* Returns whether the certificate has the text as a DNS name. */
static bool has_dns_name(X509 *certificate, const char *text)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    char name[RL_HOST_MAX + 1];
    bool found = false;

    for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
        if (sk_GENERAL_NAME_value(names, i)->type != GEN_DNS)
            continue;
        write_name(name, sizeof name, sk_GENERAL_NAME_value(names, i));
        found = strcasecmp(name, text) == 0;
    }
    GENERAL_NAMES_free(names);
    return found;
}

/* Writes that the certificate does not have the name of the server. What to do about it is left out
 * if the names of the certificate leave it no room: then they say enough. */
void rl_tls_explain_name(char *text, X509 *certificate, const struct rl_tls_server *server)
{
    static const char advice[] = "; use one of its names as address, or as sni";
    char buffer[RL_HOST_MAX + 1], names[RL_TEXT_MAX];
    bool ip;
    const char *name = rl_tls_name(server, buffer, &ip);
    size_t len =
        (size_t)snprintf(NULL, 0, "wrong certificate: it is for , not for \"%.60s\"", name);

    write_names(names, RL_TEXT_MAX - len, certificate);
    len += strlen(names);
    if (ip && has_dns_name(certificate, name))
        snprintf(text, RL_TEXT_MAX,
                 "wrong certificate: it has \"%.45s\" as a DNS name; in subjectAltName, write an "
                 "address as IP:..., not DNS:...",
                 name);
    else if (names[0] != '\0')
        snprintf(text, RL_TEXT_MAX, "wrong certificate: it is for %s, not for \"%.60s\"%s", names,
                 name, len + sizeof advice <= RL_TEXT_MAX ? advice : "");
    else
        snprintf(text, RL_TEXT_MAX,
                 "wrong certificate: it has no DNS name or IP address in subjectAltName; \"%.60s\" "
                 "is needed",
                 name);
}

/* Writes that no issuer that is trusted has signed the certificate, and what to do. */
static void explain_issuer(char *text, X509_STORE_CTX *store, const struct rl_tls_server *server)
{
    const char *what = "unknown CA", *advice = "cacert has another CA, or the server's "
                                               "tls-cert-file lacks an intermediate certificate";
    bool lacks_issuer = false; /* the last certificate that the server has sent is from a CA that
                                * is neither trusted nor sent */

    switch (X509_STORE_CTX_get_error(store)) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        what = "self-signed";
        advice = "cacert has another certificate";
        break;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        advice = "cacert has another CA";
        break;
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        what = "wrong signature";
        advice = "cacert has another CA of the same name";
        break;
    default:
        lacks_issuer = true;
        break;
    }
    if (server->spec->tls_settings.cacert == NULL &&
        !rl_tls_has_system_issuers(X509_STORE_CTX_get0_store(store)))
        advice = "this machine has no issuers: install ca-certificates, or give its CA (cacert)";
    else if (server->spec->tls_settings.cacert == NULL)
        advice = lacks_issuer ? "give its CA (cacert), or add the intermediate certificate to the "
                                "server's tls-cert-file"
                              : "give its CA (cacert)";
    snprintf(text, RL_TEXT_MAX, "the certificate is not from an issuer that is trusted (%s); %s",
             what, advice);
}

/* Writes why the certificate that `store` is about was not accepted. */
void rl_tls_explain_certificate(char *text, X509_STORE_CTX *store,
                                const struct rl_tls_server *server)
{
    int error = X509_STORE_CTX_get_error(store);
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    const char *whose = X509_STORE_CTX_get_error_depth(store) == 0
                            ? "the certificate"
                            : "the certificate of the issuer";
    char date[40], now[40];

    write_now(now);
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        write_date(date, X509_get0_notAfter(certificate));
        snprintf(text, RL_TEXT_MAX, "%s expired at %.24s; the clock of this machine says %.24s",
                 whose, date, now);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        write_date(date, X509_get0_notBefore(certificate));
        snprintf(text, RL_TEXT_MAX,
                 "%s is not valid before %.24s; the clock of this machine says %.24s", whose, date,
                 now);
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        rl_tls_explain_name(text, certificate, server);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        explain_issuer(text, store, server);
        break;
    case X509_V_ERR_INVALID_PURPOSE: /* whose text differs from version to version */
        snprintf(text, RL_TEXT_MAX, "%s was not accepted: unsuitable certificate purpose", whose);
        break;
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
        snprintf(text, RL_TEXT_MAX, "%s was not accepted: " RL_TLS_SHORT_KEY, whose);
        break;
    case X509_V_ERR_CA_MD_TOO_WEAK:
        snprintf(text, RL_TEXT_MAX, "%s was not accepted: " RL_TLS_WEAK_DIGEST, whose);
        break;
    default:
        snprintf(text, RL_TEXT_MAX, "%s was not accepted: %s", whose,
                 X509_verify_cert_error_string(error));
    }
}
