/* SPDX-License-Identifier: MIT
 * Adds nodes and shards to a configuration. A list that begins with "name=" is a list of shards.
 * Each entry of it that begins with "name=" starts a new shard, and ';' separates entries as ','
 * does. */
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

/* Returns the length of the shard's name at the start of `text`. 0: there is none. */
static size_t name_len(const char *text)
{
    size_t len = 0;

    while (is_name_byte(text[len]))
        len++;
    return len;
}

/* Returns whether the entry begins with "name=". */
static bool begins_shard(const char *entry)
{
    size_t len = name_len(entry);

    return len > 0 && entry[len] == '=';
}

/* Returns whether the byte separates entries in a list of shards. */
static bool is_separator(char byte)
{
    return rl_url_is_separator(byte) || byte == ';';
}

/* Returns whether the first entry begins with "name=". */
static bool is_list_of_shards(const char *text)
{
    while (is_separator(*text))
        text++;
    return begins_shard(text);
}

/* Refuses a shard. Returns REDLOCK_EINVAL. */
static int refuse(struct redlock_config *config, const char *name, const char *why)
{
    rl_config_refuse(config, "shard '%.*s': %s", RL_SHARD_NAME_MAX, name, why);
    return REDLOCK_EINVAL;
}

/* Appends the nodes of `urls`, all or none. On failure writes the reason to `error`. */
static int parse(struct redlock_config *config, const char *urls, char *error, size_t size)
{
    return rl_url_parse_list(&config->mem, urls, &config->nodes, &config->node_count, error, size);
}

/* Checks that a shard with this name may be added. */
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

/* Adds a shard with the nodes of `urls`. */
static int add_shard(struct redlock_config *config, const char *name, const char *urls)
{
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

/* A list of shards that was cut into strings. On the stack of add_list(); the strings are in its
 * copy of the list. */
struct pieces {
    unsigned count;
    const char *names[RL_SHARDS_MAX], *urls[RL_SHARDS_MAX]; /* of each shard, `count` */
};

/* Cuts a list of shards into strings, by writing NULs into it. False: more than RL_SHARDS_MAX. */
static bool cut(char *text, struct pieces *ret)
{
    bool between = true;

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

/* Returns the addresses of the first shard in which a password seems to contain a separator; NULL:
 * there is none. They must be refused first, because an error in another part would show pieces of
 * the password. */
static const char *find_torn(const struct pieces *pieces)
{
    for (unsigned i = 0; i < pieces->count; i++) {
        if (rl_url_is_torn(pieces->urls[i]))
            return pieces->urls[i];
    }
    return NULL;
}

/* Adds all shards of a list, or none of them. */
static int add_pieces(struct redlock_config *config, const struct pieces *pieces)
{
    size_t nodes = config->node_count;
    unsigned shards = config->shard_count;
    int error = REDLOCK_OK;

    const char *torn = find_torn(pieces);
    if (torn != NULL)
        return parse(config, torn, config->error,
                     sizeof config->error); /* refuses it with a text that shows nothing of it */
    for (unsigned i = 0; error == REDLOCK_OK && i < pieces->count; i++)
        error = add_shard(config, pieces->names[i], pieces->urls[i]);
    if (error == REDLOCK_OK)
        return error;
    config->shard_count = shards;
    while (config->node_count > nodes)
        rl_node_spec_done(&config->mem, &config->nodes[--config->node_count]);
    return error;
}

/* Adds the shards of a list. The copy is wiped because it may contain passwords. */
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
    config->shard_count = 1;
    config->shards[0].count = (unsigned)config->node_count;
    return REDLOCK_OK;
}
