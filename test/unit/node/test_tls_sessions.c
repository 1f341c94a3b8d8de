/* SPDX-License-Identifier: MIT
 * Which sessions are resumed, and which files are in use, after certificates have changed.
 *
 * Uses tls_rig.h: the library's TLS over a pair of sockets to a server in the same thread, without
 * a node. The test replaces time() and clock_gettime(), so that certificates expire when it says
 * so. */
#include "tls_rig.h"

#include "redlock/redlock.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "certificates.h"
#include "suite.h"
#include "wait.h"

#define LIFETIME_S  3600               /* of a certificate that expires in a test */
#define LATER_S     (LIFETIME_S + 600) /* less than the two hours of a session */
#define NOT_TRUSTED "the certificate is not from an issuer that is trusted"

static time_t ahead_s;       /* how far the next two functions are ahead of the wall clock */
static bool openssl_starves; /* each allocation of OpenSSL fails */
static unsigned looks;       /* calls of stat() on the thread of the test */
static pthread_t loop;       /* the thread of the test */
static struct tls_rig *rig;

/* Replaces the function of libc for the library. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret);
    if (result == 0 && clock == CLOCK_REALTIME)
        ret->tv_sec += ahead_s;
    return result;
}

/* The same for OpenSSL. */
time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL)
        *ret = now.tv_sec;
    return now.tv_sec;
}

/* Counts the calls on the thread of the test. */
int stat(const char *path, struct stat *ret)
{
    looks += pthread_equal(pthread_self(), loop) != 0;
    return fstatat(AT_FDCWD, path, ret, 0);
}

/* Allocates for OpenSSL. */
static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return openssl_starves ? NULL : malloc(size);
}

/* Reallocates for OpenSSL. */
static void *openssl_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return openssl_starves ? NULL : realloc(old, size);
}

/* Frees for OpenSSL. */
static void openssl_free(void *old, const char *file, int line)
{
    (void)file;
    (void)line;
    free(old);
}

/* Fixture: makes a rig. */
static void setup(void)
{
    ahead_s = 0;
    loop = pthread_self();
    rig = tls_rig_new();
}

/* Fixture: frees the rig. */
static void teardown(void)
{
    tls_rig_done(rig);
}

/* Makes a context for the settings of the rig as they are now, without a file of issuers. */
static void use_settings(void)
{
    char error[400] = "";

    rig->spec.tls_settings.cacert = NULL;
    ck_assert_msg(rl_tls_contexts_add(&rig->contexts, &rig->mem, &rig->log, &rig->spec.tls_settings,
                                      error, sizeof error) == REDLOCK_OK,
                  "%s", error);
    rig->server.context = rl_tls_contexts_find(rig->contexts, &rig->spec.tls_settings);
}

/* Checks that the issuers that are in use now do not accept the server, and that it had to prove
 * its identity anew. */
static void check_untrusted(void)
{
    struct tls_link link = tls_rig_open(rig);

    ck_assert_int_eq(tls_rig_handshake(&link), RL_TLS_FAILED);
    ck_assert_int_eq(SSL_session_reused(link.server), 0);
    ck_assert(rl_tls_is_refused(link.client));
    ck_assert_msg(strncmp(rl_tls_text(link.client), NOT_TRUSTED, strlen(NOT_TRUSTED)) == 0, "%s",
                  rl_tls_text(link.client));
    tls_rig_close(&link);
}

/* A second connection resumes the session of the first one, but not if the issuers have been
 * replaced between them. */
START_TEST(a_session_is_resumed_with_the_same_issuers_only)
{
    struct tls_link first = tls_rig_connect(rig);

    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    struct tls_link second = tls_rig_connect(rig);
    ck_assert_int_eq(SSL_session_reused(second.server), 1);
    ck_assert_int_eq(tls_rig_receive(&second), RL_TLS_AGAIN);
    ck_assert_ptr_nonnull(rig->server.session);
    tls_rig_replace_issuer(rig);
    tls_rig_reload(rig);
    check_untrusted();
    tls_rig_close(&first);
    tls_rig_close(&second);
}
END_TEST

/* The tickets of a connection from before a reload arrive after it: with them, the server would not
 * have to show a certificate that the new issuers accept. */
START_TEST(a_ticket_of_an_earlier_connection_is_not_kept)
{
    struct tls_link earlier = tls_rig_connect(rig);

    tls_rig_replace_issuer(rig);
    tls_rig_reload(rig);
    ck_assert_int_eq(tls_rig_receive(&earlier), RL_TLS_AGAIN);
    ck_assert_ptr_null(rig->server.session);
    check_untrusted();
    tls_rig_close(&earlier);
}
END_TEST

/* A session whose certificate has expired is not offered, so that the server shows the one that it
 * has now. */
START_TEST(a_session_with_an_expired_certificate_is_not_offered)
{
    tls_rig_certify(rig, LIFETIME_S);
    struct tls_link first = tls_rig_connect(rig);
    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    tls_rig_close(&first);

    ahead_s = LATER_S;
    tls_rig_certify(rig, LIFETIME_S);
    struct tls_link second = tls_rig_connect(rig);
    ck_assert_int_eq(SSL_session_reused(second.server), 0);
    tls_rig_close(&second);
}
END_TEST

/* The same if the certificate of the issuer has expired, and the server's has not. */
START_TEST(a_session_with_an_expired_issuer_is_not_offered)
{
    certificate_make(
        rig->dir, NULL,
        &(struct certificate_terms){
            .subject = TLS_RIG_ISSUERS, .is_issuer = true, .from_s = -1000, .until_s = LIFETIME_S});
    tls_rig_certify(rig, 2 * LATER_S);
    tls_rig_reload(rig);
    struct tls_link first = tls_rig_connect(rig);
    const int64_t left_s = rl_tls_expiry_s(first.client) - (int64_t)time(NULL);
    ck_assert_int_gt(left_s, LIFETIME_S - 300);
    ck_assert_int_le(left_s, LIFETIME_S);
    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    struct tls_link second = tls_rig_connect(rig);
    ck_assert_int_eq(SSL_session_reused(second.server), 1);
    ck_assert_int_eq(tls_rig_receive(&second), RL_TLS_AGAIN);
    tls_rig_close(&first);
    tls_rig_close(&second);

    ahead_s = LATER_S;
    struct tls_link third = tls_rig_open(rig);
    ck_assert_int_eq(tls_rig_handshake(&third), RL_TLS_FAILED);
    ck_assert_int_eq(SSL_session_reused(third.server), 0);
    ck_assert(rl_tls_is_refused(third.client));
    tls_rig_close(&third);
}
END_TEST

/* Without verification, the issuers that the server sends with its certificate do not count. */
START_TEST(the_date_of_an_issuer_without_verification_does_not_count)
{
    certificate_make(
        rig->dir, NULL,
        &(struct certificate_terms){
            .subject = TLS_RIG_ISSUERS, .is_issuer = true, .from_s = -1000, .until_s = LIFETIME_S});
    tls_rig_certify(rig, 2 * LATER_S);
    FILE *file = fopen(rig->issuers, "re");
    ck_assert_ptr_nonnull(file);
    X509 *issuer = PEM_read_X509(file, NULL, NULL, NULL);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(SSL_CTX_add0_chain_cert(rig->native, issuer), 1);
    rig->spec.tls_settings.verify = RL_TLS_VERIFY_NONE;
    use_settings();

    struct tls_link link = tls_rig_connect(rig);
    ck_assert_int_gt(rl_tls_expiry_s(link.client) - (int64_t)time(NULL), LATER_S);
    tls_rig_close(&link);
}
END_TEST

/* The dates count at the end of the handshake also if a session is resumed. */
START_TEST(a_certificate_that_expires_in_the_handshake_is_refused)
{
    tls_rig_certify(rig, LIFETIME_S);
    struct tls_link first = tls_rig_connect(rig);
    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    tls_rig_close(&first);

    struct tls_link second = tls_rig_open(rig);
    ahead_s = LATER_S;
    ck_assert_int_eq(tls_rig_handshake(&second), RL_TLS_FAILED);
    ck_assert_int_eq(SSL_session_reused(second.server), 1);
    ck_assert(rl_tls_is_refused(second.client));
    ck_assert_str_eq(rl_tls_text(second.client),
                     "the certificate of the server was not accepted: expired");
    tls_rig_close(&second);
    ck_assert_ptr_null(rig->server.session);
}
END_TEST

/* Begins a handshake that the server does not answer, and gives it up. */
static void give_up_a_handshake(void)
{
    struct tls_link link = tls_rig_open(rig);

    ck_assert_int_eq(rl_tls_handshake(link.client), RL_TLS_AGAIN);
    tls_rig_close(&link);
}

/* A handshake that was given up for lack of time leaves the session: the next one resumes it, and
 * costs a busy server less. After three in a row it is dropped, because it may be the reason. A
 * complete handshake starts the count again, even if no new ticket was read. */
START_TEST(a_session_outlives_two_handshakes_that_were_given_up)
{
    struct tls_link first = tls_rig_connect(rig);

    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    for (int round = 0; round < 2; round++) {
        give_up_a_handshake();
        give_up_a_handshake();
        struct tls_link next = tls_rig_connect(rig);
        ck_assert_int_eq(SSL_session_reused(next.server), 1);
        ck_assert_int_eq(tls_rig_receive(&next), RL_TLS_AGAIN);
        tls_rig_close(&next);
    }
    give_up_a_handshake();
    give_up_a_handshake();
    struct tls_link complete = tls_rig_connect(rig);
    tls_rig_close(&complete);
    give_up_a_handshake();
    give_up_a_handshake();
    ck_assert_ptr_nonnull(rig->server.session);
    give_up_a_handshake();
    ck_assert_ptr_null(rig->server.session);
    tls_rig_close(&first);
}
END_TEST

/* A session is resumed again if the connection that had resumed it ended before it read a new
 * ticket, as many do when a server is busy. */
START_TEST(a_session_is_resumed_until_there_is_a_new_ticket)
{
    struct tls_link first = tls_rig_connect(rig);

    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    for (int round = 0; round < 5; round++) {
        struct tls_link next = tls_rig_connect(rig);
        ck_assert_int_eq(SSL_session_reused(next.server), 1);
        tls_rig_close(&next);
    }
    tls_rig_close(&first);
}
END_TEST

/* A handshake that the server ends takes the session with it. */
START_TEST(a_session_goes_with_a_handshake_that_the_server_ends)
{
    struct tls_link first = tls_rig_connect(rig);

    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    ck_assert_ptr_nonnull(rig->server.session);
    struct tls_link second = tls_rig_open(rig);
    close(second.server_fd);
    second.server_fd = -1;
    ck_assert_int_eq(rl_tls_handshake(second.client), RL_TLS_FAILED);
    tls_rig_close(&second);
    ck_assert_ptr_null(rig->server.session);
    tls_rig_close(&first);
}
END_TEST

/* Lets a connection begin: waits until the files were looked at. */
static void begin_connection(void)
{
    if (!rl_tls_context_refresh(rig->server.context, rig->wake_fd, false, 0))
        ck_assert(WAIT_UNTIL(rl_tls_context_settle(rig->server.context), TLS_RIG_DEADLINE_MS));
}

/* Without descriptors changed files cannot be read. They are not forgotten: the next connection
 * reads them. */
START_TEST(files_that_could_not_be_read_are_read_again)
{
    struct pollfd ended = {.fd = rig->wake_fd, .events = POLLIN};
    struct rlimit usual, small;
    uint64_t count;
    int free_fd = dup(rig->wake_fd);

    close(free_fd);
    tls_rig_replace_issuer(rig);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    /* One descriptor is left, for the copy of wake_fd that the thread needs. */
    small = (struct rlimit){.rlim_cur = (rlim_t)free_fd + 1, .rlim_max = usual.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &small), 0);
    bool current = rl_tls_context_refresh(rig->server.context, rig->wake_fd, false, 0);
    int has_ended = poll(&ended, 1, TLS_RIG_DEADLINE_MS);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    ck_assert(!current);
    ck_assert_int_eq(has_ended, 1);
    ck_assert_int_eq(read(rig->wake_fd, &count, sizeof count), sizeof count);
    ck_assert(!rl_tls_context_refresh(rig->server.context, rig->wake_fd, false, 0));
    ck_assert_int_eq(poll(&ended, 1, TLS_RIG_DEADLINE_MS), 1);
    begin_connection();
    check_untrusted();
}
END_TEST

/* A connection that lacks memory says nothing about the server: its session stays, however often
 * that happens. _i 0: before the handshake; 1: in it. */
START_TEST(a_session_outlives_a_lack_of_memory)
{
    struct tls_link first = tls_rig_connect(rig);

    ck_assert_int_eq(tls_rig_receive(&first), RL_TLS_AGAIN);
    for (unsigned i = 0; i < 5; i++) {
        openssl_starves = _i == 0;
        struct rl_tls *tls = rl_tls_open(&rig->server, first.client_fd);
        ck_assert(_i == 0 ? tls == NULL : tls != NULL);
        openssl_starves = true;
        if (tls != NULL)
            ck_assert_int_eq(rl_tls_handshake(tls), RL_TLS_FAILED);
        rl_tls_close(tls);
        openssl_starves = false;
    }
    ck_assert_uint_eq(rig->server.given_up, 0);
    struct tls_link last = tls_rig_connect(rig);
    ck_assert_int_eq(SSL_session_reused(last.server), 1);
    tls_rig_close(&first);
    tls_rig_close(&last);
}
END_TEST

/* A file system that does not answer would stop the thread that extends locks. */
START_TEST(no_file_is_looked_at_on_the_thread_of_the_connections)
{
    looks = 0;
    begin_connection();
    ck_assert_uint_eq(looks, 0);
    tls_rig_replace_issuer(rig);
    looks = 0;
    begin_connection();
    ck_assert_uint_eq(looks, 0);
    check_untrusted();
}
END_TEST

/* A reload ends while no connection waits for it. The next connection, which has the files looked
 * at again, uses its result. */
START_TEST(a_reload_that_has_ended_is_used)
{
    struct pollfd ended = {.fd = rig->wake_fd, .events = POLLIN};

    tls_rig_replace_issuer(rig);
    ck_assert(!rl_tls_context_refresh(rig->server.context, rig->wake_fd, false, 0));
    ck_assert_int_eq(poll(&ended, 1, TLS_RIG_DEADLINE_MS), 1);
    begin_connection();
    check_untrusted();
}
END_TEST

/* Has the context read the issuers of the system, which are those of the rig. */
static void trust_the_system(void)
{
    ck_assert_int_eq(setenv("SSL_CERT_FILE", rig->issuers, 1), 0);
    ck_assert_int_eq(setenv("SSL_CERT_DIR", "/nonexistent", 1), 0);
    use_settings();
}

/* Connects at `now_ns`: checks that the connection waits for no files. Then waits for a thread that
 * reads them, if there is one. */
static void refresh_at(uint64_t now_ns)
{
    ck_assert(rl_tls_context_refresh(rig->server.context, rig->wake_fd, false, now_ns));
    ck_assert(WAIT_UNTIL(rl_tls_context_settle(rig->server.context), TLS_RIG_DEADLINE_MS));
}

/* The issuers of the system are read again after they have refused a server, at most once a minute.
 * No connection waits for them. */
START_TEST(issuers_of_the_system_are_read_again_after_a_refusal)
{
    const uint64_t begin_ns = 1000, minute_ns = UINT64_C(60000000000);

    trust_the_system();
    tls_rig_replace_issuer(rig);
    tls_rig_certify(rig, LIFETIME_S);
    refresh_at(begin_ns);
    check_untrusted();
    refresh_at(begin_ns);
    struct tls_link link = tls_rig_connect(rig);
    tls_rig_close(&link);

    tls_rig_replace_issuer(rig);
    tls_rig_certify(rig, LIFETIME_S);
    rl_tls_server_done(&rig->server);
    check_untrusted();
    refresh_at(begin_ns + minute_ns - 1);
    check_untrusted();
    refresh_at(begin_ns + minute_ns);
    link = tls_rig_connect(rig);
    tls_rig_close(&link);
}
END_TEST

int main(void)
{
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1)
        return EXIT_FAILURE;
    Suite *suite = suite_create("node_tls_sessions");
    TCase *tcase = tcase_create("sessions");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_session_is_resumed_with_the_same_issuers_only);
    tcase_add_test(tcase, a_ticket_of_an_earlier_connection_is_not_kept);
    tcase_add_test(tcase, a_session_with_an_expired_certificate_is_not_offered);
    tcase_add_test(tcase, a_session_with_an_expired_issuer_is_not_offered);
    tcase_add_test(tcase, the_date_of_an_issuer_without_verification_does_not_count);
    tcase_add_test(tcase, a_certificate_that_expires_in_the_handshake_is_refused);
    tcase_add_test(tcase, a_session_outlives_two_handshakes_that_were_given_up);
    tcase_add_test(tcase, a_session_is_resumed_until_there_is_a_new_ticket);
    tcase_add_test(tcase, a_session_goes_with_a_handshake_that_the_server_ends);
    tcase_add_test(tcase, files_that_could_not_be_read_are_read_again);
    tcase_add_loop_test(tcase, a_session_outlives_a_lack_of_memory, 0, 2);
    tcase_add_test(tcase, no_file_is_looked_at_on_the_thread_of_the_connections);
    tcase_add_test(tcase, a_reload_that_has_ended_is_used);
    tcase_add_test(tcase, issuers_of_the_system_are_read_again_after_a_refusal);
    return suite_run(suite);
}
