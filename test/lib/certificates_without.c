/* SPDX-License-Identifier: MIT
 * Takes the place of certificates.c in a build without OpenSSL. */
#include <stdio.h>
#include <stdlib.h>

#include "certificates.h"

/* Returns false: there are no certificates. */
bool certificates_are_built(void)
{
    return false;
}

/* Aborts: tests call certificates_are_built() first. */
void certificate_make(const char *dir, const char *issuer, const struct certificate_terms *terms)
{
    (void)issuer;
    fprintf(stderr, "test harness: %s/%s.pem: %s\n", dir, terms->subject, CERTIFICATES_MISSING);
    abort();
}
