/* SPDX-License-Identifier: MIT
 *
 * redlock.h: the whole public interface of libredlock, a Redlock client for C.
 *
 * A lock is taken by sending `SET key token NX PX ttl` to N independent Redis masters and counting
 * the grants inside a validity window that is shortened by clock drift. What that promises and what
 * it does not is in docs/guarantees.md; how to build it into a program is in docs/embedding.md.
 *
 * For all of it
 *  - Results are 0 (REDLOCK_OK) or a negative enum redlock_error. An int may always be EINVAL (a
 *    handle or pointer is NULL, a value is out of range), ENOMEM or EFORKED. Contracts name what
 *    else is possible, without the prefix REDLOCK_. Calls that reach for nodes may also return
 *    ECLOSED: redlock_shutdown() or redlock_free() has begun.
 *  - Handles are opaque. Structs start with `size`, grow only at their end, and a field of 0 always
 *    means "default". Out-structs are passed with their size: the bytes both sides know are copied,
 *    the rest is zeroed.
 *  - ret_x is written on success only and may not be NULL; ret_report may be NULL and is always
 *    written: a report that the caller frees, or NULL (no memory, or a call out of place).
 *  - redlock_<verb>() asks the nodes; redlock_<object>_<noun>() is local and never blocks.
 *  - Strings are NUL-terminated bytes; what is passed in is copied. Times end in their unit (_ms).
 *  - The free functions take NULL. After fork() every handle of the parent is dead in the child:
 *    calls return EFORKED and send nothing; the free functions release memory and descriptors
 *    without a byte on the wire.
 *  - Everything is here since 0.1.0.
 *
 * Marks: who may call it, from where
 *  [any thread]  In every mode from any thread, also in a callback. Never blocks.
 *  [builder]     Never blocks; one thread at a time for a configuration.
 *  [blocks]      Threaded and hybrid mode, from any thread. In embedded mode EMODE, in a callback
 *                of that client EDEADLK.
 *  [starts]      Never blocks, also in a callback. From any thread; in embedded mode one thread at
 *                a time for a client and all that belongs to it.
 */
#ifndef REDLOCK_REDLOCK_H
#define REDLOCK_REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define REDLOCK_API   __attribute__((visibility("default")))
#define REDLOCK_CHECK __attribute__((visibility("default"), warn_unused_result))
#else
#define REDLOCK_API
#define REDLOCK_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Errors */

#define REDLOCK_ERROR_MAP(XX)                                                                      \
    XX(EINVAL, -1, "invalid argument")                                                             \
    XX(ENOMEM, -2, "out of memory")                                                                \
    XX(ESYS, -3, "operating system call failed")                                                   \
    XX(ECLOSED, -4, "client is shutting down")                                                     \
    XX(ECANCELED, -5, "operation was canceled")                                                    \
    XX(EBUSY, -6, "another operation runs on this lock")                                           \
    XX(EDEADLK, -7, "blocking call in a callback")                                                 \
    XX(EFORKED, -8, "handle is from before fork()")                                                \
    XX(EMODE, -10, "not available in this mode")                                                   \
    XX(ECONTENDED, -20, "held by another client")                                                  \
    XX(ENOQUORUM, -21, "too few nodes answered")                                                   \
    XX(ETOOSLOW, -22, "quorum came too late")                                                      \
    XX(ELOST, -23, "lock is no longer held")                                                       \
    XX(EREFUSED, -24, "too few nodes may vote")                                                    \
    XX(EAUTH, -25, "too many nodes refused the user")                                              \
    XX(EDUPLICATE, -27, "two addresses, one server")

enum redlock_error {
    REDLOCK_OK = 0,
#define XX(name, value, text) REDLOCK_##name = (value),
    REDLOCK_ERROR_MAP(XX)
#undef XX
        REDLOCK_ERROR_LAST_ = -1000 /* keeps the enum signed and 32 bits wide */
};

/* A few words, and the name ("REDLOCK_ELOST"). Static, never NULL, also for unknown numbers.
 * [any thread] */
REDLOCK_API const char *redlock_strerror(int error);
REDLOCK_API const char *redlock_error_name(int error);

/* May the same call succeed later, without a change to arguments or configuration? [any thread] */
REDLOCK_API bool redlock_error_is_retriable(int error);

/* Of the library, not of this header: 0xMMmmpp. [any thread] */
REDLOCK_API uint32_t redlock_version_number(void);

#define REDLOCK_NODES_MAX        31
#define REDLOCK_RESOURCE_LEN_MAX 512
#define REDLOCK_TTL_MS_MIN       10
#define REDLOCK_TTL_MS_MAX       86400000 /* of max_ttl_ms, which bounds a client's TTLs */
#define REDLOCK_WAIT_FOREVER     UINT64_MAX

typedef struct redlock redlock_t;               /* client: nodes, connections, engine */
typedef struct redlock_config redlock_config_t; /* builder; copied by redlock_new() */
typedef struct redlock_lock redlock_lock_t;     /* a lock that was acquired or adopted */
typedef struct redlock_cancel redlock_cancel_t; /* cancels every call that was given it */
typedef struct redlock_report redlock_report_t; /* evidence: what each node said; immutable */

/* Configuration */

enum redlock_mode {
    REDLOCK_MODE_THREADED = 1, /* default: own I/O thread, callbacks run on it */
    REDLOCK_MODE_EMBEDDED = 2, /* no engine thread: poll redlock_get_fd(), call redlock_process() */
    REDLOCK_MODE_HYBRID = 3    /* own I/O thread, callbacks run in redlock_process() */
};
enum redlock_log_level {
    REDLOCK_LOG_ERROR = 1,
    REDLOCK_LOG_WARN = 2,
    REDLOCK_LOG_INFO = 3,
    REDLOCK_LOG_DEBUG = 4
};

/* One line, without a newline, a secret or a token; borrowed for the call. May come from any
 * thread and while the client is locked: it must not call this library and should not wait. */
typedef void (*redlock_log_fn)(int level, const char *message, void *userdata);

/* All three functions are required and may be called from any thread. */
typedef struct redlock_allocator {
    size_t size; /* sizeof(redlock_allocator_t) */
    void *(*malloc_fn)(size_t size, void *userdata);
    void *(*realloc_fn)(void *ptr, size_t size, void *userdata);
    void (*free_fn)(void *ptr, void *userdata);
    void *userdata;
} redlock_allocator_t;

/* A configuration with all defaults and no nodes. allocator: copied; for this configuration and
 * all that is made from it; NULL: libc. [any thread] */
REDLOCK_CHECK int redlock_config_new(redlock_config_t **ret_config,
                                     const redlock_allocator_t *allocator);
/* Clients that were made from it go on. [builder] */
REDLOCK_API void redlock_config_free(redlock_config_t *config);

/* Why a setter or redlock_new() refused last: what, where, what to do; without secrets. Never
 * NULL; borrowed until the next call on `config`. [builder] */
REDLOCK_API const char *redlock_config_error(const redlock_config_t *config);

/* The setters change all of what they are for, or nothing. Beyond EINVAL (the text says why) and
 * ENOMEM there is no error. [builder] */

/* urls: one or several, separated by commas or blanks: redis://[[user]:password@]host[:port][/db],
 * unix://[[user]:password@]/path[?db=n], host, host:port, /path. EINVAL also for a server that is
 * in the list already, and beyond REDLOCK_NODES_MAX. All clients of a lock need the same nodes. */
REDLOCK_CHECK int redlock_config_add_nodes(redlock_config_t *config, const char *urls);
/* For nodes whose URL has no user and password. user NULL or "": the default user; password NULL:
 * no login (then user must be NULL, too). */
REDLOCK_CHECK int redlock_config_set_auth(redlock_config_t *config, const char *user,
                                          const char *password);
REDLOCK_CHECK int redlock_config_set_mode(redlock_config_t *config, int mode);
/* What keys begin with; default "", at most 256 bytes. The same in all clients of a lock. */
REDLOCK_CHECK int redlock_config_set_key_prefix(redlock_config_t *config, const char *prefix);
/* Who we are, for operators: readable in Redis behind our tokens, shown by redlock_inspect(). At
 * most 128 printable ASCII characters without blanks; default "". */
REDLOCK_CHECK int redlock_config_set_owner(redlock_config_t *config, const char *label);
/* The longest TTL that is accepted, REDLOCK_TTL_MS_MIN..REDLOCK_TTL_MS_MAX; default 30000. The
 * same in all clients of these nodes. */
REDLOCK_CHECK int redlock_config_set_max_ttl_ms(redlock_config_t *config, uint64_t max_ttl_ms);
/* For connecting, and again for the greeting: 1..60000; default 250. */
REDLOCK_CHECK int redlock_config_set_connect_timeout_ms(redlock_config_t *config,
                                                        uint32_t timeout_ms);
/* For the answer of a node: 1..60000; default 0: eight smoothed round trips, within 10..250. */
REDLOCK_CHECK int redlock_config_set_node_timeout_ms(redlock_config_t *config, uint32_t timeout_ms);
/* Bounds of the random delay between attempts: 1..60000, min <= max; default 10 and 200. */
REDLOCK_CHECK int redlock_config_set_retry_ms(redlock_config_t *config, uint32_t delay_ms_min,
                                              uint32_t delay_ms_max);
/* By how much clock rates may differ, in parts per million of the TTL (0..500000, default 10000),
 * plus a constant (0..1000000, default 2000). Both come off the validity. */
REDLOCK_CHECK int redlock_config_set_drift(redlock_config_t *config, uint32_t drift_ppm,
                                           uint32_t drift_floor_us);
/* Lines up to level_max (enum redlock_log_level) go to fn; NULL: none, the default. */
REDLOCK_CHECK int redlock_config_set_log(redlock_config_t *config, int level_max, redlock_log_fn fn,
                                         void *userdata);

/* Client */

/* Makes a client and starts to connect; returns before any node has answered. `config` stays the
 * caller's and is copied. EINVAL: no nodes, or drift eats up max_ttl_ms; ESYS: no descriptors or
 * no thread. The reason is in redlock_config_error(config). The client is freed by redlock_free().
 * [builder] */
REDLOCK_CHECK int redlock_new(redlock_t **ret_rl, redlock_config_t *config);

/* Waits until a majority of nodes is connected and may vote; not needed before other calls.
 * wait_ms: REDLOCK_WAIT_FOREVER is possible. When it is over: ENOQUORUM, EAUTH or EREFUSED, as
 * most nodes say; at once: EDUPLICATE (two addresses are one server), ECLOSED. [blocks] */
REDLOCK_CHECK int redlock_wait_ready(redlock_t *rl, uint64_t wait_ms);

/* Ends what waits (ECLOSED), releases what is held, and sends the deletes that are still owed;
 * nothing new can be started. ENOQUORUM: not all of it was done in budget_ms; nodes that are known
 * to be down are not waited for. Free the client afterwards. [blocks] */
REDLOCK_API int redlock_shutdown(redlock_t *rl, uint64_t budget_ms);

/* Ends what waits (ECLOSED), sends what can be sent without waiting, closes, and runs the
 * callbacks that are due, on the calling thread. Locks, reports and cancels may be freed later.
 * EDEADLK in a callback: nothing happened. No other thread may be in a call on the client or begin
 * one. */
REDLOCK_API int redlock_free(redlock_t *rl);

/* Embedded and hybrid mode: the descriptor to poll for reading; the same for the client's life;
 * not to be read from or closed. EMODE in threaded mode. [any thread] */
REDLOCK_API int redlock_get_fd(redlock_t *rl);

/* Embedded and hybrid mode: does what is due and runs callbacks; to be called when the descriptor
 * is readable, harmless otherwise. Never blocks, but the callbacks take their time. EMODE in
 * threaded mode, EDEADLK in a callback. One thread at a time. */
REDLOCK_API int redlock_process(redlock_t *rl);

/* Reports */

enum redlock_vote {
    REDLOCK_VOTE_NONE = 0,      /* not asked, or not answered when the round was decided */
    REDLOCK_VOTE_GRANTED = 1,   /* set, extended, deleted, or (inspect) a key is there */
    REDLOCK_VOTE_DENIED = 2,    /* another holder, ours is gone, or (inspect) no key is there */
    REDLOCK_VOTE_UNCOUNTED = 3, /* granted, but may not be counted: see cause */
    REDLOCK_VOTE_FAILED = 4     /* no valid answer: see cause */
};
/* Numbers never change; new ones are appended. */
enum redlock_cause {
    REDLOCK_CAUSE_NONE = 0,
    REDLOCK_CAUSE_TIMEOUT = 1,
    REDLOCK_CAUSE_RESOLVE = 2,
    REDLOCK_CAUSE_CONNECT = 3,
    REDLOCK_CAUSE_DISCONNECT = 4,
    REDLOCK_CAUSE_PROTOCOL = 5,
    REDLOCK_CAUSE_AUTH = 6,
    REDLOCK_CAUSE_NOPERM = 7,
    REDLOCK_CAUSE_READONLY = 8,
    REDLOCK_CAUSE_OOM = 9,
    REDLOCK_CAUSE_BUSY = 10,
    REDLOCK_CAUSE_WRONGTYPE = 11,
    REDLOCK_CAUSE_ERROR_REPLY = 12, /* any other error reply: see text */
    REDLOCK_CAUSE_REPLICA = 14,
    REDLOCK_CAUSE_LOADING = 15,
    REDLOCK_CAUSE_DUPLICATE = 18,
    REDLOCK_CAUSE_NO_MEMORY = 22,
    REDLOCK_CAUSE_CLUSTER = 23,
    REDLOCK_CAUSE_HEALED = 24 /* put back, counts after a round without it */
};
enum redlock_state { REDLOCK_STATE_UNKNOWN = 0, REDLOCK_STATE_FREE = 1, REDLOCK_STATE_HELD = 2 };

typedef struct redlock_report_info {
    int32_t status, state;           /* result; of an inspection: enum redlock_state */
    uint32_t nodes, quorum, granted; /* configured nodes, votes needed, votes counted */
    uint32_t attempts, rounds;       /* attempts in all, rounds of the last one */
    uint64_t waited_us, elapsed_us;  /* since the call; of the last attempt */
    uint64_t validity_ms;            /* left when this was written, 0 if none */
} redlock_report_info_t;

typedef struct redlock_node_report {
    const char *node;    /* address, no secrets; all strings here are the report's */
    int32_t vote, cause; /* enum redlock_vote, enum redlock_cause */
    uint64_t rtt_us;     /* 0: no answer */
    uint64_t pttl_ms;    /* inspect: until the key expires; UINT64_MAX: not known or never */
    const char *owner;   /* inspect: holder's label, or "" */
    const char *text;    /* for people: "connection refused", "held, expires in 9120 ms" */
} redlock_node_report_t;

/* A report belongs to who received it and never changes; it may be read after redlock_free().
 * `size` is the size of the struct that is filled. EINVAL: index past the last node, or a report
 * of refused arguments, which has no nodes. [any thread] */
REDLOCK_API int redlock_report_get_info(const redlock_report_t *report,
                                        redlock_report_info_t *ret_info, size_t size);
REDLOCK_API int redlock_report_get_node(const redlock_report_t *report, size_t index,
                                        redlock_node_report_t *ret_node, size_t size);
/* One line: what came out, and what stood in the way; of refused arguments what to do. "" for
 * NULL; borrowed until the report ends. [any thread] */
REDLOCK_API const char *redlock_report_text(const redlock_report_t *report);
/* Reports that a callback was given are not freed. [any thread] */
REDLOCK_API void redlock_report_free(redlock_report_t *report);

/* Events: of a lock (opts.event_fn) and of a client with all its locks */

enum redlock_event_kind {
    REDLOCK_EVENT_ACQUIRED = 1,
    REDLOCK_EVENT_EXTENDED = 2,
    REDLOCK_EVENT_EXTEND_FAILED = 3, /* a round failed (status says why); automatic: again */
    REDLOCK_EVENT_RELEASED = 4,
    REDLOCK_EVENT_ENDANGERED = 5, /* margin_ms before the deadline: stop starting new work */
    REDLOCK_EVENT_LOST = 6,       /* at the deadline at the latest; once, not after a release */
    REDLOCK_EVENT_WAITING = 7,    /* an attempt failed (status says why), the next one follows */
    REDLOCK_EVENT_NODE_UP = 8,
    REDLOCK_EVENT_NODE_DOWN = 9,
    REDLOCK_EVENT_NODE_REFUSED = 10 /* answers, but may not vote */
};
typedef struct redlock_event {
    size_t size;
    int32_t kind, status;           /* enum redlock_event_kind, error code */
    redlock_lock_t *lock;           /* NULL if there is none (yet), or its handle was freed */
    const char *resource, *node;    /* of a lock, of a node; else NULL */
    const redlock_report_t *report; /* of a lock; else NULL */
    uint64_t remaining_ms;
} redlock_event_t;

/* Runs where callbacks run (enum redlock_mode); all that it is given is borrowed for the call. It
 * may start, cancel and free; it should not wait: other callbacks wait for it. */
typedef void (*redlock_event_fn)(redlock_t *rl, const redlock_event_t *event, void *userdata);
/* All events of the client go to fn, after a lock's own function; NULL: to nobody. [builder] */
REDLOCK_CHECK int redlock_config_set_event(redlock_config_t *config, redlock_event_fn fn,
                                           void *userdata);

/* Options of one acquisition */

enum redlock_flags { REDLOCK_AUTO_EXTEND = 1u << 0 };

typedef struct redlock_opts {
    size_t size;               /* set by redlock_opts() */
    uint64_t ttl_ms;           /* required: REDLOCK_TTL_MS_MIN..max_ttl_ms of the client */
    uint64_t wait_ms;          /* 0: one attempt. When over: the last attempt's cause */
    uint64_t validity_ms_min;  /* grants with less left are given back; 0: 1 ms */
    uint32_t flags;            /* enum redlock_flags; an unknown bit is EINVAL */
    uint32_t extends_max;      /* automatic extensions; 0: no limit */
    uint64_t extend_at_ms;     /* auto-extension starts with so much left; 0: two thirds */
    uint64_t hold_ms_max;      /* lost at this age; 0: no limit */
    uint64_t margin_ms;        /* ENDANGERED this long before the deadline; 0: a tenth of the TTL */
    redlock_cancel_t *cancel;  /* may be NULL; referenced until the operation ends */
    redlock_event_fn event_fn; /* events of this lock; may be NULL */
    void *event_userdata;
} redlock_opts_t;

/* The defaults with a TTL; the caller sets what is to differ. [any thread] */
static inline redlock_opts_t redlock_opts(uint64_t ttl_ms)
{
    redlock_opts_t opts;
    memset(&opts, 0, sizeof opts);
    opts.size = sizeof opts;
    opts.ttl_ms = ttl_ms;
    return opts;
}

/* A switch for calls of `rl` (opts.cancel and the `cancel` of the starting calls). [starts] */
REDLOCK_CHECK int redlock_cancel_new(redlock_cancel_t **ret_cancel, redlock_t *rl);
/* Ends all calls that were given it with ECANCELED, and those that will be; for good. NULL: no-op.
 * Also in signal handlers. What an attempt has set is taken back. [any thread] */
REDLOCK_API void redlock_cancel_trigger(redlock_cancel_t *cancel);
/* Cancels nothing; allowed after redlock_free(). [any thread] */
REDLOCK_API void redlock_cancel_free(redlock_cancel_t *cancel);

/* Blocking calls */

/* Takes the lock on `resource` (1..REDLOCK_RESOURCE_LEN_MAX bytes). Returns at the decision of a
 * majority; without one tries again, with random delays, until opts.wait_ms is over. On success
 * the caller owns *ret_lock: redlock_release(), then redlock_lock_free(). On failure nothing is
 * held, and what was set is deleted in the background. ECONTENDED: held by another client.
 * ENOQUORUM: too few answered. ETOOSLOW: less than opts.validity_ms_min was left. EREFUSED: too
 * many replicas or loading nodes. At once, without waiting: EINVAL (the report says why), EAUTH:
 * too many refused the user; EDUPLICATE: two addresses are one server; ECANCELED. [blocks] */
REDLOCK_CHECK int redlock_acquire(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                                  redlock_lock_t **ret_lock, redlock_report_t **ret_report);

/* Gives the lock a new deadline; never an earlier one. ttl_ms: REDLOCK_TTL_MS_MIN..max_ttl_ms; 0:
 * that of the acquisition. ELOST: it is not ours any more. EBUSY: another call runs on it.
 * ENOQUORUM, EREFUSED, EAUTH: too few votes; the old deadline stands. [blocks] */
REDLOCK_CHECK int redlock_extend(redlock_lock_t *lock, uint64_t ttl_ms,
                                 redlock_report_t **ret_report);

/* Ends extensions, deletes the key everywhere. Returns when a majority is known not to have it; the
 * rest is done in the background. From then on the lock is not held, whatever the nodes say; the
 * handle is still to be freed. ELOST: it was not ours any more. ENOQUORUM, EREFUSED, EAUTH: too few
 * confirmed; it is repeated on nodes that come back. EBUSY: another call runs on it; nothing
 * happened. [blocks] */
REDLOCK_API int redlock_release(redlock_lock_t *lock, redlock_report_t **ret_report);
/* The same, but the key stays for delay_ms (0..max_ttl_ms), held by nobody. [blocks] */
REDLOCK_API int redlock_release_after(redlock_lock_t *lock, uint64_t delay_ms,
                                      redlock_report_t **ret_report);

/* Takes over a lock that somebody else acquired, by its token (at most 1024 bytes): an extension
 * with opts.ttl_ms, repeated within opts.wait_ms. Held from the success on. ELOST: not held with
 * this token; else as redlock_acquire(). [blocks] */
REDLOCK_CHECK int redlock_adopt(redlock_t *rl, const char *resource, const char *token,
                                const redlock_opts_t *opts, redlock_lock_t **ret_lock,
                                redlock_report_t **ret_report);
/* Lets go of the lock without releasing it: no more extensions, the deadline is now, freeing the
 * handle deletes nothing. For giving the token away. ELOST, EBUSY. [starts] */
REDLOCK_CHECK int redlock_lock_detach(redlock_lock_t *lock);
/* Releases by token what is not held here. ELOST, ENOQUORUM, ... as redlock_release(). [blocks] */
REDLOCK_API int redlock_release_token(redlock_t *rl, const char *resource, const char *token,
                                      redlock_report_t **ret_report);

/* Who holds it? The answer is in the report (state, and for each node owner and time left); it may
 * be old when it is read. OK: a majority answered; else ENOQUORUM, EREFUSED, EAUTH. [blocks] */
REDLOCK_API int redlock_inspect(redlock_t *rl, const char *resource, redlock_report_t **ret_report);
/* Takes the lock away from its holder: looks, and deletes what it saw, not what came after. The
 * holder learns of it with its next extension. OK: a majority is clean; else ENOQUORUM, EREFUSED,
 * EAUTH. [blocks] */
REDLOCK_API int redlock_break(redlock_t *rl, const char *resource, redlock_report_t **ret_report);

/* Acquires, calls body(lock, userdata) on this thread, releases whatever it returned. *ret_body
 * (may be NULL): what body returned; not written if it was not called. Returns the error of the
 * acquisition (body was not called) or of the release, and its report. The handle is borrowed.
 * [blocks] */
typedef int (*redlock_body_fn)(redlock_lock_t *lock, void *userdata);
REDLOCK_CHECK int redlock_with(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                               int *ret_body, redlock_report_t **ret_report, redlock_body_fn body,
                               void *userdata);

/* The same without blocking. If 0 is returned, fn runs exactly once, where callbacks run, never
 * inside the starting call, with the status that the blocking call would return. Else it does not
 * run. cancel may be NULL. [starts] */

/* lock: acquire, adopt: yours to free; extend, release: the one it was about; else NULL. report:
 * borrowed for the call; NULL for wait_ready and shutdown. */
typedef void (*redlock_done_fn)(redlock_t *rl, int status, redlock_lock_t *lock,
                                const redlock_report_t *report, void *userdata);
REDLOCK_CHECK int redlock_acquire_start(redlock_t *rl, const char *resource,
                                        const redlock_opts_t *opts, redlock_done_fn fn,
                                        void *userdata);
REDLOCK_CHECK int redlock_extend_start(redlock_lock_t *lock, uint64_t ttl_ms, redlock_done_fn fn,
                                       void *userdata);
REDLOCK_CHECK int redlock_release_start(redlock_lock_t *lock, redlock_done_fn fn,
                                        void *userdata); /* fn may be NULL for releases */
REDLOCK_CHECK int redlock_release_after_start(redlock_lock_t *lock, uint64_t delay_ms,
                                              redlock_done_fn fn, void *userdata);
REDLOCK_CHECK int redlock_adopt_start(redlock_t *rl, const char *resource, const char *token,
                                      const redlock_opts_t *opts, redlock_done_fn fn,
                                      void *userdata);
REDLOCK_CHECK int redlock_release_token_start(redlock_t *rl, const char *resource,
                                              const char *token, redlock_cancel_t *cancel,
                                              redlock_done_fn fn, void *userdata);
REDLOCK_CHECK int redlock_inspect_start(redlock_t *rl, const char *resource,
                                        redlock_cancel_t *cancel, redlock_done_fn fn,
                                        void *userdata);
REDLOCK_CHECK int redlock_break_start(redlock_t *rl, const char *resource, redlock_cancel_t *cancel,
                                      redlock_done_fn fn, void *userdata);
REDLOCK_CHECK int redlock_wait_ready_start(redlock_t *rl, uint64_t wait_ms,
                                           redlock_cancel_t *cancel, redlock_done_fn fn,
                                           void *userdata);
REDLOCK_CHECK int redlock_shutdown_start(redlock_t *rl, uint64_t budget_ms, redlock_done_fn fn,
                                         void *userdata);

/* The held lock: local, no I/O */

/* Is it still ours for at least margin_ms? Looks at the clocks itself; no thread or loop has to
 * run. To be asked right before each effect that must not happen twice. ELOST: less is left, lost,
 * released, or detached. [any thread] */
REDLOCK_CHECK int redlock_lock_check(const redlock_lock_t *lock, uint64_t margin_ms);
/* Time until the deadline, rounded down; 0 when it is not held. [any thread] */
REDLOCK_API uint64_t redlock_lock_remaining_ms(const redlock_lock_t *lock);
/* A descriptor that is readable once the lock is lost, or released by redlock_shutdown() or
 * redlock_free() (not: by its holder); made on first use, closed
 * with the handle; to be polled only. ESYS: no descriptor to be had. [any thread] */
REDLOCK_API int redlock_lock_fd(redlock_lock_t *lock);
/* Its name, and its token: the right to release it, not a fence. Borrowed until the handle is
 * freed; NULL for NULL. [any thread] */
REDLOCK_API const char *redlock_lock_resource(const redlock_lock_t *lock);
REDLOCK_API const char *redlock_lock_token(const redlock_lock_t *lock);
/* Frees the handle; a lock that is still held is released in the background. No events of it
 * follow, but one that another thread is just being told may still be running: free what its
 * userdata points to in the callbacks' own thread, or later. Allowed after redlock_free(). [starts]
 */
REDLOCK_API void redlock_lock_free(redlock_lock_t *lock);

/* Statistics: numbers since redlock_new(); gauges marked */

typedef struct redlock_stats {
    uint64_t acquired, contended, no_quorum, too_slow, refused, canceled;
    uint64_t attempts, split_votes, extended, extend_failed, lost, released, release_failed, undone;
    uint64_t held, waiting;    /* gauges */
    uint64_t wait_us_hist[32]; /* log2 buckets: i counts [2^i, 2^(i+1)) us */
} redlock_stats_t;

typedef struct redlock_node_stats {
    const char *node;        /* borrowed: until redlock_free() */
    int32_t may_vote, cause; /* gauges: 1 or 0; enum redlock_cause: why not */
    uint64_t requests, granted, denied, errors, timeouts, replies_late, reconnects;
    uint64_t rtt_us_hist[32]; /* log2 buckets */
    uint64_t rtt_us;          /* gauge: smoothed round trip; 0: not measured */
    uint64_t uptime_s;        /* gauge: of the server when we connected */
    uint64_t undos_pending;   /* gauge: compare-and-deletes that wait for this node */
    uint32_t features;        /* gauge: bit 0 DELEX, 1 DELIFEQ, 2 SET IFEQ */
    char version[32];         /* gauge: "redis 7.0.15", "valkey 8.1.1"; "" if not known */
    char role[16];            /* gauge: "master", "slave"; "" if not known */
    char run_id[48];          /* gauge: "" if not known */
    char text[160];           /* gauge: for people: why it does not vote; "" if it does */
} redlock_node_stats_t;

/* Copies of this moment; `size` is the size of the struct. index: the order in which nodes were
 * added, up to redlock_node_count() - 1. [any thread] */
REDLOCK_API int redlock_get_stats(redlock_t *rl, redlock_stats_t *ret_stats, size_t size);
REDLOCK_API size_t redlock_node_count(const redlock_t *rl);
REDLOCK_API int redlock_get_node_stats(redlock_t *rl, size_t index, redlock_node_stats_t *ret_stats,
                                       size_t size);

#ifdef __cplusplus
}
#endif
#endif
