/* SPDX-License-Identifier: MIT
 * Describes the build of the library, for bug reports. */
#include <redlock/redlock.h>

#include "engine/status.h"

REDLOCK_API const char *redlock_build_text(void)
{
    return rl_engine_libraries();
}
