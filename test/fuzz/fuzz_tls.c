/* SPDX-License-Identifier: MIT
 * Fuzzes the client's end of TLS (node/tls.h) against a server that the input drives: certificates,
 * versions, plaintext, new keys, tickets, ends; and against a network that delivers the records of
 * the server in pieces, or changes them, also inside of the encryption. The client is driven as
 * socket.c does it. Checks after each call: no handshake succeeds with a certificate that is not of
 * the trusted issuer, for the right name and valid. Plaintext arrives as it was sent, from its
 * beginning, in both directions. A failure has a text, and without a cause there is none. What
 * rl_tls_held() and rl_tls_reach() return agrees with what was sent and with what the server has
 * read. The memory is bounded, and no error stays in the queue of OpenSSL. At the end an honest
 * server is accepted.
 *
 *     2 bytes failing allocation, 2 bytes client (verification, own certificate, address), 2 bytes
 * or more for the server (see tls_peer_begin()), then events of 1 byte and their arguments */
#include "tls_fixed.h"
#include "tls_peer.h"

#include "node/connection.h"
#include "node/tls.h"
#include "redlock/redlock.h"

#include <malloc.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX   200
#define ROUNDS_MAX   2000 /* far more than any exchange needs */
#define RECEIVES     8    /* calls of recv() for one report of the poller, as in socket.c */
#define RECEIVE_MAX  ((size_t)17 << 10) /* most bytes of one call of recv(): a record */
#define BUFFER_BYTES ((size_t)16 << 10)
#define RECORD_MAX   ((size_t)16 << 10)
#define MEMORY_MAX   ((size_t)400 << 10) /* bytes of the library for one connection */
#define SENDS_MAX    4096                /* records of the client in one connection */
#define PROVEN_MAX   (EVENTS_MAX + 1)    /* connections of which a session may be resumed */
#define DAYS_MAX     400                 /* time that passes in one run */
#define CONTEXTS     6
#define HEALED       128 /* from this byte on, heal() is called even if no allocation may fail */

/* The client's end of the connection. */
static struct {
    struct rl_node_spec spec;
    struct rl_tls_server server;
    struct rl_tls *tls; /* NULL: closed */
    int fd;
    bool open;                 /* the handshake is complete */
    bool aged;                 /* time has passed since the connection began */
    uint64_t sent;             /* plaintext bytes that count as sent */
    uint64_t received;         /* plaintext bytes that were received */
    size_t lengths[SENDS_MAX]; /* of the records with plaintext */
    unsigned sends;
} client;

/* Addresses of the client, and the name that it must verify for each. */
static const struct {
    const char *host, *sni, *name;
} addresses[] = {
    {"127.0.0.1", NULL, "127.0.0.1"},
    {"server.test", NULL, "server.test"},
    {"a.one.test", NULL, "a.one.test"},
    {"::1", NULL, "::1"},
    {"127.0.0.9", "server.test", "server.test"},
    {"server.test.", NULL, "server.test"},
    {"fe80::1%lo", NULL, "fe80::1"},
    {"other.host", "127.0.0.1", "127.0.0.1"},
};
#define ADDRESSES (sizeof addresses / sizeof addresses[0])

static struct rl_tls_context *contexts;
static struct rl_tls_settings settings[CONTEXTS];
static struct rl_mem mem;
static struct rl_log logger;
static size_t used;                /* bytes of the library's allocator */
static unsigned address;           /* index of the client's address */
static bool lenient;               /* an allocation may have failed: no success is required */
static int64_t proven[PROVEN_MAX]; /* ends of the certificates that were accepted, in seconds */
static unsigned proven_count;
static char buffer[BUFFER_BYTES];

/* ---- the allocator of the library ---- */

/* Allocates as malloc() does, and counts the bytes. */
static void *count_malloc(size_t size, void *userdata)
{
    void *block = malloc(size);

    (void)userdata;
    used += block != NULL ? malloc_usable_size(block) : 0;
    return block;
}

/* Frees a block. */
static void count_free(void *block, void *userdata)
{
    (void)userdata;
    used -= block != NULL ? malloc_usable_size(block) : 0;
    free(block);
}

/* Allocates as realloc() does. */
static void *count_realloc(void *block, size_t size, void *userdata)
{
    size_t before = block != NULL ? malloc_usable_size(block) : 0;
    void *moved = realloc(block, size);

    (void)userdata;
    used += moved != NULL ? malloc_usable_size(moved) - before : 0;
    return moved;
}

/* ---- the client ---- */

/* Called before the library is: allocations may fail from here on. */
static void enter(void)
{
    fuzz_alloc_exempt(false);
}

/* Called after the library was: allocations do not fail. */
static void leave(void)
{
    fuzz_alloc_exempt(true);
    MUST(ERR_peek_error() == 0);
    MUST(used <= MEMORY_MAX);
}

/* Returns how many bytes can be read from a socket. */
static size_t pending(int fd)
{
    int bytes = 0;

    return fd >= 0 && ioctl(fd, FIONREAD, &bytes) == 0 ? (size_t)bytes : 0;
}

/* Returns whether the poller reports one of the events for the client's socket. */
static bool is_ready(short events)
{
    struct pollfd polled = {.fd = client.fd, .events = events};

    return poll(&polled, 1, 0) > 0;
}

/* Returns how the client verifies servers. */
static unsigned verification(void)
{
    return client.spec.tls_settings.verify;
}

/* Returns whether the server's certificate is right for the client. */
static bool is_right(void)
{
    const char *name = verification() == RL_TLS_VERIFY_FULL ? addresses[address].name : NULL;

    return verification() == RL_TLS_VERIFY_NONE ||
           tls_shown_is_right(&tls_peer.shown, name, tls_fixed_now_s());
}

/* Returns whether the client has no reason to refuse the server. */
static bool must_accept(void)
{
    return !lenient && !client.aged && !tls_peer.changed && tls_peer.error == 0 && is_right() &&
           (tls_peer.shown.usual || verification() == RL_TLS_VERIFY_NONE);
}

/* Returns whether the connection must not fail. */
static bool must_work(void)
{
    return must_accept() && !tls_peer.failed;
}

/* Closes the client's end. */
static void close_client(void)
{
    enter();
    rl_tls_close(client.tls);
    leave();
    client.tls = NULL;
    if (client.fd >= 0)
        close(client.fd);
    client.fd = -1;
}

/* Checks and closes a connection that has failed, with RL_TLS_FAILED or in sending. */
static void note_failure(enum rl_tls_result result)
{
    const char *text = rl_tls_text(client.tls);

    MUST(!must_work());
    MUST(text[0] != '\0' && strlen(text) < RL_TEXT_MAX);
    if (result == RL_TLS_FAILED)
        MUST(strcmp(text, "connection lost") != 0);
    if (rl_tls_is_refused(client.tls))
        MUST(!must_accept() && strcmp(text, "connection closed by the server") != 0);
    close_client();
}

/* Checks the server that the client has accepted. A resumed session is one of those that began with
 * a right certificate. */
static void judge_acceptance(void)
{
    const int64_t ends_s = rl_tls_expiry_s(client.tls);

    MUST(ERR_peek_error() == 0);
    client.open = true;
    if (verification() == RL_TLS_VERIFY_NONE)
        return;
    if (SSL_session_reused(tls_peer.ssl)) {
        bool known = false;
        for (unsigned i = 0; i < proven_count; i++)
            known |= proven[i] == ends_s;
        MUST(known && tls_fixed_now_s() <= ends_s);
        return;
    }
    MUST(is_right());
    MUST(ends_s == tls_peer.shown.ends_s && proven_count < PROVEN_MAX);
    proven[proven_count++] = tls_peer.shown.ends_s;
}

/* Receives once, and checks the plaintext. Returns whether more can be received at once. */
static bool receive(size_t size)
{
    size_t len = SIZE_MAX;
    bool more = true;

    enter();
    enum rl_tls_result result = rl_tls_receive(client.tls, buffer, size, &len, &more);
    leave();
    MUST(len <= size && (len > 0) == (result == RL_TLS_OK));
    MUST(result == RL_TLS_OK || !more);
    for (size_t i = 0; i < len; i++) {
        MUST(tls_peer.forged || client.received < tls_peer.written);
        MUST(tls_peer.forged || (unsigned char)buffer[i] == tls_peer_byte(true, client.received));
        client.received++;
    }
    if (result == RL_TLS_FAILED)
        note_failure(result);
    else if (result == RL_TLS_AGAIN && rl_tls_is_reset(client.tls))
        note_failure(RL_TLS_AGAIN);
    return more;
}

/* Continues the handshake. Returns whether the connection is open now. */
static bool secure(void)
{
    enter();
    enum rl_tls_result result = rl_tls_handshake(client.tls);
    leave();
    if (result == RL_TLS_OK)
        judge_acceptance();
    else if (result == RL_TLS_FAILED || rl_tls_is_reset(client.tls))
        note_failure(result);
    return result == RL_TLS_OK;
}

/* Hands the bytes that wait to the kernel. */
static void flush(void)
{
    enter();
    bool ok = rl_tls_flush(client.tls);
    leave();
    if (!ok && !rl_tls_is_reset(client.tls))
        note_failure(RL_TLS_AGAIN);
}

/* Does what socket.c does when the poller has reported the socket: sends what waits, continues the
 * handshake, receives with buffers of `size` bytes. `permit`: calls of recv(). Returns whether
 * there was something to do. */
static bool turn(unsigned permit, size_t size)
{
    if (client.tls != NULL && rl_tls_has_rest(client.tls) && is_ready(POLLOUT))
        flush();
    if (client.tls == NULL || (!is_ready(POLLIN) && !rl_tls_is_reset(client.tls)))
        return false;
    const size_t before = pending(client.fd);
    rl_tls_permit(client.tls, permit);
    bool more = client.open || secure();
    for (unsigned i = 0; more && client.tls != NULL; i++) {
        MUST(i <= before + BUFFER_BYTES);
        more = receive(size);
    }
    if (client.tls == NULL)
        return true;
    const size_t left = pending(client.fd);
    MUST(permit == 0 || before == 0 || left < before);
    MUST(before - left <= permit * RECEIVE_MAX);
    return true;
}

/* Sends up to `len` bytes, as socket.c does. */
static void send_plaintext(size_t len)
{
    ssize_t sent = 1;

    while (len > 0 && sent > 0 && client.tls != NULL && client.open && client.sends < SENDS_MAX) {
        const size_t offered = len < sizeof buffer ? len : sizeof buffer;
        for (size_t i = 0; i < offered; i++)
            buffer[i] = (char)tls_peer_byte(false, client.sent + i);
        enter();
        sent = rl_tls_send(client.tls, buffer, offered);
        leave();
        MUST(sent <= (ssize_t)offered);
        if (sent == 0)
            MUST(rl_tls_has_rest(client.tls));
        if (sent > 0) {
            client.lengths[client.sends++] = (size_t)sent;
            client.sent += (uint64_t)sent;
            len -= (size_t)sent;
        } else if (sent < 0 && !rl_tls_is_reset(client.tls)) {
            note_failure(RL_TLS_AGAIN);
        }
    }
}

/* Returns what rl_tls_reach() must return: the first two records that the unread bytes are in. */
static uint64_t expected_reach(uint64_t unread)
{
    uint64_t begin = 0, reach = 0;

    if (unread == 0 || unread > client.sent)
        return 0;
    for (unsigned i = 0; i < client.sends; i++) {
        const uint64_t end = begin + client.lengths[i];
        if (end > client.sent - unread) {
            if (client.sends - i > 8)
                return 0; /* more records than are remembered */
            reach = unread - (client.sent - end);
            return i + 1 < client.sends ? reach + client.lengths[i + 1] : reach;
        }
        begin = end;
    }
    return 0;
}

/* Checks that an error of the server has a cause: what the client has sent is never the cause. An
 * alert of the client comes with its failure. */
static void check_server(void)
{
    const bool alert = tls_peer.error >= SSL_AD_REASON_OFFSET;

    if (tls_peer.error == 0 || lenient || tls_peer.forged || tls_peer.renegotiates)
        return;
    if (alert)
        MUST(client.tls == NULL || tls_peer.changed);
    else
        MUST((!client.open && tls_peer.changed) ||
             (tls_peer.wants_certificate && client.spec.tls_settings.cert == NULL));
}

/* Checks what is said of the bytes that were sent. */
static void check_sent(uint64_t unread)
{
    check_server();
    MUST(tls_peer.read <= client.sent);
    if (client.tls == NULL)
        return;
    const uint64_t held = rl_tls_held(client.tls);
    MUST(held == 0 || (rl_tls_has_rest(client.tls) && held <= RECORD_MAX && held <= client.sent));
    MUST(rl_tls_reach(client.tls, unread) == expected_reach(unread));
    if (tls_peer.failed || tls_peer.changed || pending(tls_peer.fd) > 0 || lenient ||
        !SSL_is_init_finished(tls_peer.ssl))
        return;
    /* The server has read all that the kernel had. */
    MUST(tls_peer.read + held >= client.sent);
}

/* ---- the connection ---- */

/* Begins a connection. `input` chooses the server; NULL: an honest one. */
static void connect_client(struct fuzz_input *input)
{
    int fd[2];

    close_client();
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
    tls_peer_begin(fd[1], input);
    client.fd = fd[0];
    client.open = client.aged = false;
    client.sent = client.received = 0;
    client.sends = 0;
    enter();
    client.tls = rl_tls_open(&client.server, client.fd);
    leave();
    MUST(client.tls != NULL || lenient);
    if (client.tls == NULL)
        return;
    rl_tls_permit(client.tls, RECEIVES);
    (void)secure();
}

/* Delivers all records, and lets both ends do what they can once. Returns whether there was
 * something to do. */
static bool exchange_once(void)
{
    bool busy = tls_peer_deliver(SIZE_MAX) > 0;

    busy |= turn(RECEIVES, sizeof buffer);
    busy |= tls_peer_read(SIZE_MAX) > 0;
    return busy || tls_peer.count > 0;
}

/* Goes on until neither end has something to do. */
static void exchange(void)
{
    for (unsigned i = 0; client.tls != NULL && exchange_once(); i++) {
        if (tls_peer.fd < 0)
            return;
        MUST(i < ROUNDS_MAX);
    }
}

/* Checks that all plaintext has arrived, unless something was in the way. */
static void check_arrived(void)
{
    exchange();
    check_sent(client.sent);
    if (!must_work())
        return;
    MUST(client.tls != NULL && client.open);
    MUST(client.received == tls_peer.written || tls_peer.forged);
    MUST(tls_peer.read == client.sent && !rl_tls_has_rest(client.tls));
}

/* Lets time pass. */
static void pass(unsigned choice)
{
    static const int64_t seconds[] = {1, 7200, CERTIFICATE_DAY_S, 40 * CERTIFICATE_DAY_S};

    if (tls_fixed_now_s() - TLS_FIXED_BEGIN_S > DAYS_MAX * CERTIFICATE_DAY_S)
        return;
    tls_fixed_pass(seconds[choice % 4]);
    client.aged = true;
}

/* Returns a length, at least 1, with small ones and the limits of a record among them. */
static size_t length_of(struct fuzz_input *input)
{
    static const size_t usual[] = {1, 30, 4096, RECORD_MAX - 1, RECORD_MAX, 40000};
    const unsigned choice = fuzz_byte(input) % 8;

    return choice < 6 ? usual[choice] : 1 + (size_t)fuzz_short(input);
}

/* Plays one event of the script. */
static void step(struct fuzz_input *input)
{
    static const size_t sizes[] = {1, 7, 1000, sizeof buffer};
    const unsigned event = fuzz_byte(input) % 16;

    switch (event) {
    case 0:
        exchange();
        return;
    case 1:
        (void)exchange_once();
        return;
    case 2:
        (void)tls_peer_deliver(length_of(input));
        return;
    case 3: {
        const unsigned choice = fuzz_byte(input);
        (void)turn(choice % 16, sizes[choice / 16 % 4]);
        return;
    }
    case 4:
        send_plaintext(length_of(input));
        return;
    case 5:
        (void)tls_peer_read(length_of(input));
        return;
    case 6:
        tls_peer_write(length_of(input));
        return;
    case 7:
        tls_peer_tell(fuzz_byte(input));
        return;
    case 8:
        check_sent(fuzz_short(input));
        return;
    case 9:
        tls_peer_hang_up(fuzz_byte(input) % 2 == 0);
        return;
    case 10:
        pass(fuzz_byte(input));
        return;
    case 11:
        check_arrived();
        connect_client(input);
        return;
    case 12:
        (void)setsockopt(client.fd, SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int));
        return;
    default:
        tls_peer_mangle(input);
        return;
    }
}

/* ---- runs ---- */

/* Chooses how the client verifies, its certificate, and its address. */
static void choose_client(unsigned what, unsigned where)
{
    address = where % ADDRESSES;
    memset(&client.spec, 0, sizeof client.spec);
    client.spec.tls = true;
    snprintf(client.spec.host, sizeof client.spec.host, "%s", addresses[address].host);
    client.spec.tls_settings = settings[what % CONTEXTS];
    client.spec.tls_settings.sni = (char *)(uintptr_t)addresses[address].sni;
    client.server = (struct rl_tls_server){
        .context = rl_tls_contexts_find(contexts, &client.spec.tls_settings), .spec = &client.spec};
    MUST(client.server.context != NULL);
    lenient = false;
    proven_count = 0;
}

/* Closes the connection, and forgets its session. */
static void finish(void)
{
    close_client();
    rl_tls_server_done(&client.server);
    tls_peer_done();
}

/* Connects to an honest server, which must be accepted, and exchanges plaintext with it. */
static void heal(void)
{
    lenient = false;
    tls_fixed_restart();
    close_client();
    rl_tls_server_done(&client.server);
    connect_client(NULL);
    exchange();
    send_plaintext(20);
    tls_peer_write(20);
    check_arrived();
    MUST(client.open && client.received == 20 && tls_peer.read == 20);
}

/* Connects with each context and version, so that OpenSSL has what it keeps, and a run makes the
 * same allocations each time. */
static void warm_up(void)
{
    for (unsigned i = 0; i < 2 * CONTEXTS; i++) {
        struct fuzz_input server = {(const uint8_t[]){0, (uint8_t)(i % 2)}, 2};
        choose_client(i / 2, 0);
        connect_client(&server);
        check_arrived();
        heal();
        finish();
    }
}

/* Prepares what all runs have in common. */
static void prepare(void)
{
    char error[400];

    tls_fixed_begin();
    MUST(OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1);
    tls_certificates_make();
    tls_peer_make();
    mem = (struct rl_mem){
        .malloc_fn = count_malloc, .realloc_fn = count_realloc, .free_fn = count_free};
    for (unsigned i = 0; i < CONTEXTS; i++) {
        settings[i].cacert = (char *)(uintptr_t)tls_certificates_issuer();
        settings[i].verify =
            (uint8_t[]){RL_TLS_VERIFY_FULL, RL_TLS_VERIFY_CHAIN, RL_TLS_VERIFY_NONE}[i % 3];
        if (i >= 3)
            settings[i].cert = (char *)(uintptr_t)tls_certificates_client();
        MUST(rl_tls_contexts_add(&contexts, &mem, &logger, &settings[i], error, sizeof error) ==
             REDLOCK_OK);
    }
    client.fd = -1;
    warm_up();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool prepared;
    struct fuzz_input input = {data, size};
    const unsigned choice = fuzz_short(&input), what = fuzz_byte(&input);

    fuzz_alloc_exempt(true);
    if (!prepared)
        prepare();
    prepared = true;
    tls_fixed_restart();
    choose_client(what, fuzz_byte(&input));
    const size_t before = used;
    lenient = choice != 0;
    fuzz_alloc_choose(choice);
    connect_client(&input);
    for (unsigned i = 0; i < EVENTS_MAX && input.left > 0; i++) {
        step(&input);
        check_sent(client.sent);
    }
    check_arrived();
    (void)fuzz_alloc_end();
    if (lenient || what >= HEALED)
        heal();
    finish();
    OPENSSL_thread_stop(); /* frees the queue of errors, which OpenSSL makes with the first error */
    fuzz_alloc_exempt(false);
    MUST(used == before);
    return 0;
}
