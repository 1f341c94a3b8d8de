/* SPDX-License-Identifier: MIT
 * Makes certificates with new private keys (ECDSA, P-256), for `redlock sandbox --tls` and for
 * tests (test/lib/certificates.h). It is built with OpenSSL if the library is (REDLOCK_HAS_TLS).
 */
#ifndef TOOLS_CERTIFICATES_H
#define TOOLS_CERTIFICATES_H

#include <stdbool.h>

/* A certificate with its private key. It owns both. Others may read them. */
struct certificate {
    struct x509_st *x509;    /* an X509 of OpenSSL */
    struct evp_pkey_st *key; /* an EVP_PKEY of OpenSSL */
};

/* What a certificate says. */
struct certificate_terms {
    const char *subject; /* its common name */
    const char *names;   /* its subjectAltName, such as "DNS:localhost,IP:127.0.0.1"; NULL: none */
    const char *use;     /* its extendedKeyUsage; NULL: for servers and clients, or for all uses if
                            it is of an issuer */
    bool is_issuer;      /* may sign others */
    long from_s;         /* when it becomes valid, and when it expires, in seconds from now; may */
    long until_s;        /* be less than 0 */
};

/* Makes a certificate that `issuer` signs; NULL: its own key does. Returns NULL if OpenSSL fails.
 * To be freed with certificate_free(). */
struct certificate *certificate_new(const struct certificate_terms *terms,
                                    const struct certificate *issuer);
/* Writes the certificate to the file `path` in PEM format, and its private key to the new file
 * `key_path`, which only its owner may read (NULL: not). Returns 0, or -1 with errno. */
int certificate_write(const struct certificate *certificate, const char *path,
                      const char *key_path);
/* Frees a certificate, and wipes its key. Accepts NULL. */
void certificate_free(struct certificate *certificate);

#endif
