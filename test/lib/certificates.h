/* SPDX-License-Identifier: MIT
 * Certificates and private keys for tests of TLS, as files in PEM format: good ones, and wrong ones
 * of each kind. Failures print one line and abort, because a test cannot handle them. */
#ifndef TEST_CERTIFICATES_H
#define TEST_CERTIFICATES_H

#include <stdbool.h>

#define CERTIFICATES_MISSING "the tests are built without OpenSSL"

/* What a certificate says. Strings are borrowed. Unnamed fields are zero. */
struct certificate {
    const char *name;    /* the certificate is DIR/NAME.pem, its private key DIR/NAME.key */
    const char *issuer;  /* `name` of the issuer in the same directory; NULL: an issuer, which signs
                          * itself */
    const char *names;   /* its subjectAltName, such as "IP:127.0.0.1,DNS:localhost"; NULL: none */
    int from_s, until_s; /* when its validity begins and ends, in seconds from now; both 0: from
                          * yesterday for 30 days */
    bool client;         /* for clients; false: for servers. Without effect on issuers */
};

/* Returns whether certificate_make() works. If not, skip: suite_skip(CERTIFICATES_MISSING). */
bool certificates_are_built(void);

/* Makes a new ECDSA key (P-256) and its certificate. Each file takes the place of an earlier one at
 * once: a reader finds the old or the new one. */
void certificate_make(const char *dir, const struct certificate *certificate);

#endif
