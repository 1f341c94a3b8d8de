/* SPDX-License-Identifier: MIT
 * Words for the reasons why a node gave no vote. */
#include "core/cause.h"

#include <redlock/redlock.h>

const char *rl_cause_text(int cause)
{
    switch (cause) {
    case REDLOCK_CAUSE_NONE:
        return "no failure";
    case REDLOCK_CAUSE_TIMEOUT:
        return "no answer in time";
    case REDLOCK_CAUSE_RESOLVE:
        return "host name not found";
    case REDLOCK_CAUSE_CONNECT:
        return "connection refused or not possible";
    case REDLOCK_CAUSE_DISCONNECT:
        return "connection lost";
    case REDLOCK_CAUSE_PROTOCOL:
        return "answer is not valid Redis protocol";
    case REDLOCK_CAUSE_AUTH:
        return "user or password refused";
    case REDLOCK_CAUSE_NOPERM:
        return "user may not run this command on this key";
    case REDLOCK_CAUSE_READONLY:
        return "server is read-only";
    case REDLOCK_CAUSE_OOM:
        return "server is out of memory";
    case REDLOCK_CAUSE_BUSY:
        return "server is busy running a script";
    case REDLOCK_CAUSE_WRONGTYPE:
        return "key is not a string";
    case REDLOCK_CAUSE_ERROR_REPLY:
        return "server answered with an error";
    case REDLOCK_CAUSE_RESTARTED:
        return "server was restarted and may have lost keys";
    case REDLOCK_CAUSE_PROMOTED:
        return "server has the data of another master";
    case REDLOCK_CAUSE_EVICTING:
        return "server evicts keys when its memory is full";
    case REDLOCK_CAUSE_CLOCK_STEP:
        return "clock of the server jumped";
    case REDLOCK_CAUSE_NO_INFO:
        return "server does not tell who it is";
    case REDLOCK_CAUSE_REPLICA:
        return "server is a replica, not a master";
    case REDLOCK_CAUSE_LOADING:
        return "server is loading its data";
    case REDLOCK_CAUSE_DUPLICATE:
        return "same server as another address in the list";
    case REDLOCK_CAUSE_FENCE:
        return "fence record is not usable";
    case REDLOCK_CAUSE_NO_MEMORY:
        return "out of memory in this process";
    case REDLOCK_CAUSE_CLUSTER:
        return "server is part of a Redis Cluster";
    case REDLOCK_CAUSE_HEALED:
        return "key was put back and does not count yet";
    case REDLOCK_CAUSE_NO_AOF:
        return "server cannot tell what is on its disk";
    case REDLOCK_CAUSE_NOT_ON_DISK:
        return "granted, but not on the server's disk in time";
    case REDLOCK_CAUSE_FENCE_UNREAD:
        return "its fence record is in use, but too few of the others were read in time";
    default:
        return "unknown cause";
    }
}
