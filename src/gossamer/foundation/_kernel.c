/* The arithmetic of gossamer.core.dedup and of text fingerprints in C, and the joining of plain hrefs: the same results,
   many times as fast.

   Optional: without a compiler the package installs without it, and `gossamer.foundation.kernel` falls back to Python.
   `GOSSAMER_NO_KERNEL` in the environment does the same. What the functions compute is defined in
   core/dedup/shingles.py, minhash.py, simhash.py and bands.py, in parse/text/fingerprint.py, in core/traps/novelty.py and
   url_patterns.py, in core/revisit/text_change.py and in core/url/forms.py; tests compare the two bit for bit.

   Limited API of Python 3.11: one build serves all later versions. Little-endian machines only. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "written for little-endian machines; the Python path serves all others"
#endif

/* One build, the widest vectors that the machine has: chosen by the loader, which only glibc's can. */
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

#define MAX_CHARS 100000
#define SHINGLE_WORDS 5
#define LANES 128
#define BLOCK 64 /* bytes in which words are searched at a time */
#define BATCH 256 /* words that are hashed at a time */
#define SIGNATURE_BYTES (LANES * 4)
#define LONG_TEXT_BYTES 65536 /* from here on the lock is released for other threads */

static uint32_t multipliers[LANES], addends[LANES];

/* -- hashing ---------------------------------------------------------------------------------- */

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void draw_permutations(void) {
    uint64_t state = 0x676F7373616D6572u; /* "gossamer" */
    for (int lane = 0; lane < LANES; lane++) {
        multipliers[lane] = (uint32_t)(splitmix64(&state) >> 32) | 1;
        addends[lane] = (uint32_t)(splitmix64(&state) >> 32);
    }
}

static inline uint32_t read32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

static inline uint64_t read64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

static inline uint32_t rotate32(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

#define P1 2654435761u
#define P2 2246822519u
#define P3 3266489917u
#define P4 668265263u
#define P5 374761393u

static inline uint32_t next_four(uint32_t hash, uint32_t four) { return rotate32(hash + four * P3, 17) * P4; }

static inline uint32_t next_one(uint32_t hash, uint32_t one) { return rotate32(hash + one * P5, 11) * P1; }

static inline uint32_t avalanche(uint32_t hash) {
    hash = (hash ^ (hash >> 15)) * P2;
    hash = (hash ^ (hash >> 13)) * P3;
    return hash ^ (hash >> 16);
}

static inline uint32_t either(int is_one, uint32_t one, uint32_t other) {
    return other ^ ((one ^ other) & (0u - (uint32_t)is_one));
}

/* XXH32 with seed 0 of at least 16 bytes. */
static uint32_t long_word_hash(const uint8_t *at, size_t length) {
    const uint8_t *end = at + length;
    uint32_t lanes[4] = {P1 + P2, P2, 0, 0u - P1};
    for (; at + 16 <= end; at += 16)
        for (int lane = 0; lane < 4; lane++)
            lanes[lane] = rotate32(lanes[lane] + read32(at + 4 * lane) * P2, 13) * P1;
    uint32_t hash = rotate32(lanes[0], 1) + rotate32(lanes[1], 7) + rotate32(lanes[2], 12) + rotate32(lanes[3], 18);
    hash += (uint32_t)length;
    for (; at + 4 <= end; at += 4) hash = next_four(hash, read32(at));
    for (; at < end; at++) hash = next_one(hash, *at);
    return avalanche(hash);
}

#define FOLD 0x9E3779B97F4A7C15u
#define MIX 0xD6E8FEB86659FD93u

static inline uint64_t mixed(uint64_t sum) {
    sum = (sum ^ (sum >> 32)) * MIX;
    return sum ^ (sum >> 29);
}

/* -- shingles --------------------------------------------------------------------------------- */

/* Bytes above 0x40 and below 0x5B are capital letters: no byte of a longer UTF-8 sequence is. */
WIDEST static void lower(const uint8_t *from, uint8_t *to, size_t length) {
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = from[i];
        to[i] = (uint8_t)(byte + ((uint8_t)(byte - 'A') < 26 ? 32 : 0));
    }
}

/* Returns a bit for each of BLOCK bytes: set if it is no blank. */
static inline uint64_t word_bits(const uint8_t *text) {
    uint64_t blanks = 0;
#ifdef __SSE2__
    for (int part = 0; part < BLOCK; part += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(text + part)), moved = _mm_sub_epi8(bytes, _mm_set1_epi8(9));
        __m128i are_blank = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')),
                                         _mm_cmpeq_epi8(_mm_min_epu8(moved, _mm_set1_epi8(4)), moved));
        blanks |= (uint64_t)(uint32_t)_mm_movemask_epi8(are_blank) << part;
    }
#else
    for (int i = 0; i < BLOCK; i++) blanks |= (uint64_t)(text[i] == ' ' || (uint8_t)(text[i] - 9) < 5) << i;
#endif
    return ~blanks;
}

/* Words on their way to be hashed, many at a time. */
typedef struct {
    uint32_t parts[4][BATCH]; /* the first 16 bytes of each, including whatever follows it */
    uint32_t lengths[BATCH];
    uint32_t long_hashes[BATCH];
    uint16_t long_places[BATCH]; /* of those with 16 bytes and more, which are hashed one by one */
    size_t count, longs;
} Batch;

/* Writes the XXH32, seed 0, of words with less than 16 bytes. The length of the next word is unpredictable, so there are no
   branches: all steps are done, in many lanes, and those that count are selected. */
WIDEST static void hash_short_words(const Batch *batch, uint32_t *words) {
    for (size_t i = 0; i < batch->count; i++) {
        uint32_t length = batch->lengths[i], fours = length / 4, ones = length % 4;
        uint32_t a = batch->parts[0][i], b = batch->parts[1][i], c = batch->parts[2][i], d = batch->parts[3][i];
        uint32_t rest = fours == 0 ? a : fours == 1 ? b : fours == 2 ? c : d, hash = P5 + length;
        hash = either(fours > 0, next_four(hash, a), hash);
        hash = either(fours > 1, next_four(hash, b), hash);
        hash = either(fours > 2, next_four(hash, c), hash);
        hash = either(ones > 0, next_one(hash, rest & 255), hash);
        hash = either(ones > 1, next_one(hash, rest >> 8 & 255), hash);
        hash = either(ones > 2, next_one(hash, rest >> 16 & 255), hash);
        words[i] = avalanche(hash);
    }
}

static size_t hash_batch(Batch *batch, uint32_t *words) {
    size_t count = batch->count;
    hash_short_words(batch, words);
    for (size_t i = 0; i < batch->longs; i++) words[batch->long_places[i]] = batch->long_hashes[i];
    batch->count = batch->longs = 0;
    return count;
}

static inline void add_word(Batch *batch, const uint8_t *start, size_t length) {
    size_t place = batch->count++;
    for (int part = 0; part < 4; part++) batch->parts[part][place] = read32(start + 4 * part);
    batch->lengths[place] = (uint32_t)length;
    if (length >= 16) {
        batch->long_hashes[batch->longs] = long_word_hash(start, length);
        batch->long_places[batch->longs++] = (uint16_t)place;
    }
}

/* Writes the hash of each word; returns how many. `text` is in lower case, with 2 * BLOCK blanks after its end. */
static size_t hash_words(const uint8_t *text, size_t length, uint32_t *words) {
    Batch batch;
    size_t count = 0, start = 0;
    uint64_t was_word = 0; /* 1 if the byte before is part of a word */
    batch.count = batch.longs = 0;
    for (size_t base = 0; base <= length; base += BLOCK) {
        uint64_t bits = word_bits(text + base), edges = bits ^ (bits << 1 | was_word), in_word = was_word;
        was_word = bits >> (BLOCK - 1);
        for (; edges; edges &= edges - 1, in_word ^= 1) {
            size_t at = base + (size_t)__builtin_ctzll(edges);
            if (in_word)
                add_word(&batch, text + start, at - start);
            else
                start = at;
        }
        if (batch.count > BATCH - BLOCK) count += hash_batch(&batch, words + count);
    }
    return count + hash_batch(&batch, words + count);
}

/* Writes the hash of each shingle; returns how many. */
static size_t hash_shingles(const uint32_t *words, size_t count, uint64_t *hashes) {
    static const uint64_t fold2 = FOLD * FOLD, fold3 = FOLD * FOLD * FOLD, fold4 = FOLD * FOLD * FOLD * FOLD;
    if (count < SHINGLE_WORDS) {
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++) sum = sum * FOLD + words[i];
        hashes[0] = mixed(sum);
        return count > 0;
    }
    count -= SHINGLE_WORDS - 1;
    for (size_t i = 0; i < count; i++) {
        const uint32_t *w = words + i;
        hashes[i] = mixed(w[0] * fold4 + w[1] * fold3 + w[2] * fold2 + w[3] * FOLD + w[4]);
    }
    return count;
}

#define GROUP 32 /* lanes that stay in registers */

WIDEST static void min_of(const uint64_t *hashes, size_t count, uint32_t *signature) {
    for (int first = 0; first < LANES; first += GROUP) {
        uint32_t factor[GROUP], addend[GROUP], least[GROUP];
        for (int lane = 0; lane < GROUP; lane++) {
            factor[lane] = multipliers[first + lane], addend[lane] = addends[first + lane];
            least[lane] = UINT32_MAX;
        }
        for (size_t i = 0; i < count; i++) {
            uint32_t hash = (uint32_t)(hashes[i] >> 32);
            for (int lane = 0; lane < GROUP; lane++) {
                uint32_t value = hash * factor[lane] + addend[lane];
                least[lane] = value < least[lane] ? value : least[lane];
            }
        }
        memcpy(signature + first, least, sizeof least);
    }
}

WIDEST static uint64_t majority_of(const uint64_t *hashes, size_t count) {
    uint32_t votes[64] = {0};
    uint64_t majority = 0;
    for (size_t i = 0; i < count; i++)
        for (int bit = 0; bit < 64; bit++) votes[bit] += (uint32_t)(hashes[i] >> bit & 1);
    for (int bit = 0; bit < 64; bit++) majority |= (uint64_t)(2 * (uint64_t)votes[bit] > count) << bit;
    return majority;
}

/* -- signatures ------------------------------------------------------------------------------- */

typedef enum { MINHASH, SIMHASH } Scheme;

/* Fills `signature`; returns its length, 0 if there are no words, -1 if there is no memory. */
static int sign(const uint8_t *utf8, size_t length, Scheme scheme, uint8_t *signature) {
    size_t max_words = length / 2 + 1;
    uint64_t *hashes = malloc(max_words * (sizeof *hashes + sizeof(uint32_t)) + length + 2 * BLOCK);
    if (hashes == NULL) return -1;
    uint32_t *words = (uint32_t *)(hashes + max_words);
    uint8_t *text = (uint8_t *)(words + max_words);
    lower(utf8, text, length);
    memset(text + length, ' ', 2 * BLOCK);
    size_t count = hash_shingles(words, hash_words(text, length, words), hashes);
    int made = 0;
    if (count > 0 && scheme == MINHASH) {
        min_of(hashes, count, (uint32_t *)signature);
        made = SIGNATURE_BYTES;
    } else if (count > 0) {
        uint64_t majority = majority_of(hashes, count);
        memcpy(signature, &majority, 8);
        made = 8;
    }
    free(hashes);
    return made;
}

/* Returns the UTF-8 of a text, cut to MAX_CHARS; `owner` references it. Lone surrogates are allowed. */
static const char *utf8_of(PyObject *text, Py_ssize_t *length, PyObject **owner) {
    if (PyBytes_Check(text)) {
        char *bytes = NULL;
        if (PyBytes_AsStringAndSize(text, &bytes, length) < 0) return NULL;
        if (*length > MAX_CHARS) *length = MAX_CHARS;
        *owner = Py_NewRef(text);
        return bytes;
    }
    Py_ssize_t chars = PyUnicode_GetLength(text);
    if (chars < 0) return NULL;
    PyObject *part = chars > MAX_CHARS ? PyUnicode_Substring(text, 0, MAX_CHARS) : Py_NewRef(text);
    if (part == NULL) return NULL;
    const char *utf8 = PyUnicode_AsUTF8AndSize(part, length);
    *owner = part;
    if (utf8 == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        char *encoded = NULL;
        PyErr_Clear();
        *owner = PyUnicode_AsEncodedString(part, "utf-8", "surrogatepass");
        Py_DECREF(part);
        if (*owner != NULL && PyBytes_AsStringAndSize(*owner, &encoded, length) == 0) utf8 = encoded;
    }
    if (utf8 == NULL) Py_CLEAR(*owner);
    return utf8;
}

static PyObject *signature_of(PyObject *text, Scheme scheme) {
    PyObject *owner = NULL;
    Py_ssize_t length = 0;
    uint32_t signature[LANES];
    int made;
    if (!PyUnicode_Check(text) && !PyBytes_Check(text))
        return PyErr_Format(PyExc_TypeError, "a signature is made of a str, or of bytes in UTF-8");
    const char *utf8 = utf8_of(text, &length, &owner);
    if (utf8 == NULL) return NULL;
    if (length < LONG_TEXT_BYTES) {
        made = sign((const uint8_t *)utf8, (size_t)length, scheme, (uint8_t *)signature);
    } else {
        Py_BEGIN_ALLOW_THREADS
        made = sign((const uint8_t *)utf8, (size_t)length, scheme, (uint8_t *)signature);
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(owner);
    return made < 0 ? PyErr_NoMemory() : PyBytes_FromStringAndSize((const char *)signature, made);
}

static PyObject *minhash(PyObject *Py_UNUSED(module), PyObject *text) { return signature_of(text, MINHASH); }

static PyObject *simhash(PyObject *Py_UNUSED(module), PyObject *text) { return signature_of(text, SIMHASH); }

/* Returns the lanes of a bytes object that is a MinHash signature, or NULL with an error. */
static const uint8_t *lanes_of(PyObject *signature) {
    char *at = NULL;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(signature, &at, &length) < 0) return NULL;
    if (length != SIGNATURE_BYTES) {
        PyErr_Format(PyExc_ValueError, "a MinHash signature has %d bytes, not %zd", SIGNATURE_BYTES, length);
        return NULL;
    }
    return (const uint8_t *)at;
}

static PyObject *equal_lanes(PyObject *Py_UNUSED(module), PyObject *pair) {
    PyObject *one = NULL, *other = NULL;
    if (!PyArg_ParseTuple(pair, "SS:equal_lanes", &one, &other)) return NULL;
    const uint8_t *a = lanes_of(one), *b = a == NULL ? NULL : lanes_of(other);
    if (b == NULL) return NULL;
    long equal = 0;
    for (int lane = 0; lane < LANES; lane++) equal += read32(a + 4 * lane) == read32(b + 4 * lane);
    return PyLong_FromLong(equal);
}

/* -- the bare text of a page ------------------------------------------------------------------- */

#ifdef __SSE2__
typedef uint8_t wide __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint64_t wide_words __attribute__((vector_size(32)));

/* Returns the first block of 64 places, one of which has a byte, and another at a distance; or where fewer are left. */
WIDEST static const uint8_t *skip_blocks(const uint8_t *at, const uint8_t *last, size_t distance, uint8_t one, uint8_t other) {
    for (; last - at >= 64; at += 64) {
        const wide *here = (const wide *)at, *there = (const wide *)(at + distance);
        wide_words found = (wide_words)(((here[0] == one) & (there[0] == other)) | ((here[1] == one) & (there[1] == other)));
        if (found[0] | found[1] | found[2] | found[3]) break;
    }
    return at;
}
#endif

/* Returns where a part first occurs at or after `at`, or NULL. 16 bytes more than `end` can be read. */
static const uint8_t *find_part(const uint8_t *at, const uint8_t *end, const uint8_t *part, size_t length) {
    if (length == 0 || (size_t)(end - at) < length) return NULL;
    const uint8_t *last = end - length; /* the last possible position */
#ifdef __SSE2__
    const size_t distance = length - 1;
    const __m128i first_byte = _mm_set1_epi8((char)part[0]), last_byte = _mm_set1_epi8((char)part[distance]);
    for (; at <= last; at += 16) {
        at = skip_blocks(at, last, distance, part[0], part[distance]);
        __m128i firsts = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), first_byte);
        __m128i lasts = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + distance)), last_byte);
        unsigned places = (unsigned)_mm_movemask_epi8(_mm_and_si128(firsts, lasts));
        for (; places; places &= places - 1) {
            const uint8_t *place = at + __builtin_ctz(places);
            if (place <= last && memcmp(place, part, length) == 0) return place;
        }
    }
#else
    for (; at <= last; at++)
        if (*at == part[0] && memcmp(at, part, length) == 0) return at;
#endif
    return NULL;
}

/* Removes a part wherever it occurs, from left to right; returns the length of what is left. */
static size_t remove_part(uint8_t *text, size_t length, const uint8_t *part, size_t part_length) {
    const uint8_t *end = text + length, *from = text, *found;
    uint8_t *to = text;
    while ((found = find_part(from, end, part, part_length)) != NULL) {
        if (to != from) memmove(to, from, (size_t)(found - from));
        to += found - from;
        from = found + part_length;
    }
    if (to != from) memmove(to, from, (size_t)(end - from));
    return length - (size_t)(from - to);
}

#ifdef __SSE2__
/* Returns which of 16 bytes are digits: a bit each. */
static inline unsigned digits_of(const uint8_t *at) {
    __m128i moved = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)at), _mm_set1_epi8('0'));
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(moved, _mm_set1_epi8(9)), moved));
}
#endif

/* Copies a text without its digits to where there is room for all of it; returns the length of the copy. */
static size_t copy_without_digits(const uint8_t *text, size_t length, uint8_t *copy) {
    const uint8_t *at = text, *end = text + length;
    uint8_t *to = copy;
#ifdef __SSE2__
    while (end - at >= 16) {
        _mm_storeu_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)at));
        unsigned digits = digits_of(at), before = digits ? (unsigned)__builtin_ctz(digits) : 16;
        at += before, to += before;
        if (digits) at += __builtin_ctz(~(digits >> before)); /* behind those that follow each other */
    }
#endif
    for (; at < end; at++) {
        *to = *at;
        to += (uint8_t)(*at - '0') > 9;
    }
    return (size_t)(to - copy);
}

/* Makes ASCII letters small. 16 bytes more than the length can be written. */
static void to_lower(uint8_t *text, size_t length) {
    size_t at = 0;
#ifdef __SSE2__
    const __m128i first = _mm_set1_epi8('A'), letters = _mm_set1_epi8(25), difference = _mm_set1_epi8(0x20);
    for (; at < length; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(text + at)), moved = _mm_sub_epi8(bytes, first);
        __m128i are_capitals = _mm_cmpeq_epi8(_mm_min_epu8(moved, letters), moved);
        _mm_storeu_si128((__m128i *)(text + at), _mm_add_epi8(bytes, _mm_and_si128(are_capitals, difference)));
    }
#else
    for (; at < length; at++)
        if ((uint8_t)(text[at] - 'A') <= 25) text[at] += 0x20;
#endif
}

/* Returns a copy of a text with 16 bytes more, or NULL with an error. */
static uint8_t *padded(const char *text, size_t length) {
    uint8_t *copy = malloc(length + 16);
    if (copy == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(copy, text, length);
    memset(copy + length, 0, 16);
    return copy;
}

static PyObject *without_digits(const uint8_t *text, size_t length) {
    uint8_t *copy = malloc(length + 1);
    if (copy == NULL) return PyErr_NoMemory();
    PyObject *result = PyBytes_FromStringAndSize((const char *)copy, (Py_ssize_t)copy_without_digits(text, length, copy));
    free(copy);
    return result;
}

static PyObject *bare(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *text;
    Py_ssize_t length;
    PyObject *parts;
    if (!PyArg_ParseTuple(arguments, "y#O!:bare", &text, &length, &PyList_Type, &parts)) return NULL;
    uint8_t *copy = padded(text, (size_t)length);
    if (copy == NULL) return NULL;
    size_t left = (size_t)length;
    for (Py_ssize_t i = 0; i < PyList_Size(parts); i++) {
        char *part;
        Py_ssize_t part_length;
        if (PyBytes_AsStringAndSize(PyList_GetItem(parts, i), &part, &part_length) < 0) {
            free(copy);
            return NULL;
        }
        left = remove_part(copy, left, (const uint8_t *)part, (size_t)part_length);
    }
    PyObject *result = without_digits(copy, left);
    free(copy);
    return result;
}

#define MIN_ECHO_CHARS 4
#define MAX_PIECES 30 /* of a path */

typedef struct {
    const uint8_t *start;
    size_t length;
} Echo;

static int by_length_then_bytes(const void *a, const void *b) {
    const Echo *one = a, *other = b;
    if (one->length != other->length) return one->length > other->length ? -1 : 1;
    return memcmp(one->start, other->start, one->length);
}

static inline int is_alphanumeric(uint8_t byte) {
    return (uint8_t)(byte - '0') <= 9 || (uint8_t)((byte | 0x20) - 'a') <= 25;
}

/* Writes a piece of a path as words with a blank between them; returns the length. */
static size_t write_as_words(const uint8_t *piece, size_t length, uint8_t *to) {
    size_t written = 0;
    int is_behind_word = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = piece[i];
        if (byte == '-' || byte == '_' || byte == '+' || byte == '.' || byte == ' ' || (byte >= '\t' && byte <= '\r')) {
            is_behind_word = written > 0;
            continue;
        }
        if (is_behind_word) to[written++] = ' ';
        is_behind_word = 0;
        to[written++] = byte;
    }
    return written;
}

/* Collects the parts of a path in lower case that a page may repeat, each perhaps several times; returns how many.
   `words` has room for twice the length. */
static size_t collect_echoes(const uint8_t *path, size_t length, uint8_t *words, Echo *echoes) {
    size_t count = 0;
    echoes[count++] = (Echo){path, length};
    const uint8_t *at = path, *end = path + length;
    for (int pieces = 0; pieces < MAX_PIECES && at <= end; pieces++) {
        const uint8_t *stop = at, *dot = NULL;
        int is_word = 1;
        for (; stop < end && *stop != '/' && *stop != '?' && *stop != '&' && *stop != '=' && *stop != '\n'; stop++) {
            if (*stop == '.') dot = stop;
            is_word &= is_alphanumeric(*stop);
        }
        size_t size = (size_t)(stop - at), stem = dot == NULL ? 0 : (size_t)(dot - at);
        if (size >= MIN_ECHO_CHARS) {
            echoes[count++] = (Echo){at, size};
            if (!is_word) {
                echoes[count++] = (Echo){at, stem};
                echoes[count++] = (Echo){words, write_as_words(at, size, words)};
                words += size;
                echoes[count++] = (Echo){words, write_as_words(at, stem, words)};
                words += stem;
            }
        }
        at = stop + 1;
    }
    return count;
}

static PyObject *bare_short(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *text, *path;
    Py_ssize_t length, path_length;
    if (!PyArg_ParseTuple(arguments, "y#y#:bare_short", &text, &length, &path, &path_length)) return NULL;
    uint8_t *copy = padded(text, (size_t)length), *small = padded(path, (size_t)path_length);
    uint8_t *words = malloc(2 * (size_t)path_length + 16);
    PyObject *result = NULL;
    if (copy != NULL && small != NULL && words != NULL) {
        Echo echoes[1 + 4 * MAX_PIECES];
        to_lower(copy, (size_t)length);
        to_lower(small, (size_t)path_length);
        size_t count = collect_echoes(small, (size_t)path_length, words, echoes), left = (size_t)length;
        qsort(echoes, count, sizeof *echoes, by_length_then_bytes);
        for (size_t i = 0; i < count && echoes[i].length >= MIN_ECHO_CHARS; i++)
            if (i == 0 || by_length_then_bytes(&echoes[i - 1], &echoes[i]) != 0) /* each once */
                left = remove_part(copy, left, echoes[i].start, echoes[i].length);
        result = without_digits(copy, left);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    free(copy);
    free(small);
    free(words);
    return result;
}

#define MAX_OWN_NUMBERS 10 /* of a URL */
#define MAX_OWN_DIGITS 18

typedef struct {
    uint64_t value; /* of its last digits */
    size_t length; /* as it is written */
} OwnNumber;

/* Reads the digits at `at`, of which only the last count; returns where they end. */
static const uint8_t *read_number(const uint8_t *at, const uint8_t *end, OwnNumber *number) {
    const uint8_t *stop = at;
    while (stop < end && (uint8_t)(*stop - '0') <= 9) stop++;
    number->length = (size_t)(stop - at);
    number->value = 0;
    for (at = number->length > MAX_OWN_DIGITS ? stop - MAX_OWN_DIGITS : at; at < stop; at++)
        number->value = 10 * number->value + (uint64_t)(*at - '0');
    return stop;
}

/* Returns whether digits are a value written plainly, with two digits, or with as many as a number. */
static int is_written_as(const uint8_t *digits, size_t size, uint64_t value, size_t width) {
    size_t at = size, least = 0;
    do {
        if (at == 0 || digits[--at] != '0' + value % 10) return 0;
        value /= 10, least++;
    } while (value);
    while (at > 0)
        if (digits[--at] != '0') return 0;
    return size == least || (size > least && (size == 2 || size == width));
}

static int is_near(const uint8_t *digits, size_t size, const OwnNumber *own, int count) {
    for (int i = 0; i < count; i++) {
        uint64_t value = own[i].value;
        size_t width = own[i].length;
        if (is_written_as(digits, size, value, width) || is_written_as(digits, size, value + 1, width) ||
            is_written_as(digits, size, value ? value - 1 : 0, width))
            return 1;
    }
    return 0;
}

static PyObject *numbers_beside(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *text;
    PyObject *path_text;
    Py_ssize_t length, path_length;
    if (!PyArg_ParseTuple(arguments, "y#U:numbers_beside", &text, &length, &path_text)) return NULL;
    const char *path = PyUnicode_AsUTF8AndSize(path_text, &path_length);
    if (path == NULL) {
        PyErr_Clear(); /* a surrogate, which no canonical URL has */
        Py_RETURN_NONE;
    }
    OwnNumber own[MAX_OWN_NUMBERS];
    int count = 0;
    const uint8_t *at = (const uint8_t *)path, *end = at + path_length;
    while (count < MAX_OWN_NUMBERS) {
        while (at < end && (uint8_t)(*at - '0') > 9) at++;
        if (at == end) break;
        at = read_number(at, end, &own[count++]);
    }
    if (count == 0) Py_RETURN_NONE;
    uint8_t *numbers = malloc((size_t)length + 1), *to = numbers;
    if (numbers == NULL) return PyErr_NoMemory();
    at = (const uint8_t *)text, end = at + length;
    while (at < end) {
#ifdef __SSE2__
        while (end - at >= 16 && digits_of(at) == 0) at += 16;
#endif
        while (at < end && (uint8_t)(*at - '0') > 9) at++;
        const uint8_t *number = at;
        while (at < end && (uint8_t)(*at - '0') <= 9) at++;
        size_t size = (size_t)(at - number);
        if (size == 0 || is_near(number, size, own, count)) continue;
        if (to != numbers) *to++ = ' ';
        memcpy(to, number, size);
        to += size;
    }
    PyObject *result = PyBytes_FromStringAndSize((const char *)numbers, (Py_ssize_t)(to - numbers));
    free(numbers);
    return result;
}

static PyObject *mentions(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *text;
    Py_ssize_t length;
    PyObject *parts;
    if (!PyArg_ParseTuple(arguments, "y#O!:mentions", &text, &length, &PyList_Type, &parts)) return NULL;
    uint8_t *copy = padded(text, (size_t)length);
    if (copy == NULL) return NULL;
    to_lower(copy, (size_t)length);
    int is_found = 0;
    for (Py_ssize_t i = 0; i < PyList_Size(parts) && !is_found; i++) {
        char *part;
        Py_ssize_t part_length;
        if (PyBytes_AsStringAndSize(PyList_GetItem(parts, i), &part, &part_length) < 0) {
            free(copy);
            return NULL;
        }
        is_found = find_part(copy, copy + length, (const uint8_t *)part, (size_t)part_length) != NULL;
    }
    free(copy);
    return PyBool_FromLong(is_found);
}

/* -- the links of a page ------------------------------------------------------------------------ */

#define MAX_URL_CHARS 4096 /* as in core/url/forms */
#define IN_PATH 1
#define IN_QUERY 2

static uint8_t url_bytes[256]; /* in which part of a URL a byte means itself, wherever it is */

static void fill_url_bytes(void) {
    for (int byte = 'a'; byte <= 'z'; byte++) url_bytes[byte] = url_bytes[byte - 0x20] = IN_PATH | IN_QUERY;
    for (int byte = '0'; byte <= '9'; byte++) url_bytes[byte] = IN_PATH | IN_QUERY;
    for (const char *at = "-._~+,=!$()*;&/%"; *at; at++) url_bytes[(uint8_t)*at] = IN_PATH | IN_QUERY;
    url_bytes[':'] = url_bytes['?'] = IN_QUERY;
}

/* Returns whether a URL parser would leave a path and query as they are. */
static int is_plain_path(const char *at, const char *end) {
    char before = '/';
    for (; at < end && *at != '?'; before = *at++) {
        if (!(url_bytes[(uint8_t)*at] & IN_PATH)) return 0;
        if (before == '/' && *at == '.') return 0; /* perhaps one or two dots, which are no name of a folder */
        if (*at == '%' && at + 2 < end && at[1] == '2' && (at[2] == 'e' || at[2] == 'E')) return 0;
    }
    for (; at < end; at++)
        if (!(url_bytes[(uint8_t)*at] & IN_QUERY)) return 0;
    return 1;
}

/* Returns where the path of an absolute URL begins if its host is a plain name in lower case, or NULL. */
static const char *path_behind_name(const char *at, const char *end) {
    if (end - at < 8 || memcmp(at, "http", 4) != 0) return NULL;
    at += at[4] == 's' ? 5 : 4;
    if (memcmp(at, "://", 3) != 0) return NULL;
    char before = '.';
    int is_number = 1; /* of the last label: then it is an address, in one of its many forms */
    for (at += 3; at < end && *at != '/'; before = *at++) {
        if (before == '.') is_number = *at < 'a' || *at > 'z';
        int is_of_name = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || *at == '-' || *at == '.';
        if (!is_of_name || (before == '.' && *at == '.') || (before == '-' && *at == '-')) return NULL;
    }
    return at < end && !is_number && before != '.' ? at : NULL;
}

/* A base URL: an href replaces what follows its origin, its folder or its path. */
typedef struct {
    const char *text;
    size_t origin, folder, path;
} base_url;

/* Returns an href resolved against a base; NULL without an error if that takes a URL parser. */
static PyObject *joined(const base_url *base, const char *href, size_t length) {
    char url[MAX_URL_CHARS];
    size_t kept = base->folder;
    if (length > base->origin && href[base->origin] == '/' && memcmp(href, base->text, base->origin) == 0)
        href += base->origin, length -= base->origin;
    const char *path = path_behind_name(href, href + length);
    if (path != NULL && length <= MAX_URL_CHARS && is_plain_path(path, href + length))
        return PyUnicode_FromStringAndSize(href, (Py_ssize_t)length);
    if (length == 0 || (length > 1 && href[0] == '/' && href[1] == '/')) return NULL; /* that would be a host */
    if (*href == '/') kept = base->origin;
    if (*href == '?') kept = base->path;
    if (length >= 2 && memcmp(href, "./", 2) == 0) href += 2, length -= 2;
    for (; length >= 3 && memcmp(href, "../", 3) == 0; href += 3, length -= 3)
        if (kept > base->origin + 1)
            do kept--;
            while (base->text[kept - 1] != '/');
    if (kept + length > MAX_URL_CHARS || !is_plain_path(href, href + length)) return NULL;
    memcpy(url, base->text, kept);
    memcpy(url + kept, href, length);
    return PyUnicode_FromStringAndSize(url, (Py_ssize_t)(kept + length));
}

/* Reads a canonical URL; returns whether it is one that hrefs can be added to. */
static int read_base(const char *text, size_t length, base_url *base) {
    const char *path = length > 8 ? memchr(text + 8, '/', length - 8) : NULL; /* behind "https://" or one letter more */
    if (path == NULL || length > MAX_URL_CHARS || memchr(text, '@', length) != NULL) return 0;
    for (const char *at = text; at < path; at++)
        if (at[0] == '-' && at[1] == '-') return 0; /* perhaps a name in Punycode that a parser refuses */
    const char *end = memchr(path, '?', length - (size_t)(path - text));
    if (end == NULL) end = text + length;
    for (const char *at = path; at < end; at++)
        if (*at == '/' && at + 1 < end && at[1] == '.') return 0;
    *base = (base_url){text, (size_t)(path - text), 0, (size_t)(end - text)};
    while (end[-1] != '/') end--;
    base->folder = (size_t)(end - text);
    return 1;
}

static PyObject *join_plain(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *text;
    Py_ssize_t length;
    PyObject *hrefs;
    base_url base;
    if (!PyArg_ParseTuple(arguments, "s#O!:join_plain", &text, &length, &PyList_Type, &hrefs)) return NULL;
    int is_usable = read_base(text, (size_t)length, &base);
    Py_ssize_t count = PyList_Size(hrefs);
    PyObject *urls = PyList_New(count);
    if (urls == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t href_length = 0;
        const char *href = is_usable ? PyUnicode_AsUTF8AndSize(PyList_GetItem(hrefs, i), &href_length) : NULL;
        PyObject *url = href == NULL ? NULL : joined(&base, href, (size_t)href_length);
        if (url == NULL) {
            PyErr_Clear(); /* of a lone surrogate, which a URL parser replaces */
            url = Py_NewRef(Py_None);
        }
        PyList_SetItem(urls, i, url);
    }
    return urls;
}

/* -- the table of bands ----------------------------------------------------------------------- */

/* An entry is a fingerprint of a band's hash (upper half) and a page's number + 1; 0 is empty. Its place follows
   from the fingerprint alone, scaled to the capacity, so that a shard grows by one pass from end to end. */
#define BANDS 16
#define BAND_BYTES (SIGNATURE_BYTES / BANDS)
#define SHARD_BITS 12
#define SHARDS (1 << SHARD_BITS)
#define FIRST_CAPACITY 16
#define MAX_EQUAL 32
#define MAX_CANDIDATES 16

typedef struct {
    uint64_t *entries;
    uint32_t capacity, used;
} Shard;

typedef struct {
    PyObject_HEAD
    Shard *shards;
} BandTable;

static uint64_t band_hash(const uint8_t *signature, int band) {
    const uint8_t *at = signature + (size_t)band * BAND_BYTES;
    uint64_t hash = (uint64_t)(band + 1) * FOLD;
    for (int part = 0; part < BAND_BYTES / 8; part++) hash = mixed((hash ^ read64(at + 8 * part)) * FOLD);
    return hash;
}

static inline uint32_t place_of(uint32_t fingerprint, uint32_t capacity) {
    return (uint32_t)((uint64_t)fingerprint * capacity >> 32);
}

static void put_entry(Shard *shard, uint64_t entry) {
    uint32_t place = place_of((uint32_t)(entry >> 32), shard->capacity);
    while (shard->entries[place] != 0) place = place + 1 == shard->capacity ? 0 : place + 1;
    shard->entries[place] = entry;
    shard->used++;
}

static int grow(Shard *shard) {
    uint32_t capacity = shard->capacity ? shard->capacity + shard->capacity / 2 : FIRST_CAPACITY;
    Shard larger = {calloc(capacity, sizeof *larger.entries), capacity, 0};
    if (larger.entries == NULL) return -1;
    for (uint32_t place = 0; place < shard->capacity; place++)
        if (shard->entries[place] != 0) put_entry(&larger, shard->entries[place]);
    free(shard->entries);
    *shard = larger;
    return 0;
}

/* Writes the numbers of the pages in a band, at most MAX_EQUAL; returns how many, and the slot of the oldest. */
static int pages_in_band(const Shard *shard, uint32_t fingerprint, uint32_t *numbers, uint32_t *oldest) {
    if (shard->capacity == 0) return 0;
    int found = 0;
    uint32_t least = UINT32_MAX;
    uint32_t place = place_of(fingerprint, shard->capacity);
    for (uint64_t entry; (entry = shard->entries[place]) != 0 && found < MAX_EQUAL;
         place = place + 1 == shard->capacity ? 0 : place + 1) {
        if ((uint32_t)(entry >> 32) != fingerprint) continue;
        numbers[found] = (uint32_t)entry - 1;
        if (numbers[found] < least) least = numbers[found], *oldest = place;
        found++;
    }
    return found;
}

typedef struct {
    Shard *shard;
    uint32_t fingerprint;
} Place;

/* Finds the places of all bands before any is read: the processor then waits for memory once, not sixteen times. */
static void find_places(const BandTable *table, const uint8_t *signature, Place *places) {
    for (int band = 0; band < BANDS; band++) {
        uint64_t hash = band_hash(signature, band);
        Shard *shard = &table->shards[hash & (SHARDS - 1)];
        uint32_t fingerprint = (uint32_t)(hash >> 32);
        if (shard->capacity) __builtin_prefetch(&shard->entries[place_of(fingerprint, shard->capacity)]);
        places[band] = (Place){shard, fingerprint};
    }
}

static int add_page(const BandTable *table, uint32_t number, const uint8_t *signature) {
    uint32_t met[MAX_EQUAL];
    Place places[BANDS];
    find_places(table, signature, places);
    for (int band = 0; band < BANDS; band++) {
        Shard *shard = places[band].shard;
        uint64_t entry = (uint64_t)places[band].fingerprint << 32 | (number + 1);
        uint32_t oldest = 0;
        if (pages_in_band(shard, places[band].fingerprint, met, &oldest) == MAX_EQUAL) {
            shard->entries[oldest] = entry;
            continue;
        }
        if (5 * ((uint64_t)shard->used + 1) > 4 * (uint64_t)shard->capacity && grow(shard) < 0) return -1;
        put_entry(shard, entry);
    }
    return 0;
}

static PyObject *table_add(PyObject *self, PyObject *arguments) {
    unsigned int number;
    PyObject *signature;
    if (!PyArg_ParseTuple(arguments, "IS:add", &number, &signature)) return NULL;
    const uint8_t *lanes = lanes_of(signature);
    if (lanes == NULL) return NULL;
    if (add_page((BandTable *)self, number, lanes) < 0) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *table_add_many(PyObject *self, PyObject *arguments) {
    unsigned int first;
    Py_buffer records;
    Py_ssize_t stride;
    if (!PyArg_ParseTuple(arguments, "Iy*n:add_many", &first, &records, &stride)) return NULL;
    int failed = 0;
    if (stride < SIGNATURE_BYTES || records.len % stride != 0) {
        PyErr_SetString(PyExc_ValueError, "records of equal length, each ending with a signature, are added");
        failed = 1;
    }
    for (Py_ssize_t at = 0; !failed && at < records.len; at += stride) {
        const uint8_t *signature = (const uint8_t *)records.buf + at + stride - SIGNATURE_BYTES;
        failed = add_page((BandTable *)self, first++, signature) < 0;
        if (failed) PyErr_NoMemory();
    }
    PyBuffer_Release(&records);
    return failed ? NULL : Py_NewRef(Py_None);
}

static int by_number(const void *a, const void *b) {
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

/* Pages that share bands with a signature: those that share most first, then by number. */
static PyObject *table_candidates(PyObject *self, PyObject *signature) {
    uint32_t met[BANDS * MAX_EQUAL], numbers[BANDS * MAX_EQUAL];
    uint8_t shared[BANDS * MAX_EQUAL];
    Place places[BANDS];
    uint32_t oldest = 0;
    int total = 0, distinct = 0;
    const uint8_t *lanes = lanes_of(signature);
    if (lanes == NULL) return NULL;
    find_places((BandTable *)self, lanes, places);
    for (int band = 0; band < BANDS; band++)
        total += pages_in_band(places[band].shard, places[band].fingerprint, met + total, &oldest);
    qsort(met, (size_t)total, sizeof *met, by_number);
    for (int i = 0; i < total; i++) {
        if (distinct == 0 || numbers[distinct - 1] != met[i]) numbers[distinct] = met[i], shared[distinct++] = 0;
        shared[distinct - 1]++;
    }
    PyObject *candidates = PyList_New(0);
    for (int wanted = BANDS; candidates != NULL && wanted > 0; wanted--)
        for (int i = 0; candidates != NULL && i < distinct && PyList_Size(candidates) < MAX_CANDIDATES; i++) {
            if (shared[i] != wanted) continue;
            PyObject *number = PyLong_FromUnsignedLong(numbers[i]);
            if (number == NULL || PyList_Append(candidates, number) < 0) Py_CLEAR(candidates);
            Py_XDECREF(number);
        }
    return candidates;
}

static PyObject *table_size_in_bytes(PyObject *self, PyObject *Py_UNUSED(nothing)) {
    size_t bytes = SHARDS * sizeof(Shard);
    for (int i = 0; i < SHARDS; i++) bytes += ((BandTable *)self)->shards[i].capacity * sizeof(uint64_t);
    return PyLong_FromSize_t(bytes);
}

static PyObject *table_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(names)) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    BandTable *table = (BandTable *)allocate(type, 0);
    if (table == NULL) return NULL;
    table->shards = calloc(SHARDS, sizeof *table->shards);
    if (table->shards == NULL) {
        Py_DECREF(table);
        return PyErr_NoMemory();
    }
    return (PyObject *)table;
}

static void table_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    BandTable *table = (BandTable *)self;
    for (int i = 0; table->shards != NULL && i < SHARDS; i++) free(table->shards[i].entries);
    free(table->shards);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef table_methods[] = {
    {"add", table_add, METH_VARARGS, "add(number, signature): remember a page."},
    {"add_many", table_add_many, METH_VARARGS, "add_many(first, records, stride): remember pages with numbers in a row."},
    {"candidates", table_candidates, METH_O, "candidates(signature) -> numbers of the pages that may be similar."},
    {"size_in_bytes", table_size_in_bytes, METH_NOARGS, "Memory of all shards."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot table_slots[] = {
    {Py_tp_new, table_new},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, table_methods},
    {Py_tp_doc, "Which pages share a band of their signatures?"},
    {0, NULL},
};

static PyType_Spec table_spec = {
    "gossamer.foundation._kernel.BandTable", sizeof(BandTable), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, table_slots,
};

/* -- URLs of one kind: see core/traps/url_patterns.py, `plain_patterns_of` ---------------------------- */

#define MIN_TOKEN_CHARS 16

static inline int is_digit(char byte) { return byte >= '0' && byte <= '9'; }

/* Writes a segment of a path as a pattern has it: `*` for a name of a machine, `#` for a number; returns the length. */
static size_t write_segment(const char *segment, size_t length, char *to) {
    int has_digit = 0, is_token = length >= MIN_TOKEN_CHARS;
    for (size_t i = 0; i < length; i++) {
        has_digit |= is_digit(segment[i]);
        is_token &= is_alphanumeric((uint8_t)segment[i]) || segment[i] == '-' || segment[i] == '_';
    }
    if (!has_digit) {
        memcpy(to, segment, length);
        return length;
    }
    if (is_token) {
        *to = '*';
        return 1;
    }
    size_t written = 0;
    for (size_t i = 0; i < length; i++)
        if (!is_digit(segment[i]))
            to[written++] = segment[i];
        else if (i == 0 || !is_digit(segment[i - 1]))
            to[written++] = '#';
    return written;
}

/* Appends a part of a shape and a suffix to a list of patterns; returns whether that was possible. */
static int append_pattern(PyObject *patterns, const char *start, size_t length, const char *suffix, char *room) {
    memcpy(room, start, length);
    memcpy(room + length, suffix, strlen(suffix));
    PyObject *pattern = PyUnicode_FromStringAndSize(room, (Py_ssize_t)(length + strlen(suffix)));
    int is_appended = pattern != NULL && PyList_Append(patterns, pattern) == 0;
    Py_XDECREF(pattern);
    return is_appended;
}

static PyObject *path_patterns(PyObject *Py_UNUSED(module), PyObject *url) {
    Py_ssize_t url_length;
    const char *at = PyUnicode_AsUTF8AndSize(url, &url_length);
    if (at == NULL) {
        PyErr_Clear(); /* a surrogate */
        Py_RETURN_NONE;
    }
    const char *end = at + url_length, *path = url_length > 8 ? memchr(at + 8, '/', (size_t)url_length - 8) : NULL;
    if (path == NULL || end - path > MAX_URL_CHARS) Py_RETURN_NONE;
    char shape[MAX_URL_CHARS + 1], room[MAX_URL_CHARS + 4];
    size_t length = 0, folder = 0, before = 0; /* `before`: the folder of what the last folder is in */
    for (at = path; at < end; at++) {
        const char *stop = at;
        while (stop < end && *stop != '/') {
            if (*stop == '?' || (uint8_t)*stop >= 0x80) Py_RETURN_NONE;
            stop++;
        }
        length += write_segment(at, (size_t)(stop - at), shape + length);
        if (stop < end) {
            shape[length++] = '/';
            before = folder;
            folder = length;
        }
        at = stop;
    }
    int is_folder = folder == length; /* which lies in the folder above */
    if (is_folder) folder = before;
    PyObject *patterns = PyList_New(0);
    int is_whole = patterns != NULL;
    if (folder == 0) {
        is_whole = is_whole && append_pattern(patterns, "/", 1, "*", room); /* the first page */
    } else {
        const char *in_folder = is_folder ? "*/" : "*";
        size_t tail = strlen(in_folder);
        int is_changed = length != (size_t)(end - path) || memcmp(shape, path, length) != 0;
        int is_wide = length == folder + tail && memcmp(shape + folder, in_folder, tail) == 0;
        if (is_changed && !is_wide) is_whole = is_whole && append_pattern(patterns, shape, length, "", room);
        is_whole = is_whole && append_pattern(patterns, shape, folder, in_folder, room);
        if (folder > 1) {
            size_t first = (size_t)((const char *)memchr(shape + 1, '/', folder - 1) - shape);
            is_whole = is_whole && append_pattern(patterns, shape, first, "/**", room);
            is_whole = is_whole && append_pattern(patterns, "", 0, "/**", room);
        }
    }
    PyObject *result = is_whole ? PyList_AsTuple(patterns) : NULL;
    Py_XDECREF(patterns);
    return result;
}

/* -- what is new on a page: see core/traps/novelty.py, `record_lanes` ---------------------------------- */

#define WATCHED_LANES 8
#define SLOT_SALT 0x9E3779B1u
#define FORGETTING 0.25
#define BOILERPLATE 0.8

static PyObject *record_lanes(PyObject *module, PyObject *args) {
    Py_buffer values, frequent, hits, seen;
    int generation, pages;
    PyObject *packed = NULL;
    if (!PyArg_ParseTuple(args, "y*w*w*w*ii", &values, &frequent, &hits, &seen, &generation, &pages))
        return NULL;
    size_t slots = (size_t)seen.len;
    if (values.len != WATCHED_LANES * 4 || frequent.len != WATCHED_LANES * 4 || hits.len != WATCHED_LANES * 8 ||
        slots == 0 || (slots & (slots - 1)) != 0) {
        PyErr_SetString(PyExc_ValueError, "record_lanes: a buffer has the wrong size");
    } else {
        double forgotten = FORGETTING * ((double)pages + 1.0), limit = BOILERPLATE * (double)pages + forgotten;
        unsigned char *slot = seen.buf;
        long fresh = 0, rest = 0;
        for (unsigned lane = 0; lane < WATCHED_LANES; lane++) {
            uint32_t value, common;
            double count;
            const unsigned char *from = (const unsigned char *)values.buf + 4 * lane;
            value = (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
            memcpy(&common, (char *)frequent.buf + 4 * lane, sizeof common);
            memcpy(&count, (char *)hits.buf + 8 * lane, sizeof count);
            if (value == common) {
                count += 1.0 + FORGETTING;
                memcpy((char *)hits.buf + 8 * lane, &count, sizeof count);
                if (count >= limit)
                    continue;
            } else if (count <= forgotten) {
                count = 1.0 + forgotten;
                memcpy((char *)frequent.buf + 4 * lane, &value, sizeof value);
                memcpy((char *)hits.buf + 8 * lane, &count, sizeof count);
            }
            rest++;
            unsigned char *at = slot + (((uint64_t)value ^ (uint64_t)lane * SLOT_SALT) & (slots - 1));
            if (*at != generation) {
                fresh += *at != generation - 1;
                *at = (unsigned char)generation;
            }
        }
        packed = PyLong_FromLong(rest << 8 | fresh);
    }
    PyBuffer_Release(&values);
    PyBuffer_Release(&frequent);
    PyBuffer_Release(&hits);
    PyBuffer_Release(&seen);
    return packed;
}

/* -- what a text says: see core/revisit/text_change.py, `plain_word_pairs` ------------------------- */

#define COUNTERS 64 /* chosen by the upper 6 bits of a pair's hash */
#define SKIPPED_AFTER_NUMBER 2
#define NO_WORD 0 /* of a hash */

typedef enum { PLAIN, NUMBER, SINGLE } WordKind; /* SINGLE: a letter of a script without spaces between words */

typedef struct {
    const uint8_t *start;
    size_t length;
} Span;

/* What is known of a line so far. A word waits until it is clear that no number follows it. */
typedef struct {
    uint64_t previous, waiting; /* hashes; the lowest bit is set if it is a SINGLE */
    unsigned skipped; /* words that are left out since they follow a number */
    Span last, amount; /* the word before; a number that may be a price, if the next word says so */
    uint64_t prices;
    size_t counted;
    uint8_t counters[COUNTERS];
} Pairs;

static inline void count_waiting(Pairs *pairs) {
    uint64_t word = pairs->waiting, previous = pairs->previous;
    if (word == NO_WORD) return;
    if (!(word & previous & previous >> 40 & 1)) { /* of letters, every other pair */
        uint64_t pair = mixed((previous ^ word >> 32) * FOLD + word);
        pairs->counters[pair >> 58] += (uint8_t)((pair & 2) - 1);
        pairs->counted++;
    }
    pairs->previous = word;
}

static inline void end_line(Pairs *pairs) {
    count_waiting(pairs);
    pairs->previous = pairs->waiting = NO_WORD;
    pairs->skipped = 0;
    pairs->last.length = pairs->amount.length = 0;
}

/* Hashes a word. 16 bytes from its start on can be read: those behind a short word are masked, without a branch. */
static inline uint64_t pair_word_hash(const uint8_t *at, size_t length) {
    uint64_t hash = length;
    for (; length > 16; at += 8, length -= 8) hash = mixed((hash ^ read64(at)) * FOLD);
    uint64_t first = read64(at), second = read64(at + 8);
    first &= UINT64_MAX >> (length < 8 ? 64 - 8 * length : 0);
    second = length > 8 ? second & UINT64_MAX >> (128 - 8 * length) : 0;
    return (hash ^ first) * FOLD + second * MIX;
}

/* Is the sign of a currency in a word, or is the word one by itself? */
static int names_currency(Span word) {
    static const char codes[][4] = {"eur", "usd", "gbp", "chf", "kr", "k\xC4\x8D", "z\xC5\x82"};
    const uint8_t *at = word.start, *end = at + word.length;
    for (size_t i = 0; word.length <= 3 && i < sizeof codes / sizeof codes[0]; i++)
        if (strlen(codes[i]) == word.length && memcmp(at, codes[i], word.length) == 0) return 1;
    for (; at < end; at++) {
        if (*at == '$') return 1;
        if (end - at >= 2 && at[0] == 0xC2 && (at[1] == 0xA3 || at[1] == 0xA5)) return 1;
        if (end - at < 3) continue;
        if (at[0] == 0xE2 && at[1] == 0x82 && at[2] >= 0xA0 && at[2] <= 0xBF) return 1;
        if (memcmp(at, "\xE5\x86\x86", 3) == 0 || memcmp(at, "\xE5\x85\x83", 3) == 0 || memcmp(at, "\xEC\x9B\x90", 3) == 0)
            return 1;
    }
    return 0;
}

static uint64_t amount_hash(Span word) {
    uint64_t amount = 0;
    for (size_t i = 0; i < word.length; i++)
        if ((uint8_t)(word.start[i] - '0') < 10) amount = (amount + word.start[i]) * FOLD;
    return mixed(amount);
}

static void add_number(Pairs *pairs, Span word) {
    if (names_currency(word) || (pairs->last.length > 0 && names_currency(pairs->last)))
        pairs->prices += amount_hash(word);
    else
        pairs->amount = word;
    pairs->waiting = NO_WORD;
    pairs->skipped = SKIPPED_AFTER_NUMBER;
}

static inline void add_pair_word(Pairs *pairs, Span word, WordKind kind) {
    if (pairs->amount.length > 0) {
        if (names_currency(word)) pairs->prices += amount_hash(pairs->amount);
        pairs->amount.length = 0;
    }
    if (kind == NUMBER) {
        add_number(pairs, word);
    } else if (pairs->skipped > 0) {
        pairs->skipped--;
    } else {
        count_waiting(pairs);
        pairs->waiting = (pair_word_hash(word.start, word.length) & ~(uint64_t)1) | (kind == SINGLE);
    }
    pairs->last = word;
}

/* Is there a digit of another script at a byte? Two more can be read. */
static inline int is_foreign_digit(const uint8_t *at) {
    if (at[0] == 0xD9) return at[1] >= 0xA0 && at[1] <= 0xA9;
    if (at[0] == 0xDB) return at[1] >= 0xB0 && at[1] <= 0xB9;
    if (at[0] == 0xE0) return at[1] == 0xA5 && at[2] >= 0xA6 && at[2] <= 0xAF;
    return at[0] == 0xEF && at[1] == 0xBC && at[2] >= 0x90 && at[2] <= 0x99;
}

static inline int is_single(const uint8_t *at) {
    if (at[0] == 0xE0) return at[1] >= 0xB8 && at[1] <= 0xBF;
    if (at[0] == 0xE1) return at[1] == 0x80 || at[1] == 0x81 || at[1] == 0x9E || at[1] == 0x9F;
    return at[0] >= 0xE3 && at[0] <= 0xE9;
}

/* Adds the words of a run without blanks, byte by byte: one that is very long, or has bytes that need a look. */
static void add_run(Pairs *pairs, const uint8_t *at, const uint8_t *end) {
    while (at < end) {
        const uint8_t *start = at;
        int has_digit = 0, is_one = 0;
        for (; at < end && !(is_one = end - at >= 3 && is_single(at)); at++)
            has_digit |= (uint8_t)(*at - '0') < 10 || is_foreign_digit(at);
        if (at > start) add_pair_word(pairs, (Span){start, (size_t)(at - start)}, has_digit ? NUMBER : PLAIN);
        if (is_one) {
            add_pair_word(pairs, (Span){at, 3}, SINGLE);
            at += 3;
        }
    }
}

/* A bit for each of BLOCK bytes: is it part of a word, the end of a line, a digit, the first of a letter that needs a look? */
typedef struct {
    uint64_t words, lines, digits, special;
} Kinds;

static inline Kinds kinds_of(const uint8_t *text) {
    Kinds kinds = {.words = word_bits(text)};
#ifdef __SSE2__
    for (int part = 0; part < BLOCK; part += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(text + part)), moved = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
        __m128i are_digits = _mm_cmpeq_epi8(_mm_min_epu8(moved, _mm_set1_epi8(9)), moved);
        kinds.lines |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))) << part;
        kinds.digits |= (uint64_t)(uint32_t)_mm_movemask_epi8(are_digits) << part;
        if (_mm_movemask_epi8(bytes) != 0) { /* E0 to E9 without E2; EF; D9 and DB */
            __m128i from = _mm_sub_epi8(bytes, _mm_set1_epi8((char)0xE0));
            __m128i are_special = _mm_cmpeq_epi8(_mm_min_epu8(from, _mm_set1_epi8(9)), from);
            are_special = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)0xE2)), are_special);
            are_special = _mm_or_si128(are_special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)0xEF)));
            are_special = _mm_or_si128(are_special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)0xD9)));
            are_special = _mm_or_si128(are_special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)0xDB)));
            kinds.special |= (uint64_t)(uint32_t)_mm_movemask_epi8(are_special) << part;
        }
    }
#else
    for (int i = 0; i < BLOCK; i++) {
        uint8_t byte = text[i], from = (uint8_t)(byte - 0xE0);
        int is_special = (from <= 9 && from != 2) || byte == 0xEF || byte == 0xD9 || byte == 0xDB;
        kinds.lines |= (uint64_t)(byte == '\n') << i;
        kinds.digits |= (uint64_t)((uint8_t)(byte - '0') < 10) << i;
        kinds.special |= (uint64_t)is_special << i;
    }
#endif
    return kinds;
}

/* Counts the pairs of words; returns whether there are words. `text` is in lower case and followed by 2 * BLOCK blanks. A
   block begins anew with the word that the one before cut off, so that what a word contains follows from its bits. */
static int count_pairs(const uint8_t *text, size_t length, Pairs *pairs) {
    int has_words = 0;
    size_t base = 0;
    while (base < length) {
        Kinds kinds = kinds_of(text + base);
        uint64_t starts = kinds.words & ~(kinds.words << 1), lines = kinds.lines;
        size_t step = BLOCK;
        has_words |= starts != 0;
        if (kinds.words >> (BLOCK - 1)) { /* the last word may go on */
            step = (size_t)(63 - __builtin_clzll(starts));
            starts &= ~((uint64_t)1 << step);
        }
        for (; starts; starts &= starts - 1) {
            unsigned at = (unsigned)__builtin_ctzll(starts);
            uint64_t before = ((uint64_t)1 << at) - 1;
            if (lines & before) {
                end_line(pairs);
                lines &= ~before;
            }
            unsigned size = (unsigned)__builtin_ctzll(~(kinds.words >> at));
            uint64_t own = (((uint64_t)1 << size) - 1) << at; /* its bits */
            const uint8_t *start = text + base + at;
            if (kinds.special & own)
                add_run(pairs, start, start + size);
            else
                add_pair_word(pairs, (Span){start, size}, kinds.digits & own ? NUMBER : PLAIN);
        }
        if (step < BLOCK) lines &= ((uint64_t)1 << step) - 1;
        if (lines) end_line(pairs);
        if (step == 0) { /* a word as long as the block */
            while (base + step < length && word_bits(text + base + step) == UINT64_MAX) step += BLOCK;
            step += (size_t)__builtin_ctzll(~word_bits(text + base + step));
            add_run(pairs, text + base, text + base + step);
        }
        base += step;
    }
    end_line(pairs);
    return has_words;
}

static PyObject *word_pairs(PyObject *Py_UNUSED(module), PyObject *given) {
    char *bytes = NULL;
    Py_ssize_t given_length = 0;
    if (PyBytes_AsStringAndSize(given, &bytes, &given_length) < 0) return NULL;
    size_t length = given_length > MAX_CHARS ? MAX_CHARS : (size_t)given_length;
    uint8_t *text = malloc(length + 2 * BLOCK), made[COUNTERS + 4];
    if (text == NULL) return PyErr_NoMemory();
    lower((const uint8_t *)bytes, text, length);
    memset(text + length, ' ', 2 * BLOCK);
    Pairs pairs = {.waiting = NO_WORD};
    int has_words = count_pairs(text, length, &pairs);
    free(text);
    memcpy(made, pairs.counters, COUNTERS);
    made[COUNTERS] = (uint8_t)pairs.counted, made[COUNTERS + 1] = (uint8_t)(pairs.counted >> 8);
    made[COUNTERS + 2] = (uint8_t)pairs.prices, made[COUNTERS + 3] = (uint8_t)(pairs.prices >> 8);
    return PyBytes_FromStringAndSize((const char *)made, has_words ? sizeof made : 0);
}

/* -- the module ------------------------------------------------------------------------------- */

static int set_up(PyObject *module) {
    const char *refused = getenv("GOSSAMER_NO_KERNEL");
    if (refused != NULL && *refused != '\0') {
        PyErr_SetString(PyExc_ImportError, "GOSSAMER_NO_KERNEL is set");
        return -1;
    }
    draw_permutations();
    fill_url_bytes();
    PyObject *type = PyType_FromModuleAndSpec(module, &table_spec, NULL);
    int added = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)type);
    Py_XDECREF(type);
    return added;
}

static PyMethodDef methods[] = {
    {"minhash", minhash, METH_O, "minhash(text) -> signature of 512 bytes, or none if there are no words."},
    {"simhash", simhash, METH_O, "simhash(text) -> signature of 8 bytes, or none if there are no words."},
    {"equal_lanes", equal_lanes, METH_VARARGS, "equal_lanes(one, other) -> how many of 128 lanes are equal."},
    {"bare", bare, METH_VARARGS, "bare(text, parts) -> the text without the parts, one after the other, and digits."},
    {"bare_short", bare_short, METH_VARARGS,
     "bare_short(text, path) -> the text in lower case without what it takes from the path, and digits."},
    {"numbers_beside", numbers_beside, METH_VARARGS,
     "numbers_beside(text, path) -> the text's numbers without those of the path; None if that has none."},
    {"mentions", mentions, METH_VARARGS, "mentions(text, parts) -> whether the text in lower case has one of the parts."},
    {"join_plain", join_plain, METH_VARARGS, "join_plain(base, hrefs) -> URLs; None if it takes a URL parser to join them."},
    {"word_pairs", word_pairs, METH_O, "word_pairs(text) -> counters of the pairs of words, how many, prices: 68 bytes."},
    {"path_patterns", path_patterns, METH_O, "path_patterns(url) -> the patterns of a URL without a query; None: ask Python."},
    {"record_lanes", record_lanes, METH_VARARGS, "record_lanes(values, frequent, hits, seen, generation, pages) -> int"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, set_up}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "gossamer.foundation._kernel", "Near-duplicate arithmetic.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
