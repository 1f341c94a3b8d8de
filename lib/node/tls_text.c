/* SPDX-License-Identifier: MIT
 * Says in words why TLS has failed. The texts of OpenSSL do not say what to do, and for the most
 * frequent mistakes they say something else than what is wrong. */
#include "node/tls_parts.h"
#include "platform/clock.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Writes a date of a certificate as "2026-11-24 15:00 UTC". `text` has 40 bytes. */
static void write_date(char text[40], const ASN1_TIME *date)
{
    struct tm parts;

    if (ASN1_TIME_to_tm(date, &parts) != 1 || strftime(text, 40, "%Y-%m-%d %H:%M UTC", &parts) == 0)
        snprintf(text, 40, "an unknown time");
}

/* Writes the wall clock in the same form. */
static void write_now(char text[40])
{
    time_t now = (time_t)(rl_clock_wall_us() / 1000000);
    struct tm parts;

    if (gmtime_r(&now, &parts) == NULL || strftime(text, 40, "%Y-%m-%d %H:%M UTC", &parts) == 0)
        snprintf(text, 40, "an unknown time");
}

/* Appends one name of a certificate to a list in `text` of `size` bytes. An IP address is `bytes`
 * without a dot or colon. */
static void append_name(char *text, size_t size, const GENERAL_NAME *name)
{
    size_t len = strlen(text);
    const ASN1_STRING *value = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char *bytes = ASN1_STRING_get0_data(value);
    const char *comma = len > 0 ? ", " : "";

    if (name->type == GEN_DNS)
        snprintf(text + len, size - len, "%s%.*s", comma, ASN1_STRING_length(value),
                 (const char *)bytes);
    else if (ASN1_STRING_length(value) == 4)
        snprintf(text + len, size - len, "%s%u.%u.%u.%u", comma, bytes[0], bytes[1], bytes[2],
                 bytes[3]);
    else
        snprintf(text + len, size - len, "%san IPv6 address", comma);
}

/* Writes the names of a certificate, those in subjectAltName, to `text` of `size` bytes. */
static void write_names(char *text, size_t size, X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

    text[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS || name->type == GEN_IPADD)
            append_name(text, size, name);
    }
    GENERAL_NAMES_free(names);
    if (text[0] == '\0')
        snprintf(text, size, "no name (subjectAltName)");
}

/* Writes that the certificate does not have the name of the server. */
void rl_tls_explain_name(char *text, X509 *certificate, const struct rl_tls_server *server)
{
    char buffer[RL_HOST_MAX + 1], names[80];
    bool ip;
    const char *name = rl_tls_name(server, buffer, &ip);

    write_names(names, sizeof names, certificate);
    snprintf(text, RL_TEXT_MAX, "wrong certificate: it is for %s, not for %.60s", names, name);
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
        snprintf(text, RL_TEXT_MAX, "%s has expired at %.24s; the clock of this machine says %.24s",
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
        snprintf(text, RL_TEXT_MAX,
                 "the certificate is not from an issuer that is trusted (%s); check cacert",
                 X509_verify_cert_error_string(error));
        break;
    default:
        snprintf(text, RL_TEXT_MAX, "%s was not accepted: %s", whose,
                 X509_verify_cert_error_string(error));
    }
}

/* Returns in words why the server has ended TLS with this alert, or NULL if the text of OpenSSL
 * says enough. */
static const char *text_of_alert(int reason)
{
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "the server requires a certificate of the client; give cert and key";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return "the server refuses the handshake; with TLS 1.2 it may require a certificate of the "
               "client: give cert and key";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the server does not trust the issuer of the client's certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the client's certificate has expired, says the server";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return "the server refuses the client's certificate";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return "the server supports neither TLS 1.2 nor TLS 1.3";
    case SSL_R_TLSV1_UNRECOGNIZED_NAME:
        return "the server does not know the name that it is addressed by; check sni";
    default:
        return NULL;
    }
}

/* Writes why TLS has failed. `code` 0: the connection has ended without an error of TLS. */
void rl_tls_explain_error(char *text, unsigned long code, bool secured, bool *ret_refused)
{
    int reason = ERR_GET_REASON(code);
    const char *words = ERR_GET_LIB(code) == ERR_LIB_SSL ? text_of_alert(reason) : NULL;
    const char *openssl = ERR_reason_error_string(code);

    *ret_refused = code != 0;
    if (code == 0)
        snprintf(text, RL_TEXT_MAX, "%s",
                 secured ? "connection closed by the server"
                         : "the server has ended the TLS handshake: does this port speak TLS?");
    else if (words != NULL)
        snprintf(text, RL_TEXT_MAX, "TLS: %s", words);
    else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
        snprintf(text, RL_TEXT_MAX, "the server does not speak TLS on this port; use redis://");
    else if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
        snprintf(text, RL_TEXT_MAX, "TLS: the server supports neither TLS 1.2 nor TLS 1.3");
    else
        snprintf(text, RL_TEXT_MAX, "TLS: %s", openssl != NULL ? openssl : "unknown error");
}
