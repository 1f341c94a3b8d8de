/* SPDX-License-Identifier: MIT
 * Packs a state into two words: one column of bits per node, and the bits that belong to no node.
 * The numbers of nodes and attempts are mere names. Columns are sorted, and the smallest result of
 * all orders of the attempts is taken, so that states that differ in names only become one.
 *
 * widths_of() says how many bits each part needs in a model; a part that the model does not use has
 * none. column() and rest() write the parts; unpack_column() and unpack_state() read them in the
 * opposite order, because the part written last is in the lowest bits. */
#include <assert.h>
#include <string.h>

#include "reduce.h"

/* The number of bits of each part; 0: the model does not use it. */
struct widths {
    unsigned value;     /* of a register, a fencing token or a maximum */
    unsigned p;         /* of a proposal */
    unsigned owner;     /* of the owner of a key */
    unsigned flags;     /* of a cell */
    unsigned prev;      /* of a cell's prev */
    unsigned attempts;  /* of a set of attempts: their number */
    unsigned admitted;  /* 1: nodes can be in use or not */
    unsigned clients;   /* number of clients that readmit nodes */
    unsigned residency; /* 1: cells also say which attempts had the key before */
    unsigned column;    /* of all parts of one node */
    unsigned rest;      /* of all parts that belong to no node */
    unsigned starters;  /* number of clients of the first start */
    unsigned before;    /* 1: nodes also have marks_before */
};

/* Returns the number of flags (CELL_*, from the lowest) that a cell of this model can have. */
static unsigned flags_of(const struct model *model)
{
    if (!model->reduced)
        return 8 + model->dels;
    if (model->library)
        return 7;
    return 5 + model_broken(model, BROKEN_VOTE_REPEATED);
}

/* Returns the widths for a model. */
static struct widths widths_of(const struct model *model)
{
    bool small = model->attempts <= 2 && !model->p_is_time;
    struct widths w = {
        .value = small ? 3 : 4,
        .p = model->p_is_time ? 4 : 2,
        .owner = model->attempts <= 3 ? 2 : 3,
        .flags = flags_of(model),
        .prev = model->reduced && !model->library ? 0 : (small ? 3 : 4),
        .attempts = model->attempts,
        .admitted = model->forgets > 0 || model->starters > 0,
        .clients = model->readmitters,
        .residency = model->residencies,
        .starters = model->starters,
        .before = model_broken(model, BROKEN_SEED_ANY_RUN),
    };

    w.column = w.value + model->keys * w.owner + w.admitted + 3 * w.clients +
               (2 + w.before) * w.starters + (w.starters > 0) +
               w.attempts * (w.flags + w.prev + w.residency * (2 + w.attempts));
    w.rest = w.attempts * (3 + w.p + w.value + w.attempts) +
             w.clients * (2 + w.value + w.attempts) + 2 * w.starters + 2 * w.admitted;
    return w;
}

/* Returns whether a column fits into 64 bits and a state into 128. */
bool pack_fits(const struct model *model)
{
    struct widths w = widths_of(model);

    return w.column <= 64 && model->nodes * w.column + w.rest <= 128;
}

/* Appends `width` bits below the present ones, so that the first ones are the highest. */
static void put_bits(uint64_t *bits, uint64_t value, unsigned width)
{
    assert(value >> width == 0);
    *bits = *bits << width | value;
}

/* Removes the lowest `width` bits and returns them. */
static uint64_t take_bits(uint64_t *bits, unsigned width)
{
    uint64_t value = *bits & ((1ULL << width) - 1);

    *bits >>= width;
    return value;
}

/* A renaming: attempt order[i] gets the name i. */
struct names {
    uint8_t order[MODEL_ATTEMPTS_MAX]; /* attempt for each new name */
    uint8_t name[MODEL_ATTEMPTS_MAX];  /* new name for each attempt; follows from `order` */
};

/* Returns the set of attempts with their new names. */
static uint64_t rename_set(const struct model *model, const struct names *names, uint8_t set)
{
    uint64_t renamed = 0;

    for (unsigned a = 0; a < model->attempts; a++)
        if ((set & MODEL_BIT(a)) != 0)
            renamed |= MODEL_BIT(names->name[a]);
    return renamed;
}

/* Returns the bits of node `n`, with renamed attempts. */
static uint64_t column(const struct model *model, const struct widths *w,
                       const struct model_state *state, const struct names *names, unsigned n)
{
    const struct model_node *node = &state->node[n];
    uint64_t bits = 0;

    put_bits(&bits, node->fence, w->value);
    for (unsigned key = 0; key < model->keys; key++)
        put_bits(&bits, node->owner[key] == 0 ? 0 : names->name[node->owner[key] - 1] + 1U,
                 w->owner);
    put_bits(&bits, w->admitted != 0 && node->admitted, w->admitted);
    for (unsigned r = 0; r < w->clients; r++) {
        const struct model_readmitter *client = &state->readmitter[r];
        put_bits(&bits, (node->marks & MODEL_BIT(r)) != 0, 1);
        put_bits(&bits, client->phase != READMIT_IDLE && client->node == n, 1);
        put_bits(&bits, (client->read & MODEL_BIT(n)) != 0, 1);
    }
    put_bits(&bits, (state->used & MODEL_BIT(n)) != 0, w->starters > 0);
    for (unsigned s = 0; s < w->starters; s++) {
        put_bits(&bits, (node->marks & model_start_mark(s)) != 0, 1);
        put_bits(&bits, (node->marks_before & model_start_mark(s)) != 0, w->before);
        put_bits(&bits, (state->starter[s].read & MODEL_BIT(n)) != 0, 1);
    }
    for (unsigned i = 0; i < model->attempts; i++) {
        const struct model_attempt *attempt = &state->attempt[names->order[i]];
        const struct model_cell *cell = &attempt->cell[n];
        put_bits(&bits, cell->flags & ((1U << w->flags) - 1), w->flags);
        put_bits(&bits, cell->prev, w->prev);
        if (w->residency == 0)
            continue;
        put_bits(&bits, (cell->flags & CELL_RESIDED) != 0, 1);
        put_bits(&bits, rename_set(model, names, cell->after), w->attempts);
        put_bits(&bits, (attempt->counts & MODEL_BIT(n)) != 0, 1);
    }
    return bits;
}

/* Returns the bits that belong to no node, with renamed attempts. */
static uint64_t rest(const struct model *model, const struct widths *w,
                     const struct model_state *state, const struct names *names)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < model->attempts; i++) {
        const struct model_attempt *attempt = &state->attempt[names->order[i]];
        put_bits(&bits, attempt->phase, 3);
        put_bits(&bits, attempt->p, w->p);
        put_bits(&bits, attempt->value, w->value);
        put_bits(&bits, rename_set(model, names, attempt->seen), w->attempts);
    }
    for (unsigned r = 0; r < w->clients; r++) {
        put_bits(&bits, state->readmitter[r].phase, 2);
        put_bits(&bits, state->readmitter[r].value, w->value);
        put_bits(&bits, rename_set(model, names, state->readmitter[r].waits), w->attempts);
    }
    for (unsigned s = 0; s < w->starters; s++)
        put_bits(&bits, state->starter[s].phase, 2);
    put_bits(&bits, state->forgets, 2 * w->admitted);
    return bits;
}

/* Sorts the columns in ascending order. */
static void sort_columns(uint64_t *columns, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        uint64_t one = columns[i];
        unsigned at = i;
        for (; at > 0 && columns[at - 1] > one; at--)
            columns[at] = columns[at - 1];
        columns[at] = one;
    }
}

/* Packs the state with these names of the attempts. `sorted`: nodes have no names either. */
static struct packed pack_named(const struct model *model, const struct widths *w,
                                const struct model_state *state, const struct names *names,
                                bool sorted)
{
    uint64_t columns[MODEL_NODES_MAX];
    __extension__ unsigned __int128 bits = rest(model, w, state, names);

    for (unsigned n = 0; n < model->nodes; n++)
        columns[n] = column(model, w, state, names, n);
    if (sorted)
        sort_columns(columns, model->nodes);
    for (unsigned n = 0; n < model->nodes; n++)
        bits = bits << w->column | columns[n];
    return (struct packed){{(uint64_t)(bits >> 64), (uint64_t)bits}};
}

/* Sets the names that follow from the order. */
static void set_names(const struct model *model, struct names *names)
{
    for (unsigned i = 0; i < model->attempts; i++)
        names->name[names->order[i]] = (uint8_t)i;
}

/* Makes the next permutation of `order`, in the lexicographic sequence. Returns false after the
 * last one. */
static bool next_order(uint8_t *order, unsigned count)
{
    unsigned i = count - 1, j = count - 1;

    while (i > 0 && order[i - 1] >= order[i])
        i--;
    if (i == 0)
        return false;
    while (order[j] <= order[i - 1])
        j--;
    uint8_t one = order[i - 1];
    order[i - 1] = order[j];
    order[j] = one;
    for (unsigned left = i, right = count - 1; left < right; left++, right--) {
        one = order[left];
        order[left] = order[right];
        order[right] = one;
    }
    return true;
}

/* Returns a number of attempt `a` that does not depend on names. Attempts are sorted by their
 * numbers, and only for equal numbers both orders are tried. */
static uint64_t number_without_names(const struct model *model, const struct model_state *state,
                                     unsigned a)
{
    const struct model_attempt *attempt = &state->attempt[a];
    uint64_t sum = 0;

    for (unsigned n = 0; n < model->nodes; n++) {
        const struct model_node *node = &state->node[n];
        uint64_t seen = (uint64_t)attempt->cell[n].flags << 8 | (uint64_t)node->fence << 1 |
                        (node->owner[0] == a + 1);
        seen = (seen + 1) * 0x9e3779b97f4a7c15ULL;
        sum += (seen ^ seen >> 29) & 0xffffffffffULL;
    }
    return (uint64_t)attempt->phase << 56 | (uint64_t)attempt->value << 52 |
           (uint64_t)attempt->p << 48 | sum;
}

/* Returns true if the order of the attempts is that of their numbers, smallest first. */
static bool is_ordered(const struct model *model, const struct names *names, const uint64_t *number)
{
    for (unsigned i = 1; i < model->attempts; i++)
        if (number[names->order[i - 1]] > number[names->order[i]])
            return false;
    return true;
}

/* Packs a state. With `symmetric`, states that differ only in the names of nodes and attempts
 * become the same two words. */
struct packed pack_state(const struct model *model, const struct model_state *state, bool symmetric)
{
    struct widths w = widths_of(model);
    struct names names = {{0, 1, 2, 3}, {0, 1, 2, 3}};
    struct packed least = {{UINT64_MAX, UINT64_MAX}};
    uint64_t number[MODEL_ATTEMPTS_MAX];

    /* Attempts for different resources cannot be exchanged. */
    if (!symmetric || model->keys > 1)
        return pack_named(model, &w, state, &names, symmetric);
    for (unsigned a = 0; a < model->attempts; a++)
        number[a] = number_without_names(model, state, a);
    do {
        if (!is_ordered(model, &names, number))
            continue;
        set_names(model, &names);
        struct packed packed = pack_named(model, &w, state, &names, true);
        if (packed.word[0] < least.word[0] ||
            (packed.word[0] == least.word[0] && packed.word[1] < least.word[1]))
            least = packed;
    } while (next_order(names.order, model->attempts));
    return least;
}

/* Restores what column() wrote for node `n`, without a renaming. */
static void unpack_column(const struct model *model, const struct widths *w, uint64_t bits,
                          unsigned n, struct model_state *state)
{
    struct model_node *node = &state->node[n];

    for (unsigned i = model->attempts; i-- > 0;) {
        struct model_cell *cell = &state->attempt[i].cell[n];
        if (w->residency != 0) {
            state->attempt[i].counts |= (uint8_t)(take_bits(&bits, 1) << n);
            cell->after = (uint8_t)take_bits(&bits, w->attempts);
            cell->flags = take_bits(&bits, 1) != 0 ? CELL_RESIDED : 0;
        }
        cell->prev = (uint8_t)take_bits(&bits, w->prev);
        cell->flags |= (uint16_t)take_bits(&bits, w->flags);
    }
    for (unsigned s = w->starters; s-- > 0;) {
        state->starter[s].read |= (uint8_t)(take_bits(&bits, 1) << n);
        node->marks_before |= take_bits(&bits, w->before) != 0 ? model_start_mark(s) : 0;
        node->marks |= take_bits(&bits, 1) != 0 ? model_start_mark(s) : 0;
    }
    state->used |= (uint8_t)(take_bits(&bits, w->starters > 0) << n);
    for (unsigned r = w->clients; r-- > 0;) {
        struct model_readmitter *client = &state->readmitter[r];
        client->read |= (uint8_t)(take_bits(&bits, 1) << n);
        if (take_bits(&bits, 1) != 0)
            client->node = (uint8_t)n;
        node->marks |= (uint8_t)(take_bits(&bits, 1) << r);
    }
    node->admitted = w->admitted == 0 || take_bits(&bits, w->admitted) != 0;
    for (unsigned key = model->keys; key-- > 0;)
        node->owner[key] = (uint8_t)take_bits(&bits, w->owner);
    node->fence = (uint8_t)take_bits(&bits, w->value);
}

/* Restores a state from its two words. After a symmetric packing, nodes and attempts have other
 * names than in the packed state. */
void unpack_state(const struct model *model, struct packed packed, struct model_state *state)
{
    struct widths w = widths_of(model);
    __extension__ unsigned __int128 bits = packed.word[0];

    bits = bits << 64 | packed.word[1];
    memset(state, 0, sizeof *state);
    for (unsigned n = model->nodes; n-- > 0; bits >>= w.column) {
        uint64_t mask = w.column == 64 ? ~0ULL : (1ULL << w.column) - 1;
        unpack_column(model, &w, (uint64_t)bits & mask, n, state);
    }
    uint64_t left = (uint64_t)bits;
    state->forgets = (uint8_t)take_bits(&left, 2 * w.admitted);
    for (unsigned s = w.starters; s-- > 0;)
        state->starter[s].phase = (uint8_t)take_bits(&left, 2);
    for (unsigned r = w.clients; r-- > 0;) {
        state->readmitter[r].waits = (uint8_t)take_bits(&left, w.attempts);
        state->readmitter[r].value = (uint8_t)take_bits(&left, w.value);
        state->readmitter[r].phase = (uint8_t)take_bits(&left, 2);
    }
    for (unsigned i = model->attempts; i-- > 0;) {
        state->attempt[i].seen = (uint8_t)take_bits(&left, w.attempts);
        state->attempt[i].value = (uint8_t)take_bits(&left, w.value);
        state->attempt[i].p = (uint8_t)take_bits(&left, w.p);
        state->attempt[i].phase = (uint8_t)take_bits(&left, 3);
    }
}
