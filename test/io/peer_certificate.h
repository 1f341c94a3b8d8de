/* SPDX-License-Identifier: MIT
 * Makes certificates for tests, valid ones and wrong ones of each kind, each with a key of its own
 * (ECDSA P-256). No file is left in a directory: peer_certificate_path() names an anonymous file. A
 * failure of OpenSSL aborts the test. */
#ifndef TEST_PEER_CERTIFICATE_H
#define TEST_PEER_CERTIFICATE_H

#include <openssl/ssl.h>
#include <stdbool.h>

#define PEER_DAY_S ((long)24 * 60 * 60)

/* What a certificate says. Strings are borrowed during the call. */
struct peer_certificate_opts {
    const char *name;      /* common name */
    const char *names;     /* subjectAltName: "DNS:one.test,IP:127.0.0.1"; NULL: none */
    long begins_s, ends_s; /* validity, relative to now; both 0: from yesterday, for 30 days */
    bool is_ca;            /* it may issue others (basicConstraints) */
    bool is_for_clients;   /* it is for clients only (extendedKeyUsage) */
    const struct peer_certificate *issuer; /* NULL: it is self-signed */
};

/* A certificate, its private key, and the anonymous file with both. */
struct peer_certificate {
    X509 *native;
    EVP_PKEY *key;
    int fd;        /* the anonymous file */
    char path[64]; /* its name in /proc, also valid in other processes while this one runs */
};

/* Makes a certificate. Never returns NULL. */
struct peer_certificate *peer_certificate_new(const struct peer_certificate_opts *opts);
/* Frees it and removes its file. NULL: no-op. */
void peer_certificate_free(struct peer_certificate *certificate);
/* Returns the path of a file with the certificate and its private key (PEM). */
const char *peer_certificate_path(const struct peer_certificate *certificate);

#endif
