/* SPDX-License-Identifier: MIT
 * The text of an errno. */
#include "platform/errno_text.h"

#include <string.h>

/* Returns the text of an errno. strerror() of musl has no memory of its own, and may be called in
 * several threads at once. */
const char *rl_errno_text(int error)
{
#ifdef __GLIBC__
    const char *text = strerrordesc_np(error);

    return text != 0 ? text : "unknown error";
#else
    return strerror(error);
#endif
}
