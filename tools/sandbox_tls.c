/* SPDX-License-Identifier: MIT
 * Makes the certificates of `redlock sandbox --tls`.
 */
#include "sandbox_tls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "certificates.h"
#include "exits.h"
#include "say.h"

/* Validity of the certificates, in seconds from now. It begins in the past because clocks differ,
 * and is longer than any sandbox runs. */
#define FROM_S  (-86400L)
#define UNTIL_S (365 * 86400L)

/* Returns 0: this command is built with TLS. */
int sandbox_tls_check(void)
{
    return 0;
}

/* Writes the certificates to the directory. Returns 0, or -1 with errno. */
static int write_both(const char *directory, const struct certificate *issuer,
                      const struct certificate *server)
{
    char *ca = text_format("%s/ca.crt", directory);
    char *path = text_format("%s/server.crt", directory);
    char *key = text_format("%s/server.key", directory);
    int result = certificate_write(issuer, ca, NULL);

    if (result == 0)
        result = certificate_write(server, path, key);
    free(ca);
    free(path);
    free(key);
    return result;
}

/* Makes an issuer and the certificate of the servers. */
int sandbox_tls_make(const char *directory)
{
    const struct certificate_terms ca = {
        .subject = "redlock sandbox", .is_issuer = true, .from_s = FROM_S, .until_s = UNTIL_S};
    const struct certificate_terms own = {.subject = "localhost",
                                          .names = "DNS:localhost,IP:127.0.0.1,IP:::1",
                                          .from_s = FROM_S,
                                          .until_s = UNTIL_S};
    struct certificate *issuer = certificate_new(&ca, NULL);
    struct certificate *server = issuer ? certificate_new(&own, issuer) : NULL;
    int result = 0;

    if (!server) {
        say(SAY_ERROR, "sandbox: OpenSSL cannot make a certificate (ECDSA, P-256); check its "
                       "configuration, or leave --tls out");
        result = EXIT_SYSTEM;
    } else if (write_both(directory, issuer, server) != 0) {
        say(SAY_ERROR, "sandbox: %s: %s; free space, or set TMPDIR to another directory", directory,
            strerror(errno));
        result = EXIT_SYSTEM;
    }
    certificate_free(server);
    certificate_free(issuer);
    return result;
}
