/* Two SHA-1 digests in the time of one: of a body, and of a head with that body.
 *
 * sha1_pair(head, body) -> (digest of the body, digest of head and body)
 * sha1_base32(digest) -> the digest as WARC tools write it
 *
 * With one digest, a processor with the SHA extensions waits for its own results: each step takes four cycles, and the
 * next needs its result. Here the steps of two digests take turns. `is_quick` is true if this processor has the
 * extensions; without them the function refuses, and hashlib is used. A test compares the two.
 *
 * FIPS 180-4 names the constants; the instructions do four rounds per step.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_BYTES 20
#define BLOCK_BYTES 64
#define UNLOCK_BYTES 65536 /* below this, releasing the GIL costs more than it gains */

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,ssse3,sse4.1")))

static int has_sha(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}

typedef struct { __m128i abcd, e; } state; /* the words a to e, the first in the highest place */

typedef struct { state state; const uint8_t *at; } stream;

WITH_SHA static state first_state(void)
{
    return (state){_mm_set_epi32(0x67452301, (int)0xEFCDAB89, (int)0x98BADCFE, 0x10325476),
                   _mm_set_epi32((int)0xC3D2E1F0, 0, 0, 0)};
}

WITH_SHA static inline __m128i four_words(const uint8_t *at)
{
    const __m128i order = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)at), order);
}

/* One step of every stream: rounds 4 * i to 4 * i + 3, and the message words of a later step. */
#define STEP(i, function)                                                                                           \
    for (int k = 0; k < streams; k++) {                                                                             \
        __m128i now = (i) ? _mm_sha1nexte_epu32(e[k], words[k][(i) % 4]) : _mm_add_epi32(e[k], words[k][0]);        \
        e[k] = abcd[k];                                                                                             \
        abcd[k] = _mm_sha1rnds4_epu32(abcd[k], now, function);                                                      \
        if ((i) >= 3 && (i) < 19) {                                                                                 \
            __m128i mixed = _mm_sha1msg1_epu32(words[k][((i) + 1) % 4], words[k][((i) + 2) % 4]);                   \
            mixed = _mm_xor_si128(mixed, words[k][((i) + 3) % 4]);                                                  \
            words[k][((i) + 1) % 4] = _mm_sha1msg2_epu32(mixed, words[k][(i) % 4]);                                 \
        }                                                                                                           \
    }
#define STEPS(i, function) \
    STEP(i, function) STEP(i + 1, function) STEP(i + 2, function) STEP(i + 3, function) STEP(i + 4, function)

/* Processes `count` blocks of each stream. `streams` is 1 or 2, known when this is compiled. */
WITH_SHA static inline __attribute__((always_inline)) void take(stream *all, int streams, size_t count)
{
    __m128i abcd[2], e[2], words[2][4];
    for (int k = 0; k < streams; k++)
        abcd[k] = all[k].state.abcd, e[k] = all[k].state.e;
    for (; count > 0; count--) {
        __m128i abcd_before[2], e_before[2];
        for (int k = 0; k < streams; k++) {
            abcd_before[k] = abcd[k], e_before[k] = e[k];
            for (int part = 0; part < 4; part++)
                words[k][part] = four_words(all[k].at + 16 * part);
            all[k].at += BLOCK_BYTES;
        }
        STEPS(0, 0)
        STEPS(5, 1)
        STEPS(10, 2)
        STEPS(15, 3)
        for (int k = 0; k < streams; k++) {
            e[k] = _mm_sha1nexte_epu32(e[k], e_before[k]);
            abcd[k] = _mm_add_epi32(abcd[k], abcd_before[k]);
        }
    }
    for (int k = 0; k < streams; k++)
        all[k].state = (state){abcd[k], e[k]};
}

WITH_SHA static void take_one(stream *one, size_t blocks)
{
    take(one, 1, blocks);
}

WITH_SHA static void take_two(stream *two, size_t blocks)
{
    take(two, 2, blocks);
}

/* Processes the last bytes of a stream, less than a block, and what closes it: a bit, zeros, the length in bits. */
WITH_SHA static void finish(stream *one, size_t rest, uint64_t length, uint8_t *digest)
{
    uint8_t last[2 * BLOCK_BYTES] = {0};
    size_t blocks = rest + 9 <= BLOCK_BYTES ? 1 : 2;
    if (rest)
        memcpy(last, one->at, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[blocks * BLOCK_BYTES - 1 - (size_t)i] = (uint8_t)(8 * length >> 8 * i);
    one->at = last;
    take_one(one, blocks);
    uint32_t words[8];
    _mm_storeu_si128((__m128i *)words, one->state.e);
    _mm_storeu_si128((__m128i *)(words + 4), one->state.abcd);
    for (int word = 0; word < 5; word++)
        for (int i = 0; i < 4; i++)
            *digest++ = (uint8_t)(words[word < 4 ? 7 - word : 3] >> (24 - 8 * i));
}

/* Fills both digests; returns -1 if there is no memory. */
static int reckon(const uint8_t *head, size_t head_length, const uint8_t *body, size_t length, uint8_t *digests)
{
    /* The head, filled up to whole blocks with the first bytes of the body, if there are any. */
    size_t missing = (BLOCK_BYTES - head_length % BLOCK_BYTES) % BLOCK_BYTES;
    size_t taken = missing < length ? missing : length, first = head_length + taken;
    uint8_t *start = malloc(first + 1);
    if (!start)
        return -1;
    memcpy(start, head, head_length);
    memcpy(start + head_length, body, taken);
    stream two[2] = {{first_state(), body}, {first_state(), start}};
    take_one(&two[1], first / BLOCK_BYTES);
    if (taken == missing) {
        size_t left = (length - taken) / BLOCK_BYTES;
        two[1].at = body + taken;
        take_two(two, left);
        take_one(&two[0], length / BLOCK_BYTES - left);
        finish(&two[1], (length - taken) % BLOCK_BYTES, head_length + length, digests + DIGEST_BYTES);
    } else {
        take_one(&two[0], length / BLOCK_BYTES);
        finish(&two[1], first % BLOCK_BYTES, head_length + length, digests + DIGEST_BYTES);
    }
    finish(&two[0], length % BLOCK_BYTES, length, digests);
    free(start);
    return 0;
}

#else

static int has_sha(void)
{
    return 0;
}

static int reckon(const uint8_t *head, size_t head_length, const uint8_t *body, size_t length, uint8_t *digests)
{
    (void)head, (void)head_length, (void)body, (void)length, (void)digests;
    return -1;
}

#endif

static int is_supported; /* checked once: in a virtual machine the check takes microseconds */

static PyObject *sha1_pair(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *head, *body;
    Py_ssize_t head_length, length;
    uint8_t digests[2 * DIGEST_BYTES];
    int failed;
    if (!PyArg_ParseTuple(args, "y#y#:sha1_pair", &head, &head_length, &body, &length))
        return NULL;
    if (!is_supported)
        return PyErr_Format(PyExc_NotImplementedError, "this processor has no SHA extensions; see is_quick");
    if (length < UNLOCK_BYTES) {
        failed = reckon((const uint8_t *)head, (size_t)head_length, (const uint8_t *)body, (size_t)length, digests);
    } else {
        Py_BEGIN_ALLOW_THREADS
        failed = reckon((const uint8_t *)head, (size_t)head_length, (const uint8_t *)body, (size_t)length, digests);
        Py_END_ALLOW_THREADS
    }
    if (failed)
        return PyErr_NoMemory();
    return Py_BuildValue("(y#y#)", (const char *)digests, (Py_ssize_t)DIGEST_BYTES, (const char *)digests + DIGEST_BYTES,
                         (Py_ssize_t)DIGEST_BYTES);
}

static PyObject *sha1_base32(PyObject *Py_UNUSED(module), PyObject *digest)
{
    char *bytes, text[5 + DIGEST_BYTES * 8 / 5] = "sha1:", *out = text + 5;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(digest, &bytes, &length) < 0)
        return NULL;
    if (length != DIGEST_BYTES)
        return PyErr_Format(PyExc_ValueError, "a SHA-1 digest has %d bytes, not %zd", DIGEST_BYTES, length);
    for (int at = 0; at < DIGEST_BYTES; at += 5) {
        uint64_t bits = 0;
        for (int i = 0; i < 5; i++)
            bits = bits << 8 | (uint8_t)bytes[at + i];
        for (int shift = 35; shift >= 0; shift -= 5)
            *out++ = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[bits >> shift & 31];
    }
    return PyUnicode_FromStringAndSize(text, sizeof text);
}

static PyObject *is_quick(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(is_supported);
}

static PyMethodDef methods[] = {
    {"sha1_pair", sha1_pair, METH_VARARGS, "sha1_pair(head, body) -> digests of the body, and of head and body"},
    {"sha1_base32", sha1_base32, METH_O, "sha1_base32(digest) -> the digest as WARC tools write it"},
    {"is_quick", is_quick, METH_NOARGS, "is_quick() -> whether this processor has the SHA extensions"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sha1", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__sha1(void)
{
    is_supported = has_sha();
    return PyModule_Create(&module);
}
