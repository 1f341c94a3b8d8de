/* SPDX-License-Identifier: MIT
 * Makes the certificates of the tests in the directory that its argument names: NAME.pem and
 * NAME.key for each row of the table. */
#include "certificates.h"

#include <stddef.h>

#define HOUR 3600L
#define DAY  CERTIFICATE_DAY_S
#define BOTH "DNS:localhost,IP:127.0.0.1"

static const struct row {
    const char *issuer; /* subject of an earlier row; NULL: signs itself */
    struct certificate_terms terms;
} rows[] = {
    {NULL, {.subject = "ca", .is_issuer = true}},
    {NULL, {.subject = "other-ca", .is_issuer = true}},
    {"ca", {.subject = "server", .names = BOTH ",IP:::1"}},
    {"ca", {.subject = "by-ip", .names = "IP:127.0.0.1"}},
    {"ca", {.subject = "by-name", .names = "DNS:localhost"}},
    {"ca", {.subject = "wrong-name", .names = "DNS:elsewhere.example,IP:127.0.0.2"}},
    {"ca", {.subject = "expired", .names = BOTH, .from_s = -2 * DAY, .until_s = -DAY}},
    {"ca", {.subject = "future", .names = BOTH, .from_s = DAY, .until_s = 2 * DAY}},
    {"ca", {.subject = "ends-soon", .names = BOTH, .until_s = 10 * DAY + HOUR}},
    {NULL, {.subject = "self-signed", .names = BOTH}},
    {NULL, {.subject = "short-ca", .is_issuer = true, .until_s = 10 * DAY + HOUR}},
    {"short-ca", {.subject = "short-server", .names = BOTH}},
    {"ca", {.subject = "client-ends-soon", .names = "DNS:client.example", .until_s = DAY + HOUR}},
    {"ca", {.subject = "named-client", .names = "DNS:client,DNS:expired"}},
    {"ca", {.subject = "for-clients", .names = BOTH, .use = "clientAuth"}},
    {"ca", {.subject = "client", .names = "DNS:client.example"}},
    {"ca",
     {.subject = "client-expired",
      .names = "DNS:client.example",
      .from_s = -2 * DAY,
      .until_s = -DAY}},
    {"ca",
     {.subject = "client-future",
      .names = "DNS:client.example",
      .from_s = DAY + HOUR,
      .until_s = 30 * DAY}},
    {"ca", {.subject = "client-for-servers", .names = "DNS:client.example", .use = "serverAuth"}},
    {"other-ca", {.subject = "client-other", .names = "DNS:client.example"}},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof rows / sizeof rows[0]; i++)
        certificate_make(argv[1], rows[i].issuer, &rows[i].terms);
    return argc == 2 ? 0 : 2;
}
