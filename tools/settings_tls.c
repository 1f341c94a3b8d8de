/* SPDX-License-Identifier: MIT
 * The settings of TLS: whether they fit together, and what the library gets of them.
 */
#include <stdlib.h>
#include <string.h>

#include "exits.h"
#include "settings.h"

/* Returns the value of a setting, NULL if it is not set. */
static const char *text_of(const struct settings *settings, enum setting_id id)
{
    return settings->values[id].text;
}

/* Returns true if both settings are set, and the source of `id` has precedence over that of
 * `other`. */
static bool outranks(const struct settings *settings, enum setting_id id, enum setting_id other)
{
    const struct setting *one = &settings->values[id], *two = &settings->values[other];

    return one->text && two->text && one->rank > two->rank;
}

/* Unsets a setting, and frees its texts. */
static void forget(struct settings *settings, enum setting_id id)
{
    struct setting *value = &settings->values[id];

    free(value->text);
    free(value->origin);
    *value = (struct setting){.text = NULL};
}

/* Drops a setting if a source with more precedence sets the one that it belongs to: a private key
 * belongs to its certificate, and how to verify to the issuers. Issuers are dropped if such a
 * source says that nothing is verified. */
void settings_settle_tls(struct settings *settings)
{
    const char *verify = text_of(settings, SET_TLS_VERIFY);

    if (outranks(settings, SET_TLS_CERT, SET_TLS_KEY))
        forget(settings, SET_TLS_KEY);
    if (outranks(settings, SET_TLS_CACERT, SET_TLS_VERIFY))
        forget(settings, SET_TLS_VERIFY);
    else if (outranks(settings, SET_TLS_VERIFY, SET_TLS_CACERT) && !strcmp(verify, "none"))
        forget(settings, SET_TLS_CACERT);
}

/* Reports what is wrong with the setting `id`, and what to do. Returns EXIT_CONFIG. */
static int refuse(const struct settings *settings, enum setting_id id, const char *why)
{
    setting_say(settings, id, why);
    return EXIT_CONFIG;
}

/* Checks that the settings of TLS fit together. Returns -1, or EXIT_CONFIG after a message. */
int settings_check_tls(const struct settings *settings)
{
    static const enum setting_id texts[] = {SET_TLS_CACERT, SET_TLS_CERT, SET_TLS_KEY, SET_TLS_SNI};
    int verify = settings->tls_verify;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (text_of(settings, texts[i]) && !*text_of(settings, texts[i]))
            return refuse(settings, texts[i], "empty; give a value, or leave the setting out");
    if (text_of(settings, SET_TLS_KEY) && !text_of(settings, SET_TLS_CERT))
        return refuse(settings, SET_TLS_KEY,
                      "a private key without a certificate; set tls-cert, too");
    if (verify == REDLOCK_TLS_VERIFY_CHAIN && !text_of(settings, SET_TLS_CACERT))
        return refuse(settings, SET_TLS_VERIFY,
                      "needs tls-cacert, because any name is accepted of issuers that the system "
                      "trusts; set tls-cacert to your own issuer, or write full");
    if (verify == REDLOCK_TLS_VERIFY_NONE && text_of(settings, SET_TLS_CACERT))
        return refuse(settings, SET_TLS_VERIFY,
                      "nothing is verified, so tls-cacert has no effect; leave one of them out");
    return -1;
}

/* Fills *ret_tls. Returns false if all settings of TLS have their defaults. */
bool settings_tls(const struct settings *settings, redlock_tls_t *ret_tls)
{
    *ret_tls = (redlock_tls_t){.size = sizeof *ret_tls,
                               .cacert = text_of(settings, SET_TLS_CACERT),
                               .cert = text_of(settings, SET_TLS_CERT),
                               .key = text_of(settings, SET_TLS_KEY),
                               .sni = text_of(settings, SET_TLS_SNI),
                               .verify = settings->tls_verify};
    return ret_tls->cacert || ret_tls->cert || ret_tls->sni ||
           ret_tls->verify != REDLOCK_TLS_VERIFY_FULL;
}

/* Returns true if the setting is set by a source that has no less precedence than that of the
 * servers. */
bool settings_weighs(const struct settings *settings, enum setting_id id)
{
    return text_of(settings, id) && settings->values[id].rank != RANK_DEFAULT &&
           !outranks(settings, SET_SERVERS, id);
}

/* Returns the first setting of TLS that is set by a source that has no less precedence than that of
 * the servers; SET_COUNT if there is none. */
enum setting_id settings_first_tls(const struct settings *settings)
{
    static const enum setting_id ids[] = {SET_TLS_CACERT, SET_TLS_CERT, SET_TLS_SNI,
                                          SET_TLS_VERIFY};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (settings_weighs(settings, ids[i]))
            return ids[i];
    return SET_COUNT;
}
