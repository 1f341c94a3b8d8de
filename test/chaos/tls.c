/* SPDX-License-Identifier: MIT
 * Makes the certificate with openssl(1), and writes arguments and addresses. */
#include "tls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos.h"

#define PORT       6379 /* the plain port of every server at the end of its link */
#define TLS_PORT   "6380"
#define PATH_LEN   512
#define NAMES_LEN  512
#define NS_PER_DAY (INT64_C(24) * 3600 * 1000000000)
#define NO_CLI     "no program openssl"
#define NO_LINKS   "the servers have no links, so no second port is free"
#define NO_LIBRARY "this build has no TLS"
#define NO_SERVER  "the servers are built without TLS"

static char certificate[PATH_LEN], key[PATH_LEN];

/* Runs openssl with its output discarded, and with the clocks of the file `clock` (NULL: those of
 * the machine). Returns whether it has succeeded. */
static bool run_openssl(const char *const *words, const char *clock)
{
    int status = 1;
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 0; null >= 0 && fd <= 2; fd++)
            dup2(null, fd);
        if (clock != NULL) {
            setenv("LD_PRELOAD", clockshim_object(), 1);
            setenv("CLOCKSHIM_FILE", clock, 1);
        }
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Returns whether the server program knows TLS. Starts a server to ask it. */
static bool servers_know_tls(void)
{
    struct cluster *cluster = cluster_start(1);
    const bool known = !cluster_replies(cluster, 0, "", "CONFIG GET tls-port");
    cluster_stop(cluster);
    return known;
}

/* Returns why no client can use TLS, or NULL. */
const char *tls_missing(bool links)
{
    static const char *const version[] = {"openssl", "version", NULL};
    if (!CHAOS_TLS)
        return NO_LIBRARY;
    if (!links)
        return NO_LINKS;
    if (!run_openssl(version, NULL))
        return NO_CLI;
    return servers_know_tls() ? NULL : NO_SERVER;
}

/* Makes the certificate. It is valid since yesterday, because the wall clocks of clients may be
 * behind. */
bool tls_make_certificate(const char *directory)
{
    char names[NAMES_LEN] = "subjectAltName=", clock[PATH_LEN];
    snprintf(certificate, sizeof certificate, "%s/tls.pem", directory);
    snprintf(key, sizeof key, "%s/tls.key", directory);
    snprintf(clock, sizeof clock, "%s/tls.clock", directory);
    for (unsigned i = 0; i < NODES; i++) {
        char host[48];
        const size_t len = strlen(names);
        network_address(i, host, sizeof host);
        snprintf(names + len, sizeof names - len, "%sIP:%s", i > 0 ? "," : "", host);
    }
    const char *const words[] = {"openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:P-256",
                                 "-nodes",
                                 "-days",
                                 "30",
                                 "-subj",
                                 "/CN=chaos",
                                 "-addext",
                                 names,
                                 "-keyout",
                                 key,
                                 "-out",
                                 certificate,
                                 NULL};
    struct clockshim *shim = clockshim_create(clock);
    if (shim == NULL)
        return false;
    clockshim_step(shim, CLOCKSHIM_REALTIME, -NS_PER_DAY);
    const bool made = run_openssl(words, clock);
    clockshim_close(shim);
    return made;
}

/* Returns the arguments of the servers. */
const char *const *tls_server_arguments(void)
{
    static const char *arguments[] = {"--tls-port",
                                      TLS_PORT,
                                      "--tls-cert-file",
                                      certificate,
                                      "--tls-key-file",
                                      key,
                                      "--tls-ca-cert-file",
                                      certificate,
                                      "--tls-auth-clients",
                                      "no",
                                      NULL};
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
            snprintf(ret_urls + len, size - len, "%srediss://%s:" TLS_PORT "?id=n%u&cacert=%s",
                     comma, host, i, certificate);
        else
            snprintf(ret_urls + len, size - len, "%sredis://%s:%d?id=n%u", comma, host, PORT, i);
    }
}
