/* SPDX-License-Identifier: MIT
 * Errors, versions, limits, and the handles that the other headers use. Part of redlock.h. */
#ifndef REDLOCK_ERROR_H
#define REDLOCK_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/version.h"

/* REDLOCK_API marks a function that the library exports. REDLOCK_NODISCARD marks a function whose
 * result the caller must use: gcc and clang warn if it is ignored. */
#if defined(__GNUC__)
#define REDLOCK_API       __attribute__((visibility("default")))
#define REDLOCK_NODISCARD __attribute__((warn_unused_result))
#else
#define REDLOCK_API
#define REDLOCK_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Errors */

/* Lists each error: its name without the prefix REDLOCK_, its number, and its text. An error keeps
 * its name and its number in all versions. */
#define REDLOCK_ERROR_MAP(XX)                                                                      \
    XX(EINVAL, -1, "invalid argument")                                                             \
    XX(ENOMEM, -2, "out of memory")                                                                \
    XX(ESYS, -3, "operating system call failed")                                                   \
    XX(ECLOSED, -4, "client is shutting down")                                                     \
    XX(ECANCELED, -5, "operation was canceled")                                                    \
    XX(EBUSY, -6, "another operation runs on this lock")                                           \
    XX(EDEADLK, -7, "blocking call in a callback")                                                 \
    XX(EFORKED, -8, "handle was created before fork()")                                            \
    XX(EQUEUEFULL, -9, "too many acquisitions wait in this client")                                \
    XX(EMODE, -10, "not available in this mode")                                                   \
    XX(ELIBRARY, -11, "another version of a library is loaded")                                    \
    XX(ECONTENDED, -20, "held by another client")                                                  \
    XX(ENOQUORUM, -21, "no quorum")                                                                \
    XX(ETOOSLOW, -22, "quorum was reached too late")                                               \
    XX(ELOST, -23, "lock is no longer held")                                                       \
    XX(EEXCLUDED, -24, "too few servers are eligible")                                             \
    XX(EAUTH, -25, "too many servers refused the user")                                            \
    XX(EFENCE, -26, "fence record not usable")                                                     \
    XX(EDUPLICATE, -27, "two addresses of the same server")

/* Results of functions: 0, or a negative number. This is what each error means; the contract of a
 * function says when it returns it.
 *
 * EINVAL: the program is wrong, not the servers. The report, or redlock_config_error(), says what.
 * ENOMEM: an acquisition that failed holds nothing. Free memory, and try again.
 * ESYS: no descriptor, no thread or no randomness is available. Raise the limits of the process.
 * ECLOSED: redlock_shutdown() or redlock_free() has begun on the client.
 * ECANCELED: the caller ended the operation.
 * EBUSY: wait for the end of the other operation, or give each thread a lock of its own.
 * EDEADLK: use the _start form of the call in callbacks, and free the client elsewhere.
 * EFORKED: a child process must create a client of its own.
 * EQUEUEFULL: redlock_config_set_queue_max() sets how many may wait for one resource.
 * EMODE: embedded mode has no calls that block, and threaded mode no loop of the caller.
 * ELIBRARY: the process has loaded another version of hiredis before, with the same names.
 * ECONTENDED: another client, or another lock of this client, holds it. Try again, or wait longer.
 * ENOQUORUM: too few servers gave a valid reply in time. The lock may be free.
 * ETOOSLOW: the replies came so late that too little validity was left. The lock was undone.
 * ELOST: stop the work that the lock protects. Another client may hold the lock.
 * EEXCLUDED: servers reply, but votes do not count, for example for max_ttl after a restart; or TLS
 *   refuses too many servers (REDLOCK_CAUSE_TLS).
 * EAUTH: check user, password and rights on the servers. Waiting does not help.
 * EFENCE: too few servers have a usable fence record; the report says which, and why.
 * EDUPLICATE: repair the list of servers; one server must not have two votes. */
enum redlock_error {
    REDLOCK_OK = 0,
#define XX(name, value, text) REDLOCK_##name = (value),
    REDLOCK_ERROR_MAP(XX)
#undef XX
        REDLOCK_ERROR_LAST_ = -1000 /* keeps the enum signed and 32 bits wide; no error */
};

/* Returns a text of a few words for an error, for example "lock is no longer held". The text is
 * static; never NULL.
 *
 * error: enum redlock_error; for any other number the text is "unknown error".
 * [any thread] */
REDLOCK_API const char *redlock_strerror(int error);

/* Returns the name of an error, for example "REDLOCK_ELOST". The name is static; never NULL.
 *
 * error: enum redlock_error; for any other number the name is "REDLOCK_UNKNOWN".
 * [any thread] */
REDLOCK_API const char *redlock_error_name(int error);

/* Lists the errors of the library at run time:
 *     for (size_t i = 0; (error = redlock_error_at(i)) != 0; i++)
 *         puts(redlock_error_name(error));
 *
 * Returns an error, or REDLOCK_OK for an index past the last one.
 *
 * index: from 0 on, in no particular order; the index of an error may differ between versions.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API int redlock_error_at(size_t index);

/* Returns whether the same call can succeed later, with the same arguments and configuration: true
 * for ENOMEM, ESYS, EBUSY, EQUEUEFULL, ECONTENDED, ENOQUORUM, ETOOSLOW, EEXCLUDED and EFENCE.
 *
 * error: enum redlock_error; false for any other number.
 * [any thread] */
REDLOCK_API bool redlock_error_is_retriable(int error);

/* Versions
 *
 * The macros REDLOCK_VERSION_... are the version of the header that a program is compiled with. The
 * functions return the version of the library that it runs with. */

/* Returns the version of the library, to be compared with REDLOCK_VERSION_NUMBER: 0xMMmmpp, one
 * byte for each of major, minor and patch.
 * [any thread] */
REDLOCK_API uint32_t redlock_version_number(void);

/* Returns the version of the library as text, for example "0.2.0". Static, never NULL.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API const char *redlock_version_string(void);

/* Returns the versions of the libraries that this one was compiled with, for example "hiredis
 * 0.14.1, libsodium 1.0.18, openssl 3.0.17"; "without TLS" in place of the last one if it was
 * compiled without. Static, never NULL.
 * [any thread] */
REDLOCK_API const char *redlock_build_text(void);

/* Limits */

#define REDLOCK_NODES_MAX        31         /* most servers of a client, in all its shards */
#define REDLOCK_SHARDS_MAX       16         /* most shards of a client */
#define REDLOCK_RESOURCE_LEN_MAX 512        /* most bytes of a resource's name */
#define REDLOCK_RESOURCES_MAX    64         /* most resources of one lock */
#define REDLOCK_TTL_MS_MIN       10         /* shortest TTL of a lock, in milliseconds */
#define REDLOCK_TTL_MS_MAX       86400000   /* largest max_ttl_ms of a client, in milliseconds */
#define REDLOCK_WAIT_FOREVER     UINT64_MAX /* no time limit, as wait_ms and budget_ms */

/* Handles
 *
 * Their contents belong to the library. */

typedef struct redlock_client redlock_t;        /* a client: connections and locks */
typedef struct redlock_config redlock_config_t; /* settings for new clients, which copy them */
typedef struct redlock_lock redlock_lock_t;     /* one lock that was acquired or adopted */
typedef struct redlock_cancel redlock_cancel_t; /* ends the operations that it was given to */
typedef struct redlock_report
    redlock_report_t; /* outcome of an operation, node by node; constant */

#ifdef __cplusplus
}
#endif
#endif
