/* SPDX-License-Identifier: MIT
 * Adds nodes and shards to a configuration. A node of a configuration is the parsed address of one
 * server (struct rl_node_spec). The user names servers in one of two forms:
 * - A plain list, "redis://h1,redis://h2": commas, blanks, tabs or line ends separate its entries,
 *   and each entry is an address. All nodes belong to one shard, whose name is "".
 * - A list of shards, "east=redis://h1,redis://h2;west=redis://h3": it begins with "name=". Each
 *   entry that begins with "name=" starts a new shard, and ';' is one more separator.
 * A configuration has either the one shard without a name or only shards with names. To add a list
 * of shards, add_list() makes a copy, cut() cuts the copy into one name and one plain list for each
 * shard, add_pieces() adds these, and add_shard() adds one of them.
 *
 * A function that refuses its input writes a text for redlock_config_error() to config->error and
 * adds nothing. The configuration stays usable. */
#include "api/config.h"

#include "api/url.h"
#include "api/url_mask.h"

#include <string.h>

/* Returns whether the byte may be part of a shard's name. */
static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

/* Returns the number of bytes at the start of `text` that may be part of a shard's name. The result
 * may be larger than RL_SHARD_NAME_MAX; 0: the first byte is none of them. */
static size_t name_len(const char *text)
{
    size_t len = 0;

    while (is_name_byte(text[len]))
        len++;
    return len;
}

/* Returns whether the entry of a list that begins at `entry` begins with "name=". The rest of the
 * list may follow the entry. */
static bool begins_shard(const char *entry)
{
    size_t len = name_len(entry);

    return len > 0 && entry[len] == '=';
}

/* Returns whether the byte separates entries in a list of shards: ',', ' ', '\t', '\n', '\r' or
 * ';'. */
static bool is_separator(char byte)
{
    return rl_url_is_separator(byte) || byte == ';';
}

/* Returns whether `text` is a list of shards: its first entry begins with "name=". */
static bool is_list_of_shards(const char *text)
{
    while (is_separator(*text))
        text++;
    return begins_shard(text);
}

/* Writes "shard '<name>': <why>" to config->error. Returns REDLOCK_EINVAL. */
static int refuse(struct redlock_config *config, const char *name, const char *why)
{
    rl_config_refuse(config, "shard '%.*s': %s", RL_SHARD_NAME_MAX, name, why);
    return REDLOCK_EINVAL;
}

/* Appends one node for each address of the plain list `urls` to config->nodes, or nothing on
 * failure. Returns REDLOCK_OK, REDLOCK_EINVAL (a wrong address, or none at all) or REDLOCK_ENOMEM.
 * On failure writes the reason to `error`, a buffer of `size` bytes. */
static int parse(struct redlock_config *config, const char *urls, char *error, size_t size)
{
    return rl_url_parse_list(&config->mem, urls, &config->nodes, &config->node_count, error, size);
}

/* Checks that a shard called `name` may be added. Returns REDLOCK_OK; or REDLOCK_EINVAL, with a
 * reason in config->error, if the name is not allowed or in use, if there is a shard without a
 * name, or if there are RL_SHARDS_MAX shards. */
static int check_shard(struct redlock_config *config, const char *name)
{
    size_t len = name_len(name);

    if (len == 0 || len > RL_SHARD_NAME_MAX || name[len] != '\0') {
        rl_config_refuse(config,
                         "name of a shard: it must be 1 to %d letters, digits, '.', '_', '-'",
                         RL_SHARD_NAME_MAX);
        return REDLOCK_EINVAL;
    }
    for (unsigned i = 0; i < config->shard_count; i++) {
        if (config->shards[i].name[0] == '\0')
            return refuse(config, name,
                          "there are servers without a shard; give each shard a name");
        if (strcmp(config->shards[i].name, name) == 0)
            return refuse(config, name, "it exists already; give all its servers at once");
    }
    if (config->shard_count == RL_SHARDS_MAX) {
        rl_config_refuse(config, "more than %d shards", RL_SHARDS_MAX);
        return REDLOCK_EINVAL;
    }
    return REDLOCK_OK;
}

/* Adds one shard called `name` with the nodes of the plain list `urls`. Returns REDLOCK_OK,
 * REDLOCK_EINVAL or REDLOCK_ENOMEM; on failure adds nothing and writes a reason to config->error.
 */
static int add_shard(struct redlock_config *config, const char *name, const char *urls)
{
    /* Leaves room in config->error for "shard '<name>': ", which has 10 bytes beside the name. */
    char why[sizeof config->error - RL_SHARD_NAME_MAX - 16];
    size_t before = config->node_count;

    int error = check_shard(config, name);
    if (error != REDLOCK_OK)
        return error;
    error = parse(config, urls, why, sizeof why);
    if (error != REDLOCK_OK) {
        (void)refuse(config, name, why);
        return error;
    }
    struct rl_config_shard *shard = &config->shards[config->shard_count++];
    memcpy(shard->name, name, strlen(name) + 1);
    shard->first = (unsigned)before;
    shard->count = (unsigned)(config->node_count - before);
    return REDLOCK_OK;
}

/* Public function: adds one shard called `name` with the servers in the plain list `urls`. Returns
 * REDLOCK_OK; REDLOCK_EINVAL if an argument is NULL or wrong; or REDLOCK_ENOMEM. */
REDLOCK_API int redlock_config_add_shard(redlock_config_t *config, const char *name,
                                         const char *urls)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (name == NULL || urls == NULL) {
        rl_config_refuse(config, "shard: NULL given; it needs a name and addresses");
        return REDLOCK_EINVAL;
    }
    return add_shard(config, name, urls);
}

/* The names and addresses of a list of shards, as cut() finds them. The struct is a local variable
 * of add_list(). Its pointers point into the copy of the list that add_list() makes, and are valid
 * as long as this copy. */
struct pieces {
    unsigned count; /* shards in the list, 0 to RL_SHARDS_MAX */
    const char
        *names[RL_SHARDS_MAX];       /* names[i]: the name of shard i < count; length not checked */
    const char *urls[RL_SHARDS_MAX]; /* urls[i]: the plain list of its addresses; may be "" */
};

/* Cuts `text`, a list of shards, into strings and stores their positions in `ret`. Changes `text`:
 * writes a NUL over the '=' after each name and over the separator before each name, and ',' over
 * each other ';'. Returns false, with `text` half cut, if the list has more than RL_SHARDS_MAX
 * shards; else true. */
static bool cut(char *text, struct pieces *ret)
{
    bool between = true; /* an entry may begin at `at`: the byte before is a separator or none */

    ret->count = 0;
    for (char *at = text; *at != '\0'; at++) {
        if (between && begins_shard(at)) {
            if (ret->count == RL_SHARDS_MAX)
                return false;
            if (at > text)
                at[-1] = '\0';
            ret->names[ret->count] = at;
            at += name_len(at);
            *at = '\0';
            ret->urls[ret->count++] = at + 1;
        }
        between = is_separator(*at);
        if (*at == ';')
            *at = ',';
    }
    return true;
}

/* Returns the addresses of the first shard whose list is torn; NULL if no list is. A list is torn
 * if one of its entries has an '@' but no known scheme, such as "cret@h" in "redis://u:se,cret@h".
 * Then the entry is probably the end of a password that contains a separator (rl_url_is_torn()). */
static const char *find_torn(const struct pieces *pieces)
{
    for (unsigned i = 0; i < pieces->count; i++) {
        if (rl_url_is_torn(pieces->urls[i]))
            return pieces->urls[i];
    }
    return NULL;
}

/* Adds all shards of `pieces`, or none. Returns REDLOCK_OK, REDLOCK_EINVAL or REDLOCK_ENOMEM, on
 * failure with a reason in config->error. A torn list is refused before any shard is added, because
 * the message about another shard could show a part of the torn password as a shard's name. */
static int add_pieces(struct redlock_config *config, const struct pieces *pieces)
{
    size_t nodes = config->node_count;
    unsigned shards = config->shard_count;
    int error = REDLOCK_OK;

    const char *torn = find_torn(pieces);
    if (torn != NULL)
        return parse(config, torn, config->error,
                     sizeof config->error); /* always fails, with a text that shows no address */
    for (unsigned i = 0; error == REDLOCK_OK && i < pieces->count; i++)
        error = add_shard(config, pieces->names[i], pieces->urls[i]);
    if (error == REDLOCK_OK)
        return error;
    config->shard_count = shards; /* removes the shards and nodes that the loop has added */
    while (config->node_count > nodes)
        rl_node_spec_done(&config->mem, &config->nodes[--config->node_count]);
    return error;
}

/* Adds all shards of `text`, a list of shards, or none. Returns REDLOCK_OK, REDLOCK_EINVAL or
 * REDLOCK_ENOMEM, on failure with a reason in config->error. Works on a copy of `text` that cut()
 * may change, and overwrites the copy before it is freed, because it may contain passwords. */
static int add_list(struct redlock_config *config, const char *text)
{
    struct pieces pieces;
    size_t len = strlen(text);
    char *copy = rl_strdup_len(&config->mem, text, len);
    int error = REDLOCK_EINVAL;

    if (copy == NULL) {
        rl_config_refuse(config, "out of memory");
        return REDLOCK_ENOMEM;
    }
    if (cut(copy, &pieces))
        error = add_pieces(config, &pieces);
    else
        rl_config_refuse(config, "more than %d shards", RL_SHARDS_MAX);
    rl_free_wiped(&config->mem, copy, len);
    return error;
}

/* Public function: adds the servers of `urls`, which is a list of shards or a plain list. The
 * servers of a plain list join the shard without a name, which is created if it is missing. Returns
 * REDLOCK_OK; REDLOCK_EINVAL if an argument is NULL or wrong, or if a plain list is added to a
 * configuration with named shards; or REDLOCK_ENOMEM. On failure adds nothing. */
REDLOCK_API int redlock_config_add_nodes(redlock_config_t *config, const char *urls)
{
    if (config == NULL)
        return REDLOCK_EINVAL;
    if (urls == NULL) {
        rl_config_refuse(config, "server addresses: NULL given; name at least one, as "
                                 "redis://host:6379");
        return REDLOCK_EINVAL;
    }
    if (is_list_of_shards(urls))
        return add_list(config, urls);
    if (config->shard_count > 0 && config->shards[0].name[0] != '\0') {
        rl_config_refuse(config, "server addresses: there are shards already; give the shard of "
                                 "these, as name=redis://host:6379");
        return REDLOCK_EINVAL;
    }
    int error = parse(config, urls, config->error, sizeof config->error);
    if (error != REDLOCK_OK)
        return error;
    config->shard_count = 1; /* a list that was refused may have left a name in shards[0] */
    config->shards[0] =
        (struct rl_config_shard){.name = "", .first = 0, .count = (unsigned)config->node_count};
    return REDLOCK_OK;
}
