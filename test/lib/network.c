/* SPDX-License-Identifier: MIT
 * Makes namespaces and virtual interfaces for test servers with ip(8). */
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT_MAX 2048

/* Names of the two ends of link %u: the test's and the server's. */
#define OUR_NAME      "h%u"
#define THEIR_NAME    "v%u"
#define OUR_ADDRESS   "10.77.%u.1"
#define THEIR_ADDRESS "10.77.%u.2"
#define MAC           "02:00:00:00:%02x:%02x"
#define OUR_END       1u
#define THEIR_END     2u
#define NOBODY        0xffu

/* Returns whether ip(8) is installed in one of its usual places. */
static bool have_ip(void)
{
    static const char *const paths[] = {"/sbin/ip", "/usr/sbin/ip", "/bin/ip", "/usr/bin/ip"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (access(paths[i], X_OK) == 0)
            return true;
    return false;
}

/* Returns why namespaces cannot be made here, or NULL if they can. */
const char *network_missing(void)
{
    if (geteuid() != 0)
        return "network namespaces need root";
    if (!have_ip())
        return "ip (iproute2) is not installed";
    const pid_t pid = fork();
    int status = 1;
    if (pid == 0)
        _exit(unshare(CLONE_NEWNET) == 0 ? 0 : 1);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return "this system does not allow network namespaces";
    return NULL;
}

/* Returns a new descriptor of the calling thread's network namespace; -1: error. */
static int here(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* In the child process: enters the namespace and becomes ip(8), which reads its commands from
 * `input`. */
static _Noreturn void become_ip(int namespace, int input)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (setns(namespace, CLONE_NEWNET) != 0 || dup2(input, STDIN_FILENO) < 0)
        _exit(126);
    execl("/bin/sh", "sh", "-c", "PATH=$PATH:/usr/sbin:/sbin exec ip -batch -", (char *)NULL);
    _exit(127);
}

/* Runs lines of ip(8) in a namespace. Returns false if one fails. */
static bool run_ip(int namespace, const char *script)
{
    int ends[2], status = 1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const size_t length = strlen(script);
    const bool written = write(ends[1], script, length) == (ssize_t)length;
    close(ends[1]);
    const pid_t pid = fork();
    if (pid == 0)
        become_ip(namespace, ends[0]);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && written && status == 0;
}

/* Writes the address of the server at the end of that link. */
void network_address(unsigned link, char *ret_text, size_t size)
{
    snprintf(ret_text, size, THEIR_ADDRESS, link);
}

/* Creates a network namespace and stores its descriptor in *ret; the thread stays where it is.
 * Returns false with errno. */
static bool make_namespace(int *ret)
{
    const int before = here();
    if (before < 0 || unshare(CLONE_NEWNET) != 0)
        return false;
    *ret = here();
    const bool back = setns(before, CLONE_NEWNET) == 0;
    close(before);
    return back && *ret >= 0;
}

/* Creates the namespace of server `i` and the link to it, with addresses on both ends. Returns
 * false if a part of that fails. */
static bool make_link(struct network *network, unsigned i)
{
    char script[SCRIPT_MAX];
    if (!make_namespace(&network->link[i]))
        return false;
    network->links = i + 1;
    snprintf(script, sizeof script,
             "link add " OUR_NAME " address " MAC " type veth peer name " THEIR_NAME " address " MAC
             " netns /proc/%d/fd/%d\n"
             "addr add " OUR_ADDRESS "/30 dev " OUR_NAME "\nlink set " OUR_NAME " up\n",
             i, i, OUR_END, i, i, THEIR_END, (int)getpid(), network->link[i], i, i, i);
    if (!run_ip(network->home, script))
        return false;
    snprintf(script, sizeof script,
             "link set lo up\naddr add " THEIR_ADDRESS "/30 dev " THEIR_NAME
             "\nlink set " THEIR_NAME " up\n",
             i, i, i);
    return run_ip(network->link[i], script) && network_set(network, i, NETWORK_WHOLE);
}

/* Moves the calling thread (and all threads and processes that it starts) into a new namespace
 * with `links` links. Returns false with errno. */
bool network_open(struct network *network, unsigned links)
{
    memset(network, 0, sizeof *network);
    network->home = -1;
    network->before = here();
    if (links > NETWORK_LINKS_MAX || unshare(CLONE_NEWNET) != 0)
        return false;
    network->home = here();
    if (network->home < 0 || !run_ip(network->home, "link set lo up\n"))
        return false;
    for (unsigned i = 0; i < links; i++)
        if (!make_link(network, i))
            return false;
    return true;
}

/* Closes the descriptors and moves the calling thread back. */
void network_close(struct network *network)
{
    for (unsigned i = 0; i < network->links; i++)
        close(network->link[i]);
    if (network->before >= 0 && setns(network->before, CLONE_NEWNET) == 0)
        close(network->before);
    if (network->home >= 0)
        close(network->home);
    network->links = 0;
    network->before = network->home = -1;
}

/* Sets which packets of a link are lost; replaces the previous setting. Returns false if ip(8)
 * fails. */
bool network_set(struct network *network, unsigned i, enum network_cut cut)
{
    char there[SCRIPT_MAX], back[SCRIPT_MAX];
    if (i >= network->links)
        return false;
    snprintf(there, sizeof there,
             "neigh replace " THEIR_ADDRESS " lladdr " MAC " dev " OUR_NAME " nud permanent\n", i,
             i, (cut & NETWORK_CUT_THERE) != 0 ? NOBODY : THEIR_END, i);
    snprintf(back, sizeof back,
             "neigh replace " OUR_ADDRESS " lladdr " MAC " dev " THEIR_NAME " nud permanent\n", i,
             i, (cut & NETWORK_CUT_BACK) != 0 ? NOBODY : OUR_END, i);
    return run_ip(network->home, there) && run_ip(network->link[i], back);
}
