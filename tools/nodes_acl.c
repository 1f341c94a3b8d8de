/* SPDX-License-Identifier: MIT
 * `redlock nodes --acl`: the smallest set of rights that the chosen features need.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "settings.h"

static const char *text_of(const struct settings *settings, enum setting_id id)
{
    return settings->values[id].text ? settings->values[id].text : "";
}

int nodes_acl(const struct options *options)
{
    struct settings settings;

    int result = settings_load(options, &settings);
    if (result >= 0)
        return result;
    const char *prefix = text_of(&settings, SET_PREFIX);
    bool waitaof = strstr(text_of(&settings, SET_SERVERS), "waitaof=1") != NULL;
    const char *fence_key = text_of(&settings, SET_FENCE_KEY);
    printf("# For each server. With AUTH and SELECT, which need no right, this is all that is "
           "sent.\n");
    printf("ACL SETUSER redlock on >PASSWORD resetkeys '~%s*' %s%s%sresetchannels "
           "'&__redis__:invalidate' -@all +set +get "
           "+del "
           "+pexpire +pttl +eval +evalsha +script|load +info +time +ping +select "
           "+client|setname +client|id +client|tracking +subscribe%s%s\n",
           prefix, options->fence ? "'~" : "", options->fence ? fence_key : "",
           options->fence ? "' " : "", options->fence ? " +hget +hset" : "",
           waitaof ? " +waitaof" : "");
    printf("# Before Redis 7, write +client for the three of them. Without +client|id,\n"
           "# +client|tracking, +subscribe and the channel all works, but who waits has to ask.\n");
    printf("# Redis 8.4 and later: add +delex. Valkey 9 and later: add +delifeq.\n");
    if (!options->fence)
        printf("# With fences: redlock nodes --acl --fence\n");
    if (!waitaof)
        printf("# For servers that are listed with ?waitaof=1: add +waitaof.\n");
    settings_free(&settings);
    return 0;
}
