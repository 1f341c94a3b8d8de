/* SPDX-License-Identifier: MIT
 * Directory, port, configuration and first reply of one temporary server of `redlock sandbox`. The
 * directory has the files conf (configuration), port (its number), and, once the server runs, pid
 * and log. A socket that is bound to the port but does not listen reserves the port until the
 * sandbox ends.
 */
#include "sandbox_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "descendants.h"
#include "files.h"
#include "say.h"
#include "server_tls.h"

/* Ports are chosen at random from PORT_COUNT ports beginning with PORT_FIRST. They are below those
 * that the kernel uses for outgoing connections. */
#define PORT_FIRST 20000
#define PORT_COUNT 12000

/* How often the end of a killed server is checked, at intervals of KILL_STEP_NS. */
#define KILL_STEPS   200
#define KILL_STEP_NS 5000000L

/* Time limit for a TLS handshake with a server that starts. */
#define HANDSHAKE_TIMEOUT_MS 1000

/* Returns the socket address of 127.0.0.1 with this port. */
static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Reserves the port: returns a socket that is bound to it, or -1. SO_REUSEADDR is set after
 * bind(), so bind() succeeds only on an unused port. A server sets the option before bind(), so
 * it can listen on the reserved port, also after a restart. A client of a killed server
 * therefore never reaches a server of another sandbox. */
static int take_port(int port)
{
    struct sockaddr_in address = loopback(port);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Ends the reservation of the port. */
static void free_port(struct sandbox_node *node)
{
    if (node->port != 0)
        close(node->port_fd);
    node->port = 0;
}

/* Writes `text` to the file `name` in the directory. Returns 0, or -1 with errno. */
static int write_text(const char *directory, const char *name, const char *text)
{
    char *path = text_format("%s/%s", directory, name);
    FILE *file = fopen(path, "we");

    free(path);
    if (!file)
        return -1;
    bool failed = fputs(text, file) < 0;
    failed = fclose(file) != 0 || failed;
    return failed ? -1 : 0;
}

/* Returns a copy of a path as it stands between quotes in the configuration of a server. To be
 * freed. */
static char *quotable(const char *path)
{
    char *copy = must(malloc(4 * strlen(path) + 1)), *to = copy;

    for (; *path; path++)
        to += (unsigned char)*path < ' '      ? sprintf(to, "\\x%02x", (unsigned char)*path)
              : *path == '"' || *path == '\\' ? sprintf(to, "\\%c", *path)
                                              : sprintf(to, "%c", *path);
    *to = '\0';
    return copy;
}

/* Returns the lines of the configuration about the port. To be freed. */
static char *port_lines(const struct sandbox_node *node)
{
    if (!node->tls_directory)
        return text_format("port %d\n", node->port);
    char *certificates = quotable(node->tls_directory);
    char *lines =
        text_format("port 0\ntls-port %d\ntls-auth-clients no\ntls-ca-cert-file \"%s/ca.crt\"\n"
                    "tls-cert-file \"%s/server.crt\"\ntls-key-file \"%s/server.key\"\n",
                    node->port, certificates, certificates, certificates);
    free(certificates);
    return lines;
}

/* Removes the log of an earlier try, so that it is not shown as that of a later one. */
static void remove_log(const struct sandbox_node *node)
{
    char *path = text_format("%s/log", node->directory);

    unlink(path);
    free(path);
}

/* Reserves another random port and writes the files conf and port. Returns 0, or -1 with errno;
 * EADDRINUSE if 200 random ports are in use. */
int sandbox_node_choose_port(struct sandbox_node *node)
{
    uint32_t random;
    char text[16];

    free_port(node);
    for (int i = 0; i < 200 && !node->port; i++) {
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return -1;
        int port = PORT_FIRST + (int)(random % PORT_COUNT);
        node->port_fd = take_port(port);
        if (node->port_fd >= 0)
            node->port = port;
    }
    if (!node->port) {
        errno = EADDRINUSE;
        return -1;
    }
    node->tries++;
    remove_log(node);
    char *lines = port_lines(node), *directory = quotable(node->directory);
    char *conf = text_format("%sbind 127.0.0.1\ndaemonize no\nsave \"\"\nappendonly no\n"
                             "dir \"%s\"\npidfile \"%s/pid\"\nlogfile \"%s/log\"\n",
                             lines, directory, directory, directory);
    free(lines);
    free(directory);
    snprintf(text, sizeof text, "%d\n", node->port);
    int result = write_text(node->directory, "conf", conf);
    free(conf);
    return result == 0 ? write_text(node->directory, "port", text) : result;
}

/* Initialises the node, makes its directory and chooses its port. `number` counts from 1. Returns
 * 0, or -1 with errno. */
int sandbox_node_prepare(struct sandbox_node *node, const char *sandbox_directory, unsigned number,
                         bool tls)
{
    *node =
        (struct sandbox_node){.number = number, .tls_directory = tls ? sandbox_directory : NULL};
    node->directory = text_format("%s/%u", sandbox_directory, number);
    if (mkdir(node->directory, 0700) != 0)
        return -1;
    return sandbox_node_choose_port(node);
}

/* Ends the reservation of the port and frees the name of the directory. Removes no file. */
void sandbox_node_clear(struct sandbox_node *node)
{
    free_port(node);
    free(node->directory);
    node->directory = NULL;
}

/* Makes the TLS handshake with the server, which must have the certificate of the sandbox. Returns
 * NULL if that fails. */
static struct server_tls *secure(int fd, const char *tls_directory)
{
    char error[LINK_ERROR_MAX];
    char *ca = text_format("%s/ca.crt", tls_directory);
    const redlock_tls_t settings = {.size = sizeof settings, .cacert = ca};
    struct server_tls *tls =
        server_tls_open(fd, &settings, "127.0.0.1", HANDSHAKE_TIMEOUT_MS, error);

    if (!tls)
        say(SAY_DEBUG, "sandbox: no reply yet: %s", error);
    free(ca);
    return tls;
}

/* Sends INFO on a connection, which uses TLS unless `tls` is NULL. Returns the pid of the server; 0
 * if the reply does not have it. */
static long pid_of_server(int fd, struct server_tls *tls)
{
    static const char ask[] = "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";
    const size_t ask_len = sizeof ask - 1;
    char text[8192];
    size_t len = 0;

    if (tls ? !server_tls_send(tls, ask, ask_len)
            : send(fd, ask, ask_len, MSG_NOSIGNAL) != (ssize_t)ask_len)
        return 0;
    while (len < sizeof text - 1) {
        size_t room = sizeof text - 1 - len;
        ssize_t more =
            tls ? server_tls_receive(tls, text + len, room) : recv(fd, text + len, room, 0);
        if (more <= 0)
            return 0;
        len += (size_t)more;
        text[len] = '\0';
        const char *found = strstr(text, "process_id:");
        if (found && strchr(found, '\r'))
            return strtol(found + strlen("process_id:"), NULL, 10);
    }
    return 0;
}

/* Sends INFO to the port and waits up to 200 ms for each part of the reply. Returns true if the
 * reply names the pid of this server; false if another or no server replies. */
bool sandbox_node_answers(const struct sandbox_node *node)
{
    struct sockaddr_in address = loopback(node->port);
    struct timeval patience = {.tv_usec = 200000};
    struct server_tls *tls = NULL;
    long pid = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        tls = node->tls_directory ? secure(fd, node->tls_directory) : NULL;
        if (tls || !node->tls_directory)
            pid = pid_of_server(fd, tls);
    }
    server_tls_close(tls);
    close(fd);
    return pid > 0 && pid == node->pid;
}

/* Prints the lines in the last 1024 bytes of the server's log as messages. Does nothing if there is
 * no log. */
void sandbox_node_show_log(const struct sandbox_node *node)
{
    char *path = text_format("%s/log", node->directory);
    FILE *log = fopen(path, "re");
    char text[1025];

    free(path);
    if (!log)
        return;
    if (fseek(log, -1024, SEEK_END) != 0)
        rewind(log);
    size_t len = fread(text, 1, sizeof text - 1, log);
    text[len] = '\0';
    fclose(log);
    say(SAY_ERROR, "end of the log of server %u:", node->number);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (*line)
            say(SAY_ERROR, "  %s", line);
}

/* Returns the number in the file pid of the directory; 0 if there is none. */
static pid_t read_pid(const char *directory)
{
    char *path = text_format("%s/pid", directory);
    FILE *file = fopen(path, "re");
    int pid = 0;

    free(path);
    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid > 0 ? pid : 0;
}

/* Returns true if the current directory of the process is this one. */
static bool works_in(pid_t pid, const char *directory)
{
    struct stat current, wanted;
    char link[32];

    snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    return stat(link, &current) == 0 && stat(directory, &wanted) == 0 &&
           current.st_dev == wanted.st_dev && current.st_ino == wanted.st_ino;
}

/* Kills the server of this directory if one runs, and waits up to a second for its end. It is the
 * process whose pid is in the file pid and whose current directory this is: a pid that now belongs
 * to another process gets no signal, nor does a shell in this directory. */
static void end_server(const char *directory)
{
    const struct timespec step = {.tv_nsec = KILL_STEP_NS};
    pid_t pid = read_pid(directory);
    int pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1; /* pins the pid if possible */

    for (int i = 0; pid && i < KILL_STEPS && works_in(pid, directory); i++) {
        if ((pidfd < 0 || syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) != 0) &&
            kill(pid, SIGKILL) != 0)
            break;
        nanosleep(&step, NULL);
    }
    if (pidfd >= 0)
        close(pidfd);
}

/* Ends the servers that run in the directories 1, 2, ... of the sandbox's directory, and removes
 * that directory. */
void sandbox_remove(const char *sandbox_directory)
{
    bool more = descendants_visible();

    for (unsigned number = 1; more; number++) {
        char *directory = text_format("%s/%u", sandbox_directory, number);
        more = access(directory, F_OK) == 0;
        if (more)
            end_server(directory);
        free(directory);
    }
    remove_tree(sandbox_directory);
}
