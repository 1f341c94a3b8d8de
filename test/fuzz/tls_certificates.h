/* SPDX-License-Identifier: MIT
 * The certificates that a server shows to the client under test, right and wrong ones, and what a
 * client may conclude from each. */
#ifndef TEST_FUZZ_TLS_CERTIFICATES_H
#define TEST_FUZZ_TLS_CERTIFICATES_H

#include "certificates.h"
#include "fuzz.h"

#include <openssl/x509.h>

#define TLS_CERTIFICATES 14 /* kinds of certificates; the last one is made from the input */

/* A certificate that a server shows. */
struct tls_shown {
    X509 *native;                    /* owned */
    const struct certificate *own;   /* has its key */
    const struct certificate *chain; /* is sent along with it; NULL: none */
    bool trusted;                    /* its issuers are those that the client trusts, and may issue
                                      * certificates of servers */
    bool usual;                      /* a client must accept it while it is valid, for each name of
                                      * the test */
    int64_t begins_s, ends_s;        /* it is valid between, in seconds of Unix time */
};

/* Makes the certificates of all kinds, once in a process. */
void tls_certificates_make(void);
/* Returns the path of a file with the issuer that the client trusts; with the client's certificate
 * and key. */
const char *tls_certificates_issuer(void);
const char *tls_certificates_client(void);

/* Prepares a certificate of a kind. Kind 0 is right for all names of the test. The last kind has
 * names and dates that `input` chooses. */
void tls_shown_init(struct tls_shown *shown, unsigned kind, struct fuzz_input *input);
void tls_shown_done(struct tls_shown *shown);
/* Returns whether a client may take the certificate for that of a server with this name, at this
 * time in seconds. `name` NULL: of any name. */
bool tls_shown_is_right(const struct tls_shown *shown, const char *name, int64_t now_s);

#endif
