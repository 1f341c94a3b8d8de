/* SPDX-License-Identifier: MIT
 * The fake server itself: correct where no rule applies, and each fault as it is described. A plain
 * blocking socket plays the client; every read has a deadline. */
#include "core/protocol.h"
#include "fake_redis.h"
#include "suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TIME_LIMIT_MS 5000

static struct fake_redis *fake;
static int client;

static int dial(const char *url)
{
    const struct timeval patience = {.tv_sec = TIME_LIMIT_MS / 1000, .tv_usec = 0};
    bool tcp = strncmp(url, "redis://127.0.0.1:", 18) == 0;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    if (tcp)
        in.sin_port = htons((uint16_t)atoi(url + 18));
    else
        snprintf(un.sun_path, sizeof un.sun_path, "%s", url + strlen("unix://"));
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    int failed = tcp ? connect(fd, (struct sockaddr *)&in, sizeof in)
                     : connect(fd, (struct sockaddr *)&un, sizeof un);
    if (failed != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends the words of `line` (separated by one blank) as one command. */
static void say(const char *line)
{
    char copy[512], wire[1024];
    size_t words = 1, at = 0;
    for (const char *c = line; *c != '\0'; c++)
        words += *c == ' ';
    snprintf(copy, sizeof copy, "%s", line);
    at += (size_t)snprintf(wire, sizeof wire, "*%zu\r\n", words);
    for (char *rest = copy, *word; (word = strsep(&rest, " ")) != NULL;)
        at += (size_t)snprintf(wire + at, sizeof wire - at, "$%zu\r\n%s\r\n", strlen(word), word);
    ck_assert_int_eq(send(client, wire, at, MSG_NOSIGNAL), (ssize_t)at);
}

/* Exactly these bytes come next. */
static void hear(const char *expected)
{
    char got[2048] = "";
    size_t len = 0, wanted = strlen(expected);
    ck_assert_uint_lt(wanted, sizeof got);
    while (len < wanted) {
        ssize_t put = recv(client, got + len, wanted - len, 0);
        ck_assert_msg(put > 0, "wanted '%s', got '%s', then %s", expected, got,
                      put == 0 ? "the end" : strerror(errno));
        len += (size_t)put;
    }
    ck_assert_str_eq(got, expected);
}

static void hear_end(void)
{
    char byte;
    ck_assert_int_eq(recv(client, &byte, 1, 0), 0);
}

static bool silent(void)
{
    char byte;
    return recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void setup(void)
{
    fake = fake_redis_start(NULL);
    client = dial(fake_redis_url(fake));
    ck_assert_int_ge(client, 0);
    ck_assert(fake_redis_wait_connections(fake, 1, TIME_LIMIT_MS));
}

static void teardown(void)
{
    close(client);
    fake_redis_stop(fake);
}

static void ask(const char *line, const char *answer)
{
    say(line);
    hear(answer);
}

/* ---- an honest server ---- */

START_TEST(locks_like_redis)
{
    uint64_t ttl_ms = 0;
    char value[32];
    ask("SET k t1 NX PX 60000", "+OK\r\n");
    ask("SET k t2 NX PX 60000", "$-1\r\n");
    ask("GET k", "$2\r\nt1\r\n");
    ask("GET none", "$-1\r\n");
    ask("PTTL none", ":-2\r\n");
    ask("SET k t1 NX PX", "-ERR syntax error\r\n");
    ask("SET k t1 NX PX 0", "-ERR syntax error\r\n");
    ck_assert(fake_redis_has_key(fake, "k", value, sizeof value, &ttl_ms));
    ck_assert_str_eq(value, "t1");
    ck_assert_uint_le(ttl_ms, 60000);
    ck_assert_uint_gt(ttl_ms, 50000);
    ask("DEL k", ":1\r\n");
    ask("DEL k", ":0\r\n");
    ck_assert_uint_eq(fake_redis_keys(fake), 0);
    fake_redis_put(fake, "k", "x", 0);
    ask("PTTL k", ":-1\r\n");
    fake_redis_remove(fake, "k");
    ck_assert_uint_eq(fake_redis_keys(fake), 0);
}
END_TEST

START_TEST(keys_expire)
{
    ask("SET k t1 NX PX 30", "+OK\r\n");
    ck_assert(fake_redis_wait_keys(fake, 0, TIME_LIMIT_MS));
    ask("SET k t2 NX PX 60000", "+OK\r\n");
    ck_assert(!fake_redis_wait_keys(fake, 0, 20));
}
END_TEST

START_TEST(runs_our_scripts)
{
    char line[256], answer[64];
    const char *sha = rl_protocol_script(RL_VERB_RELEASE, RL_FORM_SHA)->sha;
    ask("SET k t1 PX 60000", "+OK\r\n");
    snprintf(line, sizeof line, "EVALSHA %s 1 k t2", sha);
    ask(line, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    const char *script = rl_protocol_script(RL_VERB_RELEASE, RL_FORM_SHA)->text;
    char wire[512];
    int len = snprintf(wire, sizeof wire, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                       strlen(script), script);
    ck_assert_int_eq(send(client, wire, (size_t)len, MSG_NOSIGNAL), len);
    snprintf(answer, sizeof answer, "$40\r\n%s\r\n", sha);
    hear(answer);
    ask(line, ":0\r\n");
    snprintf(line, sizeof line, "EVALSHA %s 1 k t1", sha);
    ask(line, ":1\r\n");
    ask(line, ":0\r\n");
    ck_assert_uint_eq(fake_redis_count(fake, "SCRIPT LOAD release"), 1);
    ck_assert_uint_eq(fake_redis_count(fake, "EVALSHA release 1 k t1"), 2);
    fake_redis_forget_scripts(fake);
    ask(line, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    ask("SCRIPT LOAD return", "-ERR Error compiling script (new function): not ours\r\n");
}
END_TEST

static void eval(enum rl_verb verb, const char *rest, const char *answer)
{
    char line[512], wire[1024];
    const char *script = rl_protocol_script(verb, RL_FORM_SHA)->text;
    size_t words = 2, at;
    for (const char *c = rest; *c != '\0'; c++)
        words += *c == ' ';
    words++;
    at = (size_t)snprintf(wire, sizeof wire, "*%zu\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n", words,
                          strlen(script), script);
    snprintf(line, sizeof line, "%s", rest);
    for (char *next = line, *word; (word = strsep(&next, " ")) != NULL;)
        at += (size_t)snprintf(wire + at, sizeof wire - at, "$%zu\r\n%s\r\n", strlen(word), word);
    ck_assert_int_eq(send(client, wire, at, MSG_NOSIGNAL), (ssize_t)at);
    hear(answer);
}

START_TEST(extends_and_shortens)
{
    uint64_t ttl_ms = 0;
    ask("SET k t1 PX 60000", "+OK\r\n");
    eval(RL_VERB_EXTEND, "1 k t2 90000", ":0\r\n");
    eval(RL_VERB_EXTEND, "1 k t1 1000", ":1\r\n");
    ck_assert(fake_redis_has_key(fake, "k", NULL, 0, &ttl_ms));
    ck_assert_uint_gt(ttl_ms, 50000);
    eval(RL_VERB_EXTEND, "1 k t1 90000", ":1\r\n");
    ck_assert(fake_redis_has_key(fake, "k", NULL, 0, &ttl_ms));
    ck_assert_uint_gt(ttl_ms, 80000);
    eval(RL_VERB_SHORTEN, "1 k t1 20000", ":1\r\n");
    ck_assert(fake_redis_has_key(fake, "k", NULL, 0, &ttl_ms));
    ck_assert_uint_le(ttl_ms, 20000);
    eval(RL_VERB_RELEASE, "1 k t1", ":1\r\n");
    eval(RL_VERB_RELEASE, "1 k t1", ":0\r\n");
}
END_TEST

START_TEST(knows_native_commands_only_if_told)
{
    ask("SET k t1 PX 60000", "+OK\r\n");
    ask("DELEX k IFEQ t1", "-ERR unknown command 'DELEX', with args beginning with: \r\n");
    ask("DELIFEQ k t1", "-ERR unknown command 'DELIFEQ', with args beginning with: \r\n");
    fake_redis_set_profile(
        fake, &(struct fake_profile){.features = RL_FEATURE_DELEX | RL_FEATURE_DELIFEQ});
    ask("DELEX k IFEQ t2", ":0\r\n");
    ask("DELEX k IFEQ t1", ":1\r\n");
    ask("SET k t1 PX 60000", "+OK\r\n");
    ask("DELIFEQ k t1", ":1\r\n");
}
END_TEST

START_TEST(asks_for_the_password)
{
    fake_redis_set_profile(fake, &(struct fake_profile){.user = "app", .password = "secret"});
    ask("PING", "-NOAUTH Authentication required.\r\n");
    ask("AUTH app wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    ask("AUTH secret", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    ask("AUTH app secret", "+OK\r\n");
    ask("PING", "+PONG\r\n");
    ask("SELECT 3", "+OK\r\n");
    ask("SELECT 99", "-ERR DB index is out of range\r\n");
    ask("SET k t1 PX 60000", "+OK\r\n");
    ck_assert(!fake_redis_has_key(fake, "k", NULL, 0, NULL));
    ck_assert_uint_eq(fake_redis_keys(fake), 1);
}
END_TEST

START_TEST(tells_who_it_is)
{
    char info[512];
    fake_redis_set_profile(
        fake, &(struct fake_profile){.run_id = "abc", .role = "slave", .loading = true});
    ask("PING", "-LOADING Redis is loading the dataset in memory\r\n");
    say("INFO server replication");
    ck_assert(fake_redis_wait(fake, "INFO", 1, TIME_LIMIT_MS));
    ssize_t len = recv(client, info, sizeof info - 1, 0);
    ck_assert_int_gt(len, 0);
    info[len] = '\0';
    ck_assert_ptr_nonnull(strstr(info, "\r\nrun_id:abc\r\n"));
    ck_assert_ptr_nonnull(strstr(info, "\r\nredis_version:7.0.15\r\n"));
    ck_assert_ptr_nonnull(strstr(info, "\r\nrole:slave\r\n"));
    ck_assert_ptr_null(strstr(info, "maxmemory"));
}
END_TEST

START_TEST(listens_on_a_unix_socket)
{
    close(client);
    fake_redis_stop(fake);
    fake = fake_redis_start_unix(NULL);
    client = dial(fake_redis_url(fake));
    ck_assert_int_ge(client, 0);
    ask("PING", "+PONG\r\n");
}
END_TEST

/* ---- faults ---- */

START_TEST(rules_are_counted)
{
    fake_redis_rule(fake, (struct fake_rule){.command = "GET",
                                             .argument = "k",
                                             .skip = 1,
                                             .times = 2,
                                             .fault = FAKE_REPLY,
                                             .bytes = "-OOM full\r\n"});
    ask("GET k", "$-1\r\n");
    ask("GET other", "$-1\r\n");
    ask("get K", "-OOM full\r\n");
    ask("PING", "+PONG\r\n");
    ask("GET k", "-OOM full\r\n");
    ask("GET k", "$-1\r\n");
}
END_TEST

START_TEST(replies_instead_without_executing)
{
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_REPLY, .bytes = ":7\r\n"});
    ask("SET k t1 PX 60000", ":7\r\n");
    fake_redis_clear_rules(fake);
    ask("GET k", "$-1\r\n");
}
END_TEST

START_TEST(sends_surplus_and_split_answers)
{
    fake_redis_rule(fake,
                    (struct fake_rule){.times = 1, .fault = FAKE_SURPLUS, .bytes = "+MORE\r\n"});
    ask("PING", "+PONG\r\n+MORE\r\n");
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_SPLIT});
    ask("PING", "+PONG\r\n");
    ask("SET k t1 PX 60000", "+OK\r\n");
}
END_TEST

START_TEST(holds_answers_behind_a_gate)
{
    fake_redis_rule(fake, (struct fake_rule){.command = "SET", .times = 1, .fault = FAKE_GATE});
    say("SET k t1 PX 60000");
    say("GET k");
    ck_assert(fake_redis_wait(fake, "GET k", 1, TIME_LIMIT_MS));
    ck_assert(fake_redis_has_key(fake, "k", NULL, 0, NULL));
    ck_assert(silent());
    fake_redis_open_gate(fake);
    hear("+OK\r\n$2\r\nt1\r\n");
}
END_TEST

START_TEST(falls_silent)
{
    fake_redis_rule(fake, (struct fake_rule){.command = "SET", .fault = FAKE_SILENCE});
    say("SET k t1 PX 60000");
    say("PING");
    ck_assert(fake_redis_wait(fake, "PING", 1, TIME_LIMIT_MS));
    fake_redis_open_gate(fake);
    ck_assert(silent());
    ck_assert(fake_redis_has_key(fake, "k", NULL, 0, NULL));
}
END_TEST

/* _i bytes of "+PONG\r\n" arrive, then the end. */
START_TEST(closes_at_a_byte)
{
    char expected[8] = "+PONG\r\n";
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_CLOSE, .at = (size_t)_i, .times = 1});
    say("PING");
    expected[_i] = '\0';
    hear(expected);
    hear_end();
    ck_assert(fake_redis_wait_connections(fake, 0, TIME_LIMIT_MS));
}
END_TEST

START_TEST(resets_and_drops)
{
    char byte;
    fake_redis_rule(fake, (struct fake_rule){.command = "PING", .fault = FAKE_RESET, .at = 0});
    fake_redis_rule(fake, (struct fake_rule){.command = "SET", .fault = FAKE_DROP});
    say("PING");
    ck_assert_int_eq(recv(client, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(client);
    client = dial(fake_redis_url(fake));
    say("SET k t1 PX 60000");
    hear_end();
    ck_assert_uint_eq(fake_redis_keys(fake), 0);
}
END_TEST

START_TEST(cuts_every_connection_after_some_bytes)
{
    fake_redis_cut_after(fake, 10);
    for (int i = 0; i < 3; i++) {
        say("PING");
        say("PING");
        hear("+PONG\r\n+PO");
        hear_end();
        close(client);
        client = dial(fake_redis_url(fake));
    }
    fake_redis_cut_after(fake, UINT64_MAX);
    ask("PING", "+PONG\r\n");
    ck_assert_uint_eq(fake_redis_sent(fake), 37);
}
END_TEST

START_TEST(sends_without_end)
{
    char bytes[4096];
    size_t total = 0;
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_ENDLESS, .bytes = "$1000000000\r\n"});
    say("PING");
    hear("$1000000000\r\n");
    while (total < 1u << 20) {
        ssize_t got = recv(client, bytes, sizeof bytes, 0);
        ck_assert_int_gt(got, 0);
        ck_assert_int_eq(bytes[got - 1], 'x');
        total += (size_t)got;
    }
}
END_TEST

START_TEST(pushes_unasked)
{
    fake_redis_push(fake, ":5\r\n");
    hear(":5\r\n");
    ask("PING", "+PONG\r\n");
}
END_TEST

START_TEST(refuses_and_takes_connections)
{
    fake_redis_listen(fake, false);
    ck_assert_int_eq(dial(fake_redis_url(fake)), -1);
    ask("PING", "+PONG\r\n");
    fake_redis_drop_connections(fake);
    hear_end();
    close(client);
    fake_redis_listen(fake, true);
    client = dial(fake_redis_url(fake));
    ask("PING", "+PONG\r\n");
    ck_assert_uint_eq(fake_redis_connections(fake), 1);
}
END_TEST

/* Also while it takes none, and nobody is connected: else another program could be given it. */
START_TEST(keeps_its_port)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    ck_assert_int_eq(getpeername(client, (struct sockaddr *)&address, &len), 0);
    close(client);
    ck_assert(fake_redis_wait_connections(fake, 0, TIME_LIMIT_MS));
    fake_redis_listen(fake, false);
    client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(client, (struct sockaddr *)&address, len), -1);
    ck_assert_int_eq(errno, EADDRINUSE);
}
END_TEST

/* ---- the record ---- */

START_TEST(writes_down_what_it_was_told)
{
    char line[64];
    unsigned connection = 0;
    ask("SET k t1 NX PX 60000", "+OK\r\n");
    close(client);
    ck_assert(fake_redis_wait(fake, "(closed)", 1, TIME_LIMIT_MS));
    client = dial(fake_redis_url(fake));
    ask("PING", "+PONG\r\n");
    ck_assert_int_eq(send(client, "+OK\r\n", 5, MSG_NOSIGNAL), 5);
    hear_end();
    const struct linger abortive = {.l_onoff = 1, .l_linger = 0};
    close(client);
    client = dial(fake_redis_url(fake));
    ck_assert(fake_redis_wait_connections(fake, 1, TIME_LIMIT_MS));
    ck_assert_int_eq(setsockopt(client, SOL_SOCKET, SO_LINGER, &abortive, sizeof abortive), 0);
    close(client);
    ck_assert(fake_redis_wait(fake, "(reset)", 1, TIME_LIMIT_MS));
    client = dial(fake_redis_url(fake));
    char *log = fake_redis_log(fake);
    ck_assert_str_eq(log, "1 SET k t1 NX PX 60000\n"
                          "1 (closed)\n"
                          "2 PING\n"
                          "2 (not a command)\n"
                          "3 (reset)\n");
    free(log);
    ck_assert_int_eq(fake_redis_find(fake, "PING", 0, line, sizeof line, &connection), 2);
    ck_assert_str_eq(line, "PING");
    ck_assert_uint_eq(connection, 2);
    ck_assert_int_eq(fake_redis_find(fake, "PING", 1, NULL, 0, NULL), -1);
    ck_assert(!fake_redis_wait(fake, "PING", 2, 10));
}
END_TEST

int main(void)
{
    TCase *honest = tcase_create("honest"), *faults = tcase_create("faults");
    tcase_add_checked_fixture(honest, setup, teardown);
    tcase_add_test(honest, locks_like_redis);
    tcase_add_test(honest, keys_expire);
    tcase_add_test(honest, runs_our_scripts);
    tcase_add_test(honest, extends_and_shortens);
    tcase_add_test(honest, knows_native_commands_only_if_told);
    tcase_add_test(honest, asks_for_the_password);
    tcase_add_test(honest, tells_who_it_is);
    tcase_add_test(honest, listens_on_a_unix_socket);
    tcase_add_checked_fixture(faults, setup, teardown);
    tcase_add_test(faults, rules_are_counted);
    tcase_add_test(faults, replies_instead_without_executing);
    tcase_add_test(faults, sends_surplus_and_split_answers);
    tcase_add_test(faults, holds_answers_behind_a_gate);
    tcase_add_test(faults, falls_silent);
    tcase_add_loop_test(faults, closes_at_a_byte, 0, 8);
    tcase_add_test(faults, resets_and_drops);
    tcase_add_test(faults, cuts_every_connection_after_some_bytes);
    tcase_add_test(faults, sends_without_end);
    tcase_add_test(faults, pushes_unasked);
    tcase_add_test(faults, refuses_and_takes_connections);
    tcase_add_test(faults, keeps_its_port);
    tcase_add_test(faults, writes_down_what_it_was_told);
    Suite *suite = suite_create("fake_redis");
    suite_add_tcase(suite, honest);
    suite_add_tcase(suite, faults);
    return suite_run(suite);
}
