/* Scans the markup of a page: one pass over its characters, without a tree.
 *
 * scan(content, wants_text) -> None if the bytes are not UTF-8, else
 *     (title, lang, bases, metas, links, hrefs, nofollow, text, words)
 *
 * The tokenizer is the WHATWG's (HTML Standard 13.2.5), with raw text switched by the tag's
 * name alone and <noscript> read as markup. What is collected, and the words that are
 * visible, is described in `scan_python.py`, which does the same in Python; a test compares the
 * two on arbitrary text.
 *
 * Safety: every read is below `end`; every output goes through `arena_alloc` or `put`, which
 * check their room. Time and memory are linear in the input, however deeply it nests. The GIL is
 * released while characters are read: no Python object is used then.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define UNLOCK_BYTES 65536 /* below this, releasing the GIL costs more than it gains */
#define MAX_HREF_CHARS 16384
#define WIDE 16 /* bytes that are read or copied at a time, if that many are left */
#define TAG_SLOTS 256
#define ENTITY_SLOTS 8192

/* -- tags ------------------------------------------------------------------------------------ */

enum kind {
    PLAIN, A, AREA, FRAME, IFRAME, LINK, META, BASE, HTML, TITLE, TEXTAREA, SCRIPT, STYLE, NOEMBED, NOFRAMES, XMP,
    PLAINTEXT, NOSCRIPT, TEMPLATE, FOREIGN, BLOCK, CELL
};

/* A name is stored as two numbers of 8 bytes each, zeros after its end; none that matters is longer. */
typedef struct { uint64_t first, second; } tag_name;
typedef struct { tag_name name; uint8_t kind; } tag_entry;

#define LONGEST_NAME sizeof(tag_name)

static tag_entry tags[TAG_SLOTS];

static size_t tag_slot(tag_name name)
{
    return (size_t)((name.first ^ name.second) * 0x9E3779B97F4A7C15u >> 56);
}

static void add_tag(const char *text, int kind)
{
    tag_name name = {0, 0};
    memcpy(&name, text, strlen(text));
    size_t slot = tag_slot(name);
    while (tags[slot].kind)
        slot = (slot + 1) % TAG_SLOTS;
    tags[slot].name = name;
    tags[slot].kind = (uint8_t)kind;
}

static void fill_tags(void)
{
    static const char *const blocks[] = {
        "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog",
        "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
        "h6", "head", "header", "hgroup", "hr", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup",
        "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul", NULL};
    static const struct { const char *name; int kind; } others[] = {
        {"a", A}, {"area", AREA}, {"frame", FRAME}, {"iframe", IFRAME}, {"link", LINK}, {"meta", META},
        {"base", BASE}, {"html", HTML}, {"title", TITLE}, {"textarea", TEXTAREA}, {"script", SCRIPT},
        {"style", STYLE}, {"noembed", NOEMBED}, {"noframes", NOFRAMES}, {"xmp", XMP},
        {"plaintext", PLAINTEXT}, {"noscript", NOSCRIPT}, {"template", TEMPLATE}, {"svg", FOREIGN},
        {"math", FOREIGN}, {"td", CELL}, {"th", CELL}, {"option", CELL}, {NULL, 0}};
    for (int i = 0; blocks[i]; i++)
        add_tag(blocks[i], BLOCK);
    for (int i = 0; others[i].name; i++)
        add_tag(others[i].name, others[i].kind);
}

static int kind_of(tag_name name)
{
    for (size_t slot = tag_slot(name); tags[slot].kind; slot = (slot + 1) % TAG_SLOTS)
        if (tags[slot].name.first == name.first && tags[slot].name.second == name.second)
            return tags[slot].kind;
    return PLAIN;
}

/* -- character references -------------------------------------------------------------------- */

typedef struct { char *name; char value[8]; uint8_t length; uint8_t value_length; } entity;

static entity entities[ENTITY_SLOTS];

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

/* Copy the names from Python's own table, which is the standard's. */
static int fill_entities(void)
{
    PyObject *module = PyImport_ImportModule("html.entities");
    PyObject *table = module ? PyObject_GetAttrString(module, "html5") : NULL;
    Py_XDECREF(module);
    if (!table)
        return -1;
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

typedef struct {
    chunk *arena;
    spans metas, links, bases, hrefs; /* metas and links: two spans each */
    uint32_t *seen;                   /* open addressing: index of a href, plus 1 */
    size_t seen_size;
    span title, lang;
    int has_title, has_lang, is_out_of_memory;
    size_t nofollow;
    char *text; /* what is visible */
    size_t text_length, text_size, words;
    int wants_text, gap; /* gap: 0 within a word, 1 a blank is pending, 2 a new line is pending */
    size_t templates, foreign; /* open elements of these kinds */
} state;

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
static inline const char *copy_word(state *s, const char *p, const char *end, uint8_t class)
{
    char *out = s->text + s->text_length;
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
    s->text_length = (size_t)(out - s->text);
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
        unsigned char c = (unsigned char)*p;
        if (!(classes[c] & class)) {
            if (make_room(s, (size_t)(end - p) + 1))
                return end;
            begin_word(s);
            p = copy_word(s, p, end, class);
        } else if (classes[c] & SPACE) {
            leave_gap(s);
            p = skip_spaces(p + 1, end);
        } else if (c == '<') {
            return p;
        } else if (c == '&') {
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
    if (s->wants_text && !s->templates)
        add_text(s, p, end, class, 1);
}

/* -- attributes ------------------------------------------------------------------------------ */

typedef struct { span href, src, rel, name, property, http_equiv, content, lang; } wanted;

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
            : is_named(name, 4, "lang") ? &w->lang : NULL;
    case 7: return is_named(name, 7, "content") ? &w->content : NULL;
    case 8: return is_named(name, 8, "property") ? &w->property : NULL;
    case 10: return is_named(name, 10, "http-equiv") ? &w->http_equiv : NULL;
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

/* Read attributes from p to the end of the tag. Return what follows the ">", or NULL if the text ends before. */
static const char *read_attributes(state *s, const char *p, const char *end, wanted *w, int *is_self_closing)
{
    for (;;) {
        *is_self_closing = 0;
        while (p < end && (is_space((unsigned char)*p) || *p == '/'))
            *is_self_closing = *p++ == '/';
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
        span *place = w ? place_of(w, name, name_length) : NULL;
        if (place && !place->bytes)
            *place = decoded(s, value, value_end, 1);
    }
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

/* Return a href without its fragment, trimmed as the URL standard does. */
static span trimmed(state *s, span href)
{
    const char *cut = href.length ? find(href.bytes, href.bytes + href.length, '#') : NULL;
    const char *p = href.bytes, *end = cut ? cut : p + href.length;
    while (p < end && (unsigned char)*p <= ' ')
        p++;
    while (end > p && (unsigned char)end[-1] <= ' ')
        end--;
    span result = {p, (size_t)(end - p)};
    int has_breaks = find(p, end, '\t') || find(p, end, '\n') || find(p, end, '\r');
    char *out = has_breaks ? arena_alloc(s, result.length) : NULL;
    if (!out)
        return result;
    result.bytes = out;
    for (const char *q = p; q < end; q++)
        if (*q != '\t' && *q != '\n' && *q != '\r')
            *out++ = *q;
    result.length = (size_t)(out - result.bytes);
    return result;
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

static int grow_seen(state *s)
{
    size_t size = s->seen_size ? s->seen_size * 4 : 256;
    uint32_t *seen = calloc(size, sizeof(uint32_t));
    if (!seen) {
        s->is_out_of_memory = 1;
        return -1;
    }
    for (size_t i = 0; i < s->hrefs.count; i++) {
        size_t slot = hash_bytes(s->hrefs.items[i].bytes, s->hrefs.items[i].length) % size;
        while (seen[slot])
            slot = (slot + 1) % size;
        seen[slot] = (uint32_t)i + 1;
    }
    free(s->seen);
    s->seen = seen;
    s->seen_size = size;
    return 0;
}

/* Add a href that can be followed, once. */
static void add_href(state *s, span raw)
{
    span href = trimmed(s, raw);
    if (!href.length || is_too_long(href) || !is_followed(href.bytes, href.length))
        return;
    if (s->hrefs.count * 2 >= s->seen_size && grow_seen(s))
        return;
    size_t slot = hash_bytes(href.bytes, href.length) % s->seen_size;
    for (; s->seen[slot]; slot = (slot + 1) % s->seen_size) {
        span *known = &s->hrefs.items[s->seen[slot] - 1];
        if (known->length == href.length && memcmp(known->bytes, href.bytes, href.length) == 0)
            return;
    }
    if (!append(s, &s->hrefs, href))
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

static void collect(state *s, int kind, wanted *w)
{
    switch (kind) {
    case A:
    case AREA:
        add_anchor(s, w);
        break;
    case FRAME:
    case IFRAME:
        if (w->src.bytes)
            add_href(s, w->src);
        break;
    case LINK:
        if (!append(s, &s->links, w->rel))
            append(s, &s->links, w->href);
        break;
    case META:
        add_meta(s, w);
        break;
    case BASE:
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
    [NOFRAMES] = "noframes", [XMP] = "xmp", [NOSCRIPT] = "noscript"};

static void scan_markup(state *s, const char *p, const char *end, int is_nested);

/* Read the contents of an element that contains no markup; return where its end tag begins. */
static const char *read_raw(state *s, int kind, const char *p, const char *end, int is_nested)
{
    const char *stop = kind == SCRIPT ? find_script_end(p, end) : find_raw_end(p, end, raw_names[kind]);
    switch (kind) {
    case TITLE:
        if (!s->has_title && !s->foreign) {
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
        if (!is_nested) { /* they do not nest: the first end tag ends it */
            int wants_text = s->wants_text;
            s->wants_text = 0;
            scan_markup(s, p, stop, 1);
            s->wants_text = wants_text;
        }
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

static void end_tag(state *s, int kind)
{
    if (kind == BLOCK)
        break_line(s);
    else if (kind == CELL)
        leave_gap(s);
    else if (kind == TEMPLATE && s->templates)
        s->templates--;
    else if (kind == FOREIGN && s->foreign)
        s->foreign--;
}

static const char *start_tag(state *s, const char *p, const char *end, int kind, int is_nested)
{
    wanted w;
    int is_self_closing, is_collected = kind >= A && kind <= HTML;
    if (is_collected) /* one by one: for so few bytes, clearing by a call takes longer than reading the tag */
        w.href = w.src = w.rel = w.name = w.property = w.http_equiv = w.content = w.lang = (span){NULL, 0};
    p = read_attributes(s, p, end, is_collected ? &w : NULL, &is_self_closing);
    if (!p)
        return end;
    if (is_collected)
        collect(s, kind, &w);
    switch (kind) {
    case BLOCK:
        break_line(s);
        break;
    case CELL:
        leave_gap(s);
        break;
    case TEMPLATE:
        s->templates++;
        break;
    case FOREIGN:
        s->foreign += !is_self_closing;
        break;
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
        return read_raw(s, kind, p, end, is_nested);
    default:
        break;
    }
    return p;
}

/* Read a name of up to LONGEST_NAME characters in lower case; return where it ends. Longer ones are no name. */
static const char *read_name(const char *p, const char *end, tag_name *name)
{
    *name = (tag_name){0, 0};
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
            memcpy(&name->first, p, 8);
            name->first = (name->first | 0x2020202020202020u) & (~(uint64_t)0 >> (64 - 8 * length));
            return p + length;
        }
    }
#endif
    const char *start = p;
    p = skip_to(p, end, ENDS_NAME);
    size_t length = (size_t)(p - start);
    for (size_t i = 0; length <= LONGEST_NAME && i < length; i++) {
        char c = (char)(start[i] >= 'A' && start[i] <= 'Z' ? start[i] | 32 : start[i]);
        ((char *)name)[i] = c ? c : ' '; /* zeros are only after the end, blanks in no name */
    }
    return p;
}

/* Read a tag whose name begins at p; return what follows it. */
static const char *read_tag(state *s, const char *p, const char *end, int is_end, int is_nested)
{
    tag_name name;
    p = read_name(p, end, &name);
    int kind = kind_of(name);
    if (!is_end)
        return start_tag(s, p, end, kind, is_nested);
    int is_self_closing;
    p = read_attributes(s, p, end, NULL, &is_self_closing);
    if (!p)
        return end;
    end_tag(s, kind);
    return p;
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
        const char *tag = s->wants_text && !s->templates ? add_text(s, p, end, ENDS_TEXT, 0) : find(p, end, '<');
        if (!tag || tag >= end)
            return;
        p = read_markup(s, tag, end, is_nested);
        if (p == tag) {
            if (s->wants_text && !s->templates)
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

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *bytes;
    Py_ssize_t length;
    int wants_text;
    if (!PyArg_ParseTuple(args, "y#p", &bytes, &length, &wants_text))
        return NULL;
    if (!is_utf8(bytes, (size_t)length))
        Py_RETURN_NONE;
    state s;
    memset(&s, 0, sizeof s);
    s.wants_text = wants_text;
    s.gap = 2;
    if (length >= UNLOCK_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        scan_markup(&s, bytes, bytes + length, 0);
        Py_END_ALLOW_THREADS
    } else {
        scan_markup(&s, bytes, bytes + length, 0);
    }
    PyObject *result = NULL;
    if (s.is_out_of_memory)
        PyErr_NoMemory();
    else
        result = Py_BuildValue("(NNNNNNnNn)", as_str(s.title), as_str(s.lang), as_list(&s.bases), as_pairs(&s.metas),
                               as_pairs(&s.links), as_list(&s.hrefs), (Py_ssize_t)s.nofollow,
                               PyBytes_FromStringAndSize(s.text, (Py_ssize_t)s.text_length), (Py_ssize_t)s.words);
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
    if (fill_entities())
        return NULL;
    return PyModule_Create(&module);
}
