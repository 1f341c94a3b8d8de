/* SPDX-License-Identifier: MIT
 * The one error list: code to text, code to name, index to code, and whether trying again makes
 * sense. */
#include <redlock/redlock.h>

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

REDLOCK_API int redlock_error_at(size_t index)
{
    static const int errors[] = {
#define XX(name, value, text) REDLOCK_##name,
        REDLOCK_ERROR_MAP(XX)
#undef XX
    };

    return index < sizeof errors / sizeof errors[0] ? errors[index] : REDLOCK_OK;
}

REDLOCK_API bool redlock_error_is_retriable(int error)
{
    switch (error) {
    case REDLOCK_ENOMEM:     /* the process may get memory back */
    case REDLOCK_ESYS:       /* descriptors may become free */
    case REDLOCK_EBUSY:      /* the other operation ends */
    case REDLOCK_EQUEUEFULL: /* those that wait get their turn, or give up */
    case REDLOCK_ECONTENDED: /* the holder releases, or its key expires */
    case REDLOCK_ENOQUORUM:  /* nodes come back */
    case REDLOCK_ETOOSLOW:   /* the network recovers */
    case REDLOCK_EEXCLUDED:  /* nodes are admitted again */
    case REDLOCK_EFENCE:     /* their fence records are in use again */
        return true;
    default: /* a mistake of the caller or of the configuration, or an end: the same call fails
                again */
        return false;
    }
}

/* The three parts come from the project's version in meson.build. */
REDLOCK_API uint32_t redlock_version_number(void)
{
    return (uint32_t)RL_VERSION_MAJOR << 16 | (uint32_t)RL_VERSION_MINOR << 8 |
           (uint32_t)RL_VERSION_PATCH;
}
