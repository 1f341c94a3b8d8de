/* SPDX-License-Identifier: MIT
 *
 * redlock.h: the whole public interface of libredlock, a Redlock client for C.
 *
 * A lock is taken by sending `SET key token NX PX ttl` to N independent Redis masters and counting
 * the grants inside a validity window that is shortened by clock drift. What that promises and what
 * it does not is in docs/guarantees.md.
 *
 * Conventions
 *  - Results are 0 (REDLOCK_OK) or a negative enum redlock_error.
 *  - Handles are opaque. Structs start with `size`, grow only at their end, and a field of 0 always
 * means "default". Out-structs are passed with their size: the bytes both sides know are copied,
 * the rest is zeroed.
 *  - ret_x is written on success only; ret_report, where given, is always written: a report, or
 * NULL.
 *  - redlock_<verb>() asks the nodes; redlock_<object>_<noun>() is local and never blocks.
 *  - Strings are NUL-terminated bytes. Times end in their unit: _ms, _us.
 *  - Threads: in threaded and hybrid mode every function may be called from any thread. In embedded
 * mode the caller uses a client and its locks from one thread at a time, except for the functions
 * marked [any thread].
 *  - After fork() every handle of the parent is dead in the child: calls return REDLOCK_EFORKED and
 * send nothing; the free functions release memory and descriptors without a byte on the wire.
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

/* ---- errors ---- */

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

REDLOCK_API const char *redlock_strerror(int error); /* [any thread] never NULL, static */
REDLOCK_API const char *redlock_error_name(
    int error); /* [any thread] "REDLOCK_ELOST"; never NULL, static */
REDLOCK_API bool redlock_error_is_retriable(
    int error); /* [any thread] may the same call succeed later? */
REDLOCK_API uint32_t
redlock_version_number(void); /* [any thread] of the library, not of this header: 0xMMmmpp */

#define REDLOCK_NODES_MAX        31
#define REDLOCK_RESOURCE_LEN_MAX 512
#define REDLOCK_TTL_MS_MIN       10
#define REDLOCK_TTL_MS_MAX                                                                         \
    86400000 /* upper bound of max_ttl_ms; what a client accepts is its max_ttl_ms */
#define REDLOCK_WAIT_FOREVER UINT64_MAX

typedef struct redlock redlock_t;               /* client: nodes, connections, engine */
typedef struct redlock_config redlock_config_t; /* builder; copied by redlock_new() */
typedef struct redlock_lock redlock_lock_t;     /* a lock that was acquired or adopted */
typedef struct redlock_cancel redlock_cancel_t; /* cancels every call that was given it */
typedef struct redlock_report redlock_report_t; /* evidence: what each node said; immutable */

/* ---- configuration ---- */

enum redlock_mode {
    REDLOCK_MODE_THREADED =
        1, /* default: own I/O thread, callbacks run on it, any thread may block */
    REDLOCK_MODE_EMBEDDED =
        2, /* no engine thread: poll redlock_get_fd(), call redlock_process(); nothing blocks */
    REDLOCK_MODE_HYBRID =
        3 /* own I/O thread renews though your loop stalls; callbacks run in redlock_process() */
};
enum redlock_log_level {
    REDLOCK_LOG_ERROR = 1,
    REDLOCK_LOG_WARN = 2,
    REDLOCK_LOG_INFO = 3,
    REDLOCK_LOG_DEBUG = 4
};
typedef void (*redlock_log_fn)(int level, const char *message, void *userdata);

typedef struct redlock_allocator {
    size_t size;
    void *(*malloc_fn)(size_t size, void *userdata);
    void *(*realloc_fn)(void *ptr, size_t size, void *userdata);
    void (*free_fn)(void *ptr, void *userdata);
    void *userdata;
} redlock_allocator_t;

REDLOCK_CHECK int redlock_config_new(redlock_config_t **ret_config,
                                     const redlock_allocator_t *allocator); /* NULL: libc */
REDLOCK_API void redlock_config_free(redlock_config_t *config);
REDLOCK_API const char *redlock_config_error(
    const redlock_config_t *config); /* last refusal: what, where, what to do */
REDLOCK_CHECK int redlock_config_add_nodes(redlock_config_t *config,
                                           const char *urls); /* one or a list; all or none */
REDLOCK_CHECK int redlock_config_set_auth(redlock_config_t *config, const char *user,
                                          const char *password);
REDLOCK_CHECK int redlock_config_set_mode(redlock_config_t *config, int mode);
REDLOCK_CHECK int redlock_config_set_key_prefix(redlock_config_t *config,
                                                const char *prefix); /* default "" */
REDLOCK_CHECK int redlock_config_set_owner(redlock_config_t *config,
                                           const char *label); /* shown to operators */
REDLOCK_CHECK int redlock_config_set_max_ttl_ms(redlock_config_t *config,
                                                uint64_t max_ttl_ms); /* default 30 s */
REDLOCK_CHECK int redlock_config_set_connect_timeout_ms(redlock_config_t *config,
                                                        uint32_t timeout_ms); /* default 250 */
REDLOCK_CHECK int redlock_config_set_node_timeout_ms(redlock_config_t *config,
                                                     uint32_t timeout_ms); /* 0: measured */
REDLOCK_CHECK int redlock_config_set_retry_ms(redlock_config_t *config, uint32_t delay_ms_min,
                                              uint32_t delay_ms_max);
REDLOCK_CHECK int redlock_config_set_drift(redlock_config_t *config, uint32_t drift_ppm,
                                           uint32_t drift_floor_us);
REDLOCK_CHECK int redlock_config_set_log(redlock_config_t *config, int level_max, redlock_log_fn fn,
                                         void *userdata);

/* ---- client ---- */

REDLOCK_CHECK int redlock_new(redlock_t **ret_rl,
                              redlock_config_t *config); /* refusal text: redlock_config_error() */
REDLOCK_CHECK int redlock_wait_ready(redlock_t *rl,
                                     uint64_t wait_ms); /* blocks until a quorum may vote */
REDLOCK_API int redlock_shutdown(
    redlock_t *rl, uint64_t budget_ms); /* release all, flush undos; embedded: use _start */
REDLOCK_API int redlock_free(
    redlock_t *rl); /* cancels, no network wait, callbacks done on return; locks outlive it */
REDLOCK_API int redlock_get_fd(
    redlock_t *rl); /* embedded, hybrid: poll for POLLIN; stable for life; else EMODE */
REDLOCK_API int redlock_process(
    redlock_t *rl); /* embedded, hybrid: does what is due, runs callbacks, never blocks */

/* ---- reports ---- */

enum redlock_vote {
    REDLOCK_VOTE_NONE = 0,    /* not asked, or not answered when the round was decided */
    REDLOCK_VOTE_GRANTED = 1, /* set, extended, deleted, or (inspect) a key is there */
    REDLOCK_VOTE_DENIED =
        2, /* another holder is there, or ours is gone, or (inspect) no key is there */
    REDLOCK_VOTE_UNCOUNTED = 3, /* granted, but may not be counted: see cause */
    REDLOCK_VOTE_FAILED = 4     /* no valid answer: see cause */
};
enum redlock_cause { /* numbers never change; new ones are appended */
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
                     REDLOCK_CAUSE_HEALED =
                         24 /* key was put back, counts after a round that succeeded without it */
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
    const char *node;    /* name or address, no secrets; borrowed like all strings here: until the
                            report is freed */
    int32_t vote, cause; /* enum redlock_vote, enum redlock_cause */
    uint64_t rtt_us;     /* 0: no answer */
    uint64_t
        pttl_ms; /* inspect: time until the holder's key expires; UINT64_MAX: not known or never */
    const char *owner; /* inspect: holder's label, or "" */
    const char
        *text; /* for people: "connection refused", "held by another client, expires in 9120 ms" */
} redlock_node_report_t;

REDLOCK_API int redlock_report_get_info(const redlock_report_t *report,
                                        redlock_report_info_t *ret_info, size_t size);
REDLOCK_API int redlock_report_get_node(const redlock_report_t *report, size_t index,
                                        redlock_node_report_t *ret_node,
                                        size_t size); /* EINVAL: index past the last node */
REDLOCK_API const char *redlock_report_text(
    const redlock_report_t *report); /* one line; also for refused arguments */
REDLOCK_API void redlock_report_free(
    redlock_report_t *report); /* NULL: no-op; works after redlock_free() */

/* ---- events: per client and per lock ---- */

enum redlock_event_kind {
    REDLOCK_EVENT_ACQUIRED = 1,
    REDLOCK_EVENT_EXTENDED = 2,
    REDLOCK_EVENT_EXTEND_FAILED = 3,
    REDLOCK_EVENT_RELEASED = 4,
    REDLOCK_EVENT_ENDANGERED = 5, /* margin_ms before the deadline: stop starting new work */
    REDLOCK_EVENT_LOST =
        6, /* at the deadline at the latest; exactly once, never after a release began */
    REDLOCK_EVENT_WAITING = 7, /* an attempt failed, the next one follows (status says why) */
    REDLOCK_EVENT_NODE_UP = 8,
    REDLOCK_EVENT_NODE_DOWN = 9,
    REDLOCK_EVENT_NODE_REFUSED = 10
};
typedef struct redlock_event {
    size_t size;
    int32_t kind, status;           /* enum redlock_event_kind, error code */
    redlock_lock_t *lock;           /* NULL if the event has none */
    const char *resource, *node;    /* NULL if the event has none */
    const redlock_report_t *report; /* borrowed for the call; may be NULL */
    uint64_t remaining_ms;
} redlock_event_t;
typedef void (*redlock_event_fn)(redlock_t *rl, const redlock_event_t *event, void *userdata);
REDLOCK_CHECK int redlock_config_set_event(redlock_config_t *config, redlock_event_fn fn,
                                           void *userdata); /* all events */

/* ---- options of one acquisition ---- */

enum redlock_flags { REDLOCK_AUTO_EXTEND = 1u << 0 };

typedef struct redlock_opts {
    size_t size;     /* set by redlock_opts() */
    uint64_t ttl_ms; /* required: REDLOCK_TTL_MS_MIN..max_ttl_ms of the client */
    uint64_t
        wait_ms; /* 0: one attempt; then the last attempt's cause is returned, never "timed out" */
    uint64_t validity_ms_min; /* grants with less left are given back; 0: 1 ms */
    uint32_t flags;           /* enum redlock_flags; an unknown bit is EINVAL */
    uint32_t extends_max;     /* automatic extensions; 0: no limit */
    uint64_t
        extend_at_ms; /* auto-extension starts with this much validity left; 0: two thirds of it */
    uint64_t hold_ms_max;      /* lost at this age; 0: no limit */
    uint64_t margin_ms;        /* ENDANGERED this long before the deadline; 0: a tenth of the TTL */
    redlock_cancel_t *cancel;  /* may be NULL; referenced until the operation ends */
    redlock_event_fn event_fn; /* events of this lock; may be NULL */
    void *event_userdata;
} redlock_opts_t;

static inline redlock_opts_t redlock_opts(uint64_t ttl_ms)
{
    redlock_opts_t opts;
    memset(&opts, 0, sizeof opts);
    opts.size = sizeof opts;
    opts.ttl_ms = ttl_ms;
    return opts;
}

REDLOCK_CHECK int redlock_cancel_new(redlock_cancel_t **ret_cancel, redlock_t *rl);
REDLOCK_API void redlock_cancel_trigger(
    redlock_cancel_t *cancel); /* [any thread] async-signal-safe */
REDLOCK_API void redlock_cancel_free(
    redlock_cancel_t *cancel); /* cancels nothing; allowed after redlock_free() */

/* ---- blocking calls (threaded, hybrid; EMODE in embedded, EDEADLK in a callback); ret_report may
 * be NULL --------- */

REDLOCK_CHECK int redlock_acquire(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                                  redlock_lock_t **ret_lock, redlock_report_t **ret_report);
REDLOCK_CHECK int redlock_extend(redlock_lock_t *lock, uint64_t ttl_ms,
                                 redlock_report_t **ret_report); /* never shortens */
REDLOCK_API int redlock_release(redlock_lock_t *lock,
                                redlock_report_t **ret_report); /* ELOST: was not ours any more */
REDLOCK_API int redlock_release_after(redlock_lock_t *lock, uint64_t delay_ms,
                                      redlock_report_t **ret_report);
REDLOCK_CHECK int redlock_adopt(redlock_t *rl, const char *resource, const char *token,
                                const redlock_opts_t *opts, redlock_lock_t **ret_lock,
                                redlock_report_t **ret_report);
REDLOCK_CHECK int redlock_lock_detach(
    redlock_lock_t *lock); /* stops extending, deadline is now: give the token away */
REDLOCK_API int redlock_release_token(redlock_t *rl, const char *resource, const char *token,
                                      redlock_report_t **ret_report);
REDLOCK_API int redlock_inspect(redlock_t *rl, const char *resource,
                                redlock_report_t **ret_report); /* answer in report */
REDLOCK_API int redlock_break(redlock_t *rl, const char *resource,
                              redlock_report_t **ret_report); /* deletes what it saw */

typedef int (*redlock_body_fn)(redlock_lock_t *lock, void *userdata);
REDLOCK_CHECK int redlock_with(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                               int *ret_body, redlock_report_t **ret_report, redlock_body_fn body,
                               void *userdata); /* always released */

/* ---- the same without blocking (all modes): fn runs exactly once if 0 was returned, never inside
 * the starting call */

typedef void (*redlock_done_fn)(redlock_t *rl, int status,
                                redlock_lock_t *lock, /* acquire, adopt: yours; else borrowed */
                                const redlock_report_t *report,
                                void *userdata); /* report: borrowed for the call */
REDLOCK_CHECK int redlock_acquire_start(redlock_t *rl, const char *resource,
                                        const redlock_opts_t *opts, redlock_done_fn fn,
                                        void *userdata);
REDLOCK_CHECK int redlock_extend_start(redlock_lock_t *lock, uint64_t ttl_ms, redlock_done_fn fn,
                                       void *userdata);
REDLOCK_CHECK int redlock_release_start(redlock_lock_t *lock, redlock_done_fn fn,
                                        void *userdata); /* fn NULL: forget it */
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

/* ---- the held lock: local, no I/O, [any thread] in every mode ---- */

REDLOCK_CHECK int redlock_lock_check(const redlock_lock_t *lock,
                                     uint64_t margin_ms); /* ELOST: less than margin_ms left */
REDLOCK_API uint64_t redlock_lock_remaining_ms(const redlock_lock_t *lock);
REDLOCK_API int redlock_lock_fd(
    redlock_lock_t *lock); /* made on first use; readable once lost; poll only, never close */
REDLOCK_API const char *redlock_lock_resource(const redlock_lock_t *lock);
REDLOCK_API const char *redlock_lock_token(
    const redlock_lock_t *lock); /* the right to release; not a fence */
REDLOCK_API void redlock_lock_free(
    redlock_lock_t *lock); /* NULL: no-op; still held: starts a release */

/* ---- statistics (numbers since redlock_new; gauges marked) ---- */

typedef struct redlock_stats {
    uint64_t acquired, contended, no_quorum, too_slow, refused, canceled;
    uint64_t attempts, split_votes, extended, extend_failed, lost, released, release_failed, undone;
    uint64_t held, waiting,
        wait_us_hist[32]; /* gauge, gauge, log2 buckets: i counts [2^i, 2^(i+1)) us */
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

REDLOCK_API int redlock_get_stats(redlock_t *rl, redlock_stats_t *ret_stats,
                                  size_t size);             /* [any thread] */
REDLOCK_API size_t redlock_node_count(const redlock_t *rl); /* [any thread] */
REDLOCK_API int redlock_get_node_stats(redlock_t *rl, size_t index, redlock_node_stats_t *ret_stats,
                                       size_t size); /* [any thread] */

#ifdef __cplusplus
}
#endif
#endif
