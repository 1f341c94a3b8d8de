/* SPDX-License-Identifier: MIT
 * The configuration file: where it is searched for, and which sections and names it may have.
 * settings_read_file() finds the file and read_path() reads it into memory. ini_read() then calls
 * handle() for each "name = value". handle() stores most values as they are. Servers may be in
 * several lines and sections; they are joined to one text with blanks, in which "NAME=" precedes
 * the first server of each shard.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exits.h"
#include "ini_text.h"
#include "mask.h"
#include "say.h"
#include "settings.h"
#include "shards.h"

/* Largest file that is accepted. A file with as many servers as possible, each in a commented
 * section, takes a tenth of this. */
#define FILE_MAX_BYTES ((size_t)64 * 1024)

/* The state while one file is read. Local to read_path(). */
struct reading {
    struct settings *settings; /* where the values are stored */
    const char *path;          /* of the file, for messages and origins */
    unsigned line;             /* number of the current line, from 1 */
    bool secret;               /* the file holds a password */
    bool refused;              /* an error was reported */
    bool seen[SET_COUNT];      /* which settings the file has set above this line */
    const char *shard;         /* of the servers that were added last, part of the text; "": none */
};

/* Returns `word`, or "***" if it is not spelled like a key or a section: it may be a password in
 * a wrong place. */
static const char *shown_word(const char *word)
{
    return word[strspn(word, "abcdefghijklmnopqrstuvwxyz-.()")] ? "***" : word;
}

/* Reports an error in the current line. The message is `what`, `word` (masked if it might be a
 * secret) and `advice`. Returns false, which ends the reading. */
static bool refuse(struct reading *reading, const char *what, const char *word, const char *advice)
{
    say(SAY_ERROR, "%s:%u: %s%s; %s", reading->path, reading->line, what, shown_word(word), advice);
    reading->refused = true;
    return false;
}

/* Stores a value with the current line as its origin. */
static void offer(struct reading *reading, enum setting_id id, const char *value)
{
    char *origin = text_format("%s:%u", reading->path, reading->line);

    setting_offer(reading->settings, id, RANK_FILE, value, origin);
    free(origin);
}

/* Appends the text `value` to the servers of earlier lines and sections of the file. Does nothing
 * if the servers of a source with a higher rank are set. */
static void add_servers(struct reading *reading, const char *value)
{
    const struct setting *now = &reading->settings->values[SET_SERVERS];

    if (!reading->seen[SET_SERVERS] || now->rank > RANK_FILE) {
        offer(reading, SET_SERVERS, value);
    } else {
        char *joined = text_format("%s %s", now->text, value);
        char *origin = text_copy(now->origin);
        setting_offer(reading->settings, SET_SERVERS, RANK_FILE, joined, origin);
        free(origin);
        free(joined);
    }
    reading->seen[SET_SERVERS] = true;
}

/* Checks servers of the shard `shard` ("": of none) and appends them. The name of the shard
 * precedes its first server, so servers with and without a shard cannot be mixed. Returns false
 * after a message. */
static bool add_servers_of(struct reading *reading, const char *shard, const char *value)
{
    bool first = !reading->seen[SET_SERVERS];

    reading->secret = reading->secret || strchr(value, '@');
    if (shards_are_named(value))
        return refuse(reading, "several shards in one line", "",
                      "write a section [shard.NAME] for each, with servers = ...");
    if (!first && (*shard == '\0') != (*reading->shard == '\0'))
        return refuse(reading, "servers with and without a shard", "",
                      "put all of them into [shard.NAME] sections, or none");
    if (strcmp(shard, reading->shard) != 0) {
        reading->shard = shard;
        char *text = text_format("%s=%s", shard, value);
        bool good = shards_are_named(text);
        if (good)
            add_servers(reading, text);
        explicit_bzero(text, strlen(text));
        free(text);
        return good || refuse(reading, "the name of the shard is not valid", "",
                              "use letters, digits, '.', '_' and '-'");
    }
    add_servers(reading, value);
    return true;
}

/* Implements ini_take_fn: handles one line "name = value". Returns false after a message. */
static bool handle(void *user, unsigned line, const char *section, const char *name,
                   const char *value)
{
    struct reading *reading = user;
    enum setting_id id;

    reading->line = line;
    if (!strncmp(section, "node.", 5) && section[5]) {
        if (strcmp(name, "url") != 0)
            return refuse(reading, "unknown key ", name, "a [node.NAME] section has: url");
        return add_servers_of(reading, "", value);
    }
    if (!strncmp(section, "shard.", 6) && section[6]) {
        if (strcmp(name, "servers") != 0)
            return refuse(reading, "unknown key ", name, "a [shard.NAME] section has: servers");
        return add_servers_of(reading, section + 6, value);
    }
    if (strcmp(section, "redlock") != 0)
        return refuse(reading, "unknown section ", *section ? section : "(none)",
                      "write [redlock], [node.NAME] or [shard.NAME]");
    if (!setting_by_name(name, &id))
        return refuse(reading, "unknown key ", name,
                      "use one of: servers prefix user pass-file password max-ttl ttl wait "
                      "quorum-wait grace renew connect-timeout node-timeout tls-cacert tls-cert "
                      "tls-key tls-sni tls-verify line fence-key fence-records admission "
                      "drift heartbeat clock-slack");
    if (id == SET_SERVERS)
        return add_servers_of(reading, "", value);
    if (reading->seen[id])
        return refuse(reading, "second value for ", name, "keep one");
    reading->seen[id] = true;
    reading->secret = reading->secret || id == SET_PASSWORD;
    offer(reading, id, value);
    return true;
}

/* Checks that the `len` bytes at `text` can be a configuration file, and parses them. The byte
 * after them is set to NUL. Returns -1 on success, or EXIT_CONFIG after a message. */
static int read_text(struct reading *reading, char *text, size_t len)
{
    if (len > FILE_MAX_BYTES) {
        say(SAY_ERROR, "%s: larger than %zu kB; give a configuration file", reading->path,
            FILE_MAX_BYTES / 1024);
        return EXIT_CONFIG;
    }
    if (memchr(text, '\0', len)) {
        say(SAY_ERROR, "%s: contains zero bytes; give a text file", reading->path);
        return EXIT_CONFIG;
    }
    text[len] = '\0';
    unsigned line = ini_read(text, handle, reading);
    if (line > 0) {
        reading->line = line;
        refuse(reading, "not a line of this format", "",
               "write [section], key = value, or a comment that begins with #");
    }
    return reading->refused ? EXIT_CONFIG : -1;
}

/* Reads the file `path`. `named_by` is the option or variable that named the file; NULL: none did,
 * and a missing file is no error. Returns -1 on success, or EXIT_CONFIG after a message. */
static int read_path(struct settings *settings, const char *path, const char *named_by)
{
    struct reading reading = {.settings = settings, .path = path, .shard = ""};
    FILE *file = fopen(path, "re");

    if (!file) {
        if (!named_by && (errno == ENOENT || errno == ENOTDIR))
            return -1;
        say(SAY_ERROR, "%s%s%s: %s; give a configuration file that this user may read",
            named_by ? named_by : "", named_by ? " " : "", mask_word(path), strerror(errno));
        return EXIT_CONFIG;
    }
    char *text = must(malloc(FILE_MAX_BYTES + 1));
    size_t len = fread(text, 1, FILE_MAX_BYTES + 1, file);
    int result = EXIT_CONFIG;
    if (ferror(file)) /* a directory, for example */
        say(SAY_ERROR, "%s: %s; give a configuration file", path, strerror(errno));
    else
        result = read_text(&reading, text, len);
    if (reading.secret)
        settings_warn_readable(fileno(file), path);
    fclose(file);
    explicit_bzero(text, len); /* a password may stand there */
    free(text);
    return result;
}

/* Returns true if the file exists. If a directory on its path may not be searched, warns and
 * returns false: HOME may be that of another user (sudo, cron). */
static bool is_there(const char *path)
{
    if (access(path, F_OK) == 0)
        return true;
    if (errno != ENOENT && errno != ENOTDIR)
        say(SAY_WARNING,
            "%s: %s: skipped; if it is yours, make its directory searchable; else set HOME, or "
            "give a file with -f or REDLOCK_CONFIG",
            path, strerror(errno));
    return false;
}

/* Reads one configuration file: that of -f, else that of REDLOCK_CONFIG, else the user's if it
 * exists, else /etc/redlock.conf if it exists. Returns -1 on success, or EXIT_CONFIG after a
 * message. */
int settings_read_file(const struct options *options, struct settings *settings)
{
    const char *named = getenv("REDLOCK_CONFIG");
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;

    if (options->config_file)
        return read_path(settings, options->config_file, "option -f");
    if (named && *named)
        return read_path(settings, named, "REDLOCK_CONFIG");
    if (xdg && *xdg == '/')
        path = text_format("%s/redlock/redlock.conf", xdg);
    else if (home && *home == '/')
        path = text_format("%s/.config/redlock/redlock.conf", home);
    if (path && is_there(path)) {
        int result = read_path(settings, path, NULL);
        free(path);
        return result;
    }
    free(path);
    return read_path(settings, "/etc/redlock.conf", NULL);
}
