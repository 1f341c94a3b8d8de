/* SPDX-License-Identifier: MIT
 * What a connection of the command takes from the name of a server and from the list of addresses.
 */
#include <stdio.h>
#include <string.h>

#include "../../../tools/server_address.h"
#include "api/tls_settings.h"
#include "api/url.h"
#include "suite.h"

static const struct place_row {
    const char *node, *host, *path;
    int port, db;
} PLACES[] = {
    {"a.example:6379", "a.example", "", 6379, 0},
    {"10.0.0.1:6380/2", "10.0.0.1", "", 6380, 2},
    {"[::1]:6379", "::1", "", 6379, 0},
    {"[fe80::1%eth0]:7000/15", "fe80::1%eth0", "", 7000, 15},
    {"unix:/run/redis.sock", "", "/run/redis.sock", 0, 0},
    {"unix:/run/redis.sock?db=3", "", "/run/redis.sock", 0, 3},
    {"unix:/run/a?db=1/x?db=4", "", "/run/a?db=1/x", 0, 4},
};

START_TEST(place_of_name)
{
    const struct place_row *row = &PLACES[_i];
    struct server_place place = server_place_of(row->node);

    ck_assert_str_eq(place.host, row->host);
    ck_assert_str_eq(place.path, row->path);
    ck_assert_int_eq(place.port, row->port);
    ck_assert_int_eq(place.db, row->db);
}
END_TEST

static const struct login_row {
    const char *list;
    size_t index;
    const char *user, *password; /* NULL: none */
} LOGINS[] = {
    {"a,b", 0, NULL, NULL},
    {"a,b", 2, NULL, NULL},
    {"redis://:secret@a:1", 0, NULL, "secret"},
    {"a, redis://me:secret@b ,c", 1, "me", "secret"},
    {"a, redis://me:secret@b ,c", 2, NULL, NULL},
    {"redis://me:s%65cret%40@a:6379/2?id=x", 0, "me", "secret@"},
    {"redis://a/0?id=b@c", 0, NULL, NULL}, /* the '@' is not before the host */
    {"unix://me:secret@/run/redis.sock?db=1", 0, "me", "secret"},
    {"unix:///run/redis.sock", 0, NULL, NULL},
    {"redis://me:p%4@a", 0, "me", "p%4"}, /* the library refuses it before */
};

START_TEST(login_of_list)
{
    const struct login_row *row = &LOGINS[_i];
    struct server_login login = server_login_of(row->list, row->index);

    ck_assert_pstr_eq(login.user, row->user);
    ck_assert_pstr_eq(login.password, row->password);
    server_login_free(&login);
    ck_assert_ptr_null(login.password);
}
END_TEST

static const struct security_row {
    const char *list;
    size_t index;
    bool used, has_verify;
    const char *cacert, *cert, *key, *sni; /* NULL: none */
    int verify;
} SECURITIES[] = {
    {"a", 0, false, false, NULL, NULL, NULL, NULL, REDLOCK_TLS_VERIFY_FULL},
    {"rediss://a", 1, false, false, NULL, NULL, NULL, NULL, REDLOCK_TLS_VERIFY_FULL},
    {"redis://rediss:%2f%2f@a", 0, false, false, NULL, NULL, NULL, NULL, REDLOCK_TLS_VERIFY_FULL},
    {"a,Rediss://b:1/2", 1, true, false, NULL, NULL, NULL, NULL, REDLOCK_TLS_VERIFY_FULL},
    {"valkeys://b?id=x", 0, true, false, NULL, NULL, NULL, NULL, REDLOCK_TLS_VERIFY_FULL},
    {"rediss://a?fresh=1&cacert=/e%26c&verify=chain b", 0, true, true, "/e&c", NULL, NULL, NULL,
     REDLOCK_TLS_VERIFY_CHAIN},
    {"rediss://a?CERT=c&key=k&sni=n,rediss://b?cert=d", 0, true, false, NULL, "c", "k", "n",
     REDLOCK_TLS_VERIFY_FULL},
    {"rediss://a?cert=c,rediss://b?verify=none", 1, true, true, NULL, NULL, NULL, NULL,
     REDLOCK_TLS_VERIFY_NONE},
    /* The library refuses these. */
    {"rediss://b?verify=None", 0, true, true, NULL, NULL, NULL, NULL, REDLOCK_TLS_VERIFY_FULL},
    {"rediss://b?verify=%6eone", 0, true, true, NULL, NULL, NULL, NULL, REDLOCK_TLS_VERIFY_FULL},
};

START_TEST(security_of_list)
{
    const struct security_row *row = &SECURITIES[_i];
    struct server_security security = server_security_of(row->list, row->index);

    ck_assert_int_eq(security.used, row->used);
    ck_assert_int_eq(security.has_verify, row->has_verify);
    ck_assert_pstr_eq(security.cacert, row->cacert);
    ck_assert_pstr_eq(security.cert, row->cert);
    ck_assert_pstr_eq(security.key, row->key);
    ck_assert_pstr_eq(security.sni, row->sni);
    ck_assert_int_eq(security.verify, row->verify);
    server_security_free(&security);
    ck_assert_ptr_null(security.cacert);
}
END_TEST

/* Parameters of TLS in an address. */
static const char *const CERTS[] = {"", "&cert=/own/c", "&cert=/own/c&key=/own/k"};
static const char *const SNIS[] = {"", "&SNI=own.example"};
static const char *const VERIFIES[] = {"",
                                       "&verify=full",
                                       "&verify=chain",
                                       "&verify=none",
                                       "&cacert=/own/ca%26",
                                       "&cacert=/own/ca%26&verify=full",
                                       "&verify=chain&cacert=/own/ca%26"};
/* Common settings. */
static const struct rl_tls_settings COMMON[] = {
    {.verify = RL_TLS_VERIFY_FULL},
    {.cacert = (char[]){"/ca"}, .sni = (char[]){"a.example"}, .verify = RL_TLS_VERIFY_CHAIN},
    {.cert = (char[]){"/c"}, .key = (char[]){"/k"}, .verify = RL_TLS_VERIFY_NONE},
};
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))
#define COMBINED     (COUNT(VERIFIES) * COUNT(CERTS) * COUNT(SNIS) * COUNT(COMMON))

/* With all common settings and all parameters, a connection of the command has the settings that
 * the library gives its own. */
START_TEST(combined_as_in_the_library)
{
    const struct rl_mem mem = rl_mem_libc();
    const struct rl_tls_settings *common = &COMMON[_i % COUNT(COMMON)];
    const char *verify = VERIFIES[_i / COUNT(COMMON) % COUNT(VERIFIES)];
    int rest = _i / COUNT(COMMON) / COUNT(VERIFIES);
    struct rl_node_spec *specs = NULL;
    size_t count = 0;
    char text[200], error[400];

    if (!rl_node_spec_tls_is_built())
        return;
    snprintf(text, sizeof text, "rediss://a?fresh=1%s%s%s", verify, CERTS[rest % COUNT(CERTS)],
             SNIS[rest / COUNT(CERTS)]);
    ck_assert_msg(rl_url_parse_list(&mem, text, &specs, &count, error, sizeof error) == REDLOCK_OK,
                  "%s", error);
    const struct rl_tls_settings expected = rl_tls_settings_of(&specs[0], common);
    struct server_security own = server_security_of(text, 0);
    redlock_tls_t found = {.cacert = common->cacert,
                           .cert = common->cert,
                           .key = common->key,
                           .sni = common->sni,
                           .verify = common->verify};
    server_security_apply(&own, &found);
    ck_assert_pstr_eq(found.cacert, expected.cacert);
    ck_assert_pstr_eq(found.cert, expected.cert);
    ck_assert_pstr_eq(found.key, expected.key);
    ck_assert_pstr_eq(found.sni, expected.sni);
    ck_assert_int_eq(found.verify, expected.verify);
    server_security_free(&own);
    rl_node_spec_done(&mem, &specs[0]);
    rl_free(&mem, specs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_server_address");
    TCase *tcase = tcase_create("server_address");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, place_of_name, 0, (int)(sizeof PLACES / sizeof PLACES[0]));
    tcase_add_loop_test(tcase, login_of_list, 0, (int)(sizeof LOGINS / sizeof LOGINS[0]));
    tcase_add_loop_test(tcase, security_of_list, 0,
                        (int)(sizeof SECURITIES / sizeof SECURITIES[0]));
    tcase_add_loop_test(tcase, combined_as_in_the_library, 0, COMBINED);
    return suite_run(suite);
}
