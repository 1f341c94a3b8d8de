/* SPDX-License-Identifier: MIT
 * Opens and seals records of TLS 1.3 with AES-128-GCM and SHA-256, with the secrets of one end. So
 * a test can send what an honest implementation never encrypts. */
#ifndef TEST_FUZZ_TLS_SEAL_H
#define TEST_FUZZ_TLS_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLS_HEADER       5 /* bytes before the content of a record: type, version, length */
#define TLS_TAG          16
#define TLS_CONTENT_MAX  ((size_t)16384) /* most bytes in a record, without type and padding */
#define TLS_SECRET_BYTES 32

/* With what one record is encrypted. */
struct tls_key {
    unsigned char key[16], iv[12];
    uint64_t number; /* of the record, since the key is in use */
};

/* The key for the next record of one end. */
struct tls_secret {
    unsigned char secret[TLS_SECRET_BYTES];
    struct tls_key next;
};

/* Begins to use a secret. */
void tls_secret_set(struct tls_secret *secret, const unsigned char bytes[TLS_SECRET_BYTES]);
/* Replaces a secret by its successor, as the end does after it has sent a KeyUpdate. */
void tls_secret_update(struct tls_secret *secret);

/* Decrypts the record of `len` bytes, with its header. Writes content and type to `plain`, which
 * has room for `len` bytes, and their number to *ret_len. Returns false if the key is another one.
 */
bool tls_open(const struct tls_key *key, const unsigned char *record, size_t len,
              unsigned char *plain, size_t *ret_len);
/* Encrypts content and type, `len` bytes at `plain`, to `record`, which has room for TLS_HEADER +
 * len + TLS_TAG bytes. Returns the bytes of the record. */
size_t tls_seal(const struct tls_key *key, const unsigned char *plain, size_t len,
                unsigned char *record);

#endif
