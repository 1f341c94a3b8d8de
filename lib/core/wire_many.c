/* SPDX-License-Identifier: MIT
 * Scripts over several keys, and what their answers mean. They look at all keys before they write
 * the first, so that an error (memory, rights, another type) leaves all as it was. Whoever wants to
 * know whether a key is there asks for its PTTL, which goes with every type. */
#include "core/wire_many.h"

#include <redlock/redlock.h>

static const char SCRIPT_ACQUIRE[] =
    "for i,k in ipairs(KEYS) do if redis.call('PTTL',k)~=-2 then return -i end end "
    "for _,k in ipairs(KEYS) do redis.call('SET',k,ARGV[1],'PX',ARGV[2]) end return 1";
/* Keys that are ours are no obstacle, and do not get a shorter life. */
static const char SCRIPT_HEAL[] =
    "for _,k in ipairs(KEYS) do local v=redis.call('GET',k) "
    "if v and v~=ARGV[1] then return 0 end end local ttl=tonumber(ARGV[2]) "
    "for _,k in ipairs(KEYS) do if redis.call('PTTL',k)<ttl then "
    "redis.call('SET',k,ARGV[1],'PX',ARGV[2]) end end return 1";
/* Always writes, as the one of a single key does. */
static const char SCRIPT_EXTEND[] =
    "for _,k in ipairs(KEYS) do if redis.call('GET',k)~=ARGV[1] then return 0 end end "
    "local ttl=tonumber(ARGV[2]) for _,k in ipairs(KEYS) do "
    "local left=redis.call('PTTL',k) if left<ttl then left=ttl end "
    "redis.call('PEXPIRE',k,left) end return 1";
/* One key of another type must not keep the others from being given back. */
static const char SCRIPT_RELEASE[] =
    "local n=0 for _,k in ipairs(KEYS) do local v=redis.pcall('GET',k) "
    "if v==ARGV[1] then n=n+redis.call('DEL',k) "
    "elseif type(v)=='table' and string.sub(v.err,1,9)~='WRONGTYPE' then return v end end return n";
static const char SCRIPT_SHORTEN[] =
    "local n=0 for _,k in ipairs(KEYS) do local v=redis.pcall('GET',k) "
    "if v==ARGV[1] then n=n+redis.call('PEXPIRE',k,ARGV[2]) "
    "elseif type(v)=='table' and string.sub(v.err,1,9)~='WRONGTYPE' then return v end end return n";

/* Compares and writes nothing. */
static const char SCRIPT_GET[] =
    "for _,k in ipairs(KEYS) do if redis.call('GET',k)~=ARGV[1] then return 0 end end return 1";

static_assert(sizeof SCRIPT_HEAL <= RL_SCRIPT_MANY_MAX &&
                  sizeof SCRIPT_EXTEND <= RL_SCRIPT_MANY_MAX,
              "undos and requests find room");
static_assert(sizeof SCRIPT_RELEASE <= RL_SCRIPT_MANY_MAX &&
                  sizeof SCRIPT_SHORTEN <= RL_SCRIPT_MANY_MAX,
              "undos and requests find room");

const char *rl_wire_many_script(enum rl_verb verb)
{
    switch (verb) {
    case RL_VERB_ACQUIRE:
        return SCRIPT_ACQUIRE;
    case RL_VERB_HEAL:
        return SCRIPT_HEAL;
    case RL_VERB_EXTEND:
        return SCRIPT_EXTEND;
    case RL_VERB_RELEASE:
        return SCRIPT_RELEASE;
    case RL_VERB_GET:
        return SCRIPT_GET;
    default:
        RL_ASSERT(verb == RL_VERB_SHORTEN);
        return SCRIPT_SHORTEN;
    }
}

void rl_wire_many_command(struct rl_command *command, enum rl_verb verb, const struct rl_arg *keys,
                          unsigned count, struct rl_arg token, uint64_t ttl_ms)
{
    RL_ASSERT(count >= 2 && count <= RL_KEYS_MAX);
    command->count = command->numbers_used = 0;
    rl_wire_say(command, "EVAL");
    rl_wire_say(command, rl_wire_many_script(verb));
    rl_wire_say_number(command, count);
    for (unsigned i = 0; i < count; i++)
        rl_wire_say_arg(command, keys[i]);
    rl_wire_say_arg(command, token);
    if (verb != RL_VERB_RELEASE && verb != RL_VERB_GET)
        rl_wire_say_number(command, ttl_ms);
}

static struct rl_answer vote(bool granted)
{
    return (struct rl_answer){.vote = granted ? RL_VOTE_GRANTED : RL_VOTE_DENIED};
}

struct rl_answer rl_wire_many_answer(enum rl_verb verb, unsigned count,
                                     const struct rl_reply *reply)
{
    const struct rl_answer malformed = {.vote = RL_VOTE_FAILED, .cause = REDLOCK_CAUSE_PROTOCOL};
    int64_t said = reply->integer, keys = (int64_t)count;

    if (reply->kind == RL_REPLY_ERROR) {
        int cause = rl_wire_error_cause(reply->text, reply->len);
        if (cause == REDLOCK_CAUSE_WRONGTYPE)
            return vote(false);
        return (struct rl_answer){.vote = RL_VOTE_FAILED, .cause = cause};
    }
    if (reply->kind != RL_REPLY_INTEGER)
        return malformed;
    struct rl_answer answer;
    switch (verb) {
    case RL_VERB_ACQUIRE:
        if (said == 1)
            return vote(true);
        answer = vote(false);
        answer.key = said < 0 && said >= -keys ? (uint8_t)-said : 0;
        return answer.key != 0 ? answer : malformed;
    case RL_VERB_HEAL:
    case RL_VERB_EXTEND:
    case RL_VERB_GET:
        return said == 0 || said == 1 ? vote(said == 1) : malformed;
    default:
        RL_ASSERT(verb == RL_VERB_RELEASE || verb == RL_VERB_SHORTEN);
        return said >= 0 && said <= keys ? vote(said == keys) : malformed;
    }
}
