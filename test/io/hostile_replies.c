/* SPDX-License-Identifier: MIT
 * The list of hostile replies. */
#include "hostile_replies.h"

#include "three_servers.h"

#define NEST4  "*1\r\n*1\r\n*1\r\n*1\r\n"
#define NEST64 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4

const struct hostile_reply bad_replies[BAD_REPLIES] = {
    {"wrong integer", FAKE_REPLY, ":7\r\n", 0, PROTOCOL},
    {"negative integer", FAKE_REPLY, ":-9223372036854775808\r\n", 0, PROTOCOL},
    {"integer beyond 64 bits", FAKE_REPLY, ":99999999999999999999\r\n", 0, PROTOCOL},
    {"not a number", FAKE_REPLY, ":abc\r\n", 0, PROTOCOL},
    {"wrong status", FAKE_REPLY, "+QUEUED\r\n", 0, PROTOCOL},
    {"almost OK", FAKE_REPLY, "+OKAY\r\n", 0, PROTOCOL},
    {"empty status", FAKE_REPLY, "+\r\n", 0, PROTOCOL},
    {"array", FAKE_REPLY, "*1\r\n+OK\r\n", 0, PROTOCOL},
    {"empty array", FAKE_REPLY, "*0\r\n", 0, PROTOCOL},
    {"nil array", FAKE_REPLY, "*-1\r\n", 0, PROTOCOL},
    {"array of a thousand million", FAKE_REPLY, "*1000000000\r\n", 0, PROTOCOL},
    {"array of 2^31", FAKE_REPLY, "*2147483648\r\n", 0, PROTOCOL},
    {"array of -2", FAKE_REPLY, "*-2\r\n", 0, PROTOCOL},
    {"nested arrays", FAKE_REPLY, NEST64, 0, PROTOCOL},
    {"bulk of a gigabyte that never comes", FAKE_REPLY, "$1000000000\r\n", 0, PROTOCOL | TIMEOUT},
    {"bulk of a gigabyte that comes", FAKE_ENDLESS, "$1000000000\r\n", 0, PROTOCOL},
    {"bulk of -2", FAKE_REPLY, "$-2\r\n", 0, PROTOCOL},
    {"bulk without its end", FAKE_REPLY, "$2\r\nOKxx+OK\r\n", 0, PROTOCOL},
    {"status without end", FAKE_ENDLESS, "+", 0, PROTOCOL},
    {"error without end", FAKE_ENDLESS, "-ERR ", 0, PROTOCOL},
    {"number without end", FAKE_ENDLESS, ":", 0, PROTOCOL},
    {"web server", FAKE_REPLY, "HTTP/1.1 400 Bad Request\r\n\r\n", 0, PROTOCOL},
    {"zeros", FAKE_REPLY, "\0\0\0\0\0\0\0\0", 8, PROTOCOL},
    {"high bytes", FAKE_REPLY, "\xff\xfe\xfd\r\n", 0, PROTOCOL},
    {"line ends", FAKE_REPLY, "\r\n\r\n", 0, PROTOCOL},
    {"RESP3 null", FAKE_REPLY, "_\r\n", 0, PROTOCOL},
    {"RESP3 true", FAKE_REPLY, "#t\r\n", 0, PROTOCOL},
    {"RESP3 map", FAKE_REPLY, "%1\r\n+a\r\n+b\r\n", 0, PROTOCOL},
    {"RESP3 push", FAKE_REPLY, ">2\r\n+a\r\n+b\r\n", 0, PROTOCOL},
    {"strange error", FAKE_REPLY, "-\r\n", 0, ERROR_REPLY},
    {"error with odd bytes", FAKE_REPLY, "-ERR \x1b[31m%s%n\x07\r\n", 0, ERROR_REPLY},
    {"silence", FAKE_SILENCE, NULL, 0, TIMEOUT},
    {"close before the answer", FAKE_CLOSE, NULL, 0, LOST},
    {"reset", FAKE_RESET, NULL, 0, LOST},
    {"close without executing", FAKE_DROP, NULL, 0, LOST},
};
