/* SPDX-License-Identifier: MIT
 * Records of TLS 1.3 (RFC 8446, sections 5.2 and 7.1 to 7.3). */
#include "tls_seal.h"

#include "fuzz.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define APPLICATION_DATA 23 /* type of each encrypted record, outside */

/* Derives `len` bytes, at most 32, from a secret: HKDF-Expand-Label with an empty context. */
static void expand(const unsigned char *secret, const char *label, unsigned char *bytes, size_t len)
{
    unsigned char info[40] = {0, (unsigned char)len}, block[EVP_MAX_MD_SIZE];
    size_t name = strlen(label), at = 2;

    info[at++] = (unsigned char)(6 + name);
    memcpy(info + at, "tls13 ", 6);
    memcpy(info + at + 6, label, name);
    at += 6 + name;
    info[at++] = 0; /* length of the context */
    info[at++] = 1; /* number of the block */
    MUST(HMAC(EVP_sha256(), secret, TLS_SECRET_BYTES, info, at, block, NULL) != NULL);
    memcpy(bytes, block, len);
}

/* Begins to use a secret. */
void tls_secret_set(struct tls_secret *secret, const unsigned char bytes[TLS_SECRET_BYTES])
{
    memmove(secret->secret, bytes, TLS_SECRET_BYTES);
    expand(secret->secret, "key", secret->next.key, sizeof secret->next.key);
    expand(secret->secret, "iv", secret->next.iv, sizeof secret->next.iv);
    secret->next.number = 0;
}

/* Replaces a secret by its successor. */
void tls_secret_update(struct tls_secret *secret)
{
    unsigned char bytes[TLS_SECRET_BYTES];

    expand(secret->secret, "traffic upd", bytes, sizeof bytes);
    tls_secret_set(secret, bytes);
}

/* Begins to encrypt or decrypt a record with this header. */
static EVP_CIPHER_CTX *begin(const struct tls_key *key, const unsigned char *header, int encrypts)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    unsigned char nonce[sizeof key->iv];
    int done;

    memcpy(nonce, key->iv, sizeof nonce);
    for (unsigned i = 0; i < 8; i++)
        nonce[sizeof nonce - 1 - i] ^= (unsigned char)(key->number >> 8 * i);
    MUST(ctx != NULL &&
         EVP_CipherInit_ex(ctx, EVP_aes_128_gcm(), NULL, key->key, nonce, encrypts) == 1);
    MUST(EVP_CipherUpdate(ctx, NULL, &done, header, TLS_HEADER) == 1);
    return ctx;
}

/* Decrypts a record. */
bool tls_open(const struct tls_key *key, const unsigned char *record, size_t len,
              unsigned char *plain, size_t *ret_len)
{
    unsigned char tag[TLS_TAG];
    int done, more;

    if (len < TLS_HEADER + TLS_TAG + 1)
        return false;
    *ret_len = len - TLS_HEADER - TLS_TAG;
    memcpy(tag, record + len - TLS_TAG, TLS_TAG);
    EVP_CIPHER_CTX *ctx = begin(key, record, 0);
    bool ok = EVP_CipherUpdate(ctx, plain, &done, record + TLS_HEADER, (int)*ret_len) == 1 &&
              EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TLS_TAG, tag) == 1 &&
              EVP_CipherFinal_ex(ctx, plain + done, &more) == 1;
    EVP_CIPHER_CTX_free(ctx);
    return ok;
}

/* Encrypts a record. */
size_t tls_seal(const struct tls_key *key, const unsigned char *plain, size_t len,
                unsigned char *record)
{
    const size_t inside = len + TLS_TAG;
    int done, more;

    memcpy(record, (unsigned char[]){APPLICATION_DATA, 3, 3, 0, 0}, TLS_HEADER);
    record[3] = (unsigned char)(inside >> 8);
    record[4] = (unsigned char)inside;
    EVP_CIPHER_CTX *ctx = begin(key, record, 1);
    MUST(EVP_CipherUpdate(ctx, record + TLS_HEADER, &done, plain, (int)len) == 1);
    MUST(EVP_CipherFinal_ex(ctx, record + TLS_HEADER + done, &more) == 1);
    MUST(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TLS_TAG, record + TLS_HEADER + len) == 1);
    EVP_CIPHER_CTX_free(ctx);
    return TLS_HEADER + inside;
}
