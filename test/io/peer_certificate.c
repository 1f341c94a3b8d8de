/* SPDX-License-Identifier: MIT
 * Makes certificates for tests. */
#include "peer_certificate.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Aborts the test if a step fails. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "peer_certificate: %s\n", #condition);                                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Makes a key of the curve P-256. */
static EVP_PKEY *make_key(void)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);

    MUST(ctx != NULL && EVP_PKEY_keygen_init(ctx) == 1);
    MUST(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(ctx, NID_X9_62_prime256v1) == 1);
    MUST(EVP_PKEY_keygen(ctx, &key) == 1);
    EVP_PKEY_CTX_free(ctx);
    return key;
}

/* Adds one extension. `value` NULL: adds nothing. */
static void add_extension(X509 *native, int nid, const char *value)
{
    X509V3_CTX ctx;

    if (value == NULL)
        return;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, native, native, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    MUST(extension != NULL && X509_add_ext(native, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

/* Makes the certificate that `opts` describes, for `key`. */
static X509 *make_native(const struct peer_certificate_opts *opts, EVP_PKEY *key)
{
    static atomic_long serial;
    const bool usual = opts->begins_s == 0 && opts->ends_s == 0;
    const char *usage = opts->is_ca ? "critical,keyCertSign" : "critical,digitalSignature";
    X509 *native = X509_new();

    MUST(native != NULL && X509_set_version(native, 2) == 1);
    MUST(ASN1_INTEGER_set(X509_get_serialNumber(native), ++serial) == 1);
    MUST(X509_gmtime_adj(X509_getm_notBefore(native), usual ? -PEER_DAY_S : opts->begins_s) !=
         NULL);
    MUST(X509_gmtime_adj(X509_getm_notAfter(native), usual ? 30 * PEER_DAY_S : opts->ends_s) !=
         NULL);
    X509_NAME *name = X509_get_subject_name(native);
    MUST(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)opts->name, -1,
                                    -1, 0) == 1);
    const struct peer_certificate *issuer = opts->issuer;
    MUST(X509_set_issuer_name(native,
                              issuer != NULL ? X509_get_subject_name(issuer->native) : name) == 1);
    MUST(X509_set_pubkey(native, key) == 1);
    add_extension(native, NID_basic_constraints, opts->is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    add_extension(native, NID_key_usage, usage);
    add_extension(native, NID_ext_key_usage, opts->is_for_clients ? "clientAuth" : NULL);
    add_extension(native, NID_subject_alt_name, opts->names);
    MUST(X509_sign(native, issuer != NULL ? issuer->key : key, EVP_sha256()) > 0);
    return native;
}

/* Writes the certificate and its key to an anonymous file. */
static void write_file(struct peer_certificate *certificate)
{
    BIO *text = BIO_new(BIO_s_mem());
    char *bytes = NULL;

    MUST(text != NULL && PEM_write_bio_X509(text, certificate->native) == 1);
    MUST(PEM_write_bio_PrivateKey(text, certificate->key, NULL, NULL, 0, NULL, NULL) == 1);
    const long len = BIO_get_mem_data(text, &bytes);
    certificate->fd = memfd_create("certificate", MFD_CLOEXEC);
    MUST(certificate->fd >= 0 && write(certificate->fd, bytes, (size_t)len) == len);
    BIO_free(text);
    snprintf(certificate->path, sizeof certificate->path, "/proc/%ld/fd/%d", (long)getpid(),
             certificate->fd);
}

/* Makes a certificate. */
struct peer_certificate *peer_certificate_new(const struct peer_certificate_opts *opts)
{
    struct peer_certificate *certificate = calloc(1, sizeof *certificate);

    MUST(certificate != NULL);
    certificate->key = make_key();
    certificate->native = make_native(opts, certificate->key);
    write_file(certificate);
    return certificate;
}

/* Frees a certificate. */
void peer_certificate_free(struct peer_certificate *certificate)
{
    if (certificate == NULL)
        return;
    X509_free(certificate->native);
    EVP_PKEY_free(certificate->key);
    close(certificate->fd);
    free(certificate);
}

/* Returns the path of the file with the certificate and its key. */
const char *peer_certificate_path(const struct peer_certificate *certificate)
{
    return certificate->path;
}
