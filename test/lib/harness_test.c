/* SPDX-License-Identifier: MIT
 * The harness tests itself: servers start, die, are restarted and leave nothing behind; leaked
 * descriptors are found; waiting ends at its deadline. */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "fdcheck.h"
#include "suite.h"
#include "wait.h"

/* Returns whether the path exists. */
static bool directory_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

/* Returns whether a process with that id exists, as a zombie too. */
static bool process_exists(pid_t pid)
{
    return kill(pid, 0) == 0;
}

/* A child is a zombie until its parent has looked: only a state other than Z counts as alive. */
static bool process_runs(pid_t pid)
{
    char path[64];
    char line[256];
    char state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(line, sizeof line, file) != NULL && strrchr(line, ')') != NULL)
        state = strrchr(line, ')')[2];
    fclose(file);
    return state != 'Z' && state != 'X';
}

START_TEST(servers_answer_and_leave_nothing)
{
    struct cluster *cluster = cluster_start(3);
    char dir[256];
    snprintf(dir, sizeof dir, "%s", cluster_dir(cluster));
    const pid_t pid = cluster_pid(cluster, 1);
    ck_assert_uint_eq(cluster_nodes(cluster), 3);
    for (unsigned i = 0; i < 3; i++) {
        char url[64];
        ck_assert(cluster_replies(cluster, i, "PONG", "PING"));
        ck_assert_int_ne(cluster_port(cluster, i), cluster_port(cluster, (i + 1) % 3));
        snprintf(url, sizeof url, "redis://127.0.0.1:%d?fresh=1", cluster_port(cluster, i));
        ck_assert_str_eq(cluster_url(cluster, i), url);
        ck_assert_ptr_nonnull(strstr(cluster_urls(cluster), url));
    }
    ck_assert(directory_exists(dir));
    cluster_stop(cluster);
    ck_assert(!directory_exists(dir));
    ck_assert(!process_exists(pid));
}
END_TEST

START_TEST(kill_and_restart_with_and_without_data)
{
    const struct cluster_opts opts = {.nodes = 1, .keep_data = true};
    struct cluster *cluster = cluster_start_with(&opts);
    const int port = cluster_port(cluster, 0);
    ck_assert(cluster_replies(cluster, 0, "OK", "SET %s v", "a key"));
    cluster_kill(cluster, 0);
    ck_assert_int_eq(cluster_pid(cluster, 0), 0);
    ck_assert_ptr_null(cluster_command(cluster, 0, "PING"));
    cluster_restart(cluster, 0, true);
    ck_assert_int_eq(cluster_port(cluster, 0), port);
    ck_assert(cluster_replies(cluster, 0, "v", "GET %s", "a key"));
    cluster_restart(cluster, 0, false);
    ck_assert(cluster_replies(cluster, 0, "(nil)", "GET %s", "a key"));
    cluster_stop(cluster);
}
END_TEST

/* A client of a dead server must not meet a server of another program, nor find the way back
 * blocked by one. */
START_TEST(the_port_of_a_dead_server_is_nobodys)
{
    struct cluster *cluster = cluster_start(1);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)cluster_port(cluster, 0)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cluster_kill(cluster, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), -1);
    ck_assert_int_eq(errno, EADDRINUSE);
    close(fd);
    cluster_restart(cluster, 0, false);
    cluster_stop(cluster);
}
END_TEST

START_TEST(pause_and_resume)
{
    struct cluster *cluster = cluster_start(1);
    cluster_pause(cluster, 0);
    ck_assert_ptr_null(cluster_command(cluster, 0, "PING"));
    cluster_resume(cluster, 0);
    ck_assert(cluster_replies(cluster, 0, "PONG", "PING"));
    cluster_pause(cluster, 0);
    cluster_stop(cluster);
}
END_TEST

START_TEST(keys_of_all_databases_are_found)
{
    struct cluster *cluster = cluster_start(2);
    ck_assert_uint_eq(cluster_count_all_keys(cluster), 0);
    ck_assert(cluster_replies(cluster, 0, "OK", "SET one 1"));
    ck_assert(cluster_replies(cluster, 1, "OK", "MSET a 1 b 2"));
    ck_assert_int_eq(cluster_integer(cluster, 1, "MOVE b 3"), 1);
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 1);
    ck_assert_uint_eq(cluster_count_all_keys(cluster), 3);
    char **keys = cluster_keys(cluster, 1);
    ck_assert_str_eq(keys[0], "a");
    ck_assert_str_eq(keys[1], "db3:b");
    ck_assert_ptr_null(keys[2]);
    cluster_keys_free(keys);
    cluster_command_all(cluster, "FLUSHALL");
    ck_assert_uint_eq(cluster_count_all_keys(cluster), 0);
    cluster_stop(cluster);
}
END_TEST

START_TEST(many_keys_take_many_pages)
{
    struct cluster *cluster = cluster_start(1);
    ck_assert(cluster_replies(cluster, 0, "(nil)", "EVAL %s 0",
                              "for i=1,5000 do redis.call('SET','k'..i,i) end"));
    ck_assert_uint_eq(cluster_count_keys(cluster, 0), 5000);
    cluster_stop(cluster);
}
END_TEST

START_TEST(replies_as_text)
{
    struct cluster *cluster = cluster_start(1);
    ck_assert(cluster_replies(cluster, 0, "(nil)", "GET nothing"));
    ck_assert(cluster_replies(cluster, 0, "2", "RPUSH list x y"));
    ck_assert(cluster_replies(cluster, 0, "x\ny", "LRANGE list 0 -1"));
    char *error = cluster_command(cluster, 0, "GET list");
    ck_assert_msg(strncmp(error, "(error) WRONGTYPE", 17) == 0, "%s", error);
    free(error);
    cluster_stop(cluster);
}
END_TEST

START_TEST(unix_sockets_and_password)
{
    const struct cluster_opts opts = {.nodes = 2, .unix_sockets = true, .password = "secret"};
    struct cluster *cluster = cluster_start_with(&opts);
    char expected[256];
    snprintf(expected, sizeof expected, "unix://:secret@%s/n1/sock?fresh=1", cluster_dir(cluster));
    ck_assert_str_eq(cluster_url(cluster, 1), expected);
    ck_assert_int_eq(cluster_port(cluster, 1), 0);
    ck_assert(cluster_replies(cluster, 1, "PONG", "PING"));
    cluster_restart(cluster, 1, false);
    ck_assert(cluster_replies(cluster, 1, "PONG", "PING"));
    cluster_stop(cluster);
}
END_TEST

START_TEST(servers_die_with_the_test)
{
    int pipe_fds[2];
    pid_t server = 0;
    char dir[256] = "";
    ck_assert_int_eq(pipe(pipe_fds), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct cluster *cluster = cluster_start(1);
        server = cluster_pid(cluster, 0);
        snprintf(dir, sizeof dir, "%s", cluster_dir(cluster));
        const bool written = write(pipe_fds[1], &server, sizeof server) == sizeof server &&
                             write(pipe_fds[1], dir, sizeof dir) == sizeof dir;
        raise(written ? SIGKILL : SIGTERM);
    }
    ck_assert_int_eq(read(pipe_fds[0], &server, sizeof server), sizeof server);
    ck_assert_int_eq(read(pipe_fds[0], dir, sizeof dir), sizeof dir);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(WAIT_UNTIL(!process_runs(server), 5000));
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}
END_TEST

START_TEST(leaked_descriptors_are_listed)
{
    struct fdcheck before;
    fdcheck_begin(&before);
    ck_assert_uint_eq(before.count, fdcheck_count());
    ck_assert_ptr_null(fdcheck_leaked(&before, 0));
    const int fd = open("/dev/null", O_RDONLY);
    ck_assert_uint_eq(before.count + 1, fdcheck_count());
    ck_assert_ptr_nonnull(strstr(fdcheck_leaked(&before, 0), "/dev/null"));
    ck_assert_ptr_nonnull(strstr(fdcheck_inherited(&before), "/dev/null"));
    ck_assert_int_eq(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
    ck_assert_ptr_null(fdcheck_inherited(&before));
    close(fd);
    ck_assert_ptr_null(fdcheck_leaked(&before, 0));
}
END_TEST

START_TEST(a_reused_descriptor_number_is_seen)
{
    struct fdcheck before;
    int first[2];
    int second[2];
    ck_assert_int_eq(pipe(first), 0);
    fdcheck_begin(&before);
    ck_assert_int_eq(pipe(second), 0);
    ck_assert_int_eq(dup2(second[0], first[0]), first[0]);
    close(second[0]);
    close(second[1]);
    ck_assert_ptr_nonnull(fdcheck_leaked(&before, 0));
    close(first[0]);
    close(first[1]);
}
END_TEST

/* Counts its calls in *userdata. Returns true at the third one. */
static bool third_look(void *userdata)
{
    int *looks = userdata;
    return ++*looks == 3;
}

START_TEST(waiting_ends)
{
    int looks = 0;
    ck_assert(wait_until(third_look, &looks, 5000));
    ck_assert_int_eq(looks, 3);
    const uint64_t start_ms = wait_now_ms();
    ck_assert(!WAIT_UNTIL(false, 20));
    ck_assert_uint_ge(wait_now_ms() - start_ms, wait_scaled_ms(20));
}
END_TEST

START_TEST(deadlines_stretch)
{
    setenv("REDLOCK_TEST_SLOW", "7", 1);
    ck_assert_uint_eq(wait_scaled_ms(10), 70);
    ck_assert_uint_eq(wait_lived_ms(10), 35);
    setenv("REDLOCK_TEST_SLOW", "soon", 1);
    ck_assert_uint_eq(wait_scaled_ms(10), 10);
    setenv("REDLOCK_TEST_SLOW", "1000", 1);
    ck_assert_uint_eq(wait_scaled_ms(10), 10);
    unsetenv("REDLOCK_TEST_SLOW");
    ck_assert_uint_eq(wait_scaled_ms(10), 10);
    ck_assert_uint_eq(wait_lived_ms(10), 10);
}
END_TEST

/* Returns whether the server at the port replies to a request without TLS. */
static bool answers_in_plain(int port)
{
    const struct timeval timeout = {.tv_sec = 5};
    redisContext *context = redisConnectWithTimeout("127.0.0.1", port, timeout);
    ck_assert(context != NULL && context->err == 0);
    ck_assert_int_eq(redisSetTimeout(context, timeout), REDIS_OK);
    redisReply *reply = redisCommand(context, "PING");
    const bool answers = reply != NULL;
    freeReplyObject(reply);
    redisFree(context);
    return answers;
}

START_TEST(servers_with_tls)
{
    const char *missing = cluster_tls_missing();
    if (missing != NULL) {
        printf("# left out: %s\n", missing);
        return;
    }
    const struct cluster_opts opts = {.nodes = 2, .tls = true};
    struct cluster *cluster = cluster_start_with(&opts);
    for (unsigned i = 0; i < 2; i++) {
        char url[256];
        snprintf(url, sizeof url, "rediss://127.0.0.1:%d?fresh=1&cacert=%s/ca.pem",
                 cluster_port(cluster, i), cluster_dir(cluster));
        ck_assert_str_eq(cluster_url(cluster, i), url);
        ck_assert(cluster_replies(cluster, i, "PONG", "PING"));
        ck_assert(!answers_in_plain(cluster_port(cluster, i)));
    }
    cluster_restart(cluster, 1, false);
    ck_assert(cluster_replies(cluster, 1, "PONG", "PING"));
    cluster_stop(cluster);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("harness");
    TCase *local = tcase_create("local");
    tcase_add_test(local, leaked_descriptors_are_listed);
    tcase_add_test(local, a_reused_descriptor_number_is_seen);
    tcase_add_test(local, waiting_ends);
    tcase_add_test(local, deadlines_stretch);
    suite_add_tcase(suite, local);
    TCase *servers = tcase_create("servers");
    tcase_set_timeout(servers, 60);
    tcase_add_test(servers, servers_answer_and_leave_nothing);
    tcase_add_test(servers, kill_and_restart_with_and_without_data);
    tcase_add_test(servers, the_port_of_a_dead_server_is_nobodys);
    tcase_add_test(servers, pause_and_resume);
    tcase_add_test(servers, keys_of_all_databases_are_found);
    tcase_add_test(servers, many_keys_take_many_pages);
    tcase_add_test(servers, replies_as_text);
    tcase_add_test(servers, unix_sockets_and_password);
    tcase_add_test(servers, servers_with_tls);
    tcase_add_test(servers, servers_die_with_the_test);
    suite_add_tcase(suite, servers);
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    return suite_run(suite);
}
