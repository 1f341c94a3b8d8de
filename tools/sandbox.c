/* SPDX-License-Identifier: MIT
 * `redlock sandbox`: starts temporary servers for trying and testing, and with CMD a command
 * beside them. This process forks a guardian, which forks a starter (guardian.h). The starter
 * executes what this process requests, the servers one after the other and then the command, and
 * reports when each has started or ended. The loop waits for these reports and for signals; each
 * pass of it is one call of turn(). However the sandbox ends, the guardian kills all processes that
 * are left, with those servers that were started again in another terminal, and removes the
 * directory of the servers.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "command_path.h"
#include "commands.h"
#include "environment.h"
#include "exits.h"
#include "job.h"
#include "mask.h"
#include "redlock/redlock.h"
#include "sandbox_node.h"
#include "sandbox_tls.h"
#include "say.h"
#include "shown.h"
#include "signals.h"

/* Time limit for the start of all servers; time from a second signal to the KILL of the command;
 * and how many ports are tried for one server. */
#define START_TIMEOUT_NS (20 * UINT64_C(1000000000))
#define STOP_TIMEOUT_NS  (5 * UINT64_C(1000000000))
#define PORT_TRIES       20

/* The state of one sandbox. */
struct sandbox {
    const struct options *options; /* options->operands: the command and its arguments */
    /* directory: of the sandbox; NULL: not made. the link `redis-server` in it, which is executed
     * for each server. Both owned. */
    char *directory, *program;
    struct environment environment; /* of the servers and of the command */
    struct sandbox_node *nodes;     /* options->nodes of them; owned */
    /* index of the node whose start was requested last; starts are requested one after the other */
    unsigned starting;
    struct job job;      /* the guardian, and the command if there is one */
    char *command_path;  /* program of the command; NULL: there is no command */
    int signal_fd;       /* from signals_open() */
    int signal_code;     /* 128+n once signal n has ended the sandbox; 0: none has */
    unsigned signals;    /* while the command runs: number of signals that end a command */
    uint64_t kill_at_ns; /* when the command is killed, after a second signal; NEVER_NS: not */
    int failure;         /* exit code after an error, which was reported; 0: none */
};

/* Searches PATH for a server program and stores its path in *ret_server, to be freed. Returns 0, or
 * EXIT_NO_QUORUM after a message if there is none. */
static int find_server(char **ret_server)
{
    /* Debian's redis-tools contains the server program as redis-check-rdb. It acts as a server if
     * argv[0] is redis-server. */
    static const char *const names[] = {"redis-server", "valkey-server", "redis-check-rdb",
                                        "valkey-check-rdb"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (command_resolve(names[i], ret_server) == 0)
            return 0;
    say(SAY_ERROR, "sandbox: no redis-server and no valkey-server on PATH; install one, on Debian: "
                   "apt-get install redis-tools");
    return EXIT_NO_QUORUM;
}

/* Returns a copy of the path for an address: "%HH" for each byte that has a meaning there. To be
 * freed. */
static char *encoded(const char *path)
{
    char *copy = must(malloc(3 * strlen(path) + 1)), *to = copy;

    for (; *path; path++)
        to += isalnum((unsigned char)*path) || strchr("/-._~", *path)
                  ? sprintf(to, "%c", *path)
                  : sprintf(to, "%%%02x", (unsigned char)*path);
    *to = '\0';
    return copy;
}

/* Returns true if the address of a server can name the issuer in this directory; else false, after
 * a message. */
static bool fits_address(const char *directory)
{
    char *path = encoded(directory);
    char *address = text_format("rediss://127.0.0.1?cacert=%s/ca.crt", path);
    redlock_config_t *config = NULL;

    if (redlock_config_new(&config, NULL) != REDLOCK_OK)
        must(NULL);
    bool fits = redlock_config_add_nodes(config, address) == REDLOCK_OK;
    if (!fits)
        say(SAY_ERROR, "sandbox: %s: %s; set TMPDIR to another directory", directory,
            redlock_config_error(config));
    redlock_config_free(config);
    free(address);
    free(path);
    return fits;
}

/* Makes the directory of the sandbox with the link to the program `server`, the certificates if the
 * servers speak TLS, and a directory, configuration and port for each server. Returns 0, or
 * EXIT_SYSTEM after a message. */
static int make_directory(struct sandbox *sandbox, const char *server)
{
    const char *base = getenv("TMPDIR");

    sandbox->directory = text_format("%s/redlock-sandbox-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(sandbox->directory)) {
        say(SAY_ERROR, "sandbox: %s: %s; set TMPDIR to a directory to write to", sandbox->directory,
            strerror(errno));
        free(sandbox->directory);
        sandbox->directory = NULL;
        return EXIT_SYSTEM;
    }
    if (sandbox->options->tls &&
        (!fits_address(sandbox->directory) || sandbox_tls_make(sandbox->directory) != 0))
        return EXIT_SYSTEM;
    char *full = realpath(server, NULL);
    sandbox->program = text_format("%s/redis-server", sandbox->directory);
    int result = symlink(full ? full : server, sandbox->program);
    free(full);
    for (unsigned i = 0; result == 0 && i < sandbox->options->nodes; i++)
        result = sandbox_node_prepare(&sandbox->nodes[i], sandbox->directory, i + 1,
                                      sandbox->options->tls);
    if (result == 0)
        return 0;
    say(SAY_ERROR, "sandbox: %s: %s; free space, or set TMPDIR to another directory",
        sandbox->directory, strerror(errno));
    return EXIT_SYSTEM;
}

/* Requests the start of the server with this index from the starter; a report follows. Returns
 * false if the starter has ended. */
static bool start_node(struct sandbox *sandbox, unsigned index)
{
    const struct sandbox_node *node = &sandbox->nodes[index];
    char *conf = text_format("%s/conf", node->directory);
    char *log = text_format("%s/log", node->directory);
    char *argv[] = {(char *)"redis-server", conf, NULL};
    struct start_request request = {.path = sandbox->program,
                                    .argv = argv,
                                    .envp = sandbox->environment.list,
                                    .directory = node->directory,
                                    .log = log,
                                    .flags = START_NEW_GROUP};

    sandbox->starting = index;
    int result = starter_request(sandbox->job.guardian.request_fd, &request);
    free(conf);
    free(log);
    return result == 0;
}

/* Chooses another port for a server that has ended before its first reply, which probably means
 * that its port was taken. Returns false, after printing the log, if there is no further try. */
static bool retry_node(struct sandbox_node *node)
{
    node->pid = 0;
    if (node->tries >= PORT_TRIES || sandbox_node_choose_port(node) != 0) {
        sandbox_node_show_log(node);
        say(SAY_ERROR, "sandbox: server %u did not start%s", node->number,
            node->tls_directory ? "; was redis-server built with TLS (BUILD_TLS)?" : "");
        return false;
    }
    return true;
}

/* Handles a report of the starter about a server. Stores the pid of a server that was started.
 * Chooses another port for a server that has ended before its first reply, so that start_nodes()
 * starts it again. Forgets the pid of a server that has ended later. Returns false if the sandbox
 * cannot continue. */
static bool node_report(struct sandbox *sandbox, const struct start_report *report)
{
    unsigned count = sandbox->options->nodes;

    if (report->kind == REPORT_NO_PROCESS) {
        guardian_say_no_process("sandbox: cannot fork", report->value);
        sandbox->failure = EXIT_SYSTEM;
        return false;
    }
    if (report->kind == REPORT_FAILED) {
        say(SAY_ERROR, "sandbox: %s: %s; install another redis-server or valkey-server",
            sandbox->program, strerror(report->value));
        return false;
    }
    if (report->kind == REPORT_STARTED) {
        sandbox->nodes[sandbox->starting].pid = report->pid;
        return true;
    }
    for (unsigned i = 0; i < count; i++) {
        struct sandbox_node *node = &sandbox->nodes[i];
        if (report->kind != REPORT_ENDED || node->pid != report->pid)
            continue;
        if (!node->ready)
            return retry_node(node);
        say(SAY_INFO, "sandbox: server %u has ended", node->number);
        node->pid = 0;
    }
    return true;
}

/* Handles one signal. While a command runs, passes the signal on to the command, and sets the time
 * of the KILL after the second signal that ends a command. Without a command, such a signal ends
 * the sandbox. */
static void take_signal(struct sandbox *sandbox, const struct signalfd_siginfo *info)
{
    int sig = (int)info->ssi_signo;
    struct job *job = &sandbox->job;

    if (sig == SIGCHLD)
        guardian_reap(&job->guardian);
    if (sig == SIGCHLD || job_control_signal(job, sig))
        return;
    if (job->state == JOB_NONE) {
        if (signal_ends(sig))
            sandbox->signal_code = EXIT_SIGNAL_BASE + sig;
        return;
    }
    job_signal(job, sig);
    if (signal_ends(sig) && job->state == JOB_SUSPENDED)
        job_signal(job, SIGCONT);
    if (signal_ends(sig) && ++sandbox->signals == 2)
        sandbox->kill_at_ns = boottime_ns() + STOP_TIMEOUT_NS;
}

/* Waits for the next signal or report of the starter, until `at_ns` of CLOCK_BOOTTIME at the
 * latest, and handles what has arrived. */
static void turn(struct sandbox *sandbox, uint64_t at_ns)
{
    struct pollfd fds[2] = {{.fd = sandbox->signal_fd, .events = POLLIN},
                            {.fd = sandbox->job.guardian.report_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    struct start_report report;

    if (poll(fds, 2, poll_timeout(boottime_ns(), job_wake_ns(&sandbox->job, at_ns))) < 0)
        return;
    while (signals_next(sandbox->signal_fd, &info))
        take_signal(sandbox, &info);
    job_watch(&sandbox->job);
    if (!fds[1].revents)
        return;
    if (!starter_read(sandbox->job.guardian.report_fd, &report)) {
        if (sandbox->failure)
            return; /* its report has said why it ends */
        say(SAY_ERROR,
            "sandbox: the guardian process was killed, and all servers with it; start again");
        sandbox->failure = EXIT_INTERNAL;
        return;
    }
    if (!job_report(&sandbox->job, &report) && !node_report(sandbox, &report) && !sandbox->failure)
        sandbox->failure = EXIT_NO_QUORUM;
}

/* Returns true if a failure, or a signal while no command runs, has ended the sandbox. */
static bool has_to_stop(const struct sandbox *sandbox)
{
    return sandbox->failure || sandbox->signal_code;
}

/* Starts all servers and waits until they reply. Returns -1 if they do, or if a signal has ended
 * the sandbox (signal_code is set then). Returns EXIT_NO_QUORUM after a message if a server cannot
 * be started. */
static int start_nodes(struct sandbox *sandbox)
{
    unsigned count = sandbox->options->nodes, ready = 0; /* ready: servers that have replied */
    uint64_t give_up_ns = boottime_ns() + START_TIMEOUT_NS;

    while (ready < count && !has_to_stop(sandbox)) {
        uint64_t now_ns = boottime_ns();
        if (now_ns >= give_up_ns) {
            say(SAY_ERROR, "sandbox: the servers did not reply within 20s; start fewer (-n), or "
                           "free processor time");
            return EXIT_NO_QUORUM;
        }
        ready = 0;
        for (unsigned i = 0; i < count && !has_to_stop(sandbox); i++) {
            struct sandbox_node *node = &sandbox->nodes[i];
            if (!node->pid && !start_node(sandbox, i))
                sandbox->failure = EXIT_NO_QUORUM;
            while (!node->pid && !has_to_stop(sandbox))
                turn(sandbox, NEVER_NS);
            if (!node->ready && node->pid)
                node->ready = sandbox_node_answers(node);
            ready += node->ready;
        }
        if (ready < count)
            turn(sandbox, now_ns + 5 * NS_PER_MS); /* then tries the servers again */
    }
    return sandbox->failure ? sandbox->failure : -1;
}

/* Returns the value of REDLOCK_SERVERS for the sandbox. With TLS each address names the issuer,
 * because programs other than `redlock` read no other variable. To be freed. */
static char *server_list(const struct sandbox *sandbox)
{
    bool tls = sandbox->options->tls;
    char *directory = encoded(sandbox->directory);
    char *parameter = tls ? text_format("&cacert=%s/ca.crt", directory) : text_copy("");
    char *list = text_copy("");

    for (unsigned i = 0; i < sandbox->options->nodes; i++) {
        char *longer = text_format("%s%s%s127.0.0.1:%d?fresh=1%s", list, *list ? "," : "",
                                   tls ? "rediss://" : "", sandbox->nodes[i].port, parameter);
        free(list);
        list = longer;
    }
    free(parameter);
    free(directory);
    return list;
}

/* Prints how to use the sandbox to stdout. `servers` is the value of REDLOCK_SERVERS. */
static void show_use(const struct sandbox *sandbox, const char *servers)
{
    printf("Servers running: %u. In another terminal:\n\n"
           "  export REDLOCK_SERVERS='%s'\n"
           "  export REDLOCK_FENCE_RECORDS=volatile\n"
           "  redlock run hello -- date\n"
           "  redlock nodes\n",
           sandbox->options->nodes, servers);
    show("  kill -9 $(cat %s/1/pid)    # kill one\n", sandbox->directory);
    show("\n");
    show("Ctrl-C ends them and removes %s\n", sandbox->directory);
    fflush(stdout);
}

/* Runs the command and waits for its end. Returns its exit code, or EXIT_INTERNAL if the guardian
 * was killed. */
static int run_command(struct sandbox *sandbox)
{
    struct job *job = &sandbox->job;

    if (job_start(job, sandbox->command_path, sandbox->options->operands, sandbox->environment.list,
                  false) != 0)
        return EXIT_INTERNAL;
    while (job->state != JOB_ENDED && job->state != JOB_FAILED && !sandbox->failure) {
        turn(sandbox, sandbox->kill_at_ns);
        if (sandbox->kill_at_ns <= boottime_ns()) {
            job_signal(job, SIGKILL);
            sandbox->kill_at_ns = NEVER_NS;
        }
    }
    if (job->state == JOB_FAILED && job->no_process)
        guardian_say_no_process("sandbox: cannot fork", job->status);
    else if (job->state == JOB_FAILED)
        say(SAY_ERROR, "sandbox: %s: %s", sandbox->options->operands[0], strerror(job->status));
    return sandbox->failure ? sandbox->failure : job_exit_code(job);
}

/* Starts the servers, sets the variables that tell a `redlock` in the sandbox about them, and then
 * runs the command or, without one, waits for a signal. Returns the exit code. */
static int run_inside(struct sandbox *sandbox)
{
    int result = start_nodes(sandbox);

    if (result >= 0)
        return result;
    if (sandbox->signal_code)
        return sandbox->signal_code;
    char *servers = server_list(sandbox);
    environment_set(&sandbox->environment, "REDLOCK_SERVERS", servers);
    environment_set(&sandbox->environment, "REDLOCK_FENCE_RECORDS", "volatile");
    environment_set(&sandbox->environment, "REDLOCK_SANDBOX_DIR", sandbox->directory);
    if (sandbox->command_path) {
        result = run_command(sandbox);
    } else {
        show_use(sandbox, servers);
        while (!has_to_stop(sandbox))
            turn(sandbox, NEVER_NS);
        result = sandbox->failure ? sandbox->failure : sandbox->signal_code;
    }
    free(servers);
    return result;
}

/* Removes variables that are about other servers than those of the sandbox. */
static void unset_foreign(struct environment *environment)
{
    static const char *const names[] = {"REDLOCK_LOGIN",    "REDLOCK_TLS_CACERT",
                                        "REDLOCK_TLS_CERT", "REDLOCK_TLS_KEY",
                                        "REDLOCK_TLS_SNI",  "REDLOCK_TLS_VERIFY"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        environment_unset(environment, names[i]);
}

/* Makes the directory, starts the guardian, runs the sandbox and removes it. `server` is the path
 * of the server program. Returns the exit code. */
static int run_guarded(struct sandbox *sandbox, const char *server)
{
    signals_block();
    int result = make_directory(sandbox, server);
    if (result == 0 && guardian_start(&sandbox->job.guardian, sandbox->directory) != 0) {
        guardian_say_no_process("sandbox: cannot fork", errno);
        result = EXIT_SYSTEM;
    }
    if (result == 0) {
        sandbox->signal_fd = signals_open();
        environment_copy(&sandbox->environment);
        unset_foreign(&sandbox->environment);
        result = run_inside(sandbox);
        job_take_terminal(&sandbox->job);
        guardian_end(&sandbox->job.guardian, true);
        environment_free(&sandbox->environment);
        close(sandbox->signal_fd);
    }
    /* The guardian removes the directory, unless it was killed. */
    if (sandbox->directory && access(sandbox->directory, F_OK) == 0)
        sandbox_remove(sandbox->directory);
    return result;
}

/* Runs `redlock sandbox`: finds the command and the server program, and runs the sandbox. Returns
 * the exit code: that of the command, 128+n if signal n ended the sandbox, or that of an error. */
int cmd_sandbox(const struct options *options)
{
    struct sandbox sandbox = {.options = options, .kill_at_ns = NEVER_NS};
    char *server = NULL;
    int result = options->tls ? sandbox_tls_check() : 0;

    if (result)
        return result;
    if (options->operand_count > 0)
        result = command_resolve(options->operands[0], &sandbox.command_path);
    if (result) {
        say(SAY_ERROR, "sandbox: %s: %s", mask_word(options->operands[0]),
            result == EXIT_NOT_FOUND ? COMMAND_NOT_FOUND : COMMAND_CANNOT_RUN);
        return result;
    }
    result = find_server(&server);
    if (result == 0) {
        sandbox.nodes = must(calloc(options->nodes, sizeof *sandbox.nodes));
        result = run_guarded(&sandbox, server);
        for (unsigned i = 0; i < options->nodes; i++)
            sandbox_node_clear(&sandbox.nodes[i]);
    }
    free(sandbox.nodes);
    free(server);
    free(sandbox.program);
    free(sandbox.directory);
    free(sandbox.command_path);
    return result;
}
