/* SPDX-License-Identifier: MIT
 * The TLS handshake of the client, byte by byte: the stream of the server ends after each byte, and
 * each byte is inverted once. The handshake must then fail, with a text, or the change must have no
 * effect; it never hangs while bytes are left, and never succeeds with a part of the stream. A
 * server that makes the client send without reading cannot make it keep bytes without bound. */
#include "fdcheck.h"
#include "suite.h"
#include "tls_pair.h"
#include "wait.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST       "127.0.0.1"
#define STREAM_MIN 500 /* a handshake has at least so many bytes of the server */
#define VARYING    8   /* by so many bytes their number may vary */
#define UNCHECKED                                                                                  \
    2 /* number of the only byte that may have any value: the minor version of the                 \
       * first record, which RFC 8446 tells clients to ignore */
#define FLOOD_MAX  100000 /* requests for new keys that no bound permits */
#define BLOCKS_MAX 30     /* allocations of the library while bytes accumulate up to the bound */
#define BLOCK_MAX  300000 /* bytes of the largest of them */

static struct certificate *issuer, *own;
static char issuer_path[CERTIFICATE_PATH_BYTES];
static int issuer_fd;
static struct fdcheck before;

/* Fixture: makes the certificates. */
static void setup(void)
{
    fdcheck_begin(&before);
    issuer = certificate_sign(&(struct certificate_terms){.subject = "Test CA", .is_issuer = true},
                              NULL);
    own = certificate_sign(&(struct certificate_terms){.subject = "server", .names = "IP:" HOST},
                           issuer);
    issuer_fd = certificate_publish(issuer, issuer_path);
}

/* Fixture: frees them, and checks that no descriptor is left open and no error in the queue. */
static void teardown(void)
{
    certificate_free(own);
    certificate_free(issuer);
    close(issuer_fd);
    ck_assert_uint_eq(ERR_peek_error(), 0);
    const char *leaked = fdcheck_leaked(&before, 1000);
    ck_assert_msg(leaked == NULL, "descriptors left open: %s", leaked);
}

/* Runs one handshake, whose stream ends or is changed as `pair` says. Returns its result, and the
 * text of a failure in `text`, which has 256 bytes. */
static enum rl_tls_result run(struct tls_pair *pair, char *text)
{
    ck_assert_msg(tls_pair_open(pair), "%s", pair->error);
    enum rl_tls_result result = tls_pair_handshake(pair);
    snprintf(text, 256, "%s", rl_tls_text(pair->tls));
    tls_pair_close(pair);
    return result;
}

/* Returns how many bytes the server sends at least until the client has completed the handshake:
 * the lengths of signatures vary. */
static size_t stream_len(struct tls_pair *pair)
{
    ck_assert(tls_pair_open(pair));
    enum rl_tls_result result = RL_TLS_AGAIN;
    size_t len = 0;
    while (result == RL_TLS_AGAIN) {
        tls_pair_serve(pair);
        len = pair->sent;
        rl_tls_permit(pair->tls, 8);
        result = rl_tls_handshake(pair->tls);
    }
    ck_assert_msg(result == RL_TLS_OK, "%s", rl_tls_text(pair->tls));
    tls_pair_close(pair);
    ck_assert_uint_gt(len, STREAM_MIN);
    return len - VARYING;
}

/* Returns the distance between the bytes that are tried: larger in slow builds. */
static size_t step(void)
{
    return wait_scaled_ms(1) <= 1 ? 1 : 7;
}

static const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};

START_TEST(the_stream_may_end_at_each_byte)
{
    struct tls_pair pair;
    char text[256];

    tls_pair_init(&pair, own, HOST, issuer_path, versions[_i]);
    size_t len = stream_len(&pair);
    for (size_t limit = 0; limit < len; limit += step()) {
        pair.limit = limit;
        enum rl_tls_result result = run(&pair, text);
        ck_assert_msg(result == RL_TLS_FAILED, "%zu of %zu bytes: result %d", limit, len, result);
        ck_assert_msg(strstr(text, "has ended the TLS handshake") != NULL, "%zu of %zu: %s", limit,
                      len, text);
    }
    tls_pair_done(&pair);
}
END_TEST

START_TEST(each_byte_may_be_wrong)
{
    struct tls_pair pair;
    char text[256];

    tls_pair_init(&pair, own, HOST, issuer_path, versions[_i]);
    size_t len = stream_len(&pair);
    for (size_t number = 0; number < len; number += step()) {
        pair.changed = number;
        enum rl_tls_result result = run(&pair, text);
        ck_assert_msg(result != RL_TLS_FAILED || text[0] != '\0', "byte %zu: no text", number);
        ck_assert_msg(result != RL_TLS_OK || number == UNCHECKED, "byte %zu has no effect", number);
    }
    tls_pair_done(&pair);
}
END_TEST

static unsigned blocks;  /* allocations of the library */
static size_t block_max; /* bytes of the largest */

/* Allocates as realloc() does, and counts. */
static void *counted_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    blocks++;
    block_max = size > block_max ? size : block_max;
    return realloc(ptr, size);
}

/* Allocates as malloc() does, and counts. */
static void *counted_malloc(size_t size, void *userdata)
{
    return counted_realloc(NULL, size, userdata);
}

/* The server asks for new keys and does not read the client's records. They are copied to a larger
 * block a few times, not once for each record. */
START_TEST(what_a_server_does_not_read_is_bounded)
{
    struct tls_pair pair;
    enum rl_tls_result result = RL_TLS_AGAIN;
    char buffer[256];
    size_t len, asked = 0;

    tls_pair_init(&pair, own, HOST, issuer_path, TLS1_3_VERSION);
    ck_assert(tls_pair_open(&pair));
    ck_assert_int_eq(tls_pair_handshake(&pair), RL_TLS_OK);
    ck_assert_int_eq(setsockopt(pair.fd[0], SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int)), 0);
    pair.mem.malloc_fn = counted_malloc;
    pair.mem.realloc_fn = counted_realloc;
    for (; result == RL_TLS_AGAIN && asked < FLOOD_MAX; asked++) {
        char bytes[256];
        ck_assert_int_eq(SSL_key_update(pair.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        ck_assert_int_eq(SSL_do_handshake(pair.ssl), 1);
        int got = BIO_read(SSL_get_wbio(pair.ssl), bytes, sizeof bytes);
        ck_assert_int_eq(send(pair.fd[1], bytes, (size_t)got, MSG_NOSIGNAL), got);
        result = tls_pair_receive(&pair, buffer, sizeof buffer, &len);
    }
    ck_assert_int_eq(result, RL_TLS_FAILED);
    ck_assert(!rl_tls_is_refused(pair.tls));
    ck_assert_str_eq(rl_tls_text(pair.tls), "the server reads nothing, and too much waits");
    ck_assert_uint_gt(asked, 1000);
    ck_assert_uint_lt(blocks, BLOCKS_MAX);
    ck_assert_uint_lt(block_max, BLOCK_MAX);
    tls_pair_done(&pair);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_tls_bytes");
    TCase *tcase = tcase_create("bytes");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, (double)wait_scaled_ms(60000) / 1000.0);
    tcase_add_loop_test(tcase, the_stream_may_end_at_each_byte, 0, 2);
    tcase_add_loop_test(tcase, each_byte_may_be_wrong, 0, 2);
    tcase_add_test(tcase, what_a_server_does_not_read_is_bounded);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
