/* SPDX-License-Identifier: MIT
 * Makes chosen system calls fail, or do only a part of their work. A program that links
 * call_fail_dep replaces the calls that the library makes. Outside of an injection, and in exempt
 * threads, calls are passed on unchanged. */
#ifndef TEST_CALL_FAIL_H
#define TEST_CALL_FAIL_H

#include <stdbool.h>
#include <stdint.h>

enum call {
    CALL_SOCKET,
    CALL_CONNECT,
    CALL_SEND,
    CALL_RECV,
    CALL_CLOSE,
    CALL_SETSOCKOPT,
    CALL_GETSOCKOPT,
    CALL_EPOLL_CREATE,
    CALL_EPOLL_CTL,
    CALL_EPOLL_WAIT,
    CALL_TIMERFD_CREATE,
    CALL_EVENTFD,
    CALL_READ,
    CALL_FCNTL,
    CALL_MMAP,
    CALL_MADVISE,
    CALL_THREAD,     /* pthread_create() */
    CALL_GETADDRINFO /* returns its error instead of setting errno, as pthread_create() does */
};

/* One way in which a call can fail in real life. */
struct call_fault {
    enum call call;
    int error;     /* an errno; for GETADDRINFO an EAI_*; 0: only a part of the bytes */
    bool lasting;  /* the call may go on failing for ever */
    bool done;     /* the call does its work and fails all the same (close() with EINTR, an
                    * interrupted connect()) */
    bool harmless; /* alone it makes no operation of the library fail */
    const char *name;
};

extern const struct call_fault call_faults[];
extern const unsigned call_faults_count;

/* Starts an injection at call 0: call number k of the fault's kind fails, and with `lasting` all
 * later ones as well. `fault` is borrowed until call_fail_stop(). */
void call_fail_start(const struct call_fault *fault, uint64_t k, bool lasting);
/* Ends the injection. Returns true if a call has failed. */
bool call_fail_stop(void);
/* Returns the number of calls of that kind since the start. */
uint64_t call_fail_seen(void);
/* Exempts the calling thread: while `on`, its calls are neither counted nor failed. Calls nest. */
void call_fail_exempt(bool on);

/* Replaces epoll_wait() by `hook`, which may call the real one through `next`. NULL restores the
 * real one. */
struct epoll_event;
typedef int (*epoll_wait_fn)(int epoll_fd, struct epoll_event *events, int max, int timeout);
typedef int (*epoll_hook_fn)(epoll_wait_fn next, int epoll_fd, struct epoll_event *events, int max,
                             int timeout);
void call_fail_hook_epoll_wait(epoll_hook_fn hook);

#endif
