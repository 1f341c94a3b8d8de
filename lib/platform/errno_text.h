/* SPDX-License-Identifier: MIT
 * The text of an errno, for messages. */
#ifndef RL_PLATFORM_ERRNO_TEXT_H
#define RL_PLATFORM_ERRNO_TEXT_H

/* Returns the text of an errno: a constant string. Unlike strerror() of glibc, it may be called in
 * several threads at once, and does not depend on the locale. */
const char *rl_errno_text(int error);

#endif
