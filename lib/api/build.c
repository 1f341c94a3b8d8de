/* SPDX-License-Identifier: MIT
 * Describes the build of the library, for bug reports. */
#include <redlock/redlock.h>

#include "engine/status.h"

/* Public function: returns the names and versions of the libraries that this library was compiled
 * with. The text is static. */
REDLOCK_API const char *redlock_build_text(void)
{
    return rl_engine_libraries();
}
