/* SPDX-License-Identifier: MIT
 * The exit codes of the command. Below 64 and above 128 they belong to the command that was run.
 */
#ifndef TOOLS_EXITS_H
#define TOOLS_EXITS_H

enum exit_code {
    EXIT_OK = 0,
    EXIT_LOST = 1, /* not held with this token any more: to try again does not help */
    EXIT_USAGE = 64,
    EXIT_NO_QUORUM = 69,
    EXIT_INTERNAL = 70,
    EXIT_SYSTEM = 71,
    EXIT_OUTPUT = 74, /* the token, or other output, could not be written */
    EXIT_HELD = 75,
    EXIT_REFUSED = 77,
    EXIT_CONFIG = 78,
    EXIT_STOPPED = 124, /* the lock could not be kept, so the command was stopped */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL_BASE = 128
};

enum status_exit { STATUS_HELD = 0, STATUS_FREE = 1, STATUS_UNKNOWN = 3 };
enum health_exit { HEALTH_OK = 0, HEALTH_WARN = 1, HEALTH_CRIT = 2, HEALTH_UNKNOWN = 3 };

#endif
