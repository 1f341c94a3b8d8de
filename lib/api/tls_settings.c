/* SPDX-License-Identifier: MIT
 * Checks and stores the settings of TLS in the configuration. */
#include "api/tls_settings.h"

#include "api/config.h"

#include <arpa/inet.h>
#include <string.h>

_Static_assert((int)REDLOCK_TLS_VERIFY_FULL == (int)RL_TLS_VERIFY_FULL &&
                   (int)REDLOCK_TLS_VERIFY_CHAIN == (int)RL_TLS_VERIFY_CHAIN &&
                   (int)REDLOCK_TLS_VERIFY_NONE == (int)RL_TLS_VERIFY_NONE,
               "public and internal numbers agree");

/* Returns whether the last label of a name has digits only, so that it can only be an IPv4 address.
 * A dot at the end is no part of the label. */
static bool ends_as_ipv4(const char *name)
{
    size_t end = strlen(name), digits = 0;

    end -= end > 0 && name[end - 1] == '.';
    while (digits < end && name[end - digits - 1] >= '0' && name[end - digits - 1] <= '9')
        digits++;
    return digits > 0 && (digits == end || name[end - digits - 1] == '.');
}

/* Returns NULL if a name may be sent to the server and be compared with its certificate: it is a
 * host name or an IP address; else what is wrong. It must not begin with a dot, which OpenSSL takes
 * for every name that ends so. */
static const char *sni_flaw(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:");
    struct in6_addr address;

    if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
        return NULL;
    if (name[0] == '[')
        return "sni must be a host name or an IP address, without brackets and without a port";
    if (len == 0 || len > RL_HOST_MAX || name[len] != '\0' || name[0] == '.')
        return "sni must be a host name or an IP address";
    if (strchr(name, ':') != NULL)
        return "sni must be a host name or an IP address, without a port";
    return ends_as_ipv4(name) ? "sni must be a host name or an IP address; an IPv4 address has "
                                "four numbers from 0 to 255"
                              : NULL;
}

/* Returns NULL if the settings fit together; else what is wrong and what to do. */
const char *rl_tls_settings_flaw(const struct rl_tls_settings *settings)
{
    if (settings->key != NULL && settings->cert == NULL)
        return "key is given without cert; give both, or cert alone if its file has the key, too";
    if (settings->verify == RL_TLS_VERIFY_CHAIN && settings->cacert == NULL)
        return "verify=chain needs cacert: with the issuers of the system, everybody who has a "
               "certificate of one of them could answer";
    if (settings->verify == RL_TLS_VERIFY_NONE && settings->cacert != NULL)
        return "cacert has no effect with verify=none; leave out one of them";
    return settings->sni != NULL ? sni_flaw(settings->sni) : NULL;
}

/* Returns the settings of a node: what its address says, and the rest from `common`. A certificate
 * and its key are one setting. How to verify belongs to the issuers with which it was chosen: an
 * address with issuers of its own, and without a word on it, verifies in full; and one without
 * verification needs no issuers. */
struct rl_tls_settings rl_tls_settings_of(const struct rl_node_spec *spec,
                                          const struct rl_tls_settings *common)
{
    struct rl_tls_settings all = spec->tls_settings;

    if (all.cacert == NULL && !spec->has_verify)
        all.verify = common->verify;
    if (all.cacert == NULL && all.verify != RL_TLS_VERIFY_NONE)
        all.cacert = common->cacert;
    if (all.cert == NULL) {
        all.cert = common->cert;
        all.key = common->key;
    }
    if (all.sni == NULL)
        all.sni = common->sni;
    return all;
}

/* Adds to the settings of a node what its address does not say. */
int rl_tls_settings_complete(const struct rl_mem *mem, struct rl_node_spec *spec,
                             const struct rl_tls_settings *common)
{
    struct rl_tls_settings all = rl_tls_settings_of(spec, common), copy;

    if (rl_node_spec_tls_copy(mem, &copy, &all) != 0)
        return REDLOCK_ENOMEM;
    rl_node_spec_tls_done(mem, &spec->tls_settings);
    spec->tls_settings = copy;
    return REDLOCK_OK;
}

/* Checks that the caller's struct has all fields that this library knows, and uses no other.
 * Returns REDLOCK_OK; or REDLOCK_EINVAL with a reason in `config`. */
static int check_struct(struct redlock_config *config, const redlock_tls_t *tls)
{
    if (tls->size < sizeof *tls) {
        rl_config_refuse(config, "TLS: size is %zu; set it to sizeof(redlock_tls_t): %zu",
                         tls->size, sizeof *tls);
        return REDLOCK_EINVAL;
    }
    for (size_t i = sizeof *tls; i < tls->size; i++) {
        if (((const unsigned char *)tls)[i] == 0)
            continue;
        rl_config_refuse(config, "TLS: the struct has a field that this version of the library "
                                 "does not know; leave it zero, or use a newer library");
        return REDLOCK_EINVAL;
    }
    if (tls->verify < REDLOCK_TLS_VERIFY_FULL || tls->verify > REDLOCK_TLS_VERIFY_NONE) {
        rl_config_refuse(config, "TLS: verify is %d; use one of enum redlock_tls_verify, %d to %d",
                         tls->verify, REDLOCK_TLS_VERIFY_FULL, REDLOCK_TLS_VERIFY_NONE);
        return REDLOCK_EINVAL;
    }
    return REDLOCK_OK;
}

/* Checks one text of the struct. Returns REDLOCK_OK; or REDLOCK_EINVAL with a reason in `config`.
 */
static int check_text(struct redlock_config *config, const char *what, const char *text)
{
    if (text == NULL)
        return REDLOCK_OK;
    if (text[0] == '\0' || strlen(text) > RL_FILE_MAX) {
        rl_config_refuse(config, "TLS: %s must have 1 to %d bytes, or be NULL", what, RL_FILE_MAX);
        return REDLOCK_EINVAL;
    }
    const char *flaw = rl_config_text_flaw(text, RL_FILE_MAX, ' ', 0xff);
    if (flaw != NULL) {
        rl_config_refuse(config, "TLS: %s %s", what, flaw);
        return REDLOCK_EINVAL;
    }
    return REDLOCK_OK;
}

/* Public function: sets what TLS connections need, as far as their address does not say it.
 * NULL: the defaults. Returns REDLOCK_OK, EINVAL or ENOMEM. */
REDLOCK_API int redlock_config_set_tls(redlock_config_t *config, const redlock_tls_t *tls)
{
    const redlock_tls_t none = {.size = sizeof none};
    struct rl_tls_settings copy;

    if (config == NULL)
        return REDLOCK_EINVAL;
    tls = tls != NULL ? tls : &none;
    if (check_struct(config, tls) != REDLOCK_OK)
        return REDLOCK_EINVAL;
    if (!rl_node_spec_tls_is_built() && tls != &none) {
        rl_config_refuse(config, "TLS: %s", RL_TLS_MISSING);
        return REDLOCK_EINVAL;
    }
    if (check_text(config, "cacert", tls->cacert) != REDLOCK_OK ||
        check_text(config, "cert", tls->cert) != REDLOCK_OK ||
        check_text(config, "key", tls->key) != REDLOCK_OK ||
        check_text(config, "sni", tls->sni) != REDLOCK_OK)
        return REDLOCK_EINVAL;
    const struct rl_tls_settings given = {.cacert = (char *)tls->cacert,
                                          .cert = (char *)tls->cert,
                                          .key = (char *)tls->key,
                                          .sni = (char *)tls->sni,
                                          .verify = (uint8_t)tls->verify};
    const char *flaw = rl_tls_settings_flaw(&given);
    if (flaw != NULL) {
        rl_config_refuse(config, "TLS: %s", flaw);
        return REDLOCK_EINVAL;
    }
    if (rl_node_spec_tls_copy(&config->mem, &copy, &given) != 0) {
        rl_config_refuse(config, "out of memory");
        return REDLOCK_ENOMEM;
    }
    rl_node_spec_tls_done(&config->mem, &config->tls);
    config->tls = copy;
    return REDLOCK_OK;
}
