/* SPDX-License-Identifier: MIT
 * The Lua scripts. `sha` is the SHA1 of `text`, so it changes with every byte of the text;
 * test/unit/test_wire.c compares them.
 *
 * No script has a "#!lua" line: with one, a server at maxmemory refuses the script, also one that
 * only deletes. Scripts that grant always write, so that a server that has become a replica refuses
 * them (READONLY) instead of confirming a key that its master may have changed.
 *
 * Fence records: a record is one hash. Field `cfg` is the fingerprint, followed by the run id of
 * the server to which the record is bound (nothing if the record is durable). Field `mark` is
 * written by the client that first finds the record not in use. Field s is the register of stripe
 * s. Numbers are passed as decimal strings, because Lua formats numbers with 14 digits only; it
 * compares them as doubles, which are exact below 2^53. Replies are one bulk string, because the
 * reader of replies rejects arrays here. The only commands called are GET, SET, PTTL, HGET and
 * HSET, which keeps the rights short that a user needs.
 *
 * Several keys: a script reads all keys before it writes the first, so that an error (memory,
 * rights, another type) changes nothing. PTTL tests whether a key exists, because it works with
 * keys of every type. */
#include "core/scripts.h"

const struct rl_script rl_script_check = {
    .text = "return 1",
    .sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
};

/* ---- one key. KEYS: key of the lock. ARGV: token, ttl in ms (not for release) ---- */

/* Raises the TTL of the key to the given one if the key has the token. Returns 1, or 0 if it has
 * not. Never shortens the TTL: an old request may be executed after a newer one with a longer TTL.
 */
const struct rl_script rl_script_extend = {
    .text = "if redis.call('GET',KEYS[1])==ARGV[1] then "
            "local left=redis.call('PTTL',KEYS[1]) local ttl=tonumber(ARGV[2]) "
            "if left>ttl then ttl=left end "
            "redis.call('PEXPIRE',KEYS[1],ttl) return 1 end return 0",
    .sha = "367d0abe679838553ab6fab13be5d9b0cfae092b",
};

/* Deletes the key if it has the token. Returns 1, or 0 if it has not. */
const struct rl_script rl_script_release = {
    .text =
        "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0",
    .sha = "5c714dd8ed5b943a1f472132e06290c53ab22693",
};

/* Sets the TTL of the key to exactly the given one, if the key has the token. Returns 1, or 0 if it
 * has not. */
const struct rl_script rl_script_shorten = {
    .text = "if redis.call('GET',KEYS[1])==ARGV[1] then "
            "return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0",
    .sha = "68acc660facaa8309b44ff34c73caa7e7a12688a",
};

/* ---- fences. The replies are described at the classifiers in core/protocol.c: M, R, C: the record
 * cannot be used; A, G, D, L, S: see there ---- */

/* Acquires the lock, and stores the proposal in the register if it is larger than the number there.
 * KEYS: lock, record. ARGV: token, ttl in ms, stripe, proposal, fingerprint. */
const struct rl_script rl_script_vote = {
    .text = "local cfg=redis.call('HGET',KEYS[2],'cfg') if not cfg then return 'M' end "
            "if string.sub(cfg,1,#ARGV[5])~=ARGV[5] then return 'R '..string.sub(cfg,1,200) end "
            "local prev=redis.call('HGET',KEYS[2],ARGV[3]) or '0' "
            "if #prev>16 or not string.find(prev,'^%d+$') or tonumber(prev)>=9007199254740990 then "
            "return 'C' end "
            "if not redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then "
            "return 'D '..prev..' '..string.format('%.0f',redis.call('PTTL',KEYS[1])) end "
            "local word='G ' if tonumber(ARGV[4])>tonumber(prev) then "
            "redis.call('HSET',KEYS[2],ARGV[3],ARGV[4]) word='A ' end "
            "return word..prev..' '..string.sub(cfg,#ARGV[5]+1,#ARGV[5]+64)",
    .sha = "b3659dbccbcfec4dd1be8999af160b93c1a9d32e",
};

/* Raises the register to at least the fence, if the lock still has our token. KEYS: lock, record.
 * ARGV: token, stripe, fence, fingerprint. Reads the lock with pcall, because another client's key
 * may be of any type. */
const struct rl_script rl_script_raise = {
    .text = "local held=redis.pcall('GET',KEYS[1]) if held~=ARGV[1] then return 'L' end "
            "local cfg=redis.call('HGET',KEYS[2],'cfg') if not cfg then return 'M' end "
            "if string.sub(cfg,1,#ARGV[4])~=ARGV[4] then return 'R '..string.sub(cfg,1,200) end "
            "local prev=redis.call('HGET',KEYS[2],ARGV[2]) or '0' "
            "if #prev>16 or not string.find(prev,'^%d+$') or tonumber(prev)>=9007199254740990 then "
            "return 'C' end "
            "if tonumber(ARGV[3])>tonumber(prev) then prev=ARGV[3] end "
            "redis.call('HSET',KEYS[2],ARGV[2],prev) "
            "return 'A '..string.sub(cfg,#ARGV[4]+1,#ARGV[4]+64)",
    .sha = "705b295dfba164dd0fb148ebc566c5595f4b2f2b",
};

/* Returns configuration, mark and registers of the record. KEYS: record. ARGV: fingerprint, run id,
 * mark, number of stripes. Stores the mark if there is none, the record is not in use by this run
 * of the server, and it does not belong to another configuration. */
const struct rl_script rl_script_read = {
    .text =
        "local f=KEYS[1] local cfg=redis.call('HGET',f,'cfg') or '' "
        "local mark=redis.call('HGET',f,'mark') or '' "
        "if mark=='' and cfg~=ARGV[1]..ARGV[2] and "
        "(cfg=='' or string.sub(cfg,1,#ARGV[1])==ARGV[1]) then "
        "mark=ARGV[3] redis.call('HSET',f,'mark',mark) end "
        "local out={} for s=0,ARGV[4]-1 do local v=redis.call('HGET',f,s) "
        "if v then out[#out+1]=s..':'..string.sub(v,1,17) end end "
        "return string.sub(cfg,1,200)..'\\n'..string.sub(mark,1,64)..'\\n'..table.concat(out,' ')",
    .sha = "5b310c57df1827ef796482604c9cf009e895cdef",
};

/* Raises the registers and takes the record into use. KEYS: record. ARGV: fingerprint, run id, mark
 * ('*': the record's configuration and mark are not compared), "stripe:number ...". Writes the
 * fingerprint last: until then the record is not in use. */
const struct rl_script rl_script_seed = {
    .text =
        "local f=KEYS[1] local cfg=redis.call('HGET',f,'cfg') or '' if ARGV[3]~='*' then "
        "if cfg==ARGV[1]..ARGV[2] then return 'A '..ARGV[2] end "
        "if cfg~='' and string.sub(cfg,1,#ARGV[1])~=ARGV[1] then return 'R "
        "'..string.sub(cfg,1,200) "
        "end if redis.call('HGET',f,'mark')~=ARGV[3] then return 'S' end end "
        "for s,v in string.gmatch(ARGV[4],'(%d+):(%d+)') do "
        "local n=tonumber(redis.call('HGET',f,s) or '0') "
        "if not n or n>=9007199254740990 or tonumber(v)>n then redis.call('HSET',f,s,v) end end "
        "redis.call('HSET',f,'mark','') redis.call('HSET',f,'cfg',ARGV[1]..ARGV[2]) "
        "return 'A '..ARGV[2]",
    .sha = "edafb61863f48b312dd09ef842ea5eea04ae418f",
};

/* ---- several keys. KEYS: all keys of the lock. ARGV: token, ttl in ms ---- */

/* Sets all keys, with the token as value, if none of them exists. Returns 1, or -i if key i,
 * counted from 1, exists; then no key was set. */
const struct rl_script rl_script_acquire_many = {
    .text = "for i,k in ipairs(KEYS) do if redis.call('PTTL',k)~=-2 then return -i end end "
            "for _,k in ipairs(KEYS) do redis.call('SET',k,ARGV[1],'PX',ARGV[2]) end return 1",
};

/* Sets all keys, unless one of them has another token. Returns 1, or 0 if one has. Does not shorten
 * the TTL of a key that has the token already. */
const struct rl_script rl_script_heal_many = {
    .text = "for _,k in ipairs(KEYS) do local v=redis.call('GET',k) "
            "if v and v~=ARGV[1] then return 0 end end local ttl=tonumber(ARGV[2]) "
            "for _,k in ipairs(KEYS) do if redis.call('PTTL',k)<ttl then "
            "redis.call('SET',k,ARGV[1],'PX',ARGV[2]) end end return 1",
};

/* Raises the TTL of all keys to the given one, if all of them have the token. Returns 1, or 0 if
 * one has not; then no TTL has changed. */
const struct rl_script rl_script_extend_many = {
    .text = "for _,k in ipairs(KEYS) do if redis.call('GET',k)~=ARGV[1] then return 0 end end "
            "local ttl=tonumber(ARGV[2]) for _,k in ipairs(KEYS) do "
            "local left=redis.call('PTTL',k) if left<ttl then left=ttl end "
            "redis.call('PEXPIRE',k,left) end return 1",
};

/* Deletes the keys that have the token, and returns their number. A key that is not a string is
 * skipped; any other error ends the script. */
const struct rl_script rl_script_release_many = {
    .text = "local n=0 for _,k in ipairs(KEYS) do local v=redis.pcall('GET',k) "
            "if v==ARGV[1] then n=n+redis.call('DEL',k) "
            "elseif type(v)=='table' and string.sub(v.err,1,9)~='WRONGTYPE' then return v end end "
            "return n",
};

/* Sets the TTL of the keys that have the token to exactly the given one, and returns their number.
 * Skips keys and ends on errors as rl_script_release_many does. */
const struct rl_script rl_script_shorten_many = {
    .text = "local n=0 for _,k in ipairs(KEYS) do local v=redis.pcall('GET',k) "
            "if v==ARGV[1] then n=n+redis.call('PEXPIRE',k,ARGV[2]) "
            "elseif type(v)=='table' and string.sub(v.err,1,9)~='WRONGTYPE' then return v end end "
            "return n",
};

/* Returns 1 if all keys have the token, else 0; writes nothing. */
const struct rl_script rl_script_get_many = {
    .text =
        "for _,k in ipairs(KEYS) do if redis.call('GET',k)~=ARGV[1] then return 0 end end return 1",
};

/* ---- the line of a resource ---- */

/* Works on the line of a resource: its waiters in order of arrival. KEYS: line, lock. ARGV: what to
 * do, id of the waiter, state (w or d), beat, round trip in us, text for people, token or victim,
 * number of heads, beat of the victim.
 *
 * The value of the line is text: the line "redlock-line", then one for each waiter with id, beat,
 * state, round trip and text. The beat differs in all requests of a waiter. The state is w (waits),
 * h (is a head: was notified that it is its turn) or d (cannot be notified). A key with another
 * value is not a line: the script replies X and leaves it alone.
 *
 *   J  joins at the end                G  leaves, if the lock has the token
 *   F  joins in front                  L  leaves
 *   D  removes the victim if its beat is the same; then as J
 *
 * J and F only look, and change the record, if the client is in the line already.
 *
 * Then the first waiters in state w become heads, until there are as many as requested, and each is
 * notified. One that nobody listens for is removed: its client has ended, or has lost its second
 * connection and joins again at its next request. A waiter in state d becomes a head by its own
 * request only. A new line is begun with a
 * PUBLISH that reaches no client, so that a user who may not send notifications begins none.
 * Replies "PLACE STATE LENGTH LEFT", and after these, if there is a head, its id, beat and round
 * trip. PLACE counts from 1; 0, with the state -: not in the line. LEFT is for a head the PTTL of
 * the lock; for others -2 if there is no key, else -1.
 *
 * Nothing is written before the end, so an error leaves the line as it was; turns may have been
 * sent. GETEX reads without making the server track the key, so only heads are notified of changes
 * of the lock. The functions of Lua's strings do the work on the whole value: parsing each waiter
 * takes three times as long.
 */
const struct rl_script rl_script_line = {
    .text = "local s=redis.pcall('GETEX',KEYS[1]) if type(s)=='table' then "
            "if string.sub(s.err,1,9)=='WRONGTYPE' then return 'X' end return s end "
            "local none=not s if none then s='redlock-line\\n' end "
            "if string.sub(s,1,13)~='redlock-line\\n' then return 'X' end "
            "local function cut(a,b,new) s=string.sub(s,1,a-1)..new..string.sub(s,b+1) end "
            "local function find(what) local a=string.find(s,'\\n'..what..' ',1,true) "
            "if a then return a+1,string.find(s,'\\n',a+1,true) end end "
            "local op,me=ARGV[1],ARGV[2] "
            "if op=='D' then local a,b=find(ARGV[7]..' '..ARGV[9]) if a then cut(a,b,'') end end "
            "local a,b=find(me) "
            "if op=='L' or (op=='G' and redis.pcall('GET',KEYS[2])==ARGV[7]) then "
            "if a then cut(a,b,'') end "
            "elseif a then local state,text=string.match(s,'%d+ (%a) %d+ ([^\\n]*)',a+#me+1) "
            "if ARGV[3]=='d' or state=='d' then state=ARGV[3] end "
            "cut(a,b,me..' '..ARGV[4]..' '..state..' '..ARGV[5]..' '..text..'\\n') "
            "elseif op~='G' then "
            "if none then redis.call('PUBLISH','redlock:q:0','') end "
            "a=op=='F' and 14 or #s+1 "
            "cut(a,a-1,me..' '..ARGV[4]..' '..ARGV[3]..' '..ARGV[5]..' '..ARGV[6]..'\\n') end "
            "local at,heads,head=14,0,'' "
            "while at<=#s and heads<tonumber(ARGV[8]) do "
            "local id,beat,state,trip,next="
            "string.match(s,'^(%S+) (%d+) (%a) (%d+) [^\\n]*\\n()',at) "
            "if state=='w' and id~=me and redis.call('PUBLISH','redlock:q:'..id,KEYS[2])==0 then "
            "cut(at,next-1,'') else "
            "if state=='w' or (state=='d' and id==me) then state='h' local x=at+#id+#beat+2 "
            "cut(x,x,'h') end "
            "if state=='h' then heads=heads+1 "
            "if head=='' then head=' '..id..' '..beat..' '..trip end end at=next end end "
            "local place,all,i,left=0,0,13,nil a=find(me) "
            "while i do if i+1==a then place=all+1 end "
            "i=string.find(s,'\\n',i+1,true) if i then all=all+1 end end "
            "local mine=a and string.match(s,'^%d+ (%a)',a+#me+1) or '-' if mine=='h' then "
            "left=redis.call('PTTL',KEYS[2]) "
            "else left=redis.pcall('GETEX',KEYS[2]) and -1 or -2 end "
            "if all>0 then redis.call('SET',KEYS[1],s,'EX',10) "
            "elseif not none then redis.call('DEL',KEYS[1]) end "
            "return place..' '..mine..' '..all..' '..string.format('%.0f',left)..head",
    .sha = "630e26da3176c0018a7081726fc68a1018a24646",
};
