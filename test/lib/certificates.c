/* SPDX-License-Identifier: MIT
 * Makes keys and certificates with OpenSSL. */
#include "certificates.h"

#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES 256
#define DAY_S      (24 * 60 * 60)

/* A path of a file, and the path that it has until it is complete. */
struct target {
    char path[PATH_BYTES];
    char unfinished[PATH_BYTES + 8];
    FILE *file;
};

/* Prints what has failed for which certificate and aborts, unless `ok`. */
static void check(bool ok, const struct certificate *certificate, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "test harness: certificate %s: %s\n", certificate->name, what);
    fflush(NULL);
    abort();
}

/* Returns whether certificate_make() works. */
bool certificates_are_built(void)
{
    return true;
}

/* Opens DIR/NAME.ENDING for reading or (`write`) a new file that finish() puts there. */
static struct target open_file(const char *dir, const char *name, const char *ending, bool write)
{
    struct target target;
    const int len = snprintf(target.path, sizeof target.path, "%s/%s.%s", dir, name, ending);
    snprintf(target.unfinished, sizeof target.unfinished, "%s.new", target.path);
    target.file = len < 0 || (size_t)len >= sizeof target.path ? NULL
                  : write                                      ? fopen(target.unfinished, "we")
                                                               : fopen(target.path, "re");
    return target;
}

/* Closes a new file and gives it its path. Returns false if that failed. */
static bool finish(const struct target *target)
{
    return fclose(target->file) == 0 && rename(target->unfinished, target->path) == 0;
}

/* Returns a new key. NULL: failed. */
static EVP_PKEY *make_key(void)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    EVP_PKEY *key = NULL;
    if (context == NULL || EVP_PKEY_keygen_init(context) != 1 ||
        EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) != 1 ||
        EVP_PKEY_CTX_set_ec_param_enc(context, OPENSSL_EC_NAMED_CURVE) != 1 ||
        EVP_PKEY_keygen(context, &key) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

/* Adds an extension with this value (NULL: none is added). Returns false if that failed. */
static bool extend(X509 *made, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    if (value == NULL)
        return true;
    X509V3_set_ctx(&context, issuer, made, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    const bool ok = extension != NULL && X509_add_ext(made, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

/* Sets number, subject and validity. Returns false if that failed. */
static bool fill_in(X509 *made, const struct certificate *certificate)
{
    const bool usual = certificate->from_s == 0 && certificate->until_s == 0;
    BIGNUM *number = BN_new();
    X509_NAME *subject = X509_get_subject_name(made);
    const bool ok =
        number != NULL && BN_rand(number, 64, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
        BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made)) != NULL &&
        X509_set_version(made, 2) == 1 &&
        X509_gmtime_adj(X509_getm_notBefore(made), usual ? -DAY_S : certificate->from_s) != NULL &&
        X509_gmtime_adj(X509_getm_notAfter(made), usual ? 30 * DAY_S : certificate->until_s) !=
            NULL &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                   (const unsigned char *)certificate->name, -1, -1, 0) == 1;
    BN_free(number);
    return ok;
}

/* Adds all extensions. `issuer` may be the certificate itself. Returns false if that failed. */
static bool add_extensions(X509 *made, X509 *issuer, const struct certificate *certificate)
{
    const bool signs = certificate->issuer == NULL;
    const char *use = signs ? NULL : certificate->client ? "clientAuth" : "serverAuth";
    return extend(made, issuer, NID_basic_constraints,
                  signs ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
           extend(made, issuer, NID_key_usage,
                  signs ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
           extend(made, issuer, NID_ext_key_usage, use) &&
           extend(made, issuer, NID_subject_key_identifier, "hash") &&
           extend(made, issuer, NID_authority_key_identifier, signs ? NULL : "keyid") &&
           extend(made, issuer, NID_subject_alt_name, certificate->names);
}

/* Reads the key and the certificate of the issuer. */
static void read_issuer(const char *dir, const struct certificate *certificate, EVP_PKEY **ret_key,
                        X509 **ret_issuer)
{
    struct target pem = open_file(dir, certificate->issuer, "pem", false);
    struct target key = open_file(dir, certificate->issuer, "key", false);
    check(pem.file != NULL && key.file != NULL, certificate, "its issuer was not made");
    *ret_issuer = PEM_read_X509(pem.file, NULL, NULL, NULL);
    *ret_key = PEM_read_PrivateKey(key.file, NULL, NULL, NULL);
    fclose(pem.file);
    fclose(key.file);
    check(*ret_issuer != NULL && *ret_key != NULL, certificate, "its issuer cannot be read");
}

/* Makes a new key and its certificate. */
void certificate_make(const char *dir, const struct certificate *certificate)
{
    /* As the library does it: OpenSSL must not free its tables while threads of the test run. */
    check(OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1, certificate, "no OpenSSL");
    EVP_PKEY *key = make_key(), *signer = key;
    X509 *made = X509_new(), *issuer = made;
    check(key != NULL && made != NULL, certificate, "no key can be made");
    if (certificate->issuer != NULL)
        read_issuer(dir, certificate, &signer, &issuer);
    check(fill_in(made, certificate) && X509_set_pubkey(made, key) == 1 &&
              X509_set_issuer_name(made, X509_get_subject_name(issuer)) == 1 &&
              add_extensions(made, issuer, certificate) &&
              X509_sign(made, signer, EVP_sha256()) > 0,
          certificate, "it cannot be signed");
    struct target private = open_file(dir, certificate->name, "key", true);
    struct target public = open_file(dir, certificate->name, "pem", true);
    check(private.file != NULL && public.file != NULL &&
              PEM_write_PrivateKey(private.file, key, NULL, NULL, 0, NULL, NULL) == 1 &&
              PEM_write_X509(public.file, made) == 1 && finish(&private) && finish(&public),
          certificate, "its files cannot be written");
    if (issuer != made) {
        X509_free(issuer);
        EVP_PKEY_free(signer);
    }
    X509_free(made);
    EVP_PKEY_free(key);
}
