/* SPDX-License-Identifier: MIT
 * TLS of a fake server, correct or with a fault. The server encrypts into memory; what it writes is
 * a sequence of records, which a fault can cut, replace or delay before the socket gets it.
 *
 * With REDLOCK_TEST_TLS=1 in the environment every fake server speaks TLS, and SSL_CERT_FILE names
 * the issuer of its certificate, so that clients without settings of TLS verify it. So the same
 * test programs run with and without TLS. */
#ifndef TEST_FAKE_TLS_H
#define TEST_FAKE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct certificate;

enum fake_tls_fault {
    FAKE_TLS_PLAIN = 1,  /* speaks no TLS: sends `bytes` as soon as something arrives, and closes */
    FAKE_TLS_INSERT,     /* sends `bytes` before the record number `at` (from 0) that it writes */
    FAKE_TLS_CUT,        /* closes instead of sending the record number `at` */
    FAKE_TLS_CUT_INSIDE, /* closes after half of the record number `at` */
    FAKE_TLS_RESET,      /* as FAKE_TLS_CUT, with a reset */
    FAKE_TLS_NOTIFY,     /* as FAKE_TLS_CUT, after a close_notify */
    FAKE_TLS_STALL,      /* sends nothing from the record number `at` on */
    FAKE_TLS_DRIP,       /* sends one byte at a time, as fast as it can */
    FAKE_TLS_DRIP_SLOWLY, /* sends one byte each FAKE_TLS_DRIP_MS */
    FAKE_TLS_RENEGOTIATE, /* asks for a new handshake after the first one; needs TLS 1.2 */
    FAKE_TLS_FLOOD        /* sends requests for new keys without end, and reads nothing */
};

#define FAKE_TLS_DRIP_MS 20

/* How a fake server speaks TLS. All zero: correctly, with a certificate for 127.0.0.1 and
 * localhost of the issuer that clients trust. Pointers are borrowed until the server is stopped. */
struct fake_tls_profile {
    const struct certificate *own;           /* its certificate; NULL: a correct one */
    const struct certificate *intermediate;  /* sent after it; NULL: none */
    const struct certificate *client_issuer; /* requires certificates of clients, of this issuer */
    int version;                             /* TLS1_VERSION and the like; 0: TLS 1.2 and 1.3 */
    enum fake_tls_fault fault;
    unsigned at;
    const char *bytes;
    size_t len; /* of `bytes`; 0: strlen */
};

/* Has all TCP servers that are started from now on speak TLS, and clients trust their issuer.
 * Called before the first fdcheck_begin(), because the file of the issuer stays open. */
void fake_tls_enable(void);
/* Returns the issuer that clients without settings of TLS trust. */
const struct certificate *fake_tls_issuer(void);

/* How one fake server speaks TLS, and the TLS state of one of its connections. */
struct fake_tls_server;
struct fake_tls;

/* Returns whether fake servers speak TLS unless a test says otherwise. */
bool fake_tls_is_wanted(void);
struct fake_tls_server *fake_tls_server_new(const struct fake_tls_profile *profile);
void fake_tls_server_free(struct fake_tls_server *server); /* NULL: no-op */

/* Begins TLS on an accepted socket, which stays the caller's. */
struct fake_tls *fake_tls_open(struct fake_tls_server *server, int fd);
void fake_tls_close(struct fake_tls *tls); /* NULL: no-op */
/* Receives as recv() does. Continues the handshake. */
ssize_t fake_tls_recv(struct fake_tls *tls, void *bytes, size_t size);
/* Sends as send() does. EAGAIN: the socket does not have the last bytes yet. */
ssize_t fake_tls_send(struct fake_tls *tls, const void *bytes, size_t len);
/* Gives the socket what waits for it. Returns false if the connection ends; *ret_reset: with a
 * reset. */
bool fake_tls_flush(struct fake_tls *tls, bool *ret_reset);
/* Returns whether bytes wait until the socket is writable. */
bool fake_tls_wants_write(const struct fake_tls *tls);
/* Returns whether the socket is read. */
bool fake_tls_wants_read(const struct fake_tls *tls);
/* Returns the time after which the server calls fake_tls_flush() again; -1: none. */
int fake_tls_pause_ms(const struct fake_tls *tls);

#endif
