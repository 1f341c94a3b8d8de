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
        return "the server refuses the handshake; with TLS 1.2 it may require a certificate of the "
               "client: give one and its key (cert, key)";
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
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return "the server supports neither TLS 1.2 nor TLS 1.3";
    case SSL_R_TLSV1_ALERT_INTERNAL_ERROR:
        return "the server reports an internal error; read its log";
    case SSL_R_TLSV1_UNRECOGNIZED_NAME:
        return "the server does not know the name that it is addressed by; give another one (sni)";
    case SSL_R_UNSUPPORTED_PROTOCOL:
        return "the server supports neither TLS 1.2 nor TLS 1.3";
    default:
        return NULL;
    }
}

/* Writes why TLS has failed. `code` 0: the connection has ended without an error of TLS. */
void rl_tls_explain_error(char *text, unsigned long code, bool secured, bool *ret_refused)
{
    /* Other libraries of OpenSSL have other reasons with the same numbers. */
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    const char *words = text_of_reason(reason);
    bool is_system = ERR_GET_LIB(code) == ERR_LIB_SYS;

    *ret_refused = code != 0 && !is_system;
    if (words == NULL)
        words = ERR_reason_error_string(code);
    if (code == 0)
        snprintf(text, RL_TEXT_MAX, "%s",
                 secured ? "connection closed by the server"
                         : "the server has ended the TLS handshake: does this port speak TLS?");
    else if (is_system)
        snprintf(text, RL_TEXT_MAX, "OpenSSL has failed on this machine: %s",
                 rl_errno_text(ERR_GET_REASON(code)));
    else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
        snprintf(text, RL_TEXT_MAX, "the server does not speak TLS on this port; use its tls-port");
    else
        snprintf(text, RL_TEXT_MAX, "TLS: %s", words != NULL ? words : "unknown error");
}

/* Returns whether the error is an alert that the server has sent. */
bool rl_tls_is_alert(unsigned long code)
{
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET;
}
