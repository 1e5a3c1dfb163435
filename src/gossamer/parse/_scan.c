/* Scans the markup of a page: one pass over its characters, without a tree.
 *
 * scan(content, wants_text) -> None if the bytes are not UTF-8, else
 *     (title, lang, bases, metas, links, hrefs, nofollow, text, words, hidden)
 *
 * The tokenizer is the WHATWG's (HTML Standard 13.2.5), with <noscript> read as markup. Of the
 * tree only what changes the meaning of a tag is stored: the open elements of svg and math (see
 * "foreign content" below) and how many templates are open. What is collected, and the words that
 * are visible, is described in `scan_python.py`, which does the same in Python; a test compares
 * the two on arbitrary text, another one compares both with a tree.
 *
 * Safety: every read is below `end`; every output goes through `arena_alloc` or `put`, which
 * check their room. Time and memory are linear in the input, however deeply it nests. The GIL is
 * released while characters are read: no Python object is used then.
 *
 * Hash tables: those of tags and of entities have fixed contents, so their longest chain is a constant whatever is
 * looked up. Which hrefs are in the third is up to the page: its hash has a secret key from the system, and a chain
 * over MAX_PROBES draws another key. What is returned depends on neither.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define UNLOCK_BYTES 65536 /* below this, releasing the GIL costs more than it gains */
#define MAX_HREF_CHARS 16384
#define MAX_PROBES 256 /* in a table that is at most half full, a chain of that length by chance has odds of 1:10^21 */
#define NO_SLOT SIZE_MAX
#define WIDE 16 /* bytes that are read or copied at a time, if that many are left */
#define TAG_SLOTS 512
#define MAX_FOREIGN 128  /* open elements of svg and math; deeper ones are only counted */
#define MAX_HIDDEN 64    /* parts of a page that are hidden by a style of their own */
#define MAX_STYLE_BYTES 256
#define MAX_TEMPLATES 64 /* nested ones that can contain svg of their own */
#define ENTITY_SLOTS 8192

/* -- tags ------------------------------------------------------------------------------------ */

enum kind {
    PLAIN, A, AREA, FRAME, IFRAME, LINK, META, BASE, HTML, TEMPLATE, TITLE, TEXTAREA, SCRIPT, STYLE, NOEMBED, NOFRAMES,
    XMP, PLAINTEXT, NOSCRIPT, SVG, MATH, BLOCK, CELL, INLINE, FONT, FOREIGN_OBJECT, DESC, METADATA, MATH_TEXT,
    MATH_GLYPH, ANNOTATION_XML
};

enum {
    BREAKS_OUT = 1,     /* its start tag ends svg and math */
    END_BREAKS_OUT = 2, /* so does its end tag */
    NEVER_OPEN = 4,     /* has no contents, or cannot begin within another element */
    IS_COUNTED = 8,     /* its end tag ends svg and math that were begun within it */
    CAN_HIDE = 16       /* a style of its own can hide all that is in it: its end tag is not optional, except that of p */
};

/* A name is stored as two numbers of 8 bytes each, zeros after its end; none that matters is longer. */
typedef struct { uint64_t first, second; } tag_name;
typedef struct { tag_name name; uint8_t kind, flags; } tag_entry;

#define LONGEST_NAME sizeof(tag_name)

static tag_entry tags[TAG_SLOTS];

static size_t tag_slot(tag_name name)
{
    return (size_t)((name.first ^ name.second) * 0x9E3779B97F4A7C15u >> 55);
}

static int is_same_name(tag_name one, tag_name other)
{
    return one.first == other.first && one.second == other.second;
}

/* Return the entry of a tag; one of kind PLAIN and without flags if it is unknown. */
static const tag_entry *entry_of(tag_name name)
{
    size_t slot = tag_slot(name);
    while (tags[slot].kind && !is_same_name(tags[slot].name, name))
        slot = (slot + 1) % TAG_SLOTS;
    return &tags[slot];
}

/* Add tags, their names separated by blanks; a kind of PLAIN only adds flags to known ones. */
static void add_tags(const char *names, int kind, int flags)
{
    while (*names) {
        size_t length = strcspn(names, " ");
        tag_name name = {0, 0};
        memcpy(&name, names, length);
        tag_entry *entry = &tags[entry_of(name) - tags];
        entry->name = name;
        entry->kind = (uint8_t)(kind ? kind : entry->kind);
        entry->flags |= (uint8_t)flags;
        names += length + (names[length] == ' ');
    }
}

static void fill_tags(void)
{
    static const struct { const char *name; int kind; } others[] = {
        {"a", A}, {"area", AREA}, {"frame", FRAME}, {"iframe", IFRAME}, {"link", LINK}, {"meta", META},
        {"base", BASE}, {"html", HTML}, {"template", TEMPLATE}, {"title", TITLE}, {"textarea", TEXTAREA},
        {"script", SCRIPT}, {"style", STYLE}, {"noembed", NOEMBED}, {"noframes", NOFRAMES}, {"xmp", XMP},
        {"plaintext", PLAINTEXT}, {"noscript", NOSCRIPT}, {"svg", SVG}, {"math", MATH}, {"font", FONT},
        {"foreignobject", FOREIGN_OBJECT}, {"desc", DESC}, {"metadata", METADATA},
        {"annotation-xml", ANNOTATION_XML}, {NULL, 0}};
    for (int i = 0; others[i].name; i++)
        add_tags(others[i].name, others[i].kind, 0);
    add_tags("address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset "
             "figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr legend li listing main menu nav "
             "ol optgroup p pre search section summary table tbody tfoot thead tr ul", BLOCK, 0);
    add_tags("td th option", CELL, 0);
    add_tags("mi mo mn ms mtext", MATH_TEXT, 0);
    add_tags("mglyph malignmark", MATH_GLYPH, 0);
    add_tags("b big button cite code em embed i img input label nobr ruby s select small span strike strong sub sup "
             "tt u var", INLINE, 0);
    add_tags("col param source track wbr keygen basefont bgsound frameset", INLINE, NEVER_OPEN);
    add_tags("area base body br embed frame head hr html img input link meta", PLAIN, NEVER_OPEN);
    add_tags("b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing "
             "menu meta nobr ol p pre ruby s small span strike strong sub sup table tt u ul var", PLAIN, BREAKS_OUT);
    add_tags("p br", PLAIN, END_BREAKS_OUT);
    add_tags("article aside b blockquote center details div dl em figure font footer form h1 h2 h3 h4 h5 h6 header i "
             "main nav ol p pre section small span strong table u ul", PLAIN, CAN_HIDE);
    add_tags("a address article aside b big blockquote button caption center cite code dd details dialog dir div dl dt "
             "em fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 header hgroup i label legend li listing "
             "main menu nav nobr ol optgroup option pre ruby s search section select small span strike strong sub "
             "summary sup table tbody td tfoot th thead tr tt u ul var", PLAIN, IS_COUNTED);
}

/* -- character references -------------------------------------------------------------------- */

typedef struct { char *name; char value[8]; uint8_t length; uint8_t value_length; } entity;

static entity entities[ENTITY_SLOTS];
static int has_entities;

static uint32_t hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = length, part;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&part, bytes, 8);
        hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    part = 0;
    for (size_t i = 0; i < length; i++)
        part = part << 8 | (uint8_t)bytes[i];
    hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(hash >> 32);
}

static uint64_t secret[2]; /* of this process */

/* Return a product's halves, folded: every bit of the result depends on every bit of both factors. */
static uint64_t folded_product(uint64_t one, uint64_t other)
{
#ifdef __SIZEOF_INT128__
    __uint128_t product = (__uint128_t)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t low = (one & 0xFFFFFFFF) * (other & 0xFFFFFFFF), high = (one >> 32) * (other >> 32);
    uint64_t cross = (one >> 32) * (other & 0xFFFFFFFF) + (low >> 32);
    uint64_t rest = (one & 0xFFFFFFFF) * (other >> 32) + (cross & 0xFFFFFFFF);
    return ((rest << 32) | (low & 0xFFFFFFFF)) ^ (high + (cross >> 32) + (rest >> 32));
#endif
}

/* The hash of bytes that a stranger chose: without the key nobody can write two with the same one. A key that only
 * starts a chain of multiplications would not do: differences in the highest bits pass those whatever the key is. */
static uint64_t keyed_hash(const char *bytes, size_t length, uint64_t key)
{
    uint64_t hash = folded_product(key ^ length, secret[1]), parts[2];
    for (; length > 16; bytes += 16, length -= 16) {
        memcpy(parts, bytes, 16);
        hash = folded_product(parts[0] ^ secret[0] ^ hash, parts[1] ^ secret[1] ^ key);
    }
    parts[0] = parts[1] = 0;
    if (length >= 8) { /* first and last bytes, which may overlap */
        memcpy(&parts[0], bytes, 8);
        memcpy(&parts[1], bytes + length - 8, 8);
    } else if (length >= 4) {
        memcpy(&parts[0], bytes, 4);
        memcpy(&parts[1], bytes + length - 4, 4);
    } else {
        for (size_t i = 0; i < length; i++)
            parts[0] = parts[0] << 8 | (uint8_t)bytes[i];
    }
    return folded_product(parts[0] ^ secret[0] ^ hash, parts[1] ^ secret[1] ^ key);
}

/* Draw the secret from the system's random numbers. */
static int draw_secret(void)
{
    PyObject *module = PyImport_ImportModule("os");
    PyObject *drawn = module ? PyObject_CallMethod(module, "urandom", "n", (Py_ssize_t)sizeof secret) : NULL;
    char *bytes = NULL;
    Py_ssize_t length;
    Py_XDECREF(module);
    if (!drawn || PyBytes_AsStringAndSize(drawn, &bytes, &length)) {
        Py_XDECREF(drawn);
        return -1;
    }
    memcpy(secret, bytes, sizeof secret);
    Py_DECREF(drawn);
    return 0;
}

/* Copy the names from Python's own table, which is the standard's: when the first page needs them (1 ms). With the GIL,
 * so no page that is scanned without it sees half a table. */
static int fill_entities(void)
{
    PyObject *module = PyImport_ImportModule("html.entities");
    PyObject *table = module ? PyObject_GetAttrString(module, "html5") : NULL;
    Py_XDECREF(module);
    if (!table)
        return -1;
    if (has_entities) { /* by another thread, during the import */
        Py_DECREF(table);
        return 0;
    }
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(table, &position, &key, &value)) {
        Py_ssize_t length, value_length;
        const char *name = PyUnicode_AsUTF8AndSize(key, &length);
        const char *bytes = PyUnicode_AsUTF8AndSize(value, &value_length);
        if (!name || !bytes || length > 40 || value_length > 8)
            continue;
        uint32_t slot = hash_bytes(name, (size_t)length) % ENTITY_SLOTS;
        while (entities[slot].name)
            slot = (slot + 1) % ENTITY_SLOTS;
        entities[slot].name = malloc((size_t)length);
        if (!entities[slot].name) {
            Py_DECREF(table);
            PyErr_NoMemory();
            return -1;
        }
        memcpy(entities[slot].name, name, (size_t)length);
        memcpy(entities[slot].value, bytes, (size_t)value_length);
        entities[slot].length = (uint8_t)length;
        entities[slot].value_length = (uint8_t)value_length;
    }
    Py_DECREF(table);
    has_entities = 1;
    return 0;
}

static const entity *find_entity(const char *name, size_t length)
{
    uint32_t slot = hash_bytes(name, length) % ENTITY_SLOTS;
    for (; entities[slot].name; slot = (slot + 1) % ENTITY_SLOTS)
        if (entities[slot].length == length && memcmp(entities[slot].name, name, length) == 0)
            return &entities[slot];
    return NULL;
}

static int is_alnum(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static int is_letter(unsigned char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* What a character can end: a table is a third quicker than comparisons. */
enum { SPACE = 1, ENDS_NAME = 2, ENDS_KEY = 4, ENDS_VALUE = 8, ENDS_WORD = 16, ENDS_RAW_WORD = 32, ENDS_TEXT = 64 };

static uint8_t classes[256];

static void fill_classes(void)
{
    for (const char *c = " \t\n\f\r"; *c; c++)
        classes[(unsigned char)*c] = SPACE | ENDS_NAME | ENDS_KEY | ENDS_VALUE | ENDS_WORD | ENDS_RAW_WORD | ENDS_TEXT;
    classes['/'] |= ENDS_NAME | ENDS_KEY;
    classes['>'] |= ENDS_NAME | ENDS_KEY | ENDS_VALUE;
    classes['='] |= ENDS_KEY;
    classes['&'] |= ENDS_WORD | ENDS_TEXT;
    classes['<'] |= ENDS_TEXT;
    classes[0] |= ENDS_WORD | ENDS_RAW_WORD | ENDS_TEXT;
}

static int is_space(unsigned char c)
{
    return classes[c] & SPACE;
}

/* Return the first character from p that is of a class, or the end. */
static const char *skip_to(const char *p, const char *end, uint8_t class)
{
    while (p < end && !(classes[(unsigned char)*p] & class))
        p++;
    return p;
}

static const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && classes[(unsigned char)*p] & SPACE)
        p++;
    return p;
}

/* Return where a character first occurs, or NULL: memchr, without a call if it is near. */
static inline const char *find(const char *p, const char *end, char wanted)
{
#ifdef __SSE2__
    if (end - p >= WIDE) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        unsigned found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted)));
        if (found)
            return p + __builtin_ctz(found);
        p += WIDE;
    }
#endif
    return p < end ? memchr(p, wanted, (size_t)(end - p)) : NULL;
}

static const uint16_t windows_1252[32] = {
    0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D,
    0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,
    0x017E, 0x0178};

static size_t put_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | (code >> 12));
        out[1] = (char)(0x80 | ((code >> 6) & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xF0 | (code >> 18));
    out[1] = (char)(0x80 | ((code >> 12) & 63));
    out[2] = (char)(0x80 | ((code >> 6) & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

static int digit_of(unsigned char c, int base)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (base == 16 && (c | 32) >= 'a' && (c | 32) <= 'f')
        return (c | 32) - 'a' + 10;
    return -1;
}

/* Read `&#…` at p ("&" itself at p); return how many bytes it takes, 0 if it is none. */
static size_t numeric_reference(const char *p, const char *end, char *out, size_t *out_length)
{
    const char *q = p + 2;
    int base = 10;
    if (q < end && (*q == 'x' || *q == 'X')) {
        base = 16;
        q++;
    }
    uint32_t code = 0;
    const char *digits = q;
    int digit;
    while (q < end && (digit = digit_of((unsigned char)*q, base)) >= 0) {
        if (code <= 0x10FFFF)
            code = code * (uint32_t)base + (uint32_t)digit;
        q++;
    }
    if (q == digits)
        return 0;
    if (q < end && *q == ';')
        q++;
    if (code >= 0x80 && code < 0xA0)
        code = windows_1252[code - 0x80];
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        code = 0xFFFD;
    *out_length = put_utf8(code, out);
    return (size_t)(q - p);
}

/* Read a reference at p; return how many bytes it takes, 0 if the "&" is literal. */
static size_t reference(const char *p, const char *end, int in_attribute, char *out, size_t *out_length)
{
    if (p + 1 >= end)
        return 0;
    if (p[1] == '#')
        return numeric_reference(p, end, out, out_length);
    const char *name = p + 1, *q = name;
    while (q < end && q - name < 40 && is_alnum((unsigned char)*q))
        q++;
    size_t run = (size_t)(q - name);
    const entity *found = NULL;
    if (run && q < end && *q == ';')
        found = find_entity(name, run + 1);
    for (size_t length = run < 8 ? run : 8; !found && length >= 2; length--)
        found = find_entity(name, length);
    if (!found)
        return 0;
    const char *after = name + found->length;
    int is_closed = found->name[found->length - 1] == ';';
    if (in_attribute && !is_closed && after < end && (*after == '=' || is_alnum((unsigned char)*after)))
        return 0;
    memcpy(out, found->value, found->value_length);
    *out_length = found->value_length;
    return 1 + found->length;
}

/* -- memory ---------------------------------------------------------------------------------- */

typedef struct { const char *bytes; size_t length; } span;

typedef struct chunk { struct chunk *next; size_t used, size; char bytes[]; } chunk;

typedef struct { span *items; size_t count, size; } spans;

/* An open element of svg or math: see "foreign content". */
typedef struct {
    tag_name name;
    uint8_t is_math, point, is_hidden;
    size_t html; /* open HTML elements directly within */
} foreign_element;

/* A part of the page that a style of its own hides: positions in the text, and in the list of hrefs. */
typedef struct { int kind; size_t text, text_end, hrefs, hrefs_end; } hidden_part;

typedef struct {
    chunk *arena;
    spans metas, links, bases, hrefs; /* metas and links: two spans each */
    uint32_t *seen;                   /* open addressing: index of a href, plus 1 */
    size_t seen_size;
    uint64_t seen_key;                /* of its hash, besides the secret */
    span title, lang;
    int has_title, has_lang, is_out_of_memory;
    size_t nofollow;
    char *text; /* what is visible */
    size_t text_length, text_size, words;
    int wants_text, gap; /* gap: 0 within a word, 1 a blank is pending, 2 a new line is pending */
    size_t templates, shadows;             /* open templates whose contents are not shown, and that are */
    size_t depth, floor, excess;           /* foreign elements: open; of them, outside of the innermost template; uncounted */
    size_t outer_templates;                /* outside of the <noscript> that is read */
    size_t floors[MAX_TEMPLATES];          /* what `floor` was before each open template */
    uint32_t open[TAG_SLOTS];              /* elements of HTML that have begun and not ended, by tag */
    span style;                            /* of the tag that is read, like the next */
    int has_hidden, is_self_closing, looks_for_style, in_noscript;
    const tag_entry *hiding;               /* the tag of the element that hides what is read, or NULL */
    size_t hiding_depth, part_count;       /* elements with that tag that are open in it, itself included */
    foreign_element foreign[MAX_FOREIGN];  /* from here on not cleared before a scan */
    hidden_part parts[MAX_HIDDEN];
} state;

static int shows_text(const state *s)
{
    return s->wants_text && !s->templates && !(s->depth > s->floor && s->foreign[s->depth - 1].is_hidden);
}

static char *arena_alloc(state *s, size_t length)
{
    if (!s->arena || s->arena->size - s->arena->used < length) {
        size_t size = length > 16384 ? length : 16384;
        chunk *fresh = malloc(sizeof(chunk) + size);
        if (!fresh) {
            s->is_out_of_memory = 1;
            return NULL;
        }
        fresh->next = s->arena;
        fresh->used = 0;
        fresh->size = size;
        s->arena = fresh;
    }
    char *taken = s->arena->bytes + s->arena->used;
    s->arena->used += length;
    return taken;
}

static int append(state *s, spans *list, span item)
{
    if (list->count == list->size) {
        size_t size = list->size ? list->size * 2 : 64;
        span *items = realloc(list->items, size * sizeof(span));
        if (!items) {
            s->is_out_of_memory = 1;
            return -1;
        }
        list->items = items;
        list->size = size;
    }
    list->items[list->count++] = item;
    return 0;
}

static void let_go(state *s)
{
    while (s->arena) {
        chunk *next = s->arena->next;
        free(s->arena);
        s->arena = next;
    }
    free(s->metas.items);
    free(s->links.items);
    free(s->bases.items);
    free(s->hrefs.items);
    free(s->seen);
    free(s->text);
}

/* -- visible text ---------------------------------------------------------------------------- */

static int make_room(state *s, size_t more)
{
    if (s->text_size - s->text_length >= more)
        return 0;
    size_t size = s->text_size + s->text_size / 2 + more;
    char *text = realloc(s->text, size);
    if (!text) {
        s->is_out_of_memory = 1;
        return -1;
    }
    s->text = text;
    s->text_size = size;
    return 0;
}

/* Where a line must break: a block begins or ends. */
static void break_line(state *s)
{
    s->gap = 2;
}

static void leave_gap(state *s)
{
    if (s->gap < 1)
        s->gap = 1;
}

/* Begin a word, if none has begun. There is room. */
static inline void begin_word(state *s)
{
    if (s->gap) {
        if (s->text_length)
            s->text[s->text_length++] = s->gap == 2 ? '\n' : ' ';
        s->words++;
        s->gap = 0;
    }
}

static void put(state *s, const char *bytes, size_t length)
{
    if (make_room(s, length + 1))
        return;
    begin_word(s);
    memcpy(s->text + s->text_length, bytes, length);
    s->text_length += length;
}

/* Copy characters to the first of a class; return its position. There is room for all of them. */
static inline const char *copy_word(char **to, const char *p, const char *end, uint8_t class)
{
    char *out = *to;
#ifdef __SSE2__
    const __m128i blank = _mm_set1_epi8(' '), and = _mm_set1_epi8('&'), less = _mm_set1_epi8('<');
    while (end - p >= WIDE) { /* stops at every character that can be of a class, and at some that are not */
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        __m128i stops = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(bytes, blank), bytes),
                                     _mm_or_si128(_mm_cmpeq_epi8(bytes, and), _mm_cmpeq_epi8(bytes, less)));
        unsigned found = (unsigned)_mm_movemask_epi8(stops);
        _mm_storeu_si128((__m128i *)out, bytes);
        size_t copied = found ? (size_t)__builtin_ctz(found) : WIDE;
        out += copied;
        p += copied;
        if (found)
            break;
    }
#endif
    while (p < end && !(classes[(unsigned char)*p] & class))
        *out++ = *p++;
    *to = out;
    return p;
}

/* Add words up to a character of a class that is not white space. What is counted is in variables meanwhile: for the
 * compiler, a character that is written could be part of the state. */
static inline const char *add_words(state *s, const char *p, const char *end, uint8_t class)
{
    char *const text = s->text, *out = text + s->text_length;
    size_t words = s->words;
    int gap = s->gap;
    while (p < end) {
        uint8_t kind = classes[(unsigned char)*p];
        if (!(kind & class)) {
            if (gap) {
                if (out != text)
                    *out++ = gap == 2 ? '\n' : ' ';
                words++;
                gap = 0;
            }
            p = copy_word(&out, p, end, class);
        } else if (kind & SPACE) {
            gap = gap ? gap : 1;
            p = skip_spaces(p + 1, end);
        } else {
            break;
        }
    }
    s->text_length = (size_t)(out - text);
    s->words = words;
    s->gap = gap;
    return p;
}

static const char *add_reference(state *s, const char *p, const char *end)
{
    char out[8];
    size_t length = 0, taken = reference(p, end, 0, out, &length);
    if (!taken)
        put(s, "&", 1);
    else if (length == 1 && is_space((unsigned char)out[0]))
        leave_gap(s);
    else
        put(s, out, length);
    return p + (taken ? taken : 1);
}

/* Add characters up to the end, or to "<" if `class` is ENDS_TEXT; return where it stopped. White space is folded,
 * references are decoded unless `class` is ENDS_RAW_WORD. */
static const char *add_text(state *s, const char *p, const char *end, uint8_t class, int mends_nul)
{
    while (p < end) {
        if (make_room(s, (size_t)(end - p) + 1)) /* for all words: each but the first has a blank before it */
            return end;
        p = add_words(s, p, end, class);
        if (p >= end || *p == '<')
            return p;
        if (*p == '&') {
            p = add_reference(s, p, end);
        } else {
            if (mends_nul) /* elsewhere the standard drops it */
                put(s, "\xEF\xBF\xBD", 3);
            p++;
        }
    }
    return end;
}

/* Add the contents of an element that contains no markup. */
static void add_raw_text(state *s, const char *p, const char *end, uint8_t class)
{
    if (shows_text(s))
        add_text(s, p, end, class, 1);
}

/* -- attributes ------------------------------------------------------------------------------ */

typedef struct {
    span href, src, rel, name, property, http_equiv, content, lang, xlink_href, shadow, encoding, font;
} wanted;

/* Return a value with its references decoded, NUL replaced, and CR and CR LF as LF. */
static span decoded(state *s, const char *p, const char *end, int in_attribute)
{
    size_t length = (size_t)(end - p);
    if (!find(p, end, '&') && !find(p, end, '\r') && !find(p, end, '\0'))
        return (span){p, length};
    char *out = arena_alloc(s, length * 3 + 8); /* NUL becomes 3 bytes; no reference gets longer than that */
    if (!out)
        return (span){p, 0};
    size_t used = 0;
    while (p < end) {
        size_t taken = 0, made = 0;
        if (*p == '&' && (taken = reference(p, end, in_attribute, out + used, &made)) > 0) {
            used += made;
            p += taken;
        } else if (*p == '\r') {
            out[used++] = '\n';
            p += p + 1 < end && p[1] == '\n' ? 2 : 1;
        } else if (*p == '\0') {
            memcpy(out + used, "\xEF\xBF\xBD", 3);
            used += 3;
            p++;
        } else {
            out[used++] = *p++;
        }
    }
    return (span){out, used};
}

static int is_named(const char *name, size_t length, const char *wanted_name)
{
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (c >= 'A' && c <= 'Z')
            c |= 32;
        if (c != wanted_name[i])
            return 0;
    }
    return wanted_name[length] == '\0';
}

static span *place_of(wanted *w, const char *name, size_t length)
{
    switch (length) {
    case 3: return is_named(name, 3, "rel") ? &w->rel : is_named(name, 3, "src") ? &w->src : NULL;
    case 4:
        return is_named(name, 4, "href") ? &w->href
            : is_named(name, 4, "name") ? &w->name
            : is_named(name, 4, "lang") ? &w->lang
            : is_named(name, 4, "face") || is_named(name, 4, "size") ? &w->font : NULL;
    case 5: return is_named(name, 5, "color") ? &w->font : NULL;
    case 7: return is_named(name, 7, "content") ? &w->content : NULL;
    case 8: return is_named(name, 8, "property") ? &w->property : is_named(name, 8, "encoding") ? &w->encoding : NULL;
    case 10:
        return is_named(name, 10, "http-equiv") ? &w->http_equiv
            : is_named(name, 10, "xlink:href") ? &w->xlink_href : NULL;
    case 14: return is_named(name, 14, "shadowrootmode") ? &w->shadow : NULL;
    default: return NULL;
    }
}

/* Read a value after its "="; return what follows it, or NULL if the text ends before. */
static const char *read_value(const char *p, const char *end, const char **value, const char **value_end)
{
    p = skip_spaces(p, end);
    if (p < end && (*p == '"' || *p == '\'')) {
        *value = p + 1;
        *value_end = find(p + 1, end, *p);
        return *value_end ? *value_end + 1 : NULL;
    }
    *value = p;
    *value_end = skip_to(p, end, ENDS_VALUE);
    return *value_end;
}

static const char *read_some_attributes(state *s, const char *p, const char *end, wanted *w)
{
    int looks_for_style = s->looks_for_style;
    for (;;) {
        s->is_self_closing = 0;
        while (p < end && (is_space((unsigned char)*p) || *p == '/'))
            s->is_self_closing = *p++ == '/';
        if (p >= end)
            return NULL;
        if (*p == '>')
            return p + 1;
        const char *name = p;
        p = skip_to(p + 1, end, ENDS_KEY);
        size_t name_length = (size_t)(p - name);
        p = skip_spaces(p, end);
        const char *value = p, *value_end = p;
        if (p < end && *p == '=' && !(p = read_value(p + 1, end, &value, &value_end)))
            return NULL;
        if (looks_for_style && name_length == 5 && (*name | 32) == 's' && !s->style.bytes && is_named(name, 5, "style"))
            s->style = decoded(s, value, value_end, 1);
        else if (looks_for_style && name_length == 6 && (*name | 32) == 'h' && is_named(name, 6, "hidden"))
            s->has_hidden = 1;
        span *place = w ? place_of(w, name, name_length) : NULL;
        if (place && !place->bytes)
            *place = decoded(s, value, value_end, 1);
    }
}

/* Read attributes from p to the end of the tag. Return what follows the ">", or NULL if the text ends before. Most tags
 * have none. */
static inline const char *read_attributes(state *s, const char *p, const char *end, wanted *w)
{
    if (p < end && *p == '>') {
        s->is_self_closing = 0;
        return p + 1;
    }
    return read_some_attributes(s, p, end, w);
}

/* -- what is collected ----------------------------------------------------------------------- */

static int has_word(span value, const char *word)
{
    const char *p = value.bytes, *end = p + value.length;
    while (p < end) {
        p = skip_spaces(p, end);
        const char *start = p;
        p = skip_to(p, end, SPACE);
        if ((size_t)(p - start) == strlen(word) && is_named(start, (size_t)(p - start), word))
            return 1;
    }
    return 0;
}

/* Return whether a trimmed href is relative, or http or https. */
static int is_followed(const char *p, size_t length)
{
    if (length == 0 || !is_letter((unsigned char)p[0]))
        return 1;
    size_t i = 1;
    while (i < length && (is_alnum((unsigned char)p[i]) || p[i] == '+' || p[i] == '.' || p[i] == '-'))
        i++;
    if (i >= length || p[i] != ':')
        return 1;
    return (i == 4 && is_named(p, 4, "http")) || (i == 5 && is_named(p, 5, "https"));
}

/* Escape the blanks and controls that end the part of a href before its fragment: a URL parser keeps them there. */
static span with_escaped_tail(state *s, span href)
{
    size_t plain = href.length;
    while (plain && (unsigned char)href.bytes[plain - 1] <= ' ')
        plain--;
    if (plain == href.length)
        return href;
    char *out = arena_alloc(s, plain + 3 * (href.length - plain));
    if (!out)
        return href;
    memcpy(out, href.bytes, plain);
    span result = {out, plain};
    for (size_t i = plain; i < href.length; i++) {
        unsigned char c = (unsigned char)href.bytes[i];
        out[result.length++] = '%';
        out[result.length++] = "0123456789ABCDEF"[c >> 4];
        out[result.length++] = "0123456789ABCDEF"[c & 15];
    }
    return result;
}

/* Return a href without its fragment, trimmed as the URL standard does. */
static span trimmed(state *s, span href)
{
    const char *cut = href.length ? find(href.bytes, href.bytes + href.length, '#') : NULL;
    const char *p = href.bytes, *end = cut ? cut : p + href.length;
    while (p < end && (unsigned char)*p <= ' ')
        p++;
    while (!cut && end > p && (unsigned char)end[-1] <= ' ')
        end--;
    span result = {p, (size_t)(end - p)};
    int has_breaks = find(p, end, '\t') || find(p, end, '\n') || find(p, end, '\r');
    char *out = has_breaks ? arena_alloc(s, result.length) : NULL;
    if (out) {
        result.bytes = out;
        for (const char *q = p; q < end; q++)
            if (*q != '\t' && *q != '\n' && *q != '\r')
                *out++ = *q;
        result.length = (size_t)(out - result.bytes);
    }
    return cut ? with_escaped_tail(s, result) : result;
}

static int is_too_long(span href)
{
    if (href.length <= MAX_HREF_CHARS)
        return 0;
    size_t chars = 0;
    for (size_t i = 0; i < href.length; i++)
        chars += ((unsigned char)href.bytes[i] & 0xC0) != 0x80;
    return chars > MAX_HREF_CHARS;
}

/* Return the slot of a href: of the known one that is equal, else the empty one where it belongs; NO_SLOT if the chain
 * is too long. */
static size_t seen_slot(const state *s, span href)
{
    size_t mask = s->seen_size - 1, slot = keyed_hash(href.bytes, href.length, s->seen_key) & mask;
    for (int probes = 0; probes < MAX_PROBES; probes++, slot = (slot + 1) & mask) {
        if (!s->seen[slot])
            return slot;
        const span *known = &s->hrefs.items[s->seen[slot] - 1];
        if (known->length == href.length && memcmp(known->bytes, href.bytes, href.length) == 0)
            return slot;
    }
    return NO_SLOT;
}

/* Enter all hrefs, which differ, into a table of this size under another key; return whether a chain is too long. */
static int refill_seen(state *s, size_t size)
{
    uint32_t *seen = calloc(size, sizeof(uint32_t));
    if (!seen) {
        s->is_out_of_memory = 1;
        return 0;
    }
    free(s->seen);
    s->seen = seen;
    s->seen_size = size;
    s->seen_key += 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < s->hrefs.count; i++) {
        size_t slot = seen_slot(s, s->hrefs.items[i]);
        if (slot == NO_SLOT)
            return 1;
        seen[slot] = (uint32_t)i + 1;
    }
    return 0;
}

/* Add a href that can be followed, once. */
static void add_href(state *s, span raw)
{
    span href = trimmed(s, raw);
    if (!href.length || is_too_long(href) || !is_followed(href.bytes, href.length))
        return;
    int must_refill = s->hrefs.count * 2 >= s->seen_size;
    size_t size = !must_refill ? s->seen_size : s->seen_size ? s->seen_size * 4 : 256, slot = NO_SLOT;
    while (!s->is_out_of_memory && (must_refill || (slot = seen_slot(s, href)) == NO_SLOT))
        must_refill = refill_seen(s, size);
    if (!s->is_out_of_memory && !s->seen[slot] && !append(s, &s->hrefs, href))
        s->seen[slot] = (uint32_t)s->hrefs.count;
}

static void add_anchor(state *s, wanted *w)
{
    if (!w->href.bytes)
        return;
    if (w->rel.bytes && has_word(w->rel, "nofollow"))
        s->nofollow++;
    else
        add_href(s, w->href);
}

static void add_meta(state *s, wanted *w)
{
    if (!w->content.length)
        return;
    span name = w->name.length ? w->name : w->property.length ? w->property : w->http_equiv;
    if (!append(s, &s->metas, name))
        append(s, &s->metas, w->content);
}

/* Collect what a tag of HTML says. Not called within templates. */
static void collect(state *s, int kind, wanted *w)
{
    switch (kind) {
    case A:
    case AREA:
        add_anchor(s, w);
        return;
    case FRAME:
    case IFRAME:
        if (w->src.bytes)
            add_href(s, w->src);
        return;
    default:
        break;
    }
    if (s->shadows) /* within a shadow tree they mean nothing for the page */
        return;
    switch (kind) {
    case LINK:
        if (!append(s, &s->links, w->rel))
            append(s, &s->links, w->href);
        break;
    case META:
        add_meta(s, w);
        break;
    case BASE:
        if (w->href.bytes)
            append(s, &s->bases, w->href);
        break;
    case HTML:
        if (w->lang.bytes && !s->has_lang) {
            s->lang = w->lang;
            s->has_lang = 1;
        }
        break;
    default:
        break;
    }
}

/* -- hidden parts ---------------------------------------------------------------------------- */

enum { REMOVED = 1, DISGUISED, SMALL }; /* not shown; shown elsewhere; shown too small to be read */

/* Copy a style in lower case and without blanks. */
static void plain_style(span style, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < style.length && i < MAX_STYLE_BYTES; i++) {
        unsigned char c = (unsigned char)style.bytes[i];
        if (c > ' ')
            out[used++] = (char)(c >= 'A' && c <= 'Z' ? c | 32 : c);
    }
    out[used] = '\0';
}

/* Return whether a property has a value that moves its element out of the page. */
static int is_far_out(const char *style, const char *property)
{
    for (const char *at = style; (at = strstr(at, property)); ) {
        long distance = 0;
        at += strlen(property);
        for (int digits = 0; digits < 6 && at[digits] >= '0' && at[digits] <= '9'; digits++)
            distance = distance * 10 + at[digits] - '0';
        if (distance >= 999)
            return 1;
    }
    return 0;
}

static int is_tiny(const char *style)
{
    const char *at = strstr(style, "font-size:");
    if (!at)
        return 0;
    at += 10;
    return strncmp(at, "1px", 3) == 0 || (*at == '0' && at[1] != '.' && !(at[1] >= '0' && at[1] <= '9'));
}

/* Return how the tag that was read hides what is in its element; 0: not. */
static int hides(const state *s, const char *style)
{
    if (s->has_hidden || strstr(style, "display:none") || strstr(style, "visibility:hidden"))
        return REMOVED;
    if (is_far_out(style, "text-indent:-") || is_far_out(style, "left:-") || is_far_out(style, "top:-"))
        return DISGUISED;
    return is_tiny(style) ? SMALL : 0;
}

static void stop_hiding(state *s)
{
    hidden_part *part = &s->parts[s->part_count];
    part->text_end = s->text_length;
    part->hrefs_end = s->hrefs.count;
    if (part->kind && (part->text_end > part->text || part->hrefs_end > part->hrefs))
        s->part_count++;
    s->hiding = NULL;
}

/* Process a start tag, whose attributes were read. */
static void start_hiding(state *s, const tag_entry *tag, int is_paragraph)
{
    char style[MAX_STYLE_BYTES + 1] = "";
    if (s->hiding == tag) {
        s->hiding_depth++;
        if (is_paragraph)
            stop_hiding(s);
    }
    if (!s->style.bytes && !s->has_hidden)
        return;
    if (s->style.bytes)
        plain_style(s->style, style);
    if (s->hiding) {
        if (s->parts[s->part_count].kind == SMALL && strstr(style, "font-size:"))
            s->parts[s->part_count].kind = 0; /* what is in it has a size of its own: a trick of layout */
        return;
    }
    int kind = s->part_count < MAX_HIDDEN ? hides(s, style) : 0;
    if (kind && tag->flags & CAN_HIDE) {
        s->hiding = tag;
        s->hiding_depth = 1;
        s->parts[s->part_count] = (hidden_part){kind, s->text_length, 0, s->hrefs.count, 0};
    }
}

/* Process an end tag. */
static void end_hiding(state *s, const tag_entry *tag)
{
    if (s->hiding == tag && --s->hiding_depth == 0)
        stop_hiding(s);
}

/* -- raw text -------------------------------------------------------------------------------- */

static int ends_name(const char *p, const char *end)
{
    return p < end && classes[(unsigned char)*p] & ENDS_NAME;
}

static int starts_with(const char *p, const char *end, const char *name, size_t length)
{
    return (size_t)(end - p) >= length && is_named(p, length, name);
}

/* Return where the end tag of a raw element begins, or the end of the text. */
static const char *find_raw_end(const char *p, const char *end, const char *name)
{
    size_t length = strlen(name);
    while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
        if (p + 1 < end && p[1] == '/' && starts_with(p + 2, end, name, length) && ends_name(p + 2 + length, end))
            return p;
        p++;
    }
    return end;
}

/* The same for a script, where "<!--" and "<script" may hide its end tag. */
static const char *find_script_end(const char *p, const char *end)
{
    enum { NORMAL, ESCAPED, DOUBLE } mode = NORMAL;
    int dashes = 0;
    while (p < end) {
        char c = *p;
        if (c == '-') {
            dashes++;
            p++;
            continue;
        }
        if (c == '>' && dashes >= 2 && mode != NORMAL)
            mode = NORMAL;
        dashes = 0;
        if (c != '<') {
            p++;
            continue;
        }
        if (mode == NORMAL && (size_t)(end - p) >= 4 && memcmp(p, "<!--", 4) == 0) {
            mode = ESCAPED;
            dashes = 2;
            p += 4;
        } else if (p + 1 < end && p[1] == '/' && starts_with(p + 2, end, "script", 6) && ends_name(p + 8, end)) {
            if (mode != DOUBLE)
                return p;
            mode = ESCAPED;
            p += 8;
        } else if (mode == ESCAPED && starts_with(p + 1, end, "script", 6) && ends_name(p + 7, end)) {
            mode = DOUBLE;
            p += 7;
        } else {
            p++;
        }
    }
    return end;
}

static const char *const raw_names[] = {
    [IFRAME] = "iframe", [TITLE] = "title", [TEXTAREA] = "textarea", [STYLE] = "style", [NOEMBED] = "noembed",
    [NOFRAMES] = "noframes", [XMP] = "xmp", [NOSCRIPT] = "noscript", [SCRIPT] = "script"};

static void scan_markup(state *s, const char *p, const char *end, int is_nested);

/* Read the contents of a <noscript> as markup that cannot end what was begun outside of it. */
static void read_noscript(state *s, const char *p, const char *end)
{
    int wants_text = s->wants_text;
    size_t depth = s->depth, floor = s->floor, templates = s->templates, shadows = s->shadows, outer = s->outer_templates;
    s->wants_text = 0;
    s->floor = s->depth;
    s->outer_templates = templates + shadows;
    s->in_noscript = 1;
    scan_markup(s, p, end, 1);
    s->in_noscript = 0;
    s->wants_text = wants_text;
    s->depth = depth;
    s->floor = floor;
    s->templates = templates;
    s->shadows = shadows;
    s->outer_templates = outer;
    s->excess = 0;
}

/* Read the contents of an element that contains no markup; return where its end tag begins. */
static const char *read_raw(state *s, int kind, const char *p, const char *end, int is_nested)
{
    const char *stop = kind == SCRIPT ? find_script_end(p, end) : find_raw_end(p, end, raw_names[kind]);
    switch (kind) {
    case TITLE:
        if (!s->has_title && !s->templates && !s->shadows) {
            s->title = decoded(s, p, stop, 0);
            s->has_title = 1;
        }
        break;
    case TEXTAREA:
        add_raw_text(s, p, stop, ENDS_WORD);
        break;
    case XMP:
        break_line(s);
        add_raw_text(s, p, stop, ENDS_RAW_WORD);
        break_line(s);
        break;
    case NOSCRIPT:
        if (!is_nested) /* they do not nest: the first end tag ends it */
            read_noscript(s, p, stop);
        break;
    default:
        break;
    }
    return stop;
}

/* -- markup ---------------------------------------------------------------------------------- */

static const char *behind(const char *p, const char *end, char c)
{
    const char *found = p < end ? memchr(p, c, (size_t)(end - p)) : NULL;
    return found ? found + 1 : end;
}

static const char *behind_comment(const char *p, const char *end)
{
    if (p < end && *p == '>')
        return p + 1;
    if (p + 1 < end && p[0] == '-' && p[1] == '>')
        return p + 2;
    while (p < end && (p = memchr(p, '-', (size_t)(end - p)))) {
        if (p + 1 < end && p[1] == '-') {
            const char *q = p + 2;
            while (q < end && *q == '-')
                q++;
            if (q < end && *q == '>')
                return q + 1;
            if (q + 1 < end && q[0] == '!' && q[1] == '>')
                return q + 2;
            p = q;
        } else {
            p++;
        }
    }
    return end;
}

/* -- foreign content ------------------------------------------------------------------------- */

/* Within svg and math (HTML Standard 13.2.6.5) <title>, <style> and <script> are elements as any other: they can close
 * themselves, and contain markup. HTML returns at integration points, such as <foreignObject>, and after tags that
 * "break out". To tell which, the open elements of svg and math are stored, and how many of HTML are open within each
 * integration point. Elements of HTML outside are counted by tag, so that `</a>` ends an <svg> left open within <a>.
 * What this approximates: an end tag of an integration point, of svg or of math always ends it, also if an element of
 * HTML is open within. */
enum { NO_POINT, HTML_POINT, TEXT_POINT, ANNOTATION };

static foreign_element *innermost(state *s)
{
    return s->depth > s->floor ? &s->foreign[s->depth - 1] : NULL;
}

/* Return whether the current element is one of svg or math: "]]>" ends a CDATA section then. */
static int is_within_foreign(state *s)
{
    const foreign_element *e = innermost(s);
    return e && (s->excess || !e->html);
}

/* Return whether a start tag begins an element of svg or math. */
static int is_foreign_start(state *s, int kind)
{
    const foreign_element *e = innermost(s);
    if (!e || s->excess)
        return e != NULL;
    switch (e->point) {
    case HTML_POINT: return 0;
    case TEXT_POINT: return kind == MATH_GLYPH && !e->html;
    case ANNOTATION: return kind != SVG;
    default: return 1;
    }
}

static int is_html_encoding(span value)
{
    return (value.length == 9 && is_named(value.bytes, 9, "text/html")) ||
        (value.length == 21 && is_named(value.bytes, 21, "application/xhtml+xml"));
}

static void push_foreign(state *s, tag_name name, int kind, int is_math, span encoding)
{
    const foreign_element *parent = innermost(s);
    if (s->depth == MAX_FOREIGN) {
        s->excess++;
        return;
    }
    int point = NO_POINT, is_hidden = parent && parent->is_hidden;
    if (is_math) {
        if (kind == MATH_TEXT)
            point = TEXT_POINT;
        else if (kind == ANNOTATION_XML)
            point = is_html_encoding(encoding) ? HTML_POINT : ANNOTATION;
    } else {
        if (kind == FOREIGN_OBJECT || kind == DESC || kind == TITLE)
            point = HTML_POINT;
        is_hidden |= kind == DESC || kind == TITLE || kind == STYLE || kind == SCRIPT || kind == METADATA;
    }
    s->foreign[s->depth++] = (foreign_element){name, (uint8_t)is_math, (uint8_t)point, (uint8_t)is_hidden, 0};
}

/* End elements of svg and math up to an integration point. */
static void break_out(state *s)
{
    s->excess = 0;
    while (s->depth > s->floor) {
        const foreign_element *e = &s->foreign[s->depth - 1];
        if (e->point == HTML_POINT || e->point == TEXT_POINT)
            return;
        s->depth--;
    }
}

/* Process an end tag within svg or math; return whether it is one of HTML, which is still to be processed. */
static int end_foreign(state *s, tag_name name, const tag_entry *tag)
{
    if (s->excess && !(tag->flags & END_BREAKS_OUT)) {
        s->excess--;
        return 0;
    }
    int has_point = 0, is_root = tag->kind == SVG || tag->kind == MATH;
    if (tag->flags & END_BREAKS_OUT)
        break_out(s);
    for (size_t i = s->depth; i > s->floor; i--) {
        foreign_element *e = &s->foreign[i - 1];
        int is_same = is_same_name(e->name, name);
        if (e->html && !(i == s->depth && (is_same || is_root))) {
            if (tag->kind == TEMPLATE || (i < s->depth && (has_point || !(tag->flags & IS_COUNTED))))
                return tag->kind == TEMPLATE;
            e->html--;
            s->depth = i;
            return 1;
        }
        if (is_same) {
            s->depth = i - 1;
            return 0;
        }
        has_point |= e->point != NO_POINT;
    }
    if (s->floor == 0 && !has_point && tag->flags & IS_COUNTED && s->open[tag - tags]) {
        s->depth = 0;
        return 1;
    }
    return tag->kind == TEMPLATE || tag->flags & END_BREAKS_OUT;
}

/* -- tags -------------------------------------------------------------------------------------- */

static void start_template(state *s, span shadow)
{
    size_t open = s->templates + s->shadows;
    if (open < MAX_TEMPLATES) {
        s->floors[open] = s->floor;
        s->floor = s->depth;
    }
    int is_shown = (shadow.length == 4 && is_named(shadow.bytes, 4, "open")) ||
        (shadow.length == 6 && is_named(shadow.bytes, 6, "closed"));
    if (is_shown && !s->templates)
        s->shadows++;
    else
        s->templates++;
}

static void end_template(state *s)
{
    if (s->templates + s->shadows <= s->outer_templates)
        return;
    if (s->templates)
        s->templates--;
    else
        s->shadows--;
    size_t open = s->templates + s->shadows;
    if (open < MAX_TEMPLATES) {
        s->depth = s->floor;
        s->floor = s->floors[open];
        s->excess = 0;
    }
}

static void end_tag(state *s, const tag_entry *tag)
{
    if (s->hiding == tag && !s->templates && !s->in_noscript)
        end_hiding(s, tag);
    if (tag->flags & IS_COUNTED && s->open[tag - tags])
        s->open[tag - tags]--;
    if (tag->kind == BLOCK)
        break_line(s);
    else if (tag->kind == CELL)
        leave_gap(s);
    else if (tag->kind == TEMPLATE)
        end_template(s);
}

/* Clear the attributes, one by one: for so few bytes, clearing by a call takes longer than reading the tag. */
static inline void clear(wanted *w)
{
    w->href = w->src = w->rel = w->name = w->property = w->http_equiv = w->content = w->lang = (span){NULL, 0};
    w->xlink_href = w->shadow = w->encoding = w->font = (span){NULL, 0};
}

/* Return what follows the end tag of a raw element, which begins at p. */
static const char *behind_raw_end(state *s, int kind, const char *p, const char *end)
{
    if (p >= end)
        return end;
    p = read_attributes(s, p + 2 + strlen(raw_names[kind]), end, NULL);
    return p ? p : end;
}

static const char *start_tag(state *s, const char *p, const char *end, const tag_entry *tag, int is_nested)
{
    wanted w;
    int kind = tag->kind;
    int is_collected = kind >= A && kind <= TEMPLATE && !s->templates;
    if (is_collected)
        clear(&w);
    s->style = (span){NULL, 0};
    s->has_hidden = 0;
    s->looks_for_style = s->hiding || tag->flags & CAN_HIDE;
    p = read_attributes(s, p, end, is_collected ? &w : NULL);
    s->looks_for_style = 0;
    if (!p)
        return end;
    if ((s->style.bytes || s->has_hidden || s->hiding == tag) && !s->templates && !s->in_noscript)
        start_hiding(s, tag, tag->kind == BLOCK && tag->name.first == 'p');
    if (is_collected)
        collect(s, kind, &w);
    if (tag->flags & IS_COUNTED)
        s->open[tag - tags]++;
    foreign_element *around = innermost(s);
    switch (kind) {
    case BLOCK:
        break_line(s);
        break;
    case CELL:
        leave_gap(s);
        break;
    case TEMPLATE:
        start_template(s, is_collected ? w.shadow : (span){NULL, 0});
        return p;
    case SVG:
    case MATH:
        if (!s->is_self_closing)
            push_foreign(s, tag->name, kind, kind == MATH, (span){NULL, 0});
        return p;
    case PLAINTEXT:
        break_line(s);
        add_raw_text(s, p, end, ENDS_RAW_WORD);
        return end;
    case IFRAME:
    case TITLE:
    case TEXTAREA:
    case SCRIPT:
    case STYLE:
    case NOEMBED:
    case NOFRAMES:
    case XMP:
    case NOSCRIPT:
        p = read_raw(s, kind, p, end, is_nested);
        return around ? behind_raw_end(s, kind, p, end) : p;
    default:
        break;
    }
    if (around && !(tag->flags & NEVER_OPEN))
        around->html++;
    return p;
}

/* Read the rest of a start tag within svg or math. */
static const char *start_foreign(state *s, const char *p, const char *end, tag_name name, const tag_entry *tag)
{
    wanted w;
    int kind = tag->kind, is_math = innermost(s)->is_math;
    int is_read = kind == A || kind == FONT || kind == ANNOTATION_XML;
    clear(&w);
    p = read_attributes(s, p, end, is_read ? &w : NULL);
    if (!p)
        return end;
    if (kind == FONT && w.font.bytes) {
        break_out(s);
        s->open[tag - tags]++;
        if (innermost(s))
            innermost(s)->html++;
        return p;
    }
    if (kind == A && !s->templates) {
        if (!w.href.bytes)
            w.href = w.xlink_href;
        add_anchor(s, &w);
    }
    if (!s->is_self_closing)
        push_foreign(s, name, kind, is_math, w.encoding);
    return p;
}

/* Return a name of up to LONGEST_NAME characters in lower case. Longer ones are no name. */
static tag_name name_of(const char *start, size_t length)
{
    tag_name name = {0, 0};
    for (size_t i = 0; length <= LONGEST_NAME && i < length; i++) {
        char c = (char)(start[i] >= 'A' && start[i] <= 'Z' ? start[i] | 32 : start[i]);
        ((char *)&name)[i] = c ? c : ' '; /* zeros are only after the end, blanks in no name */
    }
    return name;
}

/* Read a name; return where it ends. */
static inline const char *read_name(const char *p, const char *end, tag_name *name)
{
#ifdef __SSE2__
    if (end - p >= WIDE) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        __m128i stops = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes),
                                     _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('/')),
                                                  _mm_cmpeq_epi8(bytes, _mm_set1_epi8('>'))));
        unsigned length = (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(stops) | 1u << WIDE);
        if (length <= 8 && classes[(unsigned char)p[length]] & ENDS_NAME) {
            /* The bit that small letters have is in digits too; what has it not is no letter, or a control, which
             * stopped us. */
            uint64_t first;
            memcpy(&first, p, 8);
            *name = (tag_name){(first | 0x2020202020202020u) & (~(uint64_t)0 >> (64 - 8 * length)), 0};
            return p + length;
        }
    }
#endif
    const char *behind_name = skip_to(p, end, ENDS_NAME);
    *name = name_of(p, (size_t)(behind_name - p));
    return behind_name;
}

/* Read a name exactly, though only its first LONGEST_NAME bytes: within svg and math, unknown ones are compared too. */
static const char *read_exact_name(const char *p, const char *end, tag_name *name)
{
    static const char replacement[] = "\xEF\xBF\xBD"; /* for NUL */
    *name = (tag_name){0, 0};
    for (size_t length = 0; p < end && !(classes[(unsigned char)*p] & ENDS_NAME); p++) {
        char c = (char)(*p >= 'A' && *p <= 'Z' ? *p | 32 : *p);
        for (size_t i = 0; i < (c ? 1 : 3) && length < LONGEST_NAME; i++)
            ((char *)name)[length++] = c ? c : replacement[i];
    }
    return p;
}

/* Read a tag within svg or math whose name begins at p; return what follows it. */
static const char *read_inside_tag(state *s, const char *p, const char *end, int is_end, int is_nested)
{
    tag_name name;
    p = read_exact_name(p, end, &name);
    const tag_entry *tag = entry_of(name);
    if (is_end) {
        p = read_attributes(s, p, end, NULL);
        if (p && end_foreign(s, name, tag))
            end_tag(s, tag);
        return p ? p : end;
    }
    if (is_foreign_start(s, tag->kind)) {
        if (!(tag->flags & BREAKS_OUT))
            return start_foreign(s, p, end, name, tag);
        break_out(s);
    }
    return start_tag(s, p, end, tag, is_nested);
}

/* Read a tag whose name begins at p; return what follows it. */
static inline const char *read_tag(state *s, const char *p, const char *end, int is_end, int is_nested)
{
    if (s->depth > s->floor)
        return read_inside_tag(s, p, end, is_end, is_nested);
    tag_name name;
    p = read_name(p, end, &name);
    const tag_entry *tag = entry_of(name);
    if (!is_end)
        return start_tag(s, p, end, tag, is_nested);
    p = read_attributes(s, p, end, NULL);
    if (!p)
        return end;
    end_tag(s, tag);
    return p;
}

/* Read a CDATA section whose contents begin at p; return what follows it. */
static const char *read_cdata(state *s, const char *p, const char *end)
{
    const char *stop = p;
    while ((stop = find(stop, end, ']')) && !(end - stop >= 3 && stop[1] == ']' && stop[2] == '>'))
        stop++;
    if (shows_text(s))
        add_text(s, p, stop ? stop : end, ENDS_RAW_WORD, 0);
    return stop ? stop + 3 : end;
}

/* Read what begins with "<" at p; return what follows, or p if it is only text. */
static const char *read_markup(state *s, const char *p, const char *end, int is_nested)
{
    if (p + 1 >= end)
        return p;
    unsigned char c = (unsigned char)p[1];
    if (is_letter(c))
        return read_tag(s, p + 1, end, 0, is_nested);
    if (c == '!') {
        if ((size_t)(end - p) >= 4 && p[2] == '-' && p[3] == '-')
            return behind_comment(p + 4, end);
        if (s->depth && is_within_foreign(s) && end - p >= 9 && memcmp(p, "<![CDATA[", 9) == 0)
            return read_cdata(s, p + 9, end);
        return behind(p + 2, end, '>');
    }
    if (c == '?')
        return behind(p + 1, end, '>');
    if (c == '/' && p + 2 < end)
        return is_letter((unsigned char)p[2]) ? read_tag(s, p + 2, end, 1, is_nested) : behind(p + 2, end, '>');
    return p;
}

static void scan_markup(state *s, const char *p, const char *end, int is_nested)
{
    while (p < end && !s->is_out_of_memory) {
        const char *tag = *p == '<' ? p : shows_text(s) ? add_text(s, p, end, ENDS_TEXT, 0) : find(p, end, '<');
        if (!tag || tag >= end)
            return;
        p = read_markup(s, tag, end, is_nested);
        if (p == tag) {
            if (shows_text(s))
                put(s, "<", 1);
            p++;
        }
    }
}

/* -- UTF-8 ----------------------------------------------------------------------------------- */

/* Return how many bytes a well-formed sequence at p takes (Unicode Table 3-7), 0 if there is none. */
static size_t sequence(const unsigned char *p, const unsigned char *end)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t length = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || (size_t)(end - p) < length)
        return 0;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

static int is_utf8(const char *bytes, size_t length)
{
    const unsigned char *p = (const unsigned char *)bytes, *end = p + length;
    while (p < end) {
        uint64_t parts[4];
        while (end - p >= 32 &&
               (memcpy(parts, p, 32), !((parts[0] | parts[1] | parts[2] | parts[3]) & 0x8080808080808080u)))
            p += 32;
        while (end - p >= 8 && (memcpy(parts, p, 8), !(parts[0] & 0x8080808080808080u)))
            p += 8;
        if (p >= end)
            break;
        if (*p < 0x80) {
            p++;
            continue;
        }
        size_t taken = sequence(p, end);
        if (!taken)
            return 0;
        p += taken;
    }
    return 1;
}

/* -- Python ---------------------------------------------------------------------------------- */

static PyObject *as_str(span value)
{
    return PyUnicode_DecodeUTF8(value.bytes ? value.bytes : "", (Py_ssize_t)value.length, "replace");
}

static PyObject *as_list(const spans *list)
{
    PyObject *result = PyList_New((Py_ssize_t)list->count);
    for (size_t i = 0; result && i < list->count; i++) {
        PyObject *item = as_str(list->items[i]);
        if (!item || PyList_SetItem(result, (Py_ssize_t)i, item)) {
            Py_DECREF(result);
            return NULL;
        }
    }
    return result;
}

static PyObject *as_pairs(const spans *list)
{
    PyObject *result = PyList_New((Py_ssize_t)(list->count / 2));
    for (size_t i = 0; result && i + 1 < list->count; i += 2) {
        PyObject *pair = Py_BuildValue("(NN)", as_str(list->items[i]), as_str(list->items[i + 1]));
        if (!pair || PyList_SetItem(result, (Py_ssize_t)(i / 2), pair)) {
            Py_DECREF(result);
            return NULL;
        }
    }
    return result;
}

static PyObject *as_parts(const state *s)
{
    PyObject *list = PyList_New((Py_ssize_t)s->part_count);
    for (size_t i = 0; list && i < s->part_count; i++) {
        const hidden_part *part = &s->parts[i];
        PyObject *item = Py_BuildValue("(innnn)", part->kind, (Py_ssize_t)part->text, (Py_ssize_t)part->text_end,
                                       (Py_ssize_t)part->hrefs, (Py_ssize_t)part->hrefs_end);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *bytes;
    Py_ssize_t length;
    int wants_text;
    if (!PyArg_ParseTuple(args, "y#p", &bytes, &length, &wants_text))
        return NULL;
    if (!is_utf8(bytes, (size_t)length))
        Py_RETURN_NONE;
    if (!has_entities && memchr(bytes, '&', (size_t)length) && fill_entities())
        return NULL;
    state s;
    memset(&s, 0, offsetof(state, foreign));
    s.wants_text = wants_text;
    s.gap = 2;
    if (length >= UNLOCK_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        scan_markup(&s, bytes, bytes + length, 0);
        Py_END_ALLOW_THREADS
    } else {
        scan_markup(&s, bytes, bytes + length, 0);
    }
    if (s.hiding)
        stop_hiding(&s);
    PyObject *result = NULL;
    if (s.is_out_of_memory)
        PyErr_NoMemory();
    else
        result = Py_BuildValue("(NNNNNNnNnN)", as_str(s.title), as_str(s.lang), as_list(&s.bases), as_pairs(&s.metas),
                               as_pairs(&s.links), as_list(&s.hrefs), (Py_ssize_t)s.nofollow,
                               PyBytes_FromStringAndSize(s.text, (Py_ssize_t)s.text_length), (Py_ssize_t)s.words,
                               as_parts(&s));
    let_go(&s);
    return result;
}

static PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS, "scan(content, wants_text) -> the contents of a page's markup"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_scan", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__scan(void)
{
    fill_classes();
    fill_tags();
    if (draw_secret())
        return NULL;
    return PyModule_Create(&module);
}
