/* SPDX-License-Identifier: MIT
 * Certificates and private keys for tests of TLS, good ones and wrong ones of each kind. A struct
 * certificate_terms describes one. Fields that an initializer leaves out are zero; from_s and
 * until_s both 0 stand for yesterday and in 30 days. Failures print one line and abort, because a
 * test cannot handle them. */
#ifndef TEST_CERTIFICATES_H
#define TEST_CERTIFICATES_H

#include "../../tools/certificates.h"

#define CERTIFICATES_MISSING   "the tests are built without OpenSSL"
#define CERTIFICATE_DAY_S      (24 * 60 * 60L)
#define CERTIFICATE_PATH_BYTES 64 /* of the path of an anonymous file */

/* Returns whether the other functions work. If not, skip: suite_skip(CERTIFICATES_MISSING). */
bool certificates_are_built(void);

/* Makes a certificate that the certificate DIR/ISSUER.pem signs with its key DIR/ISSUER.key; NULL:
 * its own key does. Writes it to DIR/SUBJECT.pem and its private key to DIR/SUBJECT.key. Each file
 * takes the place of an earlier one at once: a reader finds the old or the new one. */
void certificate_make(const char *dir, const char *issuer, const struct certificate_terms *terms);

/* Makes a certificate in memory, as certificate_new() does. Never returns NULL. To be freed with
 * certificate_free(). */
struct certificate *certificate_sign(const struct certificate_terms *terms,
                                     const struct certificate *issuer);
/* Writes the certificate and its private key to one anonymous file, and the path of the file to
 * `ret_path`. It is valid, also in other processes, until this process closes the descriptor that
 * is returned. */
int certificate_publish(const struct certificate *certificate,
                        char ret_path[CERTIFICATE_PATH_BYTES]);

#endif
