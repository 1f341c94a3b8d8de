/* SPDX-License-Identifier: MIT
 * The list of errors (text, name, index, and whether a later attempt can succeed), and the version
 * of the library. */
#include <redlock/redlock.h>

/* Returns the text of an error, for people. */
REDLOCK_API const char *redlock_strerror(int error)
{
    switch (error) {
    case REDLOCK_OK:
        return "success";
#define XX(name, value, text)                                                                      \
    case REDLOCK_##name:                                                                           \
        return text;
        REDLOCK_ERROR_MAP(XX)
#undef XX
    default:
        return "unknown error";
    }
}

/* Returns the name of an error, such as "REDLOCK_ELOST". */
REDLOCK_API const char *redlock_error_name(int error)
{
    switch (error) {
    case REDLOCK_OK:
        return "REDLOCK_OK";
#define XX(name, value, text)                                                                      \
    case REDLOCK_##name:                                                                           \
        return "REDLOCK_" #name;
        REDLOCK_ERROR_MAP(XX)
#undef XX
    default:
        return "REDLOCK_UNKNOWN";
    }
}

/* Returns the error at `index` of the list of all errors, REDLOCK_OK excepted. Returns REDLOCK_OK
 * after the end of the list. */
REDLOCK_API int redlock_error_at(size_t index)
{
    static const int errors[] = {
#define XX(name, value, text) REDLOCK_##name,
        REDLOCK_ERROR_MAP(XX)
#undef XX
    };

    return index < sizeof errors / sizeof errors[0] ? errors[index] : REDLOCK_OK;
}

/* Returns whether the same call can succeed later. The comment of each error says what changes. */
REDLOCK_API bool redlock_error_is_retriable(int error)
{
    switch (error) {
    case REDLOCK_ENOMEM:     /* memory of the process may be freed */
    case REDLOCK_ESYS:       /* descriptors may become free */
    case REDLOCK_EBUSY:      /* the other operation ends */
    case REDLOCK_EQUEUEFULL: /* the waiters of the queue acquire the lock, or give up */
    case REDLOCK_ECONTENDED: /* the holder releases, or its key expires */
    case REDLOCK_ENOQUORUM:  /* servers become reachable again */
    case REDLOCK_ETOOSLOW:   /* the network recovers */
    case REDLOCK_EEXCLUDED:  /* nodes are admitted again */
    case REDLOCK_EFENCE:     /* fence records come into use again */
        return true;
    default: /* the caller, the configuration or the end of the lock is the cause: the same call
                fails again */
        return false;
    }
}

/* Returns the version of the library as a number that can be compared. */
REDLOCK_API uint32_t redlock_version_number(void)
{
    return REDLOCK_VERSION_NUMBER;
}

/* Returns the version of the library as text. */
REDLOCK_API const char *redlock_version_string(void)
{
    return REDLOCK_VERSION_STRING;
}
