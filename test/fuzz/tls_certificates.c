/* SPDX-License-Identifier: MIT
 * Certificates of all kinds. What they are good for is decided here without the functions of
 * OpenSSL that the library uses for it. */
#include "tls_certificates.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define MADE       (TLS_CERTIFICATES - 1) /* kind that is made from the input */
#define NAMES      "DNS:server.test,DNS:*.one.test,IP:127.0.0.1,IP:::1,IP:fe80::1"
#define YEARS_S    (3650 * CERTIFICATE_DAY_S)
#define NAMES_MAX  4  /* names that an input chooses */
#define NAME_BYTES 40 /* most bytes of such a name */

static struct certificate *issuer, *second, *other, *leaf, *own[MADE];
static char issuer_path[CERTIFICATE_PATH_BYTES], client_path[CERTIFICATE_PATH_BYTES];

/* The kinds; the first two are usual. `trusted` as in struct tls_shown. */
static const struct {
    struct certificate **issuer; /* NULL: self-signed */
    bool sends_issuer, trusted;
    struct certificate_terms terms;
} kinds[MADE] = {
    {&issuer,
     false,
     true,
     {.subject = "server", .names = NAMES, .from_s = -CERTIFICATE_DAY_S, .until_s = YEARS_S}},
    {&second, true, true, {.subject = "chain", .names = NAMES}},
    {&issuer,
     false,
     true,
     {.subject = "wild", .names = "DNS:*.one.test,DNS:*.test,DNS:*,DNS:s*.test"}},
    {&issuer, false, true, {.subject = "others", .names = "DNS:other.test,IP:127.0.0.2"}},
    {&issuer, false, true, {.subject = "server.test"}},
    {&issuer,
     false,
     true,
     {.subject = "expired", .names = NAMES, .from_s = -2 * CERTIFICATE_DAY_S, .until_s = -3600}},
    {&issuer,
     false,
     true,
     {.subject = "early",
      .names = NAMES,
      .from_s = CERTIFICATE_DAY_S / 2,
      .until_s = CERTIFICATE_DAY_S * 20}},
    {&issuer,
     false,
     true,
     {.subject = "soon", .names = NAMES, .from_s = -CERTIFICATE_DAY_S, .until_s = 3600}},
    {NULL, false, false, {.subject = "self", .names = NAMES}},
    {&other, true, false, {.subject = "unknown", .names = NAMES}},
    {&issuer, false, false, {.subject = "clients", .names = NAMES, .use = "clientAuth"}},
    {&leaf, true, false, {.subject = "leaf", .names = NAMES}},
    {&issuer,
     false,
     true,
     {.subject = "texts", .names = "DNS:127.0.0.1,DNS:\\:\\:1,DNS:server.test.evil.test"}},
};

/* Makes an issuer that is valid for years. `signer` NULL: signs itself. */
static struct certificate *make_issuer(const char *subject, const struct certificate *signer)
{
    return certificate_sign(&(struct certificate_terms){.subject = subject,
                                                        .is_issuer = true,
                                                        .from_s = -CERTIFICATE_DAY_S,
                                                        .until_s = 2 * YEARS_S},
                            signer);
}

/* Makes the certificates of all kinds. */
void tls_certificates_make(void)
{
    issuer = make_issuer("Test CA", NULL);
    second = make_issuer("Second CA", issuer);
    other = make_issuer("Test CA", NULL);
    leaf = certificate_sign(&(struct certificate_terms){.subject = "leaf", .names = NAMES}, issuer);
    struct certificate *client = certificate_sign(
        &(struct certificate_terms){.subject = "client", .use = "clientAuth", .until_s = YEARS_S},
        issuer);
    (void)certificate_publish(issuer, issuer_path);
    (void)certificate_publish(client, client_path);
    certificate_free(client);
    for (unsigned i = 0; i < MADE; i++)
        own[i] =
            certificate_sign(&kinds[i].terms, kinds[i].issuer != NULL ? *kinds[i].issuer : NULL);
}

/* Returns the path of the issuer that the client trusts. */
const char *tls_certificates_issuer(void)
{
    return issuer_path;
}

/* Returns the path of the client's certificate and key. */
const char *tls_certificates_client(void)
{
    return client_path;
}

/* Replaces the names of a certificate by those that the input chooses. */
static void choose_names(X509 *native, struct fuzz_input *input)
{
    static const int types[] = {GEN_DNS, GEN_IPADD, GEN_EMAIL, GEN_URI};
    GENERAL_NAMES *names = GENERAL_NAMES_new();

    MUST(names != NULL);
    for (unsigned count = fuzz_below(input, NAMES_MAX + 1); count > 0; count--) {
        GENERAL_NAME *name = GENERAL_NAME_new();
        int type = types[fuzz_below(input, 4)];
        size_t len;
        const char *bytes = fuzz_bytes(input, fuzz_below(input, NAME_BYTES), &len);
        ASN1_STRING *value =
            ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
        MUST(name != NULL && value != NULL && ASN1_STRING_set(value, bytes, (int)len) == 1);
        GENERAL_NAME_set0_value(name, type, value);
        MUST(sk_GENERAL_NAME_push(names, name) > 0);
    }
    MUST(X509_add1_ext_i2d(native, NID_subject_alt_name, names, 0, X509V3_ADD_REPLACE) == 1);
    GENERAL_NAMES_free(names);
}

/* Replaces a date by bytes of the input. */
static void choose_date(ASN1_TIME *date, struct fuzz_input *input)
{
    size_t len;
    const char *bytes = fuzz_bytes(input, fuzz_below(input, 24), &len);

    date->type = fuzz_byte(input) % 2 == 0 ? V_ASN1_UTCTIME : V_ASN1_GENERALIZEDTIME;
    MUST(ASN1_STRING_set(date, bytes, (int)len) == 1);
}

/* Makes a certificate of the trusted issuer as the input chooses. */
static X509 *make(struct fuzz_input *input)
{
    X509 *native = X509_dup(own[0]->x509);
    unsigned what = fuzz_byte(input);

    MUST(native != NULL);
    choose_names(native, input);
    if (what & 1)
        choose_date(X509_getm_notAfter(native), input);
    if (what & 2)
        choose_date(X509_getm_notBefore(native), input);
    MUST(X509_sign(native, issuer->key, EVP_sha256()) > 0);
    return native;
}

/* Returns a date in seconds of Unix time, or `otherwise` if it is none. */
static int64_t seconds_of(const ASN1_TIME *date, int64_t otherwise)
{
    struct tm parts;

    return ASN1_TIME_to_tm(date, &parts) == 1 ? (int64_t)timegm(&parts) : otherwise;
}

/* Prepares a certificate. */
void tls_shown_init(struct tls_shown *shown, unsigned kind, struct fuzz_input *input)
{
    const bool made = kind == MADE;

    memset(shown, 0, sizeof *shown);
    shown->own = own[made ? 0 : kind];
    shown->usual = kind < 2;
    shown->trusted = made || kinds[kind].trusted;
    if (!made && kinds[kind].sends_issuer)
        shown->chain = *kinds[kind].issuer;
    if (made)
        shown->native = make(input);
    else if (X509_up_ref(shown->own->x509) == 1)
        shown->native = shown->own->x509;
    MUST(shown->native != NULL);
    shown->begins_s = seconds_of(X509_get0_notBefore(shown->native), INT64_MAX);
    shown->ends_s = seconds_of(X509_get0_notAfter(shown->native), INT64_MIN);
}

/* Frees it. */
void tls_shown_done(struct tls_shown *shown)
{
    X509_free(shown->native);
    shown->native = NULL;
}

/* Returns whether a DNS name of a certificate, which may have a wildcard as its first label, is for
 * this host name. */
static bool is_for_host(const unsigned char *pattern, size_t len, const char *host)
{
    const char *dot = strchr(host, '.');

    if (len == strlen(host) && strncasecmp((const char *)pattern, host, len) == 0)
        return true;
    return dot != NULL && len == strlen(dot) + 1 && pattern[0] == '*' &&
           strncasecmp((const char *)pattern + 1, dot, len - 1) == 0 &&
           strchr(dot + 1, '.') != NULL;
}

/* Returns whether one of the names of a certificate is this host name or IP address. */
static bool has_name(X509 *native, const char *name)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(native, NID_subject_alt_name, NULL, NULL);
    unsigned char address[16];
    const int bytes = inet_pton(AF_INET, name, address) == 1    ? 4
                      : inet_pton(AF_INET6, name, address) == 1 ? 16
                                                                : 0;
    bool found = false;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(names, i);
        if (bytes == 0 && one->type == GEN_DNS)
            found |= is_for_host(ASN1_STRING_get0_data(one->d.dNSName),
                                 (size_t)ASN1_STRING_length(one->d.dNSName), name);
        if (bytes != 0 && one->type == GEN_IPADD)
            found |= ASN1_STRING_length(one->d.iPAddress) == bytes &&
                     memcmp(ASN1_STRING_get0_data(one->d.iPAddress), address, (size_t)bytes) == 0;
    }
    GENERAL_NAMES_free(names);
    return found;
}

/* Returns whether the certificate is right for a server with this name at this time. */
bool tls_shown_is_right(const struct tls_shown *shown, const char *name, int64_t now_s)
{
    return shown->trusted && shown->begins_s <= now_s && now_s <= shown->ends_s &&
           (name == NULL || has_name(shown->native, name));
}
