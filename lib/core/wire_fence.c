/* SPDX-License-Identifier: MIT
 * The words of fences.
 *
 * A record is one hash: `cfg`, the fingerprint and behind it the run of the server that it is bound
 * to (nothing if it survives restarts); `mark`, left by whoever first saw that the record is not in
 * use; and a number for each stripe.
 *
 * Numbers go in and out as decimal strings: Lua keeps 14 digits when it formats a number, and has
 * doubles only, which are exact below 2^53. Answers are one bulk string, put together in the
 * script: an array would mean reply objects that grow with what a server says, and the reader
 * refuses them all. Scripts carry no "#!lua" line: with one, a server at maxmemory refuses them.
 * Only GET, SET, PTTL, HGET and HSET are called. */
#include "core/wire_fence.h"

#include <redlock/redlock.h>
#include <string.h>

/* KEYS: lock, record. ARGV: token, ttl, stripe, proposal, fingerprint. */
static const char SCRIPT_VOTE[] =
    "local cfg=redis.call('HGET',KEYS[2],'cfg') if not cfg then return 'M' end "
    "if string.sub(cfg,1,#ARGV[5])~=ARGV[5] then return 'R '..string.sub(cfg,1,200) end "
    "local prev=redis.call('HGET',KEYS[2],ARGV[3]) or '0' "
    "if #prev>16 or not string.find(prev,'^%d+$') or tonumber(prev)>=9007199254740990 then "
    "return 'C' end "
    "if not redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then "
    "return 'D '..prev..' '..string.format('%.0f',redis.call('PTTL',KEYS[1])) end "
    "local word='G ' if tonumber(ARGV[4])>tonumber(prev) then "
    "redis.call('HSET',KEYS[2],ARGV[3],ARGV[4]) word='A ' end "
    "return word..prev..' '..string.sub(cfg,#ARGV[5]+1,#ARGV[5]+64)";

/* KEYS: lock, record. ARGV: token, stripe, number, fingerprint. The key of a lock that is not ours
 * may be of any kind. Always writes, so that a server that has become a replica refuses (READONLY).
 */
static const char SCRIPT_RAISE[] =
    "local held=redis.pcall('GET',KEYS[1]) if held~=ARGV[1] then return 'L' end "
    "local cfg=redis.call('HGET',KEYS[2],'cfg') if not cfg then return 'M' end "
    "if string.sub(cfg,1,#ARGV[4])~=ARGV[4] then return 'R '..string.sub(cfg,1,200) end "
    "local prev=redis.call('HGET',KEYS[2],ARGV[2]) or '0' "
    "if #prev>16 or not string.find(prev,'^%d+$') or tonumber(prev)>=9007199254740990 then "
    "return 'C' end "
    "if tonumber(ARGV[3])>tonumber(prev) then prev=ARGV[3] end "
    "redis.call('HSET',KEYS[2],ARGV[2],prev) "
    "return 'A '..string.sub(cfg,#ARGV[4]+1,#ARGV[4]+64)";

/* KEYS: record. ARGV: fingerprint, run, mark, stripes. Leaves the mark on a record that is not in
 * use, or was not in use by this run, and of no other configuration. */
static const char SCRIPT_READ[] =
    "local f=KEYS[1] local cfg=redis.call('HGET',f,'cfg') or '' "
    "local mark=redis.call('HGET',f,'mark') or '' "
    "if mark=='' and cfg~=ARGV[1]..ARGV[2] and "
    "(cfg=='' or string.sub(cfg,1,#ARGV[1])==ARGV[1]) then "
    "mark=ARGV[3] redis.call('HSET',f,'mark',mark) end "
    "local out={} for s=0,ARGV[4]-1 do local v=redis.call('HGET',f,s) "
    "if v then out[#out+1]=s..':'..string.sub(v,1,17) end end "
    "return string.sub(cfg,1,200)..'\\n'..string.sub(mark,1,64)..'\\n'..table.concat(out,' ')";

/* KEYS: record. ARGV: fingerprint, run, mark ('*': whatever is there), numbers. The fingerprint
 * comes last: until then the record is not in use. */
static const char SCRIPT_SEED[] =
    "local f=KEYS[1] local cfg=redis.call('HGET',f,'cfg') or '' if ARGV[3]~='*' then "
    "if cfg==ARGV[1]..ARGV[2] then return 'A '..ARGV[2] end "
    "if cfg~='' and string.sub(cfg,1,#ARGV[1])~=ARGV[1] then return 'R '..string.sub(cfg,1,200) "
    "end if redis.call('HGET',f,'mark')~=ARGV[3] then return 'S' end end "
    "for s,v in string.gmatch(ARGV[4],'(%d+):(%d+)') do "
    "local n=tonumber(redis.call('HGET',f,s) or '0') "
    "if not n or n>=9007199254740990 or tonumber(v)>n then redis.call('HSET',f,s,v) end end "
    "redis.call('HSET',f,'mark','') redis.call('HSET',f,'cfg',ARGV[1]..ARGV[2]) "
    "return 'A '..ARGV[2]";

static const char SHA_VOTE[] = "b3659dbccbcfec4dd1be8999af160b93c1a9d32e";
static const char SHA_RAISE[] = "705b295dfba164dd0fb148ebc566c5595f4b2f2b";
static const char SHA_READ[] = "5b310c57df1827ef796482604c9cf009e895cdef";
static const char SHA_SEED[] = "edafb61863f48b312dd09ef842ea5eea04ae418f";

const char *rl_wire_fence_script(enum rl_verb verb)
{
    switch (verb) {
    case RL_VERB_ACQUIRE:
        return SCRIPT_VOTE;
    case RL_VERB_RAISE:
        return SCRIPT_RAISE;
    case RL_VERB_READ:
        return SCRIPT_READ;
    default:
        RL_ASSERT(verb == RL_VERB_SEED);
        return SCRIPT_SEED;
    }
}

const char *rl_wire_fence_sha(enum rl_verb verb)
{
    switch (verb) {
    case RL_VERB_ACQUIRE:
        return SHA_VOTE;
    case RL_VERB_RAISE:
        return SHA_RAISE;
    case RL_VERB_READ:
        return SHA_READ;
    default:
        RL_ASSERT(verb == RL_VERB_SEED);
        return SHA_SEED;
    }
}

static void say_script(struct rl_command *command, enum rl_verb verb, enum rl_form form)
{
    RL_ASSERT(form == RL_FORM_SHA || form == RL_FORM_EVAL);
    command->count = command->numbers_used = 0;
    rl_wire_say(command, form == RL_FORM_SHA ? "EVALSHA" : "EVAL");
    rl_wire_say(command, form == RL_FORM_SHA ? rl_wire_script_sha(verb) : rl_wire_script(verb));
}

void rl_wire_vote_command(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                          struct rl_arg key, struct rl_arg token, uint64_t ttl_ms,
                          const struct rl_fence_words *words)
{
    RL_ASSERT(verb == RL_VERB_ACQUIRE || verb == RL_VERB_RAISE);
    say_script(command, verb, form);
    rl_wire_say(command, "2");
    rl_wire_say_arg(command, key);
    rl_wire_say_arg(command, words->record);
    rl_wire_say_arg(command, token);
    if (verb == RL_VERB_ACQUIRE)
        rl_wire_say_number(command, ttl_ms);
    rl_wire_say_number(command, words->stripe);
    rl_wire_say_number(command, words->number);
    rl_wire_say_arg(command, words->config);
}

void rl_wire_record_command(struct rl_command *command, enum rl_verb verb, enum rl_form form,
                            const struct rl_record_words *words)
{
    RL_ASSERT(verb == RL_VERB_READ || verb == RL_VERB_SEED);
    say_script(command, verb, form);
    rl_wire_say(command, "1");
    rl_wire_say_arg(command, words->record);
    rl_wire_say_arg(command, words->config);
    rl_wire_say_arg(command, words->run);
    rl_wire_say_arg(command, words->mark);
    if (verb == RL_VERB_READ)
        rl_wire_say_number(command, RL_FENCE_STRIPES);
    else
        rl_wire_say_arg(command, words->numbers);
}

static struct rl_answer protocol_error(void)
{
    return (struct rl_answer){.vote = RL_VOTE_FAILED, .cause = REDLOCK_CAUSE_PROTOCOL};
}

static struct rl_answer refused(enum rl_record_state state)
{
    return (struct rl_answer){
        .vote = RL_VOTE_FAILED, .cause = REDLOCK_CAUSE_FENCE, .record = (uint8_t)state};
}

/* The word up to the next blank; `text` moves behind it. */
static struct rl_arg next_word(struct rl_arg *text)
{
    const char *end = memchr(text->data, ' ', text->len);
    struct rl_arg word = {text->data, end != NULL ? (size_t)(end - text->data) : text->len};
    size_t used = word.len + (end != NULL);

    text->data += used;
    text->len -= used;
    return word;
}

/* "PREVIOUS RUN" of a grant, "PREVIOUS PTTL" of a denial. */
static struct rl_answer answer_to_vote(enum rl_vote vote, bool accepted, struct rl_arg rest)
{
    struct rl_answer answer = {.vote = vote, .accepted = accepted};
    struct rl_arg number = next_word(&rest);

    if (!rl_fence_parse(number.data, number.len, &answer.number))
        return protocol_error();
    if (vote == RL_VOTE_GRANTED) { /* a denial does not say whose run the record is of */
        answer.record = RL_RECORD_ADMITTED;
        answer.run = rest;
    } else {
        struct rl_arg pttl = next_word(&rest);
        (void)rl_fence_parse(pttl.data, pttl.len, &answer.pttl_ms);
    }
    return answer;
}

struct rl_answer rl_wire_fence_answer(enum rl_verb verb, const struct rl_reply *reply)
{
    struct rl_arg rest = {reply->text, reply->len};

    if (reply->kind != RL_REPLY_BULK)
        return protocol_error();
    if (verb == RL_VERB_READ) {
        struct rl_record_text text;
        return rl_wire_record_parse(reply, &text) ? (struct rl_answer){.vote = RL_VOTE_GRANTED}
                                                  : protocol_error();
    }
    struct rl_arg word = next_word(&rest);
    char letter = word.len == 1 ? word.data[0] : '\0';
    switch (letter) {
    case 'M':
        return refused(RL_RECORD_MISSING);
    case 'R':
        return refused(RL_RECORD_FOREIGN);
    case 'C':
        return refused(RL_RECORD_CORRUPT);
    case 'A':
        if (verb == RL_VERB_ACQUIRE)
            return answer_to_vote(RL_VOTE_GRANTED, true, rest);
        return (struct rl_answer){
            .vote = RL_VOTE_GRANTED, .record = RL_RECORD_ADMITTED, .run = rest};
    case 'G':
        return verb == RL_VERB_ACQUIRE ? answer_to_vote(RL_VOTE_GRANTED, false, rest)
                                       : protocol_error();
    case 'D':
        return verb == RL_VERB_ACQUIRE ? answer_to_vote(RL_VOTE_DENIED, false, rest)
                                       : protocol_error();
    case 'L':
        if (verb == RL_VERB_RAISE)
            return (struct rl_answer){.vote = RL_VOTE_DENIED};
        break;
    case 'S': /* somebody else is about to take the record into use */
        if (verb == RL_VERB_SEED)
            return (struct rl_answer){.vote = RL_VOTE_DENIED, .record = RL_RECORD_MISSING};
        break;
    default:
        break;
    }
    return protocol_error();
}

static bool next_line(struct rl_arg *text, struct rl_arg *ret)
{
    const char *end = memchr(text->data, '\n', text->len);

    if (end == NULL)
        return false;
    *ret = (struct rl_arg){text->data, (size_t)(end - text->data)};
    text->data += ret->len + 1;
    text->len -= ret->len + 1;
    return true;
}

bool rl_wire_record_parse(const struct rl_reply *reply, struct rl_record_text *ret)
{
    struct rl_arg rest = {reply->text, reply->len};

    if (!next_line(&rest, &ret->config) || !next_line(&rest, &ret->mark))
        return false;
    ret->numbers = rest;
    return true;
}

bool rl_wire_record_next(struct rl_arg numbers, size_t *at, unsigned *ret_stripe,
                         uint64_t *ret_number)
{
    if (*at >= numbers.len)
        return false;
    struct rl_arg rest = {numbers.data + *at, numbers.len - *at};
    struct rl_arg word = next_word(&rest);
    const char *colon = memchr(word.data, ':', word.len);
    uint64_t stripe;

    if (colon == NULL)
        return false;
    size_t digits = (size_t)(colon - word.data);
    if (!rl_fence_parse(word.data, digits, &stripe) || stripe >= RL_FENCE_STRIPES ||
        !rl_fence_parse(colon + 1, word.len - digits - 1, ret_number))
        return false;
    *ret_stripe = (unsigned)stripe;
    *at = numbers.len - rest.len;
    return true;
}
