/* How often a page repeats its words: gossamer.core.spam.words in C, with the same results.

   Optional: without a compiler the package installs without it, and `gossamer.foundation.kernel` falls back to Python.
   `GOSSAMER_NO_KERNEL` in the environment does the same. What is counted is defined in core/spam/words.py; tests
   compare the two.

   Limited API of Python 3.11: one build serves all later versions. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "written for little-endian machines; the Python path serves all others"
#endif

#define HEAD_BYTES 3072
#define HEAD_WORDS 160
#define TAIL_BYTES 640
#define TAIL_WORDS 90
#define PADDING 16 /* bytes that can be read behind a text */
#define KEY_BYTES 1024 /* of the title, and of the address */
#define MAX_KEYS 24
#define MIN_KEY_BYTES 4
#define MIN_LINE 6 /* words of a line that is running text */
#define MIN_PARAGRAPH 12 /* of one that is no entry of a menu */
#define MIN_LONG 25 /* of one that is no row of a table */
#define MAX_LINE (HEAD_WORDS + TAIL_WORDS)
#define A_CODE SLOTS /* instead of a slot */
#define SLOTS 512 /* a power of two, more than there can be words */
#define FOLD 0x9E3779B97F4A7C15u

/* Classes of bytes, one bit each. LETTER: any that has no case in ASCII; PUNCTUATION, beside another one: what is cut
   off at both ends of a word. */
enum { SMALL = 1, LETTER = 2, CAPITAL = 4, CODE = 8, BLANK = 16, LEAD = 32, PUNCTUATION = 64 };
enum { OF_TITLE = 1, OF_URL = 2 };

typedef struct {
    uint64_t hash; /* 0: the slot is empty */
    uint16_t count, head;
    uint8_t kind, is_keyword, is_in_tail, runs, is_long, is_long_in_tail;
} word;

typedef struct {
    const uint8_t *at;
    size_t length;
    uint16_t slot;
} key;

typedef struct {
    word table[SLOTS + 1]; /* the last one stands for codes */
    key keys[2 * MAX_KEYS];
    size_t key_count, words, codes, distinct, hits, rest_words;
    size_t tail_words, tail_distinct, tail_hits;
    size_t run, run_codes, run_distinct, long_run, long_distinct, tail_long, tail_long_distinct;
    uint64_t rest;
    int in_head;
    size_t line_length; /* of the current line, so far */
    uint16_t line[MAX_LINE];
} counts;

static uint8_t text_classes[256], key_classes[256]; /* the latter for titles and addresses */

static int is_alphanumeric(uint8_t byte)
{
    return byte >= 0x80 || (uint8_t)((byte | 32) - 'a') < 26 || (uint8_t)(byte - '0') < 10;
}

static void fill_classes(void)
{
    for (int byte = 0; byte < 256; byte++)
        text_classes[byte] = byte <= ' ' || byte == 0x7F ? BLANK : byte < 0x80 ? CODE : LETTER;
    for (int byte = 'a'; byte <= 'z'; byte++) text_classes[byte] = SMALL;
    for (int byte = 'A'; byte <= 'Z'; byte++) text_classes[byte] = CAPITAL;
    for (const char *c = ",;!?|\""; *c; c++) text_classes[(uint8_t)*c] = BLANK;
    text_classes['-'] = text_classes['\''] = LETTER;
    for (int byte = 0xE2; byte <= 0xE9; byte++) text_classes[byte] = LEAD;
    text_classes[0xC2] = text_classes[0xEF] = LEAD;
    for (int byte = '!'; byte < 0x7F; byte++)
        if (!is_alphanumeric((uint8_t)byte)) text_classes[byte] |= PUNCTUATION;
    memcpy(key_classes, text_classes, sizeof key_classes);
    for (const char *c = "-_/.+&=:~"; *c; c++) key_classes[(uint8_t)*c] = BLANK;
}

/* Returns the length of the separator that begins with a byte of class LEAD, or 0. */
static size_t separator(const uint8_t *p, const uint8_t *end)
{
    if (*p == 0xC2) return end - p >= 2 ? 2 : 0;
    if (end - p < 3) return 0;
    if (*p == 0xE2) return p[1] == 0x80 ? 3 : 0;
    if (*p == 0xE3) return p[1] == 0x80 || p[1] == 0x81 || (p[1] == 0x82 && p[2] >= 0x80 && p[2] < 0xA0) ? 3 : 0;
    return *p == 0xEF && p[1] == 0xBC ? 3 : 0;
}

static int is_ideograph(const uint8_t *p, const uint8_t *end)
{
    if (end - p < 3 || p[1] < 0x80 || p[2] < 0x80) return 0;
    return (*p >= 0xE4 && *p <= 0xE9) || (*p == 0xE3 && p[1] >= 0x90 && p[1] < 0xC0);
}

static inline uint64_t next_chunk(uint64_t hash, uint64_t chunk)
{
    hash = (hash ^ chunk) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 29;
}

/* At least two chunks, so that the usual lengths take the same path. PADDING bytes behind the word can be read. */
static inline uint64_t hash_of(const uint8_t *at, size_t length)
{
    uint64_t hash = length * FOLD, chunks[2];
    for (; length > 16; at += 8, length -= 8) {
        memcpy(chunks, at, 8);
        hash = next_chunk(hash, chunks[0]);
    }
    memcpy(chunks, at, 16);
    uint64_t short_mask = ((uint64_t)1 << 8 * (length & 7)) - 1, all = ~(uint64_t)0;
    chunks[0] &= length >= 8 ? all : short_mask;
    chunks[1] &= length == 16 ? all : length > 8 ? short_mask : 0;
    hash = next_chunk(next_chunk(hash, chunks[0]), chunks[1]);
    return hash ? hash : 1;
}

static uint16_t slot_of(const word *table, uint64_t hash)
{
    size_t slot = hash & (SLOTS - 1);
    while (table[slot].hash && table[slot].hash != hash) slot = (slot + 1) & (SLOTS - 1);
    return (uint16_t)slot;
}

/* Ends a line: counts its words as running text if it is long enough. */
static void end_line(counts *c)
{
    size_t length = c->line_length;
    c->line_length = 0;
    if (length < MIN_LINE) return;
    c->run += length;
    for (size_t i = 0; i < length; i++) {
        word *one = &c->table[c->line[i]];
        int is_code = c->line[i] == A_CODE;
        c->run_codes += is_code;
        c->run_distinct += is_code || !one->runs;
        if (!is_code) one->runs = 1;
    }
    if (length < MIN_PARAGRAPH) return;
    for (size_t i = 0; c->in_head && i < length; i++) {
        const word *one = &c->table[c->line[i]];
        if (c->line[i] == A_CODE || one->is_keyword) continue;
        c->rest = c->rest * FOLD + one->hash;
        c->rest_words++;
    }
    if (length < MIN_LONG) return;
    c->long_run += length;
    if (!c->in_head) c->tail_long += length;
    for (size_t i = 0; i < length; i++) {
        word *one = &c->table[c->line[i]];
        int is_code = c->line[i] == A_CODE;
        c->long_distinct += is_code || !one->is_long;
        if (!c->in_head) c->tail_long_distinct += is_code || !one->is_long_in_tail;
        if (is_code) continue;
        one->is_long = 1;
        if (!c->in_head) one->is_long_in_tail = 1;
    }
}

static void count_word(counts *c, uint64_t hash)
{
    uint16_t slot = slot_of(c->table, hash);
    word *one = &c->table[slot];
    one->hash = hash;
    c->line[c->line_length++] = slot;
    c->words++;
    c->distinct += one->count == 0;
    one->count++;
    c->hits += one->is_keyword;
    if (c->in_head) {
        one->head++;
    } else {
        c->tail_words++;
        c->tail_hits += one->is_keyword;
        c->tail_distinct += !one->is_in_tail;
        one->is_in_tail = 1;
    }
}

static void count_code(counts *c)
{
    c->line[c->line_length++] = A_CODE;
    c->words++;
    c->codes++;
    c->distinct++;
    c->tail_words += !c->in_head;
    c->tail_distinct += !c->in_head;
}

static void add_key(counts *c, const uint8_t *at, size_t length, uint64_t hash, int kind)
{
    uint16_t slot = slot_of(c->table, hash);
    word *one = &c->table[slot];
    if (length < MIN_KEY_BYTES) return;
    if (!one->hash) {
        one->hash = hash;
        one->is_keyword = 1;
        c->keys[c->key_count++] = (key){at, length, slot};
    }
    one->kind |= (uint8_t)kind;
}

/* Reads words from p on: counts them, or adds them to the keys if `kind` is given. Returns where it stopped. */
static const uint8_t *read_words(counts *c, const uint8_t *p, const uint8_t *end, const uint8_t *lowered, size_t limit,
                                 int kind)
{
    const uint8_t *base = p, *classes = kind ? key_classes : text_classes;
    size_t seen = 0;
    while (p < end && seen < limit) {
        unsigned class = classes[*p];
        size_t length = class & LEAD ? separator(p, end) : class & BLANK ? 1 : 0;
        if (length) {
            if (!kind && (*p == '\n' || (length > 1 && memchr(p, '\n', length)))) end_line(c);
            p += length;
            continue;
        }
        if (class & LEAD && is_ideograph(p, end)) {
            const uint8_t *start = p;
            while (p < end && is_ideograph(p, end)) p += 3;
            size_t characters = (size_t)(p - start) / 3, pairs = characters > 1 ? characters - 1 : 1;
            for (size_t i = 0; i < pairs && seen < limit; i++, seen++) {
                size_t bytes = characters > 1 ? 6 : 3;
                const uint8_t *at = lowered + (start - base) + 3 * i;
                uint64_t hash = hash_of(at, bytes);
                if (kind)
                    add_key(c, at, bytes, hash, kind);
                else
                    count_word(c, hash);
            }
            continue;
        }
        const uint8_t *start = p;
        unsigned first = class, inner = 0; /* the classes of the first byte, and of the others */
        while (++p < end) {
            class = classes[*p];
            if (class & (BLANK | LEAD) && (class & BLANK || separator(p, end) || is_ideograph(p, end))) break;
            inner |= class;
        }
        const uint8_t *stop = p;
        if ((first | classes[stop[-1]]) & PUNCTUATION) {
            while (start < stop && classes[*start] & PUNCTUATION) start++;
            while (stop > start && classes[stop[-1]] & PUNCTUATION) stop--;
            if (start == stop) continue;
            first = classes[*start], inner = 0;
            for (const uint8_t *q = start + 1; q < stop; q++) inner |= classes[*q];
        }
        seen++;
        if ((first | inner) & CODE || ((first | inner) & SMALL && inner & CAPITAL)) {
            if (!kind) count_code(c);
            continue;
        }
        const uint8_t *at = lowered + (start - base);
        uint64_t hash = hash_of(at, (size_t)(stop - start));
        if (kind)
            add_key(c, at, (size_t)(stop - start), hash, kind);
        else
            count_word(c, hash);
    }
    if (!kind) end_line(c);
    return p;
}

static void lower(const uint8_t *from, uint8_t *to, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = from[i];
        to[i] = (uint8_t)(byte + ((uint8_t)(byte - 'A') < 26 ? 32 : 0));
    }
}

typedef struct {
    uint8_t title[KEY_BYTES + PADDING], url[KEY_BYTES + PADDING];
    uint8_t head[HEAD_BYTES + PADDING], tail[TAIL_BYTES + PADDING];
    counts c;
} space;

static void read_keys(space *s, uint8_t *lowered, const uint8_t *text, size_t length, int kind)
{
    if (length > KEY_BYTES) length = KEY_BYTES;
    lower(text, lowered, length);
    read_words(&s->c, text, text + length, lowered, MAX_KEYS, kind);
}

static void read_text(space *s, const uint8_t *text, size_t length)
{
    counts *c = &s->c;
    const uint8_t *end = text + length, *head_end = length > HEAD_BYTES ? text + HEAD_BYTES : end;
    lower(text, s->head, (size_t)(head_end - text));
    c->in_head = 1;
    const uint8_t *p = read_words(c, text, head_end, s->head, HEAD_WORDS, 0);
    c->in_head = 0;
    if (end - p > TAIL_BYTES) p = end - TAIL_BYTES;
    while (p < end && *p > ' ') p++;
    if (p < end) {
        lower(p, s->tail, (size_t)(end - p));
        read_words(c, p, end, s->tail, TAIL_WORDS, 0);
    }
}

static PyObject *repetition(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text, *title, *url;
    Py_ssize_t text_length, title_length, url_length;
    if (!PyArg_ParseTuple(args, "y#y#y#:repetition", &text, &text_length, &title, &title_length, &url, &url_length))
        return NULL;
    static space only; /* used under the lock of the interpreter: fresh memory takes 10 µs per call */
    space *s = &only;
    counts *c = &s->c;
    memset(c, 0, sizeof *c);
    read_keys(s, s->title, (const uint8_t *)title, (size_t)title_length, OF_TITLE);
    read_keys(s, s->url, (const uint8_t *)url, (size_t)url_length, OF_URL);
    read_text(s, (const uint8_t *)text, (size_t)text_length);
    const key *top = NULL;
    uint32_t top_hits = 0, echoes = 0;
    for (size_t i = 0; i < c->key_count; i++) {
        const word *one = &c->table[c->keys[i].slot];
        if (one->count > top_hits) {
            top_hits = one->count;
            top = &c->keys[i];
        }
        if (one->kind & OF_URL && one->head > echoes) echoes = one->head;
    }
    PyObject *result = Py_BuildValue(
        "(nnnny#nnKnnnnnnnnnnn)", (Py_ssize_t)c->words, (Py_ssize_t)c->codes, (Py_ssize_t)c->distinct, (Py_ssize_t)c->hits,
        top ? (const char *)top->at : "", top ? (Py_ssize_t)top->length : (Py_ssize_t)0, (Py_ssize_t)top_hits,
        (Py_ssize_t)echoes, (unsigned long long)c->rest,
        (Py_ssize_t)c->rest_words, (Py_ssize_t)c->tail_words, (Py_ssize_t)c->tail_distinct, (Py_ssize_t)c->tail_hits,
        (Py_ssize_t)c->run, (Py_ssize_t)c->run_codes, (Py_ssize_t)c->run_distinct, (Py_ssize_t)c->long_run,
        (Py_ssize_t)c->long_distinct, (Py_ssize_t)c->tail_long, (Py_ssize_t)c->tail_long_distinct);
    return result;
}

static PyMethodDef methods[] = {
    {"repetition", repetition, METH_VARARGS, "repetition(text, title, url) -> counts of words, see core.spam.words"},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *Py_UNUSED(module))
{
    const char *refused = getenv("GOSSAMER_NO_KERNEL");
    if (refused != NULL && *refused != '\0') {
        PyErr_SetString(PyExc_ImportError, "GOSSAMER_NO_KERNEL is set");
        return -1;
    }
    fill_classes();
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, set_up}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "gossamer.foundation._words", "Repetition of words.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__words(void) { return PyModuleDef_Init(&definition); }
