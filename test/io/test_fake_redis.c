/* SPDX-License-Identifier: MIT
 * The fake server itself: correct where no rule applies, and each fault as it is described. A plain
 * blocking socket plays the client; every read has a deadline.
 *
 * Uses fake_redis.h: a fake Redis server on a thread of this process. The server executes
 * commands, logs them, and misbehaves where a rule (fake_redis_rule()) says so. */
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

/* Connects to the server. Returns -1 if it refuses. */
static int dial(const char *url)
{
    const struct timeval timeout = {.tv_sec = TIME_LIMIT_MS / 1000, .tv_usec = 0};
    bool tcp = strncmp(url, "redis://127.0.0.1:", 18) == 0;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    if (tcp)
        in.sin_port = htons((uint16_t)atoi(url + 18));
    else
        snprintf(un.sun_path, sizeof un.sun_path, "%s", url + strlen("unix://"));
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
    int failed = tcp ? connect(fd, (struct sockaddr *)&in, sizeof in)
                     : connect(fd, (struct sockaddr *)&un, sizeof un);
    if (failed != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends the words of `line` (separated by one blank) as one command. */
static void send_command(const char *line)
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

/* Checks that exactly these bytes arrive next. */
static void expect(const char *expected)
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

/* Checks that the server closes the connection. */
static void expect_end(void)
{
    char byte;
    ck_assert_int_eq(recv(client, &byte, 1, 0), 0);
}

/* Returns true if nothing has arrived. */
static bool is_silent(void)
{
    char byte;
    return recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Fixture: starts a fake server and connects a plain socket to it. */
static void setup(void)
{
    fake = fake_redis_start(NULL);
    client = dial(fake_redis_url(fake));
    ck_assert_int_ge(client, 0);
    ck_assert(fake_redis_wait_connections(fake, 1, TIME_LIMIT_MS));
}

/* Fixture: closes the socket and stops the server. */
static void teardown(void)
{
    close(client);
    fake_redis_stop(fake);
}

/* Sends a command and checks the reply. */
static void exchange(const char *line, const char *answer)
{
    send_command(line);
    expect(answer);
}

/* ---- a server without rules ---- */

START_TEST(set_and_get_work_as_in_redis)
{
    uint64_t ttl_ms = 0;
    char value[32];
    exchange("SET k t1 NX PX 60000", "+OK\r\n");
    exchange("SET k t2 NX PX 60000", "$-1\r\n");
    exchange("GET k", "$2\r\nt1\r\n");
    exchange("GET none", "$-1\r\n");
    exchange("PTTL none", ":-2\r\n");
    exchange("SET k t1 NX PX", "-ERR syntax error\r\n");
    exchange("SET k t1 NX PX 0", "-ERR syntax error\r\n");
    ck_assert(fake_redis_has_key(fake, "k", value, sizeof value, &ttl_ms));
    ck_assert_str_eq(value, "t1");
    ck_assert_uint_le(ttl_ms, 60000);
    ck_assert_uint_gt(ttl_ms, 50000);
    exchange("DEL k", ":1\r\n");
    exchange("DEL k", ":0\r\n");
    ck_assert_uint_eq(fake_redis_keys(fake), 0);
    fake_redis_put(fake, "k", "x", 0);
    exchange("PTTL k", ":-1\r\n");
    fake_redis_remove(fake, "k");
    ck_assert_uint_eq(fake_redis_keys(fake), 0);
}
END_TEST

START_TEST(keys_expire)
{
    exchange("SET k t1 NX PX 30", "+OK\r\n");
    ck_assert(fake_redis_wait_keys(fake, 0, TIME_LIMIT_MS));
    exchange("SET k t2 NX PX 60000", "+OK\r\n");
    ck_assert(!fake_redis_wait_keys(fake, 0, 20));
}
END_TEST

START_TEST(the_library_s_scripts_are_executed)
{
    char line[256], answer[64];
    const char *sha = rl_protocol_script(RL_VERB_RELEASE, RL_FORM_SHA)->sha;
    exchange("SET k t1 PX 60000", "+OK\r\n");
    snprintf(line, sizeof line, "EVALSHA %s 1 k t2", sha);
    exchange(line, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    const char *script = rl_protocol_script(RL_VERB_RELEASE, RL_FORM_SHA)->text;
    char wire[512];
    int len = snprintf(wire, sizeof wire, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                       strlen(script), script);
    ck_assert_int_eq(send(client, wire, (size_t)len, MSG_NOSIGNAL), len);
    snprintf(answer, sizeof answer, "$40\r\n%s\r\n", sha);
    expect(answer);
    exchange(line, ":0\r\n");
    snprintf(line, sizeof line, "EVALSHA %s 1 k t1", sha);
    exchange(line, ":1\r\n");
    exchange(line, ":0\r\n");
    ck_assert_uint_eq(fake_redis_count(fake, "SCRIPT LOAD release"), 1);
    ck_assert_uint_eq(fake_redis_count(fake, "EVALSHA release 1 k t1"), 2);
    fake_redis_forget_scripts(fake);
    exchange(line, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    exchange("SCRIPT LOAD return", "-ERR Error compiling script (new function): not ours\r\n");
}
END_TEST

/* Executes the script of `verb` by its text and checks the reply. */
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
    expect(answer);
}

START_TEST(extend_and_shorten_are_executed)
{
    uint64_t ttl_ms = 0;
    exchange("SET k t1 PX 60000", "+OK\r\n");
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

START_TEST(native_commands_need_a_feature_of_the_profile)
{
    exchange("SET k t1 PX 60000", "+OK\r\n");
    exchange("DELEX k IFEQ t1", "-ERR unknown command 'DELEX', with args beginning with: \r\n");
    exchange("DELIFEQ k t1", "-ERR unknown command 'DELIFEQ', with args beginning with: \r\n");
    fake_redis_set_profile(
        fake, &(struct fake_profile){.features = RL_FEATURE_DELEX | RL_FEATURE_DELIFEQ});
    exchange("DELEX k IFEQ t2", ":0\r\n");
    exchange("DELEX k IFEQ t1", ":1\r\n");
    exchange("SET k t1 PX 60000", "+OK\r\n");
    exchange("DELIFEQ k t1", ":1\r\n");
}
END_TEST

START_TEST(a_password_is_required_if_given)
{
    fake_redis_set_profile(fake, &(struct fake_profile){.user = "app", .password = "secret"});
    exchange("PING", "-NOAUTH Authentication required.\r\n");
    exchange("AUTH app wrong",
             "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    exchange("AUTH secret", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    exchange("AUTH app secret", "+OK\r\n");
    exchange("PING", "+PONG\r\n");
    exchange("SELECT 3", "+OK\r\n");
    exchange("SELECT 99", "-ERR DB index is out of range\r\n");
    exchange("SET k t1 PX 60000", "+OK\r\n");
    ck_assert(!fake_redis_has_key(fake, "k", NULL, 0, NULL));
    ck_assert_uint_eq(fake_redis_keys(fake), 1);
}
END_TEST

START_TEST(info_follows_the_profile)
{
    char info[512];
    fake_redis_set_profile(
        fake, &(struct fake_profile){.run_id = "abc", .role = "slave", .loading = true});
    exchange("PING", "-LOADING Redis is loading the dataset in memory\r\n");
    send_command("INFO server replication");
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

START_TEST(a_server_can_listen_on_a_unix_socket)
{
    close(client);
    fake_redis_stop(fake);
    fake = fake_redis_start_unix(NULL);
    client = dial(fake_redis_url(fake));
    ck_assert_int_ge(client, 0);
    exchange("PING", "+PONG\r\n");
}
END_TEST

/* ---- faults ---- */

START_TEST(rules_skip_and_end_after_their_counts)
{
    fake_redis_rule(fake, (struct fake_rule){.command = "GET",
                                             .argument = "k",
                                             .skip = 1,
                                             .times = 2,
                                             .fault = FAKE_REPLY,
                                             .bytes = "-OOM full\r\n"});
    exchange("GET k", "$-1\r\n");
    exchange("GET other", "$-1\r\n");
    exchange("get K", "-OOM full\r\n");
    exchange("PING", "+PONG\r\n");
    exchange("GET k", "-OOM full\r\n");
    exchange("GET k", "$-1\r\n");
}
END_TEST

/* A test may change or leave its texts while the server still uses the rule. */
START_TEST(a_rule_has_copies_of_its_texts)
{
    char command[] = "GET", argument[] = "k", bytes[] = "-OOM full\r\n";

    fake_redis_rule(
        fake, (struct fake_rule){
                  .command = command, .argument = argument, .fault = FAKE_REPLY, .bytes = bytes});
    memset(command, '?', sizeof command);
    memset(argument, '?', sizeof argument);
    memset(bytes, '?', sizeof bytes);
    exchange("GET k", "-OOM full\r\n");
}
END_TEST

START_TEST(a_replaced_reply_executes_nothing)
{
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_REPLY, .bytes = ":7\r\n"});
    exchange("SET k t1 PX 60000", ":7\r\n");
    fake_redis_clear_rules(fake);
    exchange("GET k", "$-1\r\n");
}
END_TEST

START_TEST(surplus_and_split_replies)
{
    fake_redis_rule(fake,
                    (struct fake_rule){.times = 1, .fault = FAKE_SURPLUS, .bytes = "+MORE\r\n"});
    exchange("PING", "+PONG\r\n+MORE\r\n");
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_SPLIT});
    exchange("PING", "+PONG\r\n");
    exchange("SET k t1 PX 60000", "+OK\r\n");
}
END_TEST

START_TEST(replies_wait_for_the_gate)
{
    fake_redis_rule(fake, (struct fake_rule){.command = "SET", .times = 1, .fault = FAKE_GATE});
    send_command("SET k t1 PX 60000");
    send_command("GET k");
    ck_assert(fake_redis_wait(fake, "GET k", 1, TIME_LIMIT_MS));
    ck_assert(fake_redis_has_key(fake, "k", NULL, 0, NULL));
    ck_assert(is_silent());
    fake_redis_open_gate(fake);
    expect("+OK\r\n$2\r\nt1\r\n");
}
END_TEST

START_TEST(a_silent_server_executes_and_does_not_reply)
{
    fake_redis_rule(fake, (struct fake_rule){.command = "SET", .fault = FAKE_SILENCE});
    send_command("SET k t1 PX 60000");
    send_command("PING");
    ck_assert(fake_redis_wait(fake, "PING", 1, TIME_LIMIT_MS));
    fake_redis_open_gate(fake);
    ck_assert(is_silent());
    ck_assert(fake_redis_has_key(fake, "k", NULL, 0, NULL));
}
END_TEST

/* _i bytes of "+PONG\r\n" arrive, then the end. */
START_TEST(a_connection_closes_after_some_bytes)
{
    char expected[8] = "+PONG\r\n";
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_CLOSE, .at = (size_t)_i, .times = 1});
    send_command("PING");
    expected[_i] = '\0';
    expect(expected);
    expect_end();
    ck_assert(fake_redis_wait_connections(fake, 0, TIME_LIMIT_MS));
}
END_TEST

START_TEST(connections_are_reset_or_dropped)
{
    char byte;
    fake_redis_rule(fake, (struct fake_rule){.command = "PING", .fault = FAKE_RESET, .at = 0});
    fake_redis_rule(fake, (struct fake_rule){.command = "SET", .fault = FAKE_DROP});
    send_command("PING");
    ck_assert_int_eq(recv(client, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(client);
    client = dial(fake_redis_url(fake));
    send_command("SET k t1 PX 60000");
    expect_end();
    ck_assert_uint_eq(fake_redis_keys(fake), 0);
}
END_TEST

START_TEST(every_connection_is_cut_after_some_bytes)
{
    fake_redis_cut_after(fake, 10);
    for (int i = 0; i < 3; i++) {
        send_command("PING");
        send_command("PING");
        expect("+PONG\r\n+PO");
        expect_end();
        close(client);
        client = dial(fake_redis_url(fake));
    }
    fake_redis_cut_after(fake, UINT64_MAX);
    exchange("PING", "+PONG\r\n");
    ck_assert_uint_eq(fake_redis_sent(fake), 37);
}
END_TEST

START_TEST(an_endless_reply_has_no_end)
{
    char bytes[4096];
    size_t total = 0;
    fake_redis_rule(fake, (struct fake_rule){.fault = FAKE_ENDLESS, .bytes = "$1000000000\r\n"});
    send_command("PING");
    expect("$1000000000\r\n");
    while (total < 1u << 20) {
        ssize_t got = recv(client, bytes, sizeof bytes, 0);
        ck_assert_int_gt(got, 0);
        ck_assert_int_eq(bytes[got - 1], 'x');
        total += (size_t)got;
    }
}
END_TEST

START_TEST(bytes_can_be_sent_without_a_request)
{
    fake_redis_push(fake, ":5\r\n");
    expect(":5\r\n");
    exchange("PING", "+PONG\r\n");
}
END_TEST

START_TEST(connections_can_be_refused_and_accepted_again)
{
    fake_redis_listen(fake, false);
    ck_assert_int_eq(dial(fake_redis_url(fake)), -1);
    exchange("PING", "+PONG\r\n");
    fake_redis_drop_connections(fake);
    expect_end();
    close(client);
    fake_redis_listen(fake, true);
    client = dial(fake_redis_url(fake));
    exchange("PING", "+PONG\r\n");
    ck_assert_uint_eq(fake_redis_connections(fake), 1);
}
END_TEST

/* The port stays reserved while the server refuses connections, or another program could get it. */
START_TEST(the_port_stays_reserved)
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

/* ---- the log ---- */

START_TEST(the_log_has_each_command_and_end)
{
    char line[64];
    unsigned connection = 0;
    exchange("SET k t1 NX PX 60000", "+OK\r\n");
    close(client);
    ck_assert(fake_redis_wait(fake, "(closed)", 1, TIME_LIMIT_MS));
    client = dial(fake_redis_url(fake));
    exchange("PING", "+PONG\r\n");
    ck_assert_int_eq(send(client, "+OK\r\n", 5, MSG_NOSIGNAL), 5);
    expect_end();
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
    tcase_add_test(honest, set_and_get_work_as_in_redis);
    tcase_add_test(honest, keys_expire);
    tcase_add_test(honest, the_library_s_scripts_are_executed);
    tcase_add_test(honest, extend_and_shorten_are_executed);
    tcase_add_test(honest, native_commands_need_a_feature_of_the_profile);
    tcase_add_test(honest, a_password_is_required_if_given);
    tcase_add_test(honest, info_follows_the_profile);
    tcase_add_test(honest, a_server_can_listen_on_a_unix_socket);
    tcase_add_checked_fixture(faults, setup, teardown);
    tcase_add_test(faults, rules_skip_and_end_after_their_counts);
    tcase_add_test(faults, a_rule_has_copies_of_its_texts);
    tcase_add_test(faults, a_replaced_reply_executes_nothing);
    tcase_add_test(faults, surplus_and_split_replies);
    tcase_add_test(faults, replies_wait_for_the_gate);
    tcase_add_test(faults, a_silent_server_executes_and_does_not_reply);
    tcase_add_loop_test(faults, a_connection_closes_after_some_bytes, 0, 8);
    tcase_add_test(faults, connections_are_reset_or_dropped);
    tcase_add_test(faults, every_connection_is_cut_after_some_bytes);
    tcase_add_test(faults, an_endless_reply_has_no_end);
    tcase_add_test(faults, bytes_can_be_sent_without_a_request);
    tcase_add_test(faults, connections_can_be_refused_and_accepted_again);
    tcase_add_test(faults, the_port_stays_reserved);
    tcase_add_test(faults, the_log_has_each_command_and_end);
    Suite *suite = suite_create("fake_redis");
    suite_add_tcase(suite, honest);
    suite_add_tcase(suite, faults);
    return suite_run(suite);
}
