/* SPDX-License-Identifier: MIT
 * Connections of the library to a server of OpenSSL in the same thread. */
#include "tls_rig.h"

#include "redlock/redlock.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "certificates.h"
#include "suite.h"
#include "wait.h"

#define SERVER       "server" /* name of the server's certificate */
#define STEPS_MAX    20       /* more than any handshake needs */
#define RECEIVES_MAX 8        /* calls of recv() that the library is permitted at once */
#define LIFETIME_S   (30 * 24 * 60 * 60)

static struct tls_rig the_rig;

/* Implements rl_mem.malloc_fn and realloc_fn: fails if the test wants that. */
static void *rig_malloc(size_t size, void *userdata)
{
    struct tls_rig *rig = userdata;
    return rig->no_memory ? NULL : malloc(size);
}

/* As rig_malloc(). */
static void *rig_realloc(void *block, size_t size, void *userdata)
{
    struct tls_rig *rig = userdata;
    return rig->no_memory ? NULL : realloc(block, size);
}

/* Implements rl_mem.free_fn. */
static void rig_free(void *block, void *userdata)
{
    (void)userdata;
    free(block);
}

/* Makes the directory of the certificates. */
static void make_dir(struct tls_rig *rig)
{
    const char *parent = getenv("TMPDIR");
    snprintf(rig->dir, sizeof rig->dir, "%s/redlock-tls-XXXXXX",
             parent != NULL && strlen(parent) < 100 ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(rig->dir));
    snprintf(rig->issuers, sizeof rig->issuers, "%s/" TLS_RIG_ISSUERS ".pem", rig->dir);
}

/* Makes what the server has. */
static void make_server(struct tls_rig *rig)
{
    rig->native = SSL_CTX_new(TLS_server_method());
    ck_assert_ptr_nonnull(rig->native);
    ck_assert_int_eq(SSL_CTX_set_session_id_context(rig->native, (const void *)"rig", 3), 1);
    tls_rig_certify(rig, LIFETIME_S);
}

/* Returns a fresh rig. */
struct tls_rig *tls_rig_new(void)
{
    struct tls_rig *rig = &the_rig;
    char error[400] = "";

    memset(rig, 0, sizeof *rig);
    make_dir(rig);
    rig->mem = (struct rl_mem){rig_malloc, rig_realloc, rig_free, rig};
    rig->spec.tls = true;
    snprintf(rig->spec.host, sizeof rig->spec.host, "%s", TLS_RIG_HOST);
    rig->spec.tls_settings.cacert = rig->issuers;
    tls_rig_replace_issuer(rig);
    make_server(rig);
    ck_assert_msg(rl_tls_contexts_add(&rig->contexts, &rig->mem, &rig->log, &rig->spec.tls_settings,
                                      error, sizeof error) == REDLOCK_OK,
                  "%s", error);
    rig->server.context = rl_tls_contexts_find(rig->contexts, &rig->spec.tls_settings);
    rig->server.spec = &rig->spec;
    rig->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_ge(rig->wake_fd, 0);
    return rig;
}

/* Frees everything. */
void tls_rig_done(struct tls_rig *rig)
{
    static const char *const files[] = {TLS_RIG_ISSUERS ".pem", TLS_RIG_ISSUERS ".key",
                                        SERVER ".pem", SERVER ".key"};
    char path[192];

    rl_tls_server_done(&rig->server);
    rl_tls_contexts_free(rig->contexts, false);
    SSL_CTX_free(rig->native);
    close(rig->wake_fd);
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", rig->dir, files[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(rig->dir), 0);
}

/* Gives the server a new certificate with these names, which expires `lifetime_s` from now. */
static void certify(struct tls_rig *rig, const char *names, int lifetime_s)
{
    char pem[192], key[192];

    certificate_make(
        rig->dir, TLS_RIG_ISSUERS,
        &(struct certificate_terms){
            .subject = SERVER, .names = names, .from_s = -1000, .until_s = lifetime_s});
    snprintf(pem, sizeof pem, "%s/" SERVER ".pem", rig->dir);
    snprintf(key, sizeof key, "%s/" SERVER ".key", rig->dir);
    ck_assert_int_eq(SSL_CTX_use_certificate_file(rig->native, pem, SSL_FILETYPE_PEM), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(rig->native, key, SSL_FILETYPE_PEM), 1);
    ERR_clear_error();
}

/* Gives the server a new certificate. */
void tls_rig_certify(struct tls_rig *rig, int lifetime_s)
{
    certify(rig, "DNS:" TLS_RIG_HOST, lifetime_s);
}

/* Gives the server a new certificate with other names. */
void tls_rig_certify_as(struct tls_rig *rig, const char *names)
{
    certify(rig, names, LIFETIME_S);
}

/* Replaces the trusted issuer by another one. */
void tls_rig_replace_issuer(struct tls_rig *rig)
{
    certificate_make(rig->dir, NULL,
                     &(struct certificate_terms){.subject = TLS_RIG_ISSUERS, .is_issuer = true});
}

/* Has the context read changed files and use them. */
void tls_rig_reload(struct tls_rig *rig)
{
    ck_assert(!rl_tls_context_refresh(rig->server.context, rig->wake_fd, false, 0));
    ck_assert(WAIT_UNTIL(rl_tls_context_settle(rig->server.context), TLS_RIG_DEADLINE_MS));
}

/* Connects the sockets, and begins TLS on both sides. */
struct tls_link tls_rig_open(struct tls_rig *rig)
{
    struct tls_link link = {.server = SSL_new(rig->native)};
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    link.client_fd = fds[0];
    link.server_fd = fds[1];
    ck_assert_ptr_nonnull(link.server);
    ck_assert_int_eq(SSL_set_fd(link.server, link.server_fd), 1);
    SSL_set_accept_state(link.server);
    link.client = rl_tls_open(&rig->server, link.client_fd);
    ck_assert_ptr_nonnull(link.client);
    return link;
}

/* Completes the handshake in turns. */
enum rl_tls_result tls_rig_handshake(struct tls_link *link)
{
    enum rl_tls_result result = RL_TLS_AGAIN;

    for (unsigned i = 0; i < STEPS_MAX && result == RL_TLS_AGAIN; i++) {
        rl_tls_permit(link->client, RECEIVES_MAX);
        result = rl_tls_handshake(link->client);
        (void)SSL_do_handshake(link->server);
        ERR_clear_error();
    }
    ck_assert_int_ne(result, RL_TLS_AGAIN);
    return result;
}

/* Opens a link with a complete handshake. */
struct tls_link tls_rig_connect(struct tls_rig *rig)
{
    struct tls_link link = tls_rig_open(rig);

    ck_assert_msg(tls_rig_handshake(&link) == RL_TLS_OK, "%s", rl_tls_text(link.client));
    return link;
}

/* Reads what the server has sent. */
enum rl_tls_result tls_rig_receive(struct tls_link *link)
{
    char bytes[64];
    size_t len;
    bool more;

    rl_tls_permit(link->client, RECEIVES_MAX);
    enum rl_tls_result result = rl_tls_receive(link->client, bytes, sizeof bytes, &len, &more);
    ck_assert_uint_eq(len, 0);
    return result;
}

/* Ends the server's side in order. */
void tls_rig_end_server(struct tls_link *link)
{
    if (link->server == NULL)
        return;
    ERR_set_mark();
    (void)SSL_shutdown(link->server);
    SSL_free(link->server);
    ERR_pop_to_mark();
    link->server = NULL;
    close(link->server_fd);
    link->server_fd = -1;
}

/* Closes both sides, the server first, because OpenSSL's write to a closed socket raises SIGPIPE.
 */
void tls_rig_close(struct tls_link *link)
{
    tls_rig_end_server(link);
    rl_tls_close(link->client);
    close(link->client_fd);
}
