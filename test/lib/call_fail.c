/* SPDX-License-Identifier: MIT
 * Replaces libc's system calls and forwards to the next definition: libc, or the runtime of a
 * sanitizer. */
#include "call_fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The number of bytes that a call with a partial result sends or receives. */
#define PART_SENT     1
#define PART_RECEIVED 7

const struct call_fault call_faults[] = {
    {CALL_SOCKET, EMFILE, true, false, false, "socket: EMFILE"},
    {CALL_SOCKET, ENOBUFS, true, false, false, "socket: ENOBUFS"},
    {CALL_SOCKET, ENOMEM, false, false, false, "socket: ENOMEM"},
    {CALL_SOCKET, EAFNOSUPPORT, true, false, false, "socket: EAFNOSUPPORT"},
    {CALL_CONNECT, ECONNREFUSED, true, false, false, "connect: ECONNREFUSED"},
    {CALL_CONNECT, ENETUNREACH, true, false, false, "connect: ENETUNREACH"},
    {CALL_CONNECT, EADDRNOTAVAIL, true, false, false, "connect: EADDRNOTAVAIL"},
    {CALL_CONNECT, EAGAIN, false, false, false, "connect: EAGAIN"},
    {CALL_CONNECT, EINTR, true, true, true, "connect: EINTR"},
    {CALL_SEND, EINTR, false, false, true, "send: EINTR"},
    {CALL_SEND, EAGAIN, false, false, true, "send: EAGAIN"},
    {CALL_SEND, 0, true, false, true, "send: a part"},
    {CALL_SEND, ECONNRESET, true, false, false, "send: ECONNRESET"},
    {CALL_SEND, EPIPE, true, false, false, "send: EPIPE"},
    {CALL_SEND, ENOBUFS, true, false, false, "send: ENOBUFS"},
    {CALL_SEND, ETIMEDOUT, false, false, false, "send: ETIMEDOUT"},
    {CALL_RECV, EINTR, false, false, true, "recv: EINTR"},
    {CALL_RECV, EAGAIN, false, false, true, "recv: EAGAIN"},
    {CALL_RECV, 0, true, false, true, "recv: a part"},
    {CALL_RECV, ECONNRESET, true, false, false, "recv: ECONNRESET"},
    {CALL_RECV, ENOMEM, true, false, false, "recv: ENOMEM"},
    {CALL_CLOSE, EINTR, true, true, true, "close: EINTR"},
    {CALL_CLOSE, EIO, true, true, true, "close: EIO"},
    {CALL_SETSOCKOPT, ENOBUFS, true, false, true, "setsockopt: ENOBUFS"},
    {CALL_GETSOCKOPT, ENOBUFS, true, false, false, "getsockopt: ENOBUFS"},
    {CALL_EPOLL_CREATE, EMFILE, true, false, false, "epoll_create1: EMFILE"},
    {CALL_EPOLL_CREATE, ENOMEM, false, false, false, "epoll_create1: ENOMEM"},
    {CALL_EPOLL_CTL, ENOMEM, true, false, false, "epoll_ctl: ENOMEM"},
    {CALL_EPOLL_CTL, ENOSPC, true, false, false, "epoll_ctl: ENOSPC"},
    {CALL_EPOLL_WAIT, EINTR, false, false, true, "epoll_wait: EINTR"},
    {CALL_EPOLL_WAIT, 0, true, false, true, "epoll_wait: one event"},
    {CALL_TIMERFD_CREATE, EMFILE, true, false, false, "timerfd_create: EMFILE"},
    {CALL_TIMERFD_CREATE, ENODEV, false, false, false, "timerfd_create: ENODEV"},
    {CALL_EVENTFD, ENFILE, true, false, false, "eventfd: ENFILE"},
    {CALL_EVENTFD, ENOMEM, false, false, false, "eventfd: ENOMEM"},
    {CALL_READ, EAGAIN, false, false, true, "read: EAGAIN"},
    {CALL_READ, EINTR, false, false, true, "read: EINTR"},
    {CALL_FCNTL, EMFILE, true, false, false, "fcntl: EMFILE"},
    {CALL_MMAP, ENOMEM, true, false, true, "mmap: ENOMEM"},
    {CALL_MADVISE, EINVAL, true, false, true, "madvise: EINVAL"},
    {CALL_THREAD, EAGAIN, true, false, false, "pthread_create: EAGAIN"},
    {CALL_GETADDRINFO, EAI_AGAIN, true, false, false, "getaddrinfo: EAI_AGAIN"},
    {CALL_GETADDRINFO, EAI_MEMORY, false, false, false, "getaddrinfo: EAI_MEMORY"},
    {CALL_GETADDRINFO, EAI_SYSTEM, false, false, false, "getaddrinfo: EAI_SYSTEM"},
};
const unsigned call_faults_count = sizeof call_faults / sizeof call_faults[0];

static _Atomic(const struct call_fault *) present;
static _Atomic uint64_t target, seen;
static _Atomic bool for_ever, hit;
static _Thread_local int exempt_depth;

/* Starts an injection at call 0: call number k of the fault's kind fails, and with `lasting`
 * all later ones as well. `fault` is borrowed until call_fail_stop(). */
void call_fail_start(const struct call_fault *fault, uint64_t k, bool lasting)
{
    atomic_store(&present, NULL);
    atomic_store(&target, k);
    atomic_store(&seen, 0);
    atomic_store(&for_ever, lasting);
    atomic_store(&hit, false);
    atomic_store(&present, fault);
}

/* Ends the injection. Returns true if a call has failed. */
bool call_fail_stop(void)
{
    atomic_store(&present, NULL);
    return atomic_load(&hit);
}

/* Returns the number of calls of that kind since the start. */
uint64_t call_fail_seen(void)
{
    return atomic_load(&seen);
}

/* Exempts the calling thread: while `on`, its calls are neither counted nor failed. Calls nest. */
void call_fail_exempt(bool on)
{
    exempt_depth += on ? 1 : -1;
}

/* Counts a call. Returns the fault that it has to report and sets errno for it; NULL: none. */
static const struct call_fault *fault_of(enum call call)
{
    const struct call_fault *fault = atomic_load(&present);

    if (fault == NULL || fault->call != call || exempt_depth > 0)
        return NULL;
    uint64_t number = atomic_fetch_add(&seen, 1), k = atomic_load(&target);
    if (number < k || (number > k && !atomic_load(&for_ever)))
        return NULL;
    atomic_store(&hit, true);
    errno = fault->error;
    return fault;
}

/* Stores the next definition of the function `name` in *ret_function. Copies the address instead of
 * casting it, because ISO C has no cast from object to function pointer. */
static void find(void *ret_function, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    if (symbol == NULL)
        abort();
    memcpy(ret_function, &symbol, sizeof symbol);
}

#define NEXT(type, name, ...)                                                                      \
    static type (*next)(__VA_ARGS__);                                                              \
    if (next == NULL)                                                                              \
    find(&next, name)

/* The functions from here on replace the calls of the same name. Each returns the error of the
 * fault if fault_of() says that the call has to fail, and otherwise passes the call on.
 * socket() fails without any work. */
int socket(int domain, int type, int protocol)
{
    NEXT(int, "socket", int, int, int);
    return fault_of(CALL_SOCKET) != NULL ? -1 : next(domain, type, protocol);
}

/* The type of an address in the declaration of connect(): in glibc a union of pointers. */
#ifdef __GLIBC__
typedef __CONST_SOCKADDR_ARG address_arg;
#else
typedef const struct sockaddr *address_arg;
#endif

/* Replaces connect(). A fault with `done` connects and reports the error all the same. */
int connect(int fd, address_arg address, socklen_t len)
{
    NEXT(int, "connect", int, address_arg, socklen_t);
    const struct call_fault *fault = fault_of(CALL_CONNECT);
    if (fault == NULL)
        return next(fd, address, len);
    if (fault->done)
        (void)next(fd, address, len);
    errno = fault->error;
    return -1;
}

/* Replaces send(). A fault without an error sends at most PART_SENT bytes. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    NEXT(ssize_t, "send", int, const void *, size_t, int);
    const struct call_fault *fault = fault_of(CALL_SEND);
    if (fault != NULL && fault->error != 0)
        return -1;
    return next(fd, bytes, fault != NULL && len > PART_SENT ? PART_SENT : len, flags);
}

/* Replaces recv(). A fault without an error receives at most PART_RECEIVED bytes. */
ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    NEXT(ssize_t, "recv", int, void *, size_t, int);
    const struct call_fault *fault = fault_of(CALL_RECV);
    if (fault != NULL && fault->error != 0)
        return -1;
    return next(fd, bytes, fault != NULL && len > PART_RECEIVED ? PART_RECEIVED : len, flags);
}

/* Replaces close(). The descriptor is closed even if the call reports an error. */
int close(int fd)
{
    NEXT(int, "close", int);
    const struct call_fault *fault = fault_of(CALL_CLOSE);
    int result = next(fd);
    if (fault == NULL)
        return result;
    errno = fault->error;
    return -1;
}

/* Replaces setsockopt(). A failing call sets nothing. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    NEXT(int, "setsockopt", int, int, int, const void *, socklen_t);
    return fault_of(CALL_SETSOCKOPT) != NULL ? -1 : next(fd, level, name, value, len);
}

/* Replaces getsockopt(). A failing call stores nothing. */
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
    NEXT(int, "getsockopt", int, int, int, void *restrict, socklen_t *restrict);
    return fault_of(CALL_GETSOCKOPT) != NULL ? -1 : next(fd, level, name, value, len);
}

/* Replaces epoll_create1(). A failing call opens no descriptor. */
int epoll_create1(int flags)
{
    NEXT(int, "epoll_create1", int);
    return fault_of(CALL_EPOLL_CREATE) != NULL ? -1 : next(flags);
}

/* Passes EPOLL_CTL_DEL on without counting it, because removing a descriptor needs no memory and
 * does not fail. */
int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
    NEXT(int, "epoll_ctl", int, int, int, struct epoll_event *);
    bool fails = op != EPOLL_CTL_DEL && fault_of(CALL_EPOLL_CTL) != NULL;
    return fails ? -1 : next(epoll_fd, op, fd, event);
}

static _Atomic(epoll_hook_fn) epoll_hook;

/* Replaces epoll_wait() by `hook`. NULL restores the real one. */
void call_fail_hook_epoll_wait(epoll_hook_fn hook)
{
    atomic_store(&epoll_hook, hook);
}

/* Replaces epoll_wait(): calls the hook if there is one. A fault without an error returns at
 * most one event. */
int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout)
{
    NEXT(int, "epoll_wait", int, struct epoll_event *, int, int);
    epoll_hook_fn hook = atomic_load(&epoll_hook);
    if (hook != NULL)
        return hook(next, epoll_fd, events, max, timeout);
    const struct call_fault *fault = fault_of(CALL_EPOLL_WAIT);
    if (fault != NULL && fault->error != 0)
        return -1;
    return next(epoll_fd, events, fault != NULL ? 1 : max, timeout);
}

/* Replaces timerfd_create(). A failing call opens no descriptor. */
int timerfd_create(int clock, int flags)
{
    NEXT(int, "timerfd_create", int, int);
    return fault_of(CALL_TIMERFD_CREATE) != NULL ? -1 : next(clock, flags);
}

/* Replaces eventfd(). A failing call opens no descriptor. */
int eventfd(unsigned count, int flags)
{
    NEXT(int, "eventfd", unsigned, int);
    return fault_of(CALL_EVENTFD) != NULL ? -1 : next(count, flags);
}

/* Replaces read(). A failing call reads nothing. */
ssize_t read(int fd, void *bytes, size_t len)
{
    NEXT(ssize_t, "read", int, void *, size_t);
    return fault_of(CALL_READ) != NULL ? -1 : next(fd, bytes, len);
}

/* Handles an int as the third argument only: the library uses no other kind. */
int fcntl(int fd, int op, ...)
{
    va_list args;

    va_start(args, op);
    void *arg = va_arg(args, void *);
    va_end(args);
    NEXT(int, "fcntl64", int, int, ...);
    return fault_of(CALL_FCNTL) != NULL ? -1 : next(fd, op, arg);
}

/* Replaces mmap(). A failing call returns MAP_FAILED. */
void *mmap(void *address, size_t len, int protection, int flags, int fd, off_t offset)
{
    NEXT(void *, "mmap64", void *, size_t, int, int, int, off_t);
    return fault_of(CALL_MMAP) != NULL ? MAP_FAILED
                                       : next(address, len, protection, flags, fd, offset);
}

/* Replaces madvise(). A failing call changes nothing. */
int madvise(void *address, size_t len, int advice)
{
    NEXT(int, "madvise", void *, size_t, int);
    return fault_of(CALL_MADVISE) != NULL ? -1 : next(address, len, advice);
}

/* Replaces pthread_create(). A failing call returns the error and starts no thread. */
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
                   void *(*run)(void *), void *restrict arg)
{
    NEXT(int, "pthread_create", pthread_t *restrict, const pthread_attr_t *restrict,
         void *(*)(void *), void *restrict);
    const struct call_fault *fault = fault_of(CALL_THREAD);
    return fault != NULL ? fault->error : next(thread, attr, run, arg);
}

/* Replaces getaddrinfo(). A failing call returns the EAI_* error of the fault. */
int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict list)
{
    NEXT(int, "getaddrinfo", const char *restrict, const char *restrict,
         const struct addrinfo *restrict, struct addrinfo **restrict);
    const struct call_fault *fault = fault_of(CALL_GETADDRINFO);
    if (fault == NULL)
        return next(host, service, hints, list);
    errno = ENFILE; /* the error that EAI_SYSTEM refers to */
    return fault->error;
}
