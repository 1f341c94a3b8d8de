/* SPDX-License-Identifier: MIT
 * What the files tls*.c share. Only they and their unit tests include this. */
#ifndef RL_NODE_TLS_PARTS_H
#define RL_NODE_TLS_PARTS_H

#include "node/connection.h"
#include "node/tls.h"

#include <openssl/ssl.h>

/* What is wrong with a certificate that the security level of OpenSSL does not permit. */
#define RL_TLS_SHORT_KEY                                                                           \
    "its key is too short for this machine; issue a new one with a longer key, such as RSA 3072 "  \
    "or P-256"
#define RL_TLS_WEAK_DIGEST "it is signed with a weak digest; issue a new one with SHA-256"

/* tls_context.c: returns the OpenSSL object of the certificates that are in use, borrowed. */
SSL_CTX *rl_tls_context_native(const struct rl_tls_context *context);
/* tls_context.c: returns a number that changes each time other files come into use. */
unsigned rl_tls_context_generation(const struct rl_tls_context *context);
/* tls_context.c: notes that TLS has failed on a connection that uses the certificates in use, which
 * may be the reason. */
void rl_tls_context_doubt(struct rl_tls_context *context);
/* tls_context.c: returns the allocator of the client. */
const struct rl_mem *rl_tls_context_mem(const struct rl_tls_context *context);
/* tls_context.c: returns the functions of the BIO; they are those of tls.c. */
const BIO_METHOD *rl_tls_context_bio(const struct rl_tls_context *context);

/* tls_file.c: checks that OpenSSL can be initialised: that the variable OPENSSL_CONF names no pipe,
 * whose end OpenSSL would wait for. Returns false with a reason in `error` (`size` bytes). */
bool rl_tls_check_environment(char *error, size_t size);
/* tls_file.c: makes an OpenSSL object from the files of the settings. Returns REDLOCK_OK;
 * REDLOCK_EINVAL with a reason in `error` (`size` bytes); REDLOCK_ESYS with one if the files could
 * not be read for a reason that may pass; or REDLOCK_ENOMEM. After an error *ret_native is NULL. */
int rl_tls_load(const struct rl_tls_settings *settings, SSL_CTX **ret_native, char *error,
                size_t size);

/* tls_file.c: returns whether this machine has issuers that are trusted by default, where `store`
 * is made from them. OpenSSL looks in a file, which is read into the store, and in directories. */
bool rl_tls_has_system_issuers(X509_STORE *store);

/* tls.c: makes the functions of a BIO that works on the socket of a struct rl_tls. NULL: no memory.
 */
BIO_METHOD *rl_tls_bio_new(void);
/* tls.c: implements the callback of SSL_CTX_sess_set_new_cb(). */
int rl_tls_keep_session(SSL *ssl, SSL_SESSION *session);
/* tls.c: implements the callback of SSL_CTX_set_verify(). */
int rl_tls_judge_certificate(int ok, X509_STORE_CTX *store);

/* tls_text.c: writes to `text` (RL_TEXT_MAX bytes) why the certificate that `store` is about was
 * not accepted. */
void rl_tls_explain_certificate(char *text, X509_STORE_CTX *store,
                                const struct rl_tls_server *server);
/* tls_text.c: the same for a name that the certificate does not have. */
void rl_tls_explain_name(char *text, X509 *certificate, const struct rl_tls_server *server);
/* tls_error.c: writes to `text` (RL_TEXT_MAX bytes) why TLS has failed on `ssl`. `code`: the error
 * of OpenSSL; 0: the connection has ended without an error of TLS. Errors that a wrong
 * configuration causes have texts of our own, others those of OpenSSL. `secured`: the handshake was
 * complete. Sets *ret_refused if TLS itself is the reason, not a system call or the memory of this
 * process. */
void rl_tls_explain_error(char *text, SSL *ssl, unsigned long code, bool secured,
                          bool *ret_refused);
/* tls_error.c: returns whether the error of OpenSSL is an alert that the server has sent. */
bool rl_tls_is_alert(unsigned long code);

/* tls_text.c: returns the wall clock in seconds of Unix time. */
int64_t rl_tls_now_s(void);

/* tls.c: returns the name to verify: that of the settings, or else the host of the address. *ret_ip
 * is set if it is an IP address. `buffer` has RL_HOST_MAX + 1 bytes. */
const char *rl_tls_name(const struct rl_tls_server *server, char *buffer, bool *ret_ip);

#endif
