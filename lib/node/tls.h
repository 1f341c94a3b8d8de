/* SPDX-License-Identifier: MIT
 * TLS on a connected socket: the handshake, the verification of the server, and records. The files
 * tls*.c implement it with OpenSSL; tls_without.c has the same functions for a library that is
 * built without TLS. No other file of the library knows OpenSSL; the command's own use is in
 * tools/server_tls.c and tools/certificates.c.
 *
 * Bytes count as sent once they are encrypted, because a record cannot be taken out of the stream
 * again. So at most one record waits for the kernel: rl_tls_send() encrypts the next one only after
 * the kernel has all bytes of the last one. */
#ifndef RL_NODE_TLS_H
#define RL_NODE_TLS_H

#include "node/spec.h"
#include "platform/log.h"

#include <sys/types.h>

/* A set of certificates and keys that were read from files, with which connections are made. All
 * nodes of a client with equal settings share one. Owner: tls_context.c. */
struct rl_tls_context;

/* The TLS state of one connection. Owner: tls.c. */
struct rl_tls;

/* A server as TLS knows it; both connections of its node share it. socket.c provides the memory and
 * sets the first two fields; tls.c owns the others. */
struct rl_tls_server {
    struct rl_tls_context *context; /* NULL: connections to the server do not use TLS */
    const struct rl_node_spec *spec;
    void *session;       /* of the last connection, to be resumed; NULL: none */
    unsigned generation; /* of the context when the session was made */
    int64_t expiry_s;    /* of the session's certificates, as rl_tls_expiry_s() returns it */
    unsigned given_up;   /* connections in a row that were closed in their handshake */
};

/* Results of the handshake, and of receiving. */
enum rl_tls_result {
    RL_TLS_OK = 1,     /* the handshake is complete; bytes were received */
    RL_TLS_AGAIN = 0,  /* more bytes must arrive, or the poller must report the socket again */
    RL_TLS_FAILED = -1 /* the connection is of no use any more: see rl_tls_text() */
};

/* Makes sure that the list *contexts has a context for the settings: reads the files that they
 * name. Blocks while it reads. Returns REDLOCK_OK; REDLOCK_EINVAL with a reason in `error` (`size`
 * bytes); REDLOCK_ESYS with one if files could not be read for a reason that may pass; or
 * REDLOCK_ENOMEM. The list is freed with rl_tls_contexts_free(). `mem` and `log` are
 * borrowed until then. */
int rl_tls_contexts_add(struct rl_tls_context **contexts, const struct rl_mem *mem,
                        const struct rl_log *log, const struct rl_tls_settings *settings,
                        char *error, size_t size);
/* Returns the context for the settings, which must have been added. */
struct rl_tls_context *rl_tls_contexts_find(struct rl_tls_context *contexts,
                                            const struct rl_tls_settings *settings);
/* Frees all contexts; no connection may use them. NULL: none. In a forked child (`forked`) only
 * releases what does not need OpenSSL. */
void rl_tls_contexts_free(struct rl_tls_context *contexts, bool forked);

/* Called before a connection is made, which may use what the context has if this returns true.
 * If the settings name files, starts a thread that looks whether they have changed and then reads
 * them anew, and returns false: the connection waits until rl_tls_context_settle() returns true.
 * The thread writes to the eventfd `wake_fd` when it has ended. `given_up`: the last attempt of
 * this connection was given up while it waited for the thread. Then this and later connections do
 * not wait for it, and use the files that were read before.
 *
 * After rl_tls_is_refused() for a connection, the thread also reads files that have not changed, at
 * most once a minute (`now_ns` is the time). stat() misses changes of the system's issuers, and
 * those inside a file of a directory; and OpenSSL may not have noticed that it lacked memory or
 * descriptors when it read the files. If no file is named, no connection waits for that. */
bool rl_tls_context_refresh(struct rl_tls_context *context, int wake_fd, bool given_up,
                            uint64_t now_ns);
/* Uses the result of a thread that has ended. If it could read no usable files, logs why, and keeps
 * those that are in use. Returns false while the thread runs. */
bool rl_tls_context_settle(struct rl_tls_context *context);

/* Begins TLS as a client on the connected socket `fd`, which stays the caller's. Returns NULL
 * without memory. */
struct rl_tls *rl_tls_open(struct rl_tls_server *server, int fd);
/* Frees the state of a connection, without sending anything; and the session of the server, if it
 * may be the reason that the connection has failed. NULL: none. */
void rl_tls_close(struct rl_tls *tls);
/* Forgets the session of a server. No connection to it may be open. */
void rl_tls_server_done(struct rl_tls_server *server);
/* As rl_tls_close(), in a forked child: calls nothing of OpenSSL, and leaks what it has allocated.
 */
void rl_tls_abandon(struct rl_tls *tls);

/* Continues the handshake, and verifies the server at its end. */
enum rl_tls_result rl_tls_handshake(struct rl_tls *tls);

/* Encrypts up to `len` bytes and hands them to the kernel. Returns how many were encrypted: these
 * count as sent. 0: the kernel does not have the last record yet. -1: the connection is broken. */
ssize_t rl_tls_send(struct rl_tls *tls, const char *bytes, size_t len);
/* Hands what is left of the last record to the kernel. Returns false if the connection is broken.
 */
bool rl_tls_flush(struct rl_tls *tls);
/* Returns whether the connection is broken because the server has closed or reset it. Then the
 * poller reports the socket, and rl_tls_receive() finds out why: the server may have sent an alert
 * before. */
bool rl_tls_is_reset(const struct rl_tls *tls);
/* Returns whether bytes wait for the kernel; the caller calls rl_tls_flush() when it takes more. */
bool rl_tls_has_rest(const struct rl_tls *tls);
/* Returns how many of the last bytes that count as sent are in a record of which the kernel does
 * not have all bytes: no server can decrypt them. Implements rl_transport.held. */
uint64_t rl_tls_held(const struct rl_tls *tls);
/* Returns how many of the last `unread` bytes a stopped server executes if it continues after the
 * connection has been closed. Implements rl_transport.reach. */
uint64_t rl_tls_reach(const struct rl_tls *tls, uint64_t unread);

/* Sets the number of calls of recv() that are permitted from now on, because the poller has
 * reported the socket as readable. */
void rl_tls_permit(struct rl_tls *tls, unsigned count);
/* Decrypts up to `size` bytes that have arrived into `buffer`, and sets *ret_len to their number.
 * RL_TLS_OK: there is at least one; *ret_more is set if the function must be called again without
 * a new report of the poller. RL_TLS_AGAIN: nothing is left, or no further call of recv() is
 * permitted. */
enum rl_tls_result rl_tls_receive(struct rl_tls *tls, char *buffer, size_t size, size_t *ret_len,
                                  bool *ret_more);

/* Returns why the connection has failed, in words, for a person. Never NULL. */
const char *rl_tls_text(const struct rl_tls *tls);
/* Returns whether TLS itself is the reason: an error of TLS, or a certificate that one of the two
 * sides has refused. False if the connection has only ended. */
bool rl_tls_is_refused(const struct rl_tls *tls);
/* Returns when the first one of the certificates expires that were verified, the server's and those
 * of its issuers, in seconds of Unix time; 0: not known. If none was verified (verify=none), the
 * server's counts. The handshake must be complete. */
int64_t rl_tls_expiry_s(const struct rl_tls *tls);

#endif
