/* SPDX-License-Identifier: MIT
 * Errors, limits, and the handles that the other headers speak of. Part of redlock.h. */
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

#define REDLOCK_ERROR_MAP(XX)                                                                      \
    XX(EINVAL, -1, "invalid argument")                                                             \
    XX(ENOMEM, -2, "out of memory")                                                                \
    XX(ESYS, -3, "operating system call failed")                                                   \
    XX(ECLOSED, -4, "client is shutting down")                                                     \
    XX(ECANCELED, -5, "operation was canceled")                                                    \
    XX(EBUSY, -6, "another operation runs on this lock")                                           \
    XX(EDEADLK, -7, "blocking call in a callback")                                                 \
    XX(EFORKED, -8, "handle is from before fork()")                                                \
    XX(EQUEUEFULL, -9, "too many locks wait in this client")                                       \
    XX(EMODE, -10, "not available in this mode")                                                   \
    XX(ELIBRARY, -11, "another version of a library is loaded")                                    \
    XX(ECONTENDED, -20, "held by another client")                                                  \
    XX(ENOQUORUM, -21, "no quorum")                                                                \
    XX(ETOOSLOW, -22, "quorum came too late")                                                      \
    XX(ELOST, -23, "lock is no longer held")                                                       \
    XX(EEXCLUDED, -24, "too few nodes may vote")                                                   \
    XX(EAUTH, -25, "too many nodes refused the user")                                              \
    XX(EFENCE, -26, "fence record not usable")                                                     \
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
/* Lists all errors of the library at run time: returns the error with this index, in no particular
 * order, and REDLOCK_OK for an index past the last one. An error keeps its number and its name in
 * all versions; its index may differ from one version to the next. Since 0.2.0. [any thread]
 *     for (size_t i = 0; (error = redlock_error_at(i)) != REDLOCK_OK; i++) ... */
REDLOCK_API int redlock_error_at(size_t index);

/* May the same call succeed later, without a change to arguments or configuration? [any thread] */
REDLOCK_API bool redlock_error_is_retriable(int error);

/* Of the library, not of this header: 0xMMmmpp. [any thread] */
REDLOCK_API uint32_t redlock_version_number(void);
REDLOCK_API const char *redlock_version_string(void);
/* What the library was compiled with: "hiredis 0.14.1, libsodium 1.0.18". Static, never NULL.
 * [any thread] */
REDLOCK_API const char *redlock_build_text(void);

#define REDLOCK_NODES_MAX        31 /* of a client, in all its sets */
#define REDLOCK_SHARDS_MAX       16
#define REDLOCK_RESOURCE_LEN_MAX 512
#define REDLOCK_RESOURCES_MAX    64 /* of one lock */
#define REDLOCK_TTL_MS_MIN       10
#define REDLOCK_TTL_MS_MAX       86400000 /* of max_ttl_ms, which bounds a client's TTLs */
#define REDLOCK_WAIT_FOREVER     UINT64_MAX

typedef struct redlock redlock_t;               /* client: nodes, connections, engine */
typedef struct redlock_config redlock_config_t; /* builder; copied by redlock_new() */
typedef struct redlock_lock redlock_lock_t;     /* a lock that was acquired or adopted */
typedef struct redlock_cancel redlock_cancel_t; /* cancels every call that was given it */
typedef struct redlock_report redlock_report_t; /* evidence: what each node said; immutable */

#ifdef __cplusplus
}
#endif
#endif
