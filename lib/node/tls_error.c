/* SPDX-License-Identifier: MIT
 * Says in words what an error of OpenSSL means. The texts of OpenSSL do not say what to do, and for
 * the most frequent mistakes they say something else than what is wrong. */
#include "node/tls_parts.h"
#include "platform/errno_text.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <stdio.h>

/* Returns in words what an error of OpenSSL's library for TLS means, or NULL if the text of OpenSSL
 * says enough. Alerts are those of the server. */
static const char *text_of_reason(int reason)
{
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "the server requires a certificate of the client; give one and its key (cert, key)";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return "the server refuses the handshake: it may require a certificate of the client: give "
               "one and its key (cert, key); or no cipher is common: check tls-ciphers";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the server does not trust the issuer of the client's certificate; use one that the "
               "CA in its tls-ca-cert-file has signed";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the client's certificate has expired, says the server";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return "the server refuses the client's certificate; use one that the CA in its "
               "tls-ca-cert-file has signed";
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
        return "the server could not verify a signature of this client; use a certificate that the "
               "CA in its tls-ca-cert-file has signed";
    case SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY:
        return "the server demands stronger ciphers; change its tls-ciphers, or CipherString in "
               "openssl.cnf of this machine";
    case SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL: /* OpenSSL 1.1.1 has no name */
        return "the server demands another protocol than that of Redis (ALPN); use its tls-port";
    case SSL_R_SSLV3_ALERT_UNEXPECTED_MESSAGE:
    case SSL_R_SSLV3_ALERT_BAD_RECORD_MAC:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_TLSV1_ALERT_RECORD_OVERFLOW:
    case SSL_R_TLSV1_ALERT_DECODE_ERROR:
    case SSL_R_TLSV13_ALERT_MISSING_EXTENSION:
        return "the server takes a message of this client for invalid; read its log";
    case SSL_R_TLSV1_ALERT_USER_CANCELLED:
        return "the server has given up the handshake; read its log";
    case SSL_R_TLSV1_ALERT_INTERNAL_ERROR:
        return "the server reports an internal error; read its log";
    case SSL_R_TLSV1_UNRECOGNIZED_NAME:
        return "the server does not know the name that it is addressed by; give another one (sni)";
    case SSL_R_DH_KEY_TOO_SMALL:
        return "the Diffie-Hellman parameters of the server are too short; make longer ones (its "
               "tls-dh-params-file)";
    case SSL_R_NO_CIPHERS_AVAILABLE:
        return "openssl.cnf of this machine permits no cipher; change its CipherString";
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
        return "openssl.cnf of this machine permits neither TLS 1.2 nor TLS 1.3; change its "
               "MinProtocol or MaxProtocol";
    default:
        return NULL;
    }
}

/* Returns in words that the server supports no version of TLS that this client does. */
static const char *text_of_versions(SSL *ssl)
{
    const long max = SSL_get_max_proto_version(ssl); /* 0: the highest one of OpenSSL */

    if (SSL_get_min_proto_version(ssl) > TLS1_2_VERSION)
        return "the server does not support TLS 1.3, and openssl.cnf of this machine permits no "
               "other version (MinProtocol); change one of them";
    if (max != 0 && max < TLS1_3_VERSION)
        return "the server does not support TLS 1.2, and openssl.cnf of this machine permits no "
               "other version (MaxProtocol); change one of them";
    return "the server supports neither TLS 1.2 nor TLS 1.3; change its tls-protocols";
}

/* Writes why TLS has failed. `code` 0: the connection has ended without an error of TLS. */
void rl_tls_explain_error(char *text, SSL *ssl, unsigned long code, bool secured, bool *ret_refused)
{
    /* Other libraries of OpenSSL have other reasons with the same numbers. */
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    bool is_version =
        reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION;
    const char *words = is_version ? text_of_versions(ssl) : text_of_reason(reason);
    bool is_system = ERR_GET_LIB(code) == ERR_LIB_SYS;
    bool no_memory = ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;

    *ret_refused = code != 0 && !is_system && !no_memory;
    if (words == NULL)
        words = ERR_reason_error_string(code);
    if (code == 0)
        snprintf(text, RL_TEXT_MAX, "%s",
                 secured ? RL_TEXT_CLOSED
                         : "the server has ended the TLS handshake: does this port speak TLS?");
    else if (no_memory)
        snprintf(text, RL_TEXT_MAX, "out of memory");
    else if (is_system)
        snprintf(text, RL_TEXT_MAX, "OpenSSL has failed on this machine: %s",
                 rl_errno_text(ERR_GET_REASON(code)));
    else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
        snprintf(text, RL_TEXT_MAX, "the server does not speak TLS on this port; use its tls-port");
    else
        snprintf(text, RL_TEXT_MAX, "TLS: %s", words != NULL ? words : "unknown error");
}

/* Returns whether the error is an alert that the server has sent. Errors that all libraries of
 * OpenSSL have in common have larger numbers. */
bool rl_tls_is_alert(unsigned long code)
{
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET &&
           ERR_GET_REASON(code) <= SSL_AD_REASON_OFFSET + 255;
}
