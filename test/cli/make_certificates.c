/* SPDX-License-Identifier: MIT
 * Makes the certificates of the tests in the directory that its argument names: NAME.crt and
 * NAME.key for each row of the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/certificates.h"

#define HOUR 3600L
#define DAY  (24 * HOUR)

static const struct row {
    const char *name;   /* of the files; also the common name */
    const char *issuer; /* name of an earlier row; NULL: signs itself */
    const char *names;  /* subjectAltName; NULL: an issuer */
    long from_s, until_s;
    const char *use; /* extendedKeyUsage; NULL: for servers and clients */
} ROWS[] = {
    {"ca", NULL, NULL, -HOUR, 365 * DAY, NULL},
    {"other-ca", NULL, NULL, -HOUR, 365 * DAY, NULL},
    {"server", "ca", "DNS:localhost,IP:127.0.0.1,IP:::1", -HOUR, 365 * DAY, NULL},
    {"by-ip", "ca", "IP:127.0.0.1", -HOUR, 365 * DAY, NULL},
    {"by-name", "ca", "DNS:localhost", -HOUR, 365 * DAY, NULL},
    {"wrong-name", "ca", "DNS:elsewhere.example,IP:127.0.0.2", -HOUR, 365 * DAY, NULL},
    {"expired", "ca", "DNS:localhost,IP:127.0.0.1", -2 * DAY, -DAY, NULL},
    {"future", "ca", "DNS:localhost,IP:127.0.0.1", DAY, 2 * DAY, NULL},
    {"ends-soon", "ca", "DNS:localhost,IP:127.0.0.1", -HOUR, 10 * DAY + HOUR, NULL},
    {"self-signed", NULL, "DNS:localhost,IP:127.0.0.1", -HOUR, 365 * DAY, NULL},
    {"short-ca", NULL, NULL, -HOUR, 10 * DAY + HOUR, NULL},
    {"short-server", "short-ca", "DNS:localhost,IP:127.0.0.1", -HOUR, 365 * DAY, NULL},
    {"client-ends-soon", "ca", "DNS:client.example", -HOUR, DAY + HOUR, NULL},
    {"named-client", "ca", "DNS:client,DNS:expired", -HOUR, 365 * DAY, NULL},
    {"for-clients", "ca", "DNS:localhost,IP:127.0.0.1", -HOUR, 365 * DAY, "clientAuth"},
    {"client", "ca", "DNS:client.example", -HOUR, 365 * DAY, NULL},
    {"client-expired", "ca", "DNS:client.example", -2 * DAY, -DAY, NULL},
    {"client-other", "other-ca", "DNS:client.example", -HOUR, 365 * DAY, NULL},
};
#define COUNT (sizeof ROWS / sizeof ROWS[0])

/* Returns the certificate of the row with this name; NULL: `name` is NULL. */
static const struct certificate *issuer_of(struct certificate *const *made, const char *name)
{
    for (size_t i = 0; name != NULL && i < COUNT; i++)
        if (strcmp(ROWS[i].name, name) == 0)
            return made[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct certificate *made[COUNT] = {NULL};
    char path[4096], key[4096];
    int result = argc == 2 ? 0 : 2;

    for (size_t i = 0; result == 0 && i < COUNT; i++) {
        const struct row *row = &ROWS[i];
        const struct certificate_terms terms = {row->name, row->names, row->use, row->from_s,
                                                row->until_s};
        made[i] = certificate_new(&terms, issuer_of(made, row->issuer));
        snprintf(path, sizeof path, "%s/%s.crt", argv[1], row->name);
        snprintf(key, sizeof key, "%s/%s.key", argv[1], row->name);
        if (made[i] == NULL || certificate_write(made[i], path, key) != 0) {
            perror(row->name);
            result = 1;
        }
    }
    for (size_t i = 0; i < COUNT; i++)
        certificate_free(made[i]);
    return result;
}
