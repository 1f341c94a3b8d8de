/* SPDX-License-Identifier: MIT
 * INFO: the fields that are read, and that no other text in it does harm. */
#include "node/info.h"

#include <stdio.h>
#include <string.h>

#include "core/protocol.h"
#include "suite.h"

/* Returns the fields of a text of INFO. */
static struct rl_info parse(const char *text)
{
    struct rl_info info = {.run_id = ""};

    rl_info_parse(&info, text, strlen(text));
    return info;
}

START_TEST(info_of_a_redis_server)
{
    struct rl_info info = parse("# Server\r\n"
                                "redis_version:7.0.15\r\n"
                                "redis_git_sha1:00000000\r\n"
                                "redis_mode:standalone\r\n"
                                "process_id:7\r\n"
                                "run_id:ebf25a6c4ffeb83d3ae7d1b1b1e6a2ea4a2d4e0f\r\n"
                                "tcp_port:6379\r\n"
                                "uptime_in_seconds:90061\r\n"
                                "uptime_in_days:1\r\n");

    ck_assert_str_eq(info.version, "redis 7.0.15");
    ck_assert_uint_eq(info.major, 7);
    ck_assert_uint_eq(info.minor, 0);
    ck_assert(!info.is_valkey);
    ck_assert_str_eq(info.run_id, "ebf25a6c4ffeb83d3ae7d1b1b1e6a2ea4a2d4e0f");
    ck_assert_uint_eq(info.uptime_s, 90061);
    ck_assert_str_eq(info.role, "");
    static const char more[] = "# Replication\r\nrole:slave\r\nmaster_host:10.0.0.1\r\n";
    rl_info_parse(&info, more, sizeof more - 1); /* the next section adds to it */
    ck_assert_str_eq(info.role, "slave");
    ck_assert_str_eq(info.version, "redis 7.0.15");
}
END_TEST

/* Valkey also names the version of Redis it is compatible with, before or after its own. */
START_TEST(info_of_a_valkey_server)
{
    static const char *const texts[] = {
        "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n",
        "valkey_version:8.1.1\r\nredis_version:7.2.4\r\n",
    };
    struct rl_info info = parse(texts[_i]);

    ck_assert_str_eq(info.version, "valkey 8.1.1");
    ck_assert(info.is_valkey);
    ck_assert_uint_eq(info.major, 8);
    ck_assert_uint_eq(info.minor, 1);
}
END_TEST

static const struct {
    const char *text, *version;
    unsigned major, minor;
} VERSIONS[] = {
    {"redis_version:8.4.0\r\n", "redis 8.4.0", 8, 4},
    {"redis_version:8.4.0\n", "redis 8.4.0", 8, 4},
    {"redis_version:8.4.0", "redis 8.4.0", 8, 4}, /* without a line end */
    {"redis_version:9\r\n", "redis 9", 9, 0},
    {"redis_version:7.4-rc1\r\n", "redis 7.4-rc1", 7, 4},
    {"redis_version:255.255.255\r\n", "redis 255.255.255", 255, 255}, /* a development version */
    {"redis_version:99999999999999999999.1\r\n", "redis 99999999999999999999.1", 9999, 0},
    {"redis_version:unstable\r\n", "redis unstable", 0, 0},
    {"redis_version:1.2.3 with a tail that is too long\r\n", "redis 1.2.3?with?a?tail?that?", 1, 2},
    {"redis_version:\x1b[31m7\r\n", "redis ?[31m7", 0, 0}, /* no control characters */
    {"redis_version:\r\n", "redis ", 0, 0},
    {"redis_versions:7.0\r\n", "", 0, 0},
    {"xredis_version:7.0\r\n", "", 0, 0},
    {"redis_version=7.0\r\n", "", 0, 0},
    {"redis_version", "", 0, 0},
};

START_TEST(versions_are_parsed)
{
    struct rl_info info = parse(VERSIONS[_i].text);

    ck_assert_str_eq(info.version, VERSIONS[_i].version);
    ck_assert_uint_eq(info.major, VERSIONS[_i].major);
    ck_assert_uint_eq(info.minor, VERSIONS[_i].minor);
}
END_TEST

START_TEST(cpu_times_are_parsed)
{
    static const struct {
        const char *seconds;
        uint64_t us;
    } table[] = {
        {"0.000000", 0},    {"0.036273", 36273},         {"12", 12000000},  {"12.", 12000000},
        {"1.5", 1500000},   {"1.000001999", 1000001},    {"-1.5", 7},       {"", 7},
        {"soon", 7},        {"99999999999.0", 7},        {"1.-5", 1000000}, {".5", 7},
        {"1.2.3", 1200000}, {"99999999999999999999", 7},
    };
    char text[128];

    for (int i = 0; i < 2; i++) {
        struct rl_info info = {.cpu_user_us = 7, .cpu_sys_us = 7};
        uint64_t *field = i == 0 ? &info.cpu_user_us : &info.cpu_sys_us;
        snprintf(text, sizeof text, "# CPU\r\nused_cpu_%s:5.0\r\nused_cpu_%s_main_thread:%s\r\n",
                 i == 0 ? "user" : "sys", i == 0 ? "user" : "sys", table[_i].seconds);
        rl_info_parse(&info, text, strlen(text));
        ck_assert_uint_eq(*field, table[_i].us);
        ck_assert_uint_eq(info.cpu_user_us + info.cpu_sys_us, table[_i].us + 7);
    }
}
END_TEST

START_TEST(malformed_fields_do_no_harm)
{
    struct rl_info info = parse("uptime_in_seconds:-3599\r\nrun_id:\r\nrole:\r\n");

    ck_assert_uint_eq(info.uptime_s, 0);
    ck_assert_str_eq(info.run_id, "");
    ck_assert_str_eq(info.role, "");
    info.uptime_s = 5;
    static const char text[] = "uptime_in_seconds:soon\r\n";
    rl_info_parse(&info, text, sizeof text - 1);
    ck_assert_uint_eq(info.uptime_s, 5); /* unchanged */
    info = parse("uptime_in_seconds:99999999999999999999999999\r\n");
    ck_assert_uint_eq(info.uptime_s, 999999999999999999); /* no overflow */
    info = parse("run_id:0123456789012345678901234567890123456789012345678901234567890123\r\n"
                 "role:a-role-that-is-much-too-long-to-be-true\r\n");
    ck_assert_str_eq(info.run_id, "01234567890123456789012345678901234567890123456");
    ck_assert_str_eq(info.role, "a-role-that-is-");
    info = parse("\r\n\r\n:\r\n::\r\n\n\r\r\r\nrole:master\r\r\r\n");
    ck_assert_str_eq(info.role, "master");
}
END_TEST

/* The text has a length and no terminating zero. Bytes after its length are not read, and a zero
 * byte has no special meaning. */
START_TEST(a_text_cut_at_any_length_does_no_harm)
{
    static const char text[] =
        "redis_version:7.0.15\r\nrole:master\r\nrun_id:abc\r\nuptime_in_seconds"
        ":77\r\nvalkey_version:8.0.1\0\r\nrole:slave\r\n";

    for (size_t len = 0; len < sizeof text; len++) {
        char *copy = malloc(len + 1); /* sanitizers detect reads beyond it */
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, text, len);
        struct rl_info info = {.run_id = ""};
        rl_info_parse(&info, copy, len);
        free(copy);
        if (len == sizeof text - 1)
            ck_assert_str_eq(info.version, "valkey 8.0.1?");
    }
}
END_TEST

static const struct {
    const char *text;
    unsigned native_commands_follow_from_the_version;
} FEATURES[] = {
    {"", 0},
    {"redis_version:6.2.0\n", 0},
    {"redis_version:7.9.9\n", 0},
    {"redis_version:8.3.9\n", 0},
    {"redis_version:8.4.0\n", RL_FEATURE_DELEX},
    {"redis_version:9.0.0\n", RL_FEATURE_DELEX},
    {"redis_version:8.4.0\nvalkey_version:8.0.0\n", 0},
    {"redis_version:8.4.0\nvalkey_version:8.1.0\n", 0},
    {"redis_version:7.2.4\nvalkey_version:9.0.0\n", RL_FEATURE_DELIFEQ},
    {"redis_version:7.2.4\nvalkey_version:10.0.0\n", RL_FEATURE_DELIFEQ},
};

START_TEST(native_commands_follow_from_the_version)
{
    struct rl_info info = parse(FEATURES[_i].text);

    ck_assert_uint_eq(info.features, FEATURES[_i].native_commands_follow_from_the_version);
}
END_TEST

START_TEST(persistence_and_replicas_are_parsed)
{
    struct rl_info info =
        parse("connected_slaves:2\r\naof_enabled:1\r\naof_last_bgrewrite_status:ok\r\n"
              "aof_last_write_status:err\r\n");

    ck_assert_uint_eq(info.replicas, 2);
    ck_assert(info.aof);
    ck_assert(info.aof_failing);
    info = parse("aof_enabled:0\r\naof_last_bgrewrite_status:ok\r\naof_last_write_status:ok\r\n");
    ck_assert(!info.aof);
    ck_assert(!info.aof_failing);
    ck_assert_uint_eq(info.replicas, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_info");
    TCase *tcase = tcase_create("info");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, info_of_a_redis_server);
    tcase_add_loop_test(tcase, info_of_a_valkey_server, 0, 2);
    tcase_add_loop_test(tcase, versions_are_parsed, 0, (int)(sizeof VERSIONS / sizeof VERSIONS[0]));
    tcase_add_loop_test(tcase, cpu_times_are_parsed, 0, 14);
    tcase_add_test(tcase, malformed_fields_do_no_harm);
    tcase_add_test(tcase, persistence_and_replicas_are_parsed);
    tcase_add_test(tcase, a_text_cut_at_any_length_does_no_harm);
    tcase_add_loop_test(tcase, native_commands_follow_from_the_version, 0,
                        (int)(sizeof FEATURES / sizeof FEATURES[0]));
    return suite_run(suite);
}
