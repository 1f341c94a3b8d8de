/* SPDX-License-Identifier: MIT
 * Parses lists of server addresses, such as "redis://:secret@h1:6379/0,h2". An entry is one address
 * of the list. A spec (struct rl_node_spec) is a parsed address. Each function that gets a struct
 * parse and returns an int returns 0; or REDLOCK_EINVAL or REDLOCK_ENOMEM after it has written the
 * reason to parse->error. The stages are: rl_url_parse_list() cuts the list into entries,
 * append_entry() makes a spec for one, parse_entry() chooses by the scheme, and the other parse_
 * functions parse a part of the entry. url_query.c parses the
 * parameters. */
#include "api/url.h"

#include "api/url_mask.h"
#include "api/url_parts.h"

#include <arpa/inet.h>
#include <redlock/redlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Writes "server address <number> (<entry without secrets>): " and the text, in the form of
 * printf(), to parse->error. Returns REDLOCK_EINVAL. The format's arguments must not be parts of
 * the entry, which may be secret. */
int rl_url_refuse(const struct parse *parse, const char *fmt, ...)
{
    char shown[RL_URL_SHOWN_MAX];
    rl_url_mask(parse->list, parse->entry.at, parse->entry.len, shown);
    int len =
        snprintf(parse->error, parse->error_size, "server address %u (%s): ", parse->number, shown);
    if (len > 0 && (size_t)len < parse->error_size) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(parse->error + len, parse->error_size - (size_t)len, fmt, args);
        va_end(args);
    }
    return REDLOCK_EINVAL;
}

/* Writes "out of memory ..." to parse->error. Returns REDLOCK_ENOMEM. */
static int refuse_memory(const struct parse *parse)
{
    snprintf(parse->error, parse->error_size, "out of memory while reading server addresses");
    return REDLOCK_ENOMEM;
}

/* Splits `whole` at the first byte that is in `any`. *head ends before that byte, *tail begins with
 * it. If there is none, *tail is empty. */
void rl_url_split(struct piece whole, const char *any, struct piece *head, struct piece *tail)
{
    size_t len = 0;
    while (len < whole.len && strchr(any, whole.at[len]) == NULL)
        len++;
    *head = (struct piece){whole.at, len};
    *tail = (struct piece){whole.at + len, whole.len - len};
}

/* Returns the piece without its first `bytes` bytes; it has at least that many. */
struct piece rl_url_skip(struct piece piece, size_t bytes)
{
    return (struct piece){piece.at + bytes, piece.len - bytes};
}

/* Returns the part of `whole` before the last `byte`; its `at` is NULL if `whole` does not contain
 * the byte. */
static struct piece up_to_last(struct piece whole, char byte)
{
    for (size_t len = whole.len; len > 0; len--)
        if (whole.at[len - 1] == byte)
            return (struct piece){whole.at, len - 1};
    return (struct piece){NULL, 0};
}

/* Returns whether the piece is the same as `word`, regardless of case. */
bool rl_url_is_word(struct piece piece, const char *word)
{
    return piece.len == strlen(word) && strncasecmp(piece.at, word, piece.len) == 0;
}

/* Parses decimal digits to *ret. Returns false if the piece is empty, has another byte, or is above
 * `max`. */
bool rl_url_number(struct piece piece, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (piece.len == 0)
        return false;
    for (size_t i = 0; i < piece.len; i++) {
        if (piece.at[i] < '0' || piece.at[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(piece.at[i] - '0');
        if (value > max)
            return false;
    }
    *ret = value;
    return true;
}

/* Returns the value of a hex digit, 0 to 15; -1 if it is none. */
static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* Percent-decodes `from` to `out`, which has max + 1 bytes, and adds a NUL. `what` names the part
 * of the address in a refusal. `lowest` is the smallest byte that is allowed in it. */
int rl_url_decode(const struct parse *parse, const char *what, struct piece from, unsigned lowest,
                  char *out, size_t max)
{
    size_t len = 0;
    for (size_t i = 0; i < from.len; i++) {
        unsigned byte = (unsigned char)from.at[i];
        if (byte == '%') {
            int high = i + 2 < from.len ? hex_value(from.at[i + 1]) : -1;
            int low = i + 2 < from.len ? hex_value(from.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return rl_url_refuse(parse,
                                     "'%%' in the %s is not followed by two hex digits; "
                                     "write a literal '%%' as %%25",
                                     what);
            byte = (unsigned)high << 4 | (unsigned)low;
            i += 2;
        }
        if (byte < lowest || byte == 0x7f)
            return rl_url_refuse(parse, "the %s contains a %s, which is not allowed there", what,
                                 byte == ' ' ? "blank" : "control byte");
        if (len == max)
            return rl_url_refuse(parse, "the %s is longer than %zu bytes", what, max);
        out[len++] = (char)byte;
    }
    out[len] = '\0';
    return 0;
}

/* Decodes `from` into a new string of at most `max` bytes in *ret, which the spec owns. `what`,
 * `lowest`: as for rl_url_decode(). */
int rl_url_text(const struct parse *parse, const char *what, struct piece from, unsigned lowest,
                size_t max, char **ret)
{
    char *text = rl_alloc(parse->mem, (from.len < max ? from.len : max) + 1);
    if (text == NULL)
        return refuse_memory(parse);
    *ret = text; /* freed with the spec, also if rl_url_decode() refuses it */
    return rl_url_decode(parse, what, from, lowest, text, max);
}

/* Parses "user:password" or ":password", the part before an '@', into the spec. */
static int parse_userinfo(const struct parse *parse, struct piece userinfo)
{
    struct piece user, password;

    rl_url_split(userinfo, ":", &user, &password);
    if (password.len == 0)
        return rl_url_refuse(parse,
                             "clients disagree whether 'value@host' is a user or a password; "
                             "write user:password@host or :password@host");
    password = rl_url_skip(password, 1);
    if (password.len == 0)
        return rl_url_refuse(parse, "the password is empty; write one after the ':', "
                                    "or leave out everything up to the '@'");
    if (user.len > 0) {
        int rc = rl_url_text(parse, "user", user, '!', RL_USER_MAX, &parse->spec->user);
        if (rc != 0)
            return rc;
    }
    return rl_url_text(parse, "password", password, ' ', RL_PASSWORD_MAX, &parse->spec->password);
}

/* Returns whether a host name may contain this byte, which is in lower case. */
static bool is_host_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
           byte == '_' || byte == '.';
}

/* Returns the byte in lower case. */
static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

/* Parses the IPv6 address between brackets and stores its shortest form. A zone ("%eth0", in a URL
 * "%25eth0") keeps its case, because names of interfaces are case-sensitive. */
static int parse_ipv6(const struct parse *parse, struct piece inside)
{
    char *host = parse->spec->host;
    struct piece number, zone;
    struct in6_addr address;

    rl_url_split(inside, "%", &number, &zone);
    if (zone.len >= 3 && memcmp(zone.at, "%25", 3) == 0)
        zone = rl_url_skip(zone, 3);
    else if (zone.len > 0)
        zone = rl_url_skip(zone, 1);
    for (size_t i = 0; i < zone.len; i++)
        if (!is_host_byte(lower(zone.at[i])))
            return rl_url_refuse(parse,
                                 "the zone after '%%' must be the name of a network interface");

    if (number.len < INET6_ADDRSTRLEN) {
        memcpy(host, number.at, number.len);
        host[number.len] = '\0';
    }
    if (number.len >= INET6_ADDRSTRLEN || inet_pton(AF_INET6, host, &address) != 1)
        return rl_url_refuse(parse, "the text in brackets is not an IPv6 address, such as [::1]");
    inet_ntop(AF_INET6, &address, host, RL_HOST_MAX);
    if (zone.len == 0)
        return 0;
    size_t len = strlen(host);
    if (len + 1 + zone.len > RL_HOST_MAX)
        return rl_url_refuse(parse, "the zone after '%%' must be the name of a network interface");
    host[len] = '%';
    memcpy(host + len + 1, zone.at, zone.len);
    host[len + 1 + zone.len] = '\0';
    return 0;
}

/* Parses a host name or an IPv4 address and stores it in lower case. */
static int parse_host_name(const struct parse *parse, struct piece host)
{
    if (host.len > RL_HOST_MAX)
        return rl_url_refuse(parse, "the host name is longer than %d bytes", RL_HOST_MAX);
    for (size_t i = 0; i < host.len; i++) {
        char byte = lower(host.at[i]);
        if (!is_host_byte(byte))
            return rl_url_refuse(parse,
                                 "a host name consists of letters, digits, '.', '-' and '_' only");
        parse->spec->host[i] = byte;
    }
    parse->spec->host[host.len] = '\0';
    return 0;
}

/* Parses "host", "host:port", "[::1]", "[::1]:port", ":port" or "". */
static int parse_host_port(const struct parse *parse, struct piece place)
{
    struct piece host, port;
    uint64_t number = RL_PORT_DEFAULT;
    int rc;

    if (place.len > 0 && place.at[0] == '[') {
        rl_url_split(rl_url_skip(place, 1), "]", &host, &port);
        if (port.len == 0)
            return rl_url_refuse(parse, "the ']' after the IPv6 address is missing");
        port = rl_url_skip(port, 1);
        if (port.len > 0 && port.at[0] != ':')
            return rl_url_refuse(parse, "after the ']' only ':' and a port may follow");
        rc = parse_ipv6(parse, host);
    } else {
        rl_url_split(place, ":", &host, &port);
        if (port.len > 1 && memchr(port.at + 1, ':', port.len - 1) != NULL)
            return rl_url_refuse(
                parse, "there is more than one ':'; an IPv6 address needs brackets, as in "
                       "[::1]:6379, and a password is followed by '@'");
        rc = host.len == 0 ? parse_host_name(parse, (struct piece){"localhost", 9})
                           : parse_host_name(parse, host);
    }
    if (rc != 0)
        return rc;
    if (port.len > 0 && (!rl_url_number(rl_url_skip(port, 1), UINT16_MAX, &number) || number == 0))
        return rl_url_refuse(parse, "the port after ':' must be a number from 1 to 65535");
    parse->spec->port = (uint16_t)number;
    return 0;
}

/* Parses the number of a database, 0 to RL_DB_MAX, into the spec. */
int rl_url_db(const struct parse *parse, struct piece digits)
{
    uint64_t db;
    if (!rl_url_number(digits, RL_DB_MAX, &db))
        return rl_url_refuse(parse, "the database must be a number from 0 to %d", RL_DB_MAX);
    parse->spec->db = (unsigned)db;
    return 0;
}

/* Parses what follows "redis://", [[user]:password@][host][:port][/db][?parameters], into the
 * spec. */
static int parse_tcp(const struct parse *parse, struct piece rest)
{
    struct piece authority, path, query;

    rl_url_split(rest, "/?#", &authority, &path);
    rl_url_split(path, "?#", &path, &query);
    struct piece userinfo = up_to_last(authority, '@');
    if (userinfo.at != NULL) {
        if (memchr(userinfo.at, '@', userinfo.len) != NULL)
            return rl_url_refuse(parse,
                                 "there is more than one '@'; in a password, write it as %%40");
        int rc = parse_userinfo(parse, userinfo);
        if (rc != 0)
            return rc;
        authority = rl_url_skip(authority, userinfo.len + 1);
    } else if (memchr(rest.at, '@', rest.len) != NULL) {
        return rl_url_refuse(parse, "there is an '@' after the host; in a password, "
                                    "write '/' as %%2F, '?' as %%3F and '#' as %%23");
    }
    if (query.len > 0 && query.at[0] == '#')
        return rl_url_refuse(parse,
                             "'#' has no meaning in an address; a database is written as /N");
    int rc = parse_host_port(parse, authority);
    if (rc == 0 && path.len > 1)
        rc = rl_url_db(parse, rl_url_skip(path, 1));
    if (rc == 0 && query.len > 0)
        rc = rl_url_query(parse, rl_url_skip(query, 1));
    return rc;
}

/* Parses what follows "unix://" or "unix:". Before the path only user and password are allowed. */
static int parse_unix(const struct parse *parse, struct piece rest)
{
    struct piece login, path, query;

    rl_url_split(rest, "/", &login, &path);
    if (path.len == 0 || (login.len > 0 && login.at[login.len - 1] != '@'))
        return rl_url_refuse(parse,
                             "a unix address needs an absolute path, as in unix:///run/redis.sock");
    if (login.len > 0) {
        struct piece userinfo = {login.at, login.len - 1};
        if (memchr(userinfo.at, '@', userinfo.len) != NULL)
            return rl_url_refuse(parse,
                                 "there is more than one '@'; in a password, write it as %%40");
        int rc = parse_userinfo(parse, userinfo);
        if (rc != 0)
            return rc;
    }
    rl_url_split(path, "?#", &path, &query);
    if (memchr(path.at, '@', path.len) != NULL)
        return rl_url_refuse(parse, "there is an '@' in the path; write it as %%40, "
                                    "and in a password '/' as %%2F");
    parse->spec->is_unix = true;
    int rc = rl_url_decode(parse, "path of the socket", path, ' ', parse->spec->path, RL_PATH_MAX);
    if (rc == 0 && query.len > 0)
        rc = rl_url_query(parse, rl_url_skip(query, 1));
    return rc;
}

/* Parses a bare absolute path of a socket into the spec. The path is not percent-decoded. */
static int parse_path(const struct parse *parse, struct piece path)
{
    if (memchr(path.at, '?', path.len) != NULL)
        return rl_url_refuse(parse, "a bare path takes no parameters; write unix:///path?db=N");
    if (path.len > RL_PATH_MAX)
        return rl_url_refuse(parse, "the path of the socket is longer than %d bytes", RL_PATH_MAX);
    parse->spec->is_unix = true;
    memcpy(parse->spec->path, path.at, path.len);
    parse->spec->path[path.len] = '\0';
    return 0;
}

/* Parses parse->entry, in any of the forms of url.h, into parse->spec. */
static int parse_entry(const struct parse *parse)
{
    struct piece entry = parse->entry;
    size_t scheme_len = rl_url_scheme_len(entry.at, entry.len);
    struct piece scheme = {entry.at, scheme_len};
    struct piece rest = rl_url_skip(entry, scheme_len);

    for (size_t i = 0; i < entry.len; i++)
        if ((unsigned char)entry.at[i] < '!' || entry.at[i] == 0x7f)
            return rl_url_refuse(parse, "it contains a control byte");
    if (entry.at[0] == '/')
        return parse_path(parse, entry);
    if (entry.at[0] == ':' && (entry.len == 1 || entry.at[1] != ':'))
        return rl_url_refuse(parse, "the host before ':' is missing");
    if (scheme_len == 0)
        return parse_tcp(parse, entry);
    if (rl_url_is_word(scheme, "redis://") || rl_url_is_word(scheme, "valkey://"))
        return parse_tcp(parse, rest);
    if (rl_url_is_word(scheme, "unix://") || rl_url_is_word(scheme, "unix:"))
        return parse_unix(parse, rest);
    if (rl_url_is_word(scheme, "rediss://") || rl_url_is_word(scheme, "valkeys://")) {
        if (!rl_node_spec_tls_is_built())
            return rl_url_refuse(parse, "%s", RL_TLS_MISSING);
        if (rest.len > 1 && rest.at[0] == '/' && strchr("0123456789?#", rest.at[1]) == NULL)
            return rl_url_refuse(parse, "TLS on a unix socket is not supported; write "
                                        "rediss://host, or unix:///path without TLS");
        parse->spec->tls = true;
        int rc = parse_tcp(parse, rest);
        if (rc == 0 && parse->spec->host[0] == '.')
            return rl_url_refuse(parse, "a host name must not begin with a '.'");
        return rc;
    }
    if (rl_url_is_word(scheme, "redis+sentinel://") || rl_url_is_word(scheme, "rediss+sentinel://"))
        return rl_url_refuse(parse, "Sentinel is not supported; list the servers themselves, each "
                                    "of them a master of its own");
    return rl_url_refuse(
        parse, "unknown scheme; use redis://, rediss://, valkey://, valkeys:// or unix://");
}

/* Checks that none of the `count` earlier `nodes` has the id or the server of the new spec. Returns
 * 0 or REDLOCK_EINVAL. */
static int refuse_duplicate(const struct parse *parse, const struct rl_node_spec *nodes,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (parse->spec->id[0] != '\0' && strcmp(nodes[i].id, parse->spec->id) == 0)
            return rl_url_refuse(parse, "server %zu has the same id", i + 1);
        if (rl_node_spec_same_server(&nodes[i], parse->spec))
            return rl_url_refuse(parse,
                                 "same server as number %zu (%s); each address must be of another "
                                 "server, and another database is not another server",
                                 i + 1, nodes[i].name);
    }
    return 0;
}

/* Parses parse->entry into a new element at the end of the array *nodes, which grows by one. On
 * failure the array keeps its *node_count nodes. */
static int append_entry(struct parse *parse, struct rl_node_spec **nodes, size_t *node_count)
{
    if (*node_count == RL_NODES_MAX)
        return rl_url_refuse(
            parse, "more than %d servers; use fewer, a larger quorum is only slower", RL_NODES_MAX);

    struct rl_node_spec *grown =
        rl_realloc_array(parse->mem, *nodes, *node_count + 1, sizeof **nodes);
    if (grown == NULL)
        return refuse_memory(parse);
    *nodes = grown;
    parse->spec = &grown[*node_count];
    memset(parse->spec, 0, sizeof *parse->spec);

    int rc = parse_entry(parse);
    if (rc == 0)
        rc = refuse_duplicate(parse, grown, *node_count);
    if (rc != 0) {
        rl_node_spec_done(parse->mem, parse->spec);
        return rc;
    }
    rl_node_spec_name(parse->spec);
    (*node_count)++;
    return 0;
}

/* Appends one node for each address of `text` to the array *nodes of *node_count specs, or none.
 * Returns REDLOCK_OK, REDLOCK_EINVAL or REDLOCK_ENOMEM, on failure with a reason without secrets in
 * `error` (`error_size` bytes). */
int rl_url_parse_list(const struct rl_mem *mem, const char *text, struct rl_node_spec **nodes,
                      size_t *node_count, char *error, size_t error_size)
{
    struct parse parse = {.mem = mem, .list = text, .error = error, .error_size = error_size};
    size_t count_before = *node_count;
    const char *at = text;
    int rc = 0;

    if (rl_url_is_torn(text)) {
        snprintf(error, error_size,
                 "server addresses (not shown, a password may be in them): an entry has an '@' "
                 "but no known scheme; write redis://user:password@host, in a password "
                 "',' as %%2C and a blank as %%20, and in the path of a socket '@' as "
                 "unix:///a%%40b");
        return REDLOCK_EINVAL;
    }
    while (rc == 0 && *at != '\0') {
        size_t len = 0;
        while (at[len] != '\0' && !rl_url_is_separator(at[len]))
            len++;
        if (len > 0) {
            parse.entry = (struct piece){at, len};
            parse.number++;
            rc = append_entry(&parse, nodes, node_count);
        }
        at += at[len] == '\0' ? len : len + 1;
    }
    if (rc == 0 && parse.number == 0) {
        snprintf(error, error_size,
                 "no server address given; name at least one, as redis://host:6379");
        rc = REDLOCK_EINVAL;
    }
    while (rc != 0 && *node_count > count_before)
        rl_node_spec_done(mem, &(*nodes)[--*node_count]);
    return rc;
}
