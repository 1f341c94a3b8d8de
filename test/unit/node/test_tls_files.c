/* SPDX-License-Identifier: MIT
 * Files of certificates and keys that the library refuses, and why. */
#include "node/tls_parts.h"
#include "redlock/redlock.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

static char dir[128], path[160]; /* of the file of the case */

/* Fixture: makes a directory, and a name for a file in it. */
static void setup(void)
{
    const char *parent = getenv("TMPDIR");

    snprintf(dir, sizeof dir, "%s/redlock-files-XXXXXX",
             parent != NULL && strlen(parent) < 100 ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
}

/* Fixture: removes both. */
static void teardown(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

/* Checks that the settings are refused with this text. */
static void check_refused(const struct rl_tls_settings *settings, const char *text)
{
    char error[400] = "";
    SSL_CTX *native = NULL;

    ck_assert_int_eq(rl_tls_load(settings, &native, error, sizeof error), REDLOCK_EINVAL);
    ck_assert_ptr_null(native);
    ck_assert_str_eq(error, text);
}

/* Makes an RSA key of 512 bits, which no security level but 0 permits. */
static EVP_PKEY *make_short_key(void)
{
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, NULL);
    EVP_PKEY *key = NULL;

    ck_assert_ptr_nonnull(maker);
    ck_assert_int_eq(EVP_PKEY_keygen_init(maker), 1);
    ck_assert_int_eq(EVP_PKEY_CTX_set_rsa_keygen_bits(maker, 512), 1);
    ck_assert_int_eq(EVP_PKEY_keygen(maker, &key), 1);
    EVP_PKEY_CTX_free(maker);
    return key;
}

/* Writes a certificate with the key, and the key, to the file. */
static void write_certificate(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(certificate);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(X509_set_pubkey(certificate, key), 1);
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notBefore(certificate), -1000));
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notAfter(certificate), 1000));
    ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
    ck_assert_int_eq(PEM_write_X509(file, certificate), 1);
    ck_assert_int_eq(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    ck_assert_int_eq(fclose(file), 0);
    X509_free(certificate);
}

/* OpenSSL does not permit the certificate of the client. */
START_TEST(a_short_key)
{
    char expected[400];
    EVP_PKEY *key = make_short_key();

    write_certificate(key);
    EVP_PKEY_free(key);
    snprintf(expected, sizeof expected, "certificate %s: " RL_TLS_SHORT_KEY, path);
    check_refused(&(struct rl_tls_settings){.cert = path, .verify = RL_TLS_VERIFY_NONE}, expected);
}
END_TEST

#define NO_FILE "it is neither a file nor a directory; a pipe can be read only once"

/* A named pipe that OpenSSL would open, and wait for without end. */
START_TEST(a_named_pipe_as_issuers_of_the_system)
{
    char expected[400];

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(setenv("SSL_CERT_FILE", path, 1), 0);
    snprintf(expected, sizeof expected, "SSL_CERT_FILE %s: " NO_FILE, path);
    check_refused(&(struct rl_tls_settings){.verify = RL_TLS_VERIFY_FULL}, expected);
    unsetenv("SSL_CERT_FILE");
}
END_TEST

/* Adds a context for settings that need no file. Returns the result, with the reason in `error`. */
static int add_context(char *error, size_t size)
{
    const struct rl_mem mem = rl_mem_libc();
    const struct rl_log log = {0};
    struct rl_tls_context *contexts = NULL;
    int result =
        rl_tls_contexts_add(&contexts, &mem, &log,
                            &(struct rl_tls_settings){.verify = RL_TLS_VERIFY_NONE}, error, size);

    rl_tls_contexts_free(contexts, false);
    return result;
}

/* The same for the configuration of OpenSSL. */
START_TEST(a_named_pipe_as_configuration)
{
    char error[400] = "", expected[400];

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(setenv("OPENSSL_CONF", path, 1), 0);
    snprintf(expected, sizeof expected, "TLS: OPENSSL_CONF %s: " NO_FILE, path);
    ck_assert_int_eq(add_context(error, sizeof error), REDLOCK_EINVAL);
    ck_assert_str_eq(error, expected);
    unsetenv("OPENSSL_CONF");
}
END_TEST

/* What OpenSSL does without, or reads to an end, is not refused. */
START_TEST(other_files_of_variables)
{
    static const char *const paths[] = {"", "/nowhere", "/dev/null", "/"};
    char error[400] = "";
    SSL_CTX *native = NULL;

    ck_assert_int_eq(setenv("OPENSSL_CONF", paths[_i], 1), 0);
    ck_assert_int_eq(setenv("SSL_CERT_FILE", paths[_i], 1), 0);
    ck_assert_msg(add_context(error, sizeof error) == REDLOCK_OK, "%s", error);
    ck_assert_msg(rl_tls_load(&(struct rl_tls_settings){.verify = RL_TLS_VERIFY_FULL}, &native,
                              error, sizeof error) == REDLOCK_OK,
                  "%s", error);
    SSL_CTX_free(native);
    unsetenv("OPENSSL_CONF");
    unsetenv("SSL_CERT_FILE");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tls_files");
    TCase *tcase = tcase_create("files");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_short_key);
    tcase_add_test(tcase, a_named_pipe_as_issuers_of_the_system);
    tcase_add_test(tcase, a_named_pipe_as_configuration);
    tcase_add_loop_test(tcase, other_files_of_variables, 0, 4);
    return suite_run(suite);
}
