/* SPDX-License-Identifier: MIT
 * Starts and ends processes of redis-server. They have PDEATHSIG set, so that they end with the
 * test, however it ends. */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT_FIRST      10240
#define PORT_COUNT      20000 /* ends below 32768, where the usual range of source ports begins */
#define PORT_TRIES      200
#define ARGS_MAX        64

#define ENVIRONMENT_MAX 512

/* Searches the directories of PATH for a program. Returns whether it was found; its path is in
 * ret_path. */
static bool find_in_path(const char *name, char *ret_path, size_t size)
{
    const char *rest = getenv("PATH");
    while (rest != NULL && *rest != '\0') {
        const size_t length = strcspn(rest, ":");
        const int written = snprintf(ret_path, size, "%.*s/%s", (int)length, rest, name);
        if (written > 0 && (size_t)written < size && access(ret_path, X_OK) == 0)
            return true;
        rest += length + (rest[length] == ':');
    }
    return false;
}

/* Returns the path of the server program, or NULL. REDLOCK_TEST_SERVER overrides the search in
 * PATH. */
const char *server_program(void)
{
    static char path[1024];
    const char *chosen = getenv("REDLOCK_TEST_SERVER");
    if (chosen != NULL && *chosen != '\0')
        return chosen;
    /* Debian's redis-tools contains the server as redis-check-rdb, which decides by the name under
     * which it runs. */
    static const char *const names[] = {"redis-server", "valkey-server", "redis-check-rdb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (find_in_path(names[i], path, sizeof path))
            return path;
    return NULL;
}

/* Returns a socket that is bound to the port, or -1. SO_REUSEADDR is set after bind(): so this
 * socket gets only a port that is free, and a server, which sets the option before bind(), can
 * still listen there. */
static int bind_port(const char *host, int port)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const bool is_v6 = inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
    if (!is_v6 && inet_pton(AF_INET, host, &v4.sin_addr) != 1)
        return -1;
    const int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const int on = 1;
    const struct sockaddr *address = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    if (bind(fd, address, is_v6 ? sizeof v6 : sizeof v4) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Returns whether a server could listen at that address: false for ::1 on a machine without
 * IPv6. */
bool server_host_works(const char *host)
{
    const int fd = bind_port(host, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Reserves a free TCP port below the range from which the kernel takes source ports. So a
 * client that connects to a dead server there cannot connect to itself. Returns false if no
 * port was free in PORT_TRIES random tries. */
bool server_take_port(struct server *server)
{
    for (int i = 0; i < PORT_TRIES && server->port == 0; i++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return false;
        const int port = PORT_FIRST + (int)(random % PORT_COUNT);
        server->port_fd = bind_port(server->host, port);
        if (server->port_fd >= 0)
            server->port = port;
    }
    return server->port != 0;
}

/* Gives the reserved port back. Does nothing if none is reserved. */
void server_give_port(struct server *server)
{
    if (server->port_fd >= 0)
        close(server->port_fd);
    server->port_fd = -1;
}

/* Writes the path of the server's unix socket, whether there is one or not. */
void server_socket_path(const struct server *server, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/sock", server->dir);
}

/* Returns whether the server listens on the unix socket: for clients, or for commands of the
 * harness beside a port that the harness does not connect to. */
bool server_has_socket(const struct server *server, const struct server_opts *opts)
{
    return opts->unix_socket || server->network > 0 || server->certificate[0] != '\0';
}

/* Command line and environment of one server process, with the buffers that they point to. */
struct arguments {
    const char *list[ARGS_MAX + 1];
    size_t count;
    char port[16];
    char socket[SERVER_PATH_MAX + 8];
    char certificate[SERVER_PATH_MAX + 16], key[SERVER_PATH_MAX + 16];
    char preload[1024], clock[SERVER_PATH_MAX + 24];
    char *environment[ENVIRONMENT_MAX + 3];
};

/* Appends an argument and, unless `value` is NULL, its value. Leaves them out if there is no
 * room. */
static void add(struct arguments *args, const char *name, const char *value)
{
    if (args->count + 2 > ARGS_MAX)
        return;
    args->list[args->count++] = name;
    if (value != NULL)
        args->list[args->count++] = value;
}

/* Adds the port of a server, with TLS if it has a certificate. Clients need none; a test may say
 * otherwise in its own arguments, which come later. */
static void add_port(struct arguments *args, const struct server *server,
                     const struct server_opts *opts)
{
    const bool tls = server->certificate[0] != '\0';
    snprintf(args->port, sizeof args->port, "%d", server->port);
    add(args, tls ? "--tls-port" : "--port", args->port);
    if (!tls)
        return;
    snprintf(args->certificate, sizeof args->certificate, "%s.pem", server->certificate);
    snprintf(args->key, sizeof args->key, "%s.key", server->certificate);
    add(args, "--port", "0");
    add(args, "--tls-cert-file", args->certificate);
    add(args, "--tls-key-file", args->key);
    add(args, "--tls-ca-cert-file", opts->cacert);
    add(args, "--tls-auth-clients", "no");
    add(args, "--tls-replication", "yes"); /* of REPLICAOF, to servers of the same cluster */
}

/* Fills in the command line of a server process. */
static void build_arguments(struct arguments *args, const struct server *server,
                            const struct server_opts *opts)
{
    memset(args, 0, sizeof *args);
    add(args, "redis-server", NULL);
    add_port(args, server, opts);
    if (server_has_socket(server, opts)) {
        server_socket_path(server, args->socket, sizeof args->socket);
        add(args, "--unixsocket", args->socket);
    }
    if (!opts->unix_socket)
        add(args, "--bind", server->host);
    if (server->network > 0)
        add(args, "--protected-mode", "no"); /* without it, the server accepts loopback addresses
                                              * only */
    add(args, "--daemonize", "no");
    add(args, "--save", "");
    add(args, "--appendonly", opts->keep_data ? "yes" : "no");
    if (opts->keep_data) /* the page cache survives a kill -9 of the process */
        add(args, "--appendfsync", "no");
    add(args, "--dir", server->dir);
    if (opts->password != NULL)
        add(args, "--requirepass", opts->password);
    for (const char *const *more = opts->args; more != NULL && *more != NULL; more++)
        add(args, *more, NULL);
}

/* Fills in the environment of a server process: ours without LD_PRELOAD, and with the clock
 * shim if the test may change the server's clocks. */
static void build_environment(struct arguments *args, const struct server *server)
{
    size_t count = 0;
    for (char **each = environ; *each != NULL && count < ENVIRONMENT_MAX; each++)
        if (strncmp(*each, "LD_PRELOAD=", 11) != 0)
            args->environment[count++] = *each;
    if (server->clock_path[0] == '\0')
        return;
    snprintf(args->preload, sizeof args->preload, "LD_PRELOAD=%s", clockshim_object());
    snprintf(args->clock, sizeof args->clock, "CLOCKSHIM_FILE=%s", server->clock_path);
    args->environment[count++] = args->preload;
    args->environment[count++] = args->clock;
}

/* In the child process: becomes the server. Makes only async-signal-safe calls before exec. */
static _Noreturn void become_server(const char *program, const struct server *server,
                                    struct arguments *args, const char *log, pid_t parent)
{
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    const int input = open("/dev/null", O_RDONLY);
    const int output = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (input < 0 || output < 0)
        _exit(126);
    if (server->network > 0 && setns(server->network, CLONE_NEWNET) != 0)
        _exit(126);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execve(program, (char *const *)(uintptr_t)args->list, args->environment);
    _exit(127);
}

/* Starts the process and returns before it is ready. Returns false if it could not be started. */
bool server_spawn(struct server *server, const struct server_opts *opts)
{
    struct arguments args;
    char log[SERVER_PATH_MAX + 8];
    const char *program = server_program();
    if (program == NULL)
        return false;
    build_arguments(&args, server, opts);
    build_environment(&args, server);
    snprintf(log, sizeof log, "%s/log", server->dir);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0)
        become_server(program, server, &args, log, parent);
    server->pid = pid > 0 ? pid : 0;
    return pid > 0;
}

/* Returns true if the process has ended; then it is reaped and pid becomes 0. */
bool server_reap(struct server *server)
{
    if (server->pid == 0)
        return true;
    const pid_t ended = waitpid(server->pid, NULL, WNOHANG);
    if (ended == 0)
        return false;
    server->pid = 0;
    return true;
}

/* Sends SIGKILL and waits until the process is gone. Stopped processes die as well. */
void server_kill(struct server *server)
{
    if (server->pid == 0)
        return;
    kill(server->pid, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    server->pid = 0;
}

/* Stops the process with SIGSTOP; returns once the kernel has stopped it. */
void server_pause(struct server *server)
{
    siginfo_t info;
    if (server->pid == 0 || kill(server->pid, SIGSTOP) != 0)
        return;
    while (waitid(P_PID, (id_t)server->pid, &info, WSTOPPED | WEXITED | WNOWAIT) < 0 &&
           errno == EINTR)
        continue;
}

/* Continues the process with SIGCONT. */
void server_resume(struct server *server)
{
    if (server->pid != 0)
        kill(server->pid, SIGCONT);
}
