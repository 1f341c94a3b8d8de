/* SPDX-License-Identifier: MIT
 * Runs a client in another process, and reads the state of sockets from /proc/net/tcp. */
#include "other_client.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Replaces this process by the program peer, with its pipes, its clocks and the settings of the
 * case. */
static _Noreturn void exec_peer(int in, int out, const char *clock_path, unsigned drift_ppm)
{
    char text[24];
    const char *peer = getenv("PEER");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (peer == NULL || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    if (clock_path != NULL) {
        setenv("LD_PRELOAD", clockshim_object(), 1);
        setenv("CLOCKSHIM_FILE", clock_path, 1);
    }
    snprintf(text, sizeof text, "%u", drift_ppm);
    if (drift_ppm != 0)
        setenv("PEER_DRIFT_PPM", text, 1);
    snprintf(text, sizeof text, "%" PRIu64, live.max_ttl_ms != 0 ? live.max_ttl_ms : LONG_TTL_MS);
    setenv("PEER_MAX_TTL_MS", text, 1);
    snprintf(text, sizeof text, "%u", live.heartbeat_ms);
    if (live.heartbeat_ms != 0)
        setenv("PEER_HEARTBEAT_MS", text, 1);
    snprintf(text, sizeof text, "%u", live.node_time_ms);
    if (live.node_time_ms != 0)
        setenv("PEER_NODE_TIMEOUT_MS", text, 1);
    execl(peer, peer, cluster_urls(live.cluster), (char *)NULL);
    _exit(127);
}

/* Starts a client of all nodes in another process: with clocks of its own, or those of the
 * machine; with this drift in millionths, or the default (0). */
struct other *other_start(bool with_clocks, unsigned drift_ppm)
{
    static unsigned count;
    char path[256];
    int there[2], back[2];
    ck_assert_msg(getenv("PEER") != NULL, "PEER is not set: the path of the program peer");
    struct other *other = calloc(1, sizeof *other);
    ck_assert_ptr_nonnull(other);
    snprintf(path, sizeof path, "%s/other%u", cluster_dir(live.cluster), count++);
    if (with_clocks) {
        other->clocks = clockshim_create(path);
        ck_assert_ptr_nonnull(other->clocks);
    }
    ck_assert_int_eq(pipe2(there, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(back, O_CLOEXEC), 0);
    fflush(NULL);
    other->pid = fork();
    if (other->pid == 0)
        exec_peer(there[0], back[1], with_clocks ? path : NULL, drift_ppm);
    ck_assert_int_gt(other->pid, 0);
    close(there[0]);
    close(back[1]);
    other->input = fdopen(there[1], "we");
    other->output = fdopen(back[0], "re");
    ck_assert(other->input != NULL && other->output != NULL);
    return other;
}

/* Ends the process, also a stopped one. Fails the case unless it exits with status 0. Frees
 * `other`. */
void other_end(struct other *other)
{
    int status = 0;
    other_continue(other);
    fclose(other->input);
    fclose(other->output);
    ck_assert_int_eq(waitpid(other->pid, &status, 0), other->pid);
    ck_assert_msg(status == 0, "the other client ended with wait status %d", status);
    clockshim_close(other->clocks);
    free(other);
}

/* Writes a command and a newline. */
static void __attribute__((format(printf, 2, 0)))
send_line(struct other *other, const char *format, va_list arguments)
{
    vfprintf(other->input, format, arguments);
    fputc('\n', other->input);
    ck_assert_int_eq(fflush(other->input), 0);
}

/* Sends a command to the client, without waiting for its reply. */
void other_send(struct other *other, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    send_line(other, format, arguments);
    va_end(arguments);
}

/* Waits for the next reply line and returns it. Fails the case if the client has ended. */
const char *other_reply(struct other *other)
{
    other->reply[0] = '\0';
    ck_assert_msg(fgets(other->reply, sizeof other->reply, other->output) != NULL,
                  "the other client has ended");
    other->reply[strcspn(other->reply, "\n")] = '\0';
    return other->reply;
}

/* Sends a command, waits for the reply, and returns whether its first word is `word`. The whole
 * reply is in other->reply. */
bool other_replies(struct other *other, const char *word, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    send_line(other, format, arguments);
    va_end(arguments);
    const char *reply = other_reply(other);
    return strncmp(reply, word, strlen(word)) == 0 && reply[strlen(word)] == ' ';
}

/* Stops the process with SIGSTOP, and waits until it is stopped. */
void other_stop(struct other *other)
{
    siginfo_t info;
    ck_assert_int_eq(kill(other->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)other->pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
}

/* Lets a stopped process continue. */
void other_continue(struct other *other)
{
    kill(other->pid, SIGCONT);
}

/* Makes all clocks of the process run rate_ppm millionths too fast. -1000000 stops them. */
void other_set_rate(struct other *other, int64_t rate_ppm)
{
    for (int clock = 0; clock < CLOCKSHIM_CLOCKS; clock++)
        clockshim_set_rate(other->clocks, (enum clockshim_clock)clock, rate_ppm);
}

/* Counts the sockets with at least `bytes` unsent bytes, or the nodes that have at least `bytes`
 * unread bytes on one connection. Lines look like "0: 0100007F:1F90 00000000:0000 0A
 * 00000000:00000000 …": local address and port, remote ones, state, number of unsent and of unread
 * bytes. */
static unsigned count_sockets(bool unsent, unsigned bytes)
{
    char line[512];
    unsigned count = 0;
    bool seen[NODES] = {false};
    FILE *file = fopen("/proc/thread-self/net/tcp", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned port = 0, state = 0, sending = 0, reading = 0;
        if (sscanf(line, " %*u: %*8x:%x %*8x:%*x %x %x:%x", &port, &state, &sending, &reading) != 4)
            continue;
        if (unsent)
            count += sending >= bytes;
        for (unsigned i = 0; !unsent && i < NODES; i++) {
            if ((int)port != cluster_port(live.cluster, i) || state != 1 || reading < bytes)
                continue;
            count += !seen[i];
            seen[i] = true;
        }
    }
    fclose(file);
    return count;
}

/* Returns the number of sockets in which the kernel still holds written bytes. */
unsigned sockets_unsent(void)
{
    return count_sockets(true, 1);
}

/* Returns the number of nodes that have at least `bytes` unread bytes on one connection. */
unsigned nodes_with_unread(unsigned bytes)
{
    return count_sockets(false, bytes);
}
