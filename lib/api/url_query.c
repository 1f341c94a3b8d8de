/* SPDX-License-Identifier: MIT
 * Parses the parameters of an address, such as "?durable=1&id=a". */
#include "api/tls_settings.h"
#include "api/url_parts.h"

#include <redlock/redlock.h>
#include <string.h>

/* Parses a parameter that is 0 or 1 into one of the facts that an operator attests. */
static int parse_fact(const struct parse *parse, struct piece name, struct piece value)
{
    struct rl_node_spec *spec = parse->spec;
    bool *fact = rl_url_is_word(name, "durable") ? &spec->durable
                 : rl_url_is_word(name, "fresh") ? &spec->fresh
                                                 : NULL;
    uint64_t number = 0;

    if (fact == NULL)
        return rl_url_refuse(parse,
                             "after the '?' only these parameters are known: durable=1, "
                             "fresh=1, id=NAME%s",
                             spec->is_unix ? ", db=N"
                             : spec->tls   ? ", cacert=PATH, cert=PATH, key=PATH, sni=NAME, "
                                             "verify=full, chain or none"
                                           : "");
    if (!rl_url_number(value, 1, &number))
        return rl_url_refuse(parse, "durable and fresh must be 1 or 0");
    *fact = number == 1;
    return 0;
}

/* Parses verify=full, chain or none into the settings, in lower case only, as everywhere else. */
static int parse_verify(const struct parse *parse, struct piece value)
{
    static const char *const words[] = {"full", "chain", "none"};

    if (parse->spec->has_verify)
        return rl_url_refuse(parse, "verify must be given once");
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (value.len == strlen(words[i]) && memcmp(value.at, words[i], value.len) == 0) {
            parse->spec->tls_settings.verify = (uint8_t)i;
            parse->spec->has_verify = true;
            return 0;
        }
    }
    return rl_url_refuse(parse, "verify must be full, chain or none");
}

/* Parses a parameter of TLS into the settings. Sets *ret_known to whether it is one. */
static int parse_tls(const struct parse *parse, struct piece name, struct piece value,
                     bool *ret_known)
{
    struct rl_tls_settings *settings = &parse->spec->tls_settings;
    const struct {
        const char *name;
        char **text;
    } texts[] = {{"cacert", &settings->cacert},
                 {"cert", &settings->cert},
                 {"key", &settings->key},
                 {"sni", &settings->sni}};

    *ret_known = true;
    if (rl_url_is_word(name, "verify"))
        return parse_verify(parse, value);
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!rl_url_is_word(name, texts[i].name))
            continue;
        if (value.len == 0 || *texts[i].text != NULL)
            return rl_url_refuse(parse, "%s must be given once, and not be empty", texts[i].name);
        return rl_url_text(parse, texts[i].name, value, ' ', RL_FILE_MAX, texts[i].text);
    }
    *ret_known = false;
    return 0;
}

/* Parses one parameter into the spec. */
static int parse_one(const struct parse *parse, struct piece name, struct piece value)
{
    struct rl_node_spec *spec = parse->spec;
    bool known = false;

    if (rl_url_is_word(name, "db") && spec->is_unix)
        return rl_url_db(parse, value);
    if (rl_url_is_word(name, "db"))
        return rl_url_refuse(parse, "a database is written as /N");
    if (rl_url_is_word(name, "id") && value.len > 0)
        return rl_url_decode(parse, "id", value, '!', spec->id, RL_ID_MAX);
    int rc = parse_tls(parse, name, value, &known);
    if (rc != 0)
        return rc;
    if (known && !spec->tls)
        return rl_url_refuse(parse, "parameters of TLS need an address that begins with rediss://");
    return known ? 0 : parse_fact(parse, name, value);
}

/* Parses the parameters after the '?', which '&' separates: durable=1, fresh=1, id=NAME; for a unix
 * socket db=N; with TLS cacert=PATH, cert=PATH, key=PATH, sni=NAME, verify=full, chain or none. */
int rl_url_query(const struct parse *parse, struct piece query)
{
    struct piece one, name, value;

    while (query.len > 0) {
        rl_url_split(query, "&", &one, &query);
        query = rl_url_skip(query, query.len > 0);
        rl_url_split(one, "=", &name, &value);
        value = rl_url_skip(value, value.len > 0);
        int rc = parse_one(parse, name, value);
        if (rc != 0)
            return rc;
    }
    const struct rl_tls_settings *settings = &parse->spec->tls_settings;
    if (settings->verify == RL_TLS_VERIFY_CHAIN && settings->cacert == NULL)
        return 0; /* redlock_new() checks that the configuration has cacert */
    const char *flaw = rl_tls_settings_flaw(settings);
    return flaw == NULL ? 0 : rl_url_refuse(parse, "%s", flaw);
}
