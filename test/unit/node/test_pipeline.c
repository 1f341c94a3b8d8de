/* SPDX-License-Identifier: MIT
 * The pipeline of a connection: how much of each request was sent, which requests can still be
 * removed, and how the connection may be closed. Tested with tables, and with random operations
 * compared with a model that keeps every byte. */
#include "node/pipeline.h"

#include <stdlib.h>
#include <string.h>

/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "suite.h"

static struct rl_mem libc;
static struct rl_inbox inbox = {.mem = &libc};

/* Prepares an empty pipeline. */
static void init(struct rl_pipeline *pipe)
{
    libc = rl_mem_libc();
    memset(pipe, 0, sizeof *pipe);
    pipe->mem = &libc;
    pipe->inbox = &inbox;
}

/* Returns a new claim for the key `letter`. */
static struct rl_claim *new_claim(char letter)
{
    libc = rl_mem_libc();
    struct rl_claim *claim = rl_claim_new(&libc, (struct rl_arg){&letter, 1}, 8);
    ck_assert_ptr_nonnull(claim);
    return claim;
}

/* Appends a request with these bytes. */
static void push_request(struct rl_pipeline *pipe, struct rl_claim *claim, enum rl_verb verb,
                         const char *bytes)
{
    struct rl_request request = {.claim = claim, .verb = (uint8_t)verb, .round = 1};

    ck_assert(rl_pipeline_push(pipe, &request, bytes, strlen(bytes)));
}

/* ---- cutting ---- */

START_TEST(cutting_removes_the_unsent_requests_of_a_claim)
{
    struct rl_pipeline pipe;
    struct rl_claim *a = new_claim('a'), *b = new_claim('b');

    init(&pipe);
    push_request(&pipe, a, RL_VERB_ACQUIRE, "aaaa");
    push_request(&pipe, b, RL_VERB_ACQUIRE, "bbb");
    push_request(&pipe, a, RL_VERB_EXTEND, "AA");
    push_request(&pipe, b, RL_VERB_RELEASE, "BBBBB");
    ck_assert(rl_pipeline_cut(&pipe, a)); /* true: the SET was removed, so no key can exist */
    ck_assert_uint_eq(pipe.out_len, 8);
    ck_assert_mem_eq(pipe.out, "bbbBBBBB", 8);
    ck_assert_uint_eq(a->refs, 1);
    ck_assert_uint_eq(rl_pipeline_count(&pipe), 2);
    rl_pipeline_sent(&pipe, 4); /* SET of b, and one byte of its release */
    struct rl_request set = rl_pipeline_pop(&pipe);
    ck_assert_ptr_eq(set.claim, b);
    ck_assert(rl_request_is_whole(&pipe, &set, 0));
    rl_claim_drop(set.claim);
    const struct rl_request *release = rl_pipeline_at(&pipe, pipe.head);
    ck_assert(!rl_request_is_unsent(&pipe, release));
    ck_assert(!rl_request_is_whole(&pipe, release, 0));
    ck_assert(!rl_pipeline_cut(&pipe, b)); /* a request that was sent in part stays */
    ck_assert_uint_eq(pipe.out_len, 4);
    rl_pipeline_sent(&pipe, 4);
    ck_assert(rl_request_is_whole(&pipe, release, 0));
    rl_pipeline_free(&pipe);
    rl_claim_drop(a);
    rl_claim_drop(b);
}
END_TEST

START_TEST(cutting_cannot_remove_a_set_that_was_sent_in_part)
{
    struct rl_pipeline pipe;
    struct rl_claim *a = new_claim('a');

    init(&pipe);
    push_request(&pipe, a, RL_VERB_ACQUIRE, "aaaa");
    rl_pipeline_sent(&pipe, 1);
    push_request(&pipe, a, RL_VERB_EXTEND, "AA");
    push_request(&pipe, a, RL_VERB_HEAL, "HH");
    ck_assert(!rl_pipeline_cut(&pipe, a)); /* false: the SET stays, so an undo must follow */
    ck_assert_uint_eq(pipe.out_len, 3);
    ck_assert_mem_eq(pipe.out, "aaa", 3);
    ck_assert_uint_eq(a->refs, 2);
    ck_assert(!rl_pipeline_cut(&pipe, a));
    rl_pipeline_free(&pipe);
    rl_claim_drop(a);
}
END_TEST

/* ---- bare SETs, which decide how to close: rows of "verb claim bytes-sent-of-4" ---- */

static const struct {
    const char *what, *row;
    bool bare;
} CLOSES[] = {
    {"nothing", "", false},
    {"SET, not a byte sent", "s a0", false}, /* the buffer is discarded with the connection */
    {"SET in part", "s a1", true},
    {"SET, no undo", "s a4", true},
    {"SET and its whole undo", "s a4 r a4", false},
    {"SET, undo in part", "s a4 r a3", true},
    {"SET, undo not sent", "s a4 r a0", true},
    {"SET and release_after", "s a4 S a4", false},
    {"undo alone", "r a4", false},
    {"SET behind its own undo", "r a4 s a4", true},
    {"SET, and the undo of another", "s a4 r b4", true},
    {"two SETs, one undone", "s a4 s b4 r a4", true},
    {"two SETs, both undone", "s a4 s b4 r b4 r a4", false},
    {"heal, no undo", "h a4", true},
    {"heal, undone", "h a4 r a4", false},
    {"extension", "e a4", false}, /* creates no key */
    {"extension behind a SET", "s a4 e a4", true},
    {"SET, undone, another SET unsent", "s a4 r a4 s b0", false},
    {"probe", "p -4", false},
    {"SET behind a probe", "p -4 s a4", true},
};

/* Returns the verb of a letter in a row. */
static enum rl_verb verb_of(char letter)
{
    static const char letters[] = "srSehp";
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RELEASE, RL_VERB_SHORTEN,
                                         RL_VERB_EXTEND,  RL_VERB_HEAL,    RL_VERB_PING};

    return verbs[strchr(letters, letter) - letters];
}

START_TEST(a_set_is_bare_until_its_undo_is_sent)
{
    struct rl_pipeline pipe;
    struct rl_claim *a = new_claim('a'), *b = new_claim('b');
    size_t sent = 0;

    init(&pipe);
    for (const char *at = CLOSES[_i].row; *at != '\0'; at += at[4] == ' ' ? 5 : 4) {
        struct rl_claim *claim = at[2] == 'a' ? a : at[2] == 'b' ? b : NULL;
        push_request(&pipe, claim, verb_of(at[0]), "1234");
        sent += (size_t)(at[3] - '0');
    }
    rl_pipeline_sent(&pipe, sent);
    ck_assert_msg(rl_pipeline_has_bare_set(&pipe, 0) == CLOSES[_i].bare, "%s: %d, expected %d",
                  CLOSES[_i].what, !CLOSES[_i].bare, CLOSES[_i].bare);
    rl_pipeline_free(&pipe);
    rl_claim_drop(a);
    rl_claim_drop(b);
}
END_TEST

/* The last bytes that a connection with records has accepted may be dropped by a close. A SET among
 * them counts as sent, an undo that they reach into does not. */
START_TEST(an_undo_in_a_held_record_does_not_count)
{
    struct rl_pipeline pipe;
    struct rl_claim *a = new_claim('a'), *b = new_claim('b');

    init(&pipe);
    push_request(&pipe, a, RL_VERB_ACQUIRE, "1234");
    push_request(&pipe, a, RL_VERB_RELEASE, "1234");
    push_request(&pipe, b, RL_VERB_PING, "1234");
    rl_pipeline_sent(&pipe, 12);
    ck_assert(!rl_pipeline_has_bare_set(&pipe, 0));
    ck_assert(!rl_pipeline_has_bare_set(&pipe, 4));
    ck_assert(rl_pipeline_has_bare_set(&pipe, 5));
    push_request(&pipe, b, RL_VERB_ACQUIRE, "1234");
    rl_pipeline_sent(&pipe, 4);
    ck_assert(rl_pipeline_has_bare_set(&pipe, 4));
    rl_pipeline_free(&pipe);
    rl_claim_drop(a);
    rl_claim_drop(b);
}
END_TEST

/* The unread bytes that matter when a client closes are those up to the last undo, or request to
 * leave a line. Requests after them, such as a PING, do not matter. */
START_TEST(unread_undos_end_with_the_last_undo)
{
    struct rl_pipeline pipe;
    struct rl_claim *a = new_claim('a');

    init(&pipe);
    push_request(&pipe, NULL, RL_VERB_PING, "12");
    ck_assert_uint_eq(rl_pipeline_unread_undos(&pipe), 0);
    push_request(&pipe, a, RL_VERB_ACQUIRE, "1234");
    push_request(&pipe, a, RL_VERB_RELEASE, "123");
    push_request(&pipe, NULL, RL_VERB_PING, "12");
    rl_pipeline_sent(&pipe, 11);
    ck_assert_uint_eq(rl_pipeline_unread(&pipe), 11);
    ck_assert_uint_eq(rl_pipeline_unread_undos(&pipe), 9);
    (void)rl_pipeline_pop(&pipe);
    ck_assert_uint_eq(rl_pipeline_unread_undos(&pipe), 7);
    push_request(&pipe, a, RL_VERB_LINE_LEAVE, "12345");
    rl_pipeline_sent(&pipe, 5);
    ck_assert_uint_eq(rl_pipeline_unread_undos(&pipe), 14);
    rl_pipeline_free(&pipe);
    rl_claim_drop(a);
}
END_TEST

/* A request that was replied to has left the pipeline. */
START_TEST(an_answered_set_is_not_bare)
{
    struct rl_pipeline pipe;
    struct rl_claim *a = new_claim('a');

    init(&pipe);
    push_request(&pipe, a, RL_VERB_ACQUIRE, "1234");
    push_request(&pipe, a, RL_VERB_RELEASE, "1234");
    rl_pipeline_sent(&pipe, 4);
    ck_assert(rl_pipeline_has_bare_set(&pipe, 0));
    rl_claim_drop(rl_pipeline_pop(&pipe).claim);
    ck_assert(!rl_pipeline_has_bare_set(&pipe, 0));
    rl_pipeline_free(&pipe);
    rl_claim_drop(a);
}
END_TEST

/* ---- memory ---- */

static unsigned allocations_left; /* later ones fail */

/* Reallocates while allocations are left. */
static void *scarce_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    if (allocations_left == 0)
        return NULL;
    allocations_left--;
    return realloc(ptr, size);
}

/* Allocates as scarce_realloc() does. */
static void *scarce_malloc(size_t size, void *userdata)
{
    return scarce_realloc(NULL, size, userdata);
}

/* Frees a block. */
static void plain_free(void *ptr, void *userdata)
{
    (void)userdata;
    free(ptr);
}

/* After a reservation for a request and its undo, both need no further memory, for each number of
 * earlier requests. */
START_TEST(reserved_room_is_there)
{
    const struct rl_mem scarce = {scarce_malloc, scarce_realloc, plain_free, NULL};
    struct rl_claim *a = new_claim('a');
    char bytes[600];

    memset(bytes, 'x', sizeof bytes);
    for (unsigned fill = 0; fill < 70; fill++) {
        struct rl_pipeline pipe = {.mem = &scarce, .inbox = &(struct rl_inbox){.mem = &scarce}};
        struct rl_request request = {.claim = a, .verb = RL_VERB_ACQUIRE};
        allocations_left = UINT32_MAX;
        for (unsigned i = 0; i < fill; i++)
            ck_assert(rl_pipeline_push(&pipe, &request, bytes, 100 + i));
        ck_assert(rl_pipeline_reserve(&pipe, 2, 600 + 500));
        allocations_left = 0;
        ck_assert(rl_pipeline_push(&pipe, &request, bytes, 600));
        request.verb = RL_VERB_RELEASE;
        ck_assert(rl_pipeline_push(&pipe, &request, bytes, 500));
        unsigned pushed = fill + 2;
        while (rl_pipeline_push(&pipe, &request, bytes, 400))
            ck_assert_uint_lt(++pushed, 1000);
        ck_assert_uint_eq(rl_pipeline_count(&pipe), pushed); /* a failed push changes nothing */
        ck_assert_uint_eq(a->refs, pushed + 1);
        ck_assert(!rl_pipeline_reserve(&pipe, 2, 100000 + 1));
        ck_assert_uint_eq(rl_pipeline_count(&pipe), pushed);
        rl_pipeline_free(&pipe);
        rl_inbox_free(pipe.inbox);
        ck_assert_uint_eq(a->refs, 1);
    }
    rl_claim_drop(a);
}
END_TEST

/* ---- random operations, compared with a model ---- */

#define CLAIMS    4
#define MODEL_MAX 1500

/* A request in the model of the pipeline. */
struct model_request {
    int claim; /* -1: none */
    uint8_t verb;
    unsigned len, sent; /* its bytes, and how many of them were sent */
    char byte;          /* all its bytes are this one */
};

static struct model_request model[MODEL_MAX]; /* requests model_head to model_tail - 1 */
static unsigned model_head, model_tail;
static uint64_t word; /* state of the random generator */

/* Returns a random number below `below`. */
static uint64_t random_below(uint64_t below)
{
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    return word % below;
}

/* Does in the model what rl_pipeline_cut() does. */
static bool model_cut(int claim)
{
    bool cut_set = false;
    unsigned kept = model_head;

    for (unsigned i = model_head; i < model_tail; i++) {
        if (model[i].sent > 0 || model[i].claim != claim)
            model[kept++] = model[i];
        else
            cut_set = cut_set || model[i].verb == RL_VERB_ACQUIRE;
    }
    model_tail = kept;
    return cut_set;
}

/* Does in the model what rl_pipeline_sent() does. */
static void model_sent(size_t len)
{
    for (unsigned i = model_head; i < model_tail && len > 0; i++) {
        size_t more = model[i].len - model[i].sent;
        more = more < len ? more : len;
        model[i].sent += (unsigned)more;
        len -= more;
    }
    ck_assert_uint_eq(len, 0);
}

/* Returns true if bytes of a SET were sent, and no whole undo of the same claim after it. */
static bool model_bare(void)
{
    for (unsigned i = model_head; i < model_tail; i++) {
        const struct model_request *set = &model[i];
        bool makes_key = set->verb == RL_VERB_ACQUIRE || set->verb == RL_VERB_HEAL;
        bool undone = false;
        if (!makes_key || set->sent == 0)
            continue;
        for (unsigned j = i + 1; j < model_tail; j++) {
            const struct model_request *undo = &model[j];
            bool deletes = undo->verb == RL_VERB_RELEASE || undo->verb == RL_VERB_SHORTEN;
            undone = undone || (deletes && undo->claim == set->claim && undo->sent == undo->len);
        }
        if (!undone)
            return true;
    }
    return false;
}

/* Compares without the macros of Check, which are too slow for every byte. */
#define SAME(x, y, at)                                                                             \
    do {                                                                                           \
        if ((x) != (y))                                                                            \
            ck_abort_msg("request or byte %zu: '%s' is not '%s'", (size_t)(at), #x, #y);           \
    } while (0)

/* Checks that the pipeline and the model agree in every request and every byte. */
static void check_model(const struct rl_pipeline *pipe)
{
    size_t at = 0;

    ck_assert_uint_eq(rl_pipeline_count(pipe), model_tail - model_head);
    for (unsigned i = model_head; i < model_tail; i++) {
        const struct rl_request *request = rl_pipeline_at(pipe, pipe->head + i - model_head);
        SAME(request->len, model[i].len, i);
        SAME(request->verb, model[i].verb, i);
        SAME(rl_request_is_unsent(pipe, request), (model[i].sent == 0), i);
        SAME(rl_request_is_whole(pipe, request, 0), (model[i].sent == model[i].len), i);
        for (unsigned j = model[i].sent; j < model[i].len; j++, at++) {
            SAME(at < pipe->out_len, true, at);
            SAME(pipe->out[at], model[i].byte, at);
        }
    }
    ck_assert_uint_eq(at, pipe->out_len);
    ck_assert_int_eq(rl_pipeline_has_bare_set(pipe, 0), model_bare());
}

/* Appends a random request to the pipeline and to the model. */
static void random_push(struct rl_pipeline *pipe, struct rl_claim **claims)
{
    static const uint8_t verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RELEASE, RL_VERB_SHORTEN,
                                    RL_VERB_EXTEND, RL_VERB_HEAL};
    char bytes[300];
    struct model_request *request = &model[model_tail++];

    ck_assert_uint_lt(model_tail, MODEL_MAX);
    *request = (struct model_request){
        .claim = (int)random_below(CLAIMS + 1) - 1,
        .verb = verbs[random_below(5)],
        .len = 1 + (unsigned)random_below(random_below(20) == 0 ? sizeof bytes : 12),
        .byte = (char)('!' + random_below(90)),
    };
    memset(bytes, request->byte, sizeof bytes);
    struct rl_request real = {.verb = request->verb, .round = 1};
    if (request->claim < 0)
        real.verb = request->verb = RL_VERB_PING;
    else
        real.claim = claims[request->claim];
    ck_assert(rl_pipeline_push(pipe, &real, bytes, request->len));
}

/* Does one random operation on both. `pushes`: percentage of appended requests. */
static void random_operation(struct rl_pipeline *pipe, struct rl_claim **claims, uint64_t pushes)
{
    uint64_t dice = random_below(100);

    if (dice < pushes) {
        random_push(pipe, claims);
    } else if (dice < 70 && pipe->out_len > 0) {
        size_t len = (size_t)random_below(random_below(4) == 0
                                              ? pipe->out_len + 1
                                              : (pipe->out_len < 20 ? pipe->out_len + 1 : 20));
        model_sent(len);
        rl_pipeline_sent(pipe, len);
    } else if (dice < 78) {
        int claim = (int)random_below(CLAIMS);
        bool expected = model_cut(claim);
        ck_assert_int_eq(rl_pipeline_cut(pipe, claims[claim]), expected);
    } else {
        if (model_head < model_tail && model[model_head].sent == model[model_head].len) {
            struct rl_request request = rl_pipeline_pop(pipe);
            ck_assert_uint_eq(request.verb, model[model_head].verb);
            rl_claim_drop(request.claim);
            model_head++;
        }
    }
}

START_TEST(random_operations_agree_with_the_model)
{
    struct rl_pipeline pipe;
    struct rl_claim *claims[CLAIMS];

    word = 88172645463325252u + (uint64_t)_i * 7919;
    init(&pipe);
    for (int i = 0; i < CLAIMS; i++)
        claims[i] = new_claim((char)('a' + i));
    for (unsigned run = 0; run < 3; run++) {
        model_head = model_tail = 0;
        for (unsigned i = 0; i < 1500; i++) {
            /* Phases of filling and of draining: the ring grows, wraps and runs empty. */
            random_operation(&pipe, claims, i % 500 < 150 ? 60 : 25);
            if (i % 8 == 0)
                check_model(&pipe);
        }
        while (rl_pipeline_count(&pipe) > 0)
            rl_claim_drop(rl_pipeline_pop(&pipe).claim);
        rl_pipeline_free(&pipe);
        init(&pipe);
        for (int i = 0; i < CLAIMS; i++)
            ck_assert_uint_eq(claims[i]->refs, 1);
    }
    rl_pipeline_free(&pipe);
    for (int i = 0; i < CLAIMS; i++)
        rl_claim_drop(claims[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_pipeline");
    TCase *tcase = tcase_create("pipeline");
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, cutting_removes_the_unsent_requests_of_a_claim);
    tcase_add_test(tcase, cutting_cannot_remove_a_set_that_was_sent_in_part);
    tcase_add_loop_test(tcase, a_set_is_bare_until_its_undo_is_sent, 0,
                        (int)(sizeof CLOSES / sizeof CLOSES[0]));
    tcase_add_test(tcase, an_undo_in_a_held_record_does_not_count);
    tcase_add_test(tcase, unread_undos_end_with_the_last_undo);
    tcase_add_test(tcase, an_answered_set_is_not_bare);
    tcase_add_test(tcase, reserved_room_is_there);
    tcase_add_loop_test(tcase, random_operations_agree_with_the_model, 0, 4);
    return suite_run(suite);
}
