/* SPDX-License-Identifier: MIT
 * Makes certificates with OpenSSL's libcrypto.
 */
#include "certificates.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Makes a private key. Returns NULL if OpenSSL fails. */
static EVP_PKEY *new_key(void)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    EVP_PKEY *key = NULL;

    if (context && EVP_PKEY_keygen_init(context) == 1 &&
        EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1 &&
        EVP_PKEY_CTX_set_ec_param_enc(context, OPENSSL_EC_NAMED_CURVE) == 1 &&
        EVP_PKEY_keygen(context, &key) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

/* Adds one extension, which `value` describes in the language of OpenSSL's configuration (NULL:
 * adds nothing). Returns false if OpenSSL fails. */
static bool add_extension(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;

    if (!value)
        return true;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool good = extension && X509_add_ext(x509, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return good;
}

/* Adds all extensions. Returns false if OpenSSL fails. */
static bool add_extensions(X509 *x509, X509 *issuer, const struct certificate_terms *terms)
{
    const char *kind = terms->is_issuer ? "critical,CA:TRUE" : "critical,CA:FALSE";
    const char *key =
        terms->is_issuer ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature";
    const char *use = terms->use || terms->is_issuer ? terms->use : "serverAuth,clientAuth";

    return add_extension(x509, issuer, NID_subject_key_identifier, "hash") &&
           add_extension(x509, issuer, NID_authority_key_identifier, "keyid") &&
           add_extension(x509, issuer, NID_basic_constraints, kind) &&
           add_extension(x509, issuer, NID_key_usage, key) &&
           add_extension(x509, issuer, NID_ext_key_usage, use) &&
           add_extension(x509, issuer, NID_subject_alt_name, terms->names);
}

/* Sets a random number as serial number. Returns false if OpenSSL fails. */
static bool set_serial(X509 *x509)
{
    unsigned char bytes[16];

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of full length */
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509));
    BN_free(number);
    return good;
}

/* Sets all fields of the certificate, and signs it. Returns false if OpenSSL fails. */
static bool fill(struct certificate *certificate, const struct certificate_terms *terms,
                 const struct certificate *issuer)
{
    X509 *x509 = certificate->x509;
    X509_NAME *name = X509_get_subject_name(x509);
    const unsigned char *subject = (const unsigned char *)terms->subject;

    return X509_set_version(x509, 2) == 1 && /* 2 is version 3 */
           set_serial(x509) && X509_gmtime_adj(X509_getm_notBefore(x509), terms->from_s) &&
           X509_gmtime_adj(X509_getm_notAfter(x509), terms->until_s) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, subject, -1, -1, 0) == 1 &&
           X509_set_issuer_name(x509, X509_get_subject_name(issuer->x509)) == 1 &&
           X509_set_pubkey(x509, certificate->key) == 1 &&
           add_extensions(x509, issuer->x509, terms) &&
           X509_sign(x509, issuer->key, EVP_sha256()) > 0;
}

/* Makes a certificate with a new key. */
struct certificate *certificate_new(const struct certificate_terms *terms,
                                    const struct certificate *issuer)
{
    struct certificate *certificate = calloc(1, sizeof *certificate);

    if (!certificate)
        return NULL;
    certificate->x509 = X509_new();
    certificate->key = new_key();
    if (certificate->x509 && certificate->key &&
        fill(certificate, terms, issuer ? issuer : certificate))
        return certificate;
    certificate_free(certificate);
    return NULL;
}

/* Opens a file for writing; a new one that only its owner may read if `secret`. Returns NULL with
 * errno if that fails. */
static FILE *open_file(const char *path, bool secret)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (secret ? O_EXCL : O_TRUNC);
    int fd = open(path, flags, secret ? 0600 : 0644);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

/* Closes the file. Returns 0, or -1 with errno if something was not written. */
static int close_file(FILE *file, bool written)
{
    bool closed = fclose(file) == 0;

    if (!written && closed)
        errno = EIO;
    return written && closed ? 0 : -1;
}

/* Writes the certificate, and its key unless `key_path` is NULL. */
int certificate_write(const struct certificate *certificate, const char *path, const char *key_path)
{
    FILE *file = open_file(path, false);

    if (!file || close_file(file, PEM_write_X509(file, certificate->x509) == 1) != 0)
        return -1;
    if (!key_path)
        return 0;
    file = open_file(key_path, true);
    if (!file)
        return -1;
    return close_file(file,
                      PEM_write_PrivateKey(file, certificate->key, NULL, NULL, 0, NULL, NULL) == 1);
}

/* Frees a certificate and its key, which OpenSSL wipes. */
void certificate_free(struct certificate *certificate)
{
    if (!certificate)
        return;
    X509_free(certificate->x509);
    EVP_PKEY_free(certificate->key);
    free(certificate);
}
