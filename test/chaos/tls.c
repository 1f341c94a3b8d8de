/* SPDX-License-Identifier: MIT
 * Makes the certificate, and writes arguments of servers and addresses. */
#include "tls.h"

#include <stdio.h>
#include <string.h>

#include "certificates.h"
#include "chaos.h"

#define PORT      6379 /* the plain port of every server at the end of its link */
#define TLS_PORT  "6380"
#define PATH_LEN  512
#define NAMES_LEN 512

/* Returns why no client can use TLS, or NULL. */
const char *tls_missing(bool links)
{
    return links ? cluster_tls_missing() : "without links the servers have no second port";
}

/* Makes the certificate and returns the arguments. It is valid since yesterday, because the wall
 * clocks of clients may be behind. */
const char *const *tls_server_arguments(void)
{
    static char certificate[PATH_LEN], key[PATH_LEN], issuer[PATH_LEN];
    static const char *arguments[] = {"--tls-port",
                                      TLS_PORT,
                                      "--tls-cert-file",
                                      certificate,
                                      "--tls-key-file",
                                      key,
                                      "--tls-ca-cert-file",
                                      issuer,
                                      "--tls-auth-clients",
                                      "no",
                                      NULL};
    char names[NAMES_LEN] = "";
    for (unsigned i = 0; i < NODES; i++) {
        char host[48];
        const size_t len = strlen(names);
        network_address(i, host, sizeof host);
        snprintf(names + len, sizeof names - len, "%sIP:%s", i > 0 ? "," : "", host);
    }
    certificate_make(chaos.dir, NULL,
                     &(const struct certificate_terms){.subject = "ca", .is_issuer = true});
    certificate_make(chaos.dir, "ca",
                     &(const struct certificate_terms){.subject = "server", .names = names});
    snprintf(certificate, sizeof certificate, "%s/server.pem", chaos.dir);
    snprintf(key, sizeof key, "%s/server.key", chaos.dir);
    snprintf(issuer, sizeof issuer, "%s/ca.pem", chaos.dir);
    return arguments;
}

/* Writes the list of addresses, separated by commas. */
void tls_write_urls(char *ret_urls, size_t size, bool tls)
{
    ret_urls[0] = '\0';
    for (unsigned i = 0; i < NODES; i++) {
        char host[48];
        const size_t len = strlen(ret_urls);
        const char *comma = i > 0 ? "," : "";
        network_address(i, host, sizeof host);
        if (tls)
            snprintf(ret_urls + len, size - len,
                     "%srediss://%s:" TLS_PORT "?id=n%u&cacert=%s/ca.pem", comma, host, i,
                     chaos.dir);
        else
            snprintf(ret_urls + len, size - len, "%sredis://%s:%d?id=n%u", comma, host, PORT, i);
    }
}
