/* SPDX-License-Identifier: MIT
 * Certificates of tools/certificates.h in files. */
#include "certificates.h"

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATH_BYTES 256

/* Prints what has failed for the certificate with this subject and aborts, unless `ok`. */
static void check(bool ok, const char *subject, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "test harness: certificate %s: %s\n", subject, what);
    fflush(NULL);
    abort();
}

/* Returns whether certificates can be made. */
bool certificates_are_built(void)
{
    return true;
}

/* Makes a certificate in memory. */
struct certificate *certificate_sign(const struct certificate_terms *terms,
                                     const struct certificate *issuer)
{
    struct certificate_terms own = *terms;
    if (own.from_s == 0 && own.until_s == 0) {
        own.from_s = -CERTIFICATE_DAY_S;
        own.until_s = 30 * CERTIFICATE_DAY_S;
    }
    /* As the library does it: OpenSSL must not free its tables while threads of the test run. */
    check(OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1, own.subject, "no OpenSSL");
    struct certificate *certificate = certificate_new(&own, issuer);
    check(certificate != NULL, own.subject, "it cannot be made");
    return certificate;
}

/* Writes the certificate and its key to an anonymous file. */
int certificate_publish(const struct certificate *certificate,
                        char ret_path[CERTIFICATE_PATH_BYTES])
{
    const int fd = memfd_create("certificate", MFD_CLOEXEC);
    snprintf(ret_path, CERTIFICATE_PATH_BYTES, "/proc/%ld/fd/%d", (long)getpid(), fd);
    FILE *file = fopen(ret_path, "we");
    check(file != NULL && PEM_write_X509(file, certificate->x509) == 1 &&
              PEM_write_PrivateKey(file, certificate->key, NULL, NULL, 0, NULL, NULL) == 1 &&
              fclose(file) == 0,
          ret_path, "it cannot be written");
    return fd;
}

/* Writes the path DIR/NAME, followed by `ending`. */
static void write_path(char path[PATH_BYTES], const char *dir, const char *name, const char *ending)
{
    const int len = snprintf(path, PATH_BYTES, "%s/%s%s", dir, name, ending);
    check(len > 0 && len < PATH_BYTES, name, "its path is too long");
}

/* Reads a certificate and its key, which the caller frees. */
static struct certificate read_files(const char *dir, const char *name)
{
    char pem_path[PATH_BYTES], key_path[PATH_BYTES];
    write_path(pem_path, dir, name, ".pem");
    write_path(key_path, dir, name, ".key");
    FILE *pem = fopen(pem_path, "re"), *key = fopen(key_path, "re");
    check(pem != NULL && key != NULL, name, "it was not made before those that it signs");
    const struct certificate certificate = {PEM_read_X509(pem, NULL, NULL, NULL),
                                            PEM_read_PrivateKey(key, NULL, NULL, NULL)};
    check(certificate.x509 != NULL && certificate.key != NULL, name, "it cannot be read");
    fclose(pem);
    fclose(key);
    return certificate;
}

/* Makes a certificate in files. */
void certificate_make(const char *dir, const char *issuer, const struct certificate_terms *terms)
{
    char pem[PATH_BYTES], new_pem[PATH_BYTES], key[PATH_BYTES], new_key[PATH_BYTES];
    struct certificate signer = {NULL, NULL};
    if (issuer != NULL)
        signer = read_files(dir, issuer);
    struct certificate *made = certificate_sign(terms, issuer != NULL ? &signer : NULL);
    write_path(pem, dir, terms->subject, ".pem");
    write_path(new_pem, dir, terms->subject, ".pem.new");
    write_path(key, dir, terms->subject, ".key");
    write_path(new_key, dir, terms->subject, ".key.new");
    check(certificate_write(made, new_pem, new_key) == 0 && rename(new_key, key) == 0 &&
              rename(new_pem, pem) == 0,
          terms->subject, "its files cannot be written");
    certificate_free(made);
    X509_free(signer.x509);
    EVP_PKEY_free(signer.key);
}
