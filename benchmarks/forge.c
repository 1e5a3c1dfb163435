/* Finds texts of 128 bytes with a given unkeyed xxh3_64, or given bits of it: the four-list algorithm for sums.

   Of 128 bytes, xxh3_64 is an invertible function of a sum of eight terms, each of which depends on 16 bytes only. With
   four free blocks and 2^22 candidates for each there are about four solutions of 64 bits. See forge.py. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BITS 22
#define SIZE ((size_t)1 << BITS)
#define MASK (SIZE - 1)
#define LENGTH 128

static const uint64_t P1 = 0x9E3779B185EBCA87u;
static const char LETTERS[33] = "abcdefghijklmnopqrstuvwxyz234567";

typedef struct {
    uint64_t sum;
    uint32_t left, right;
} Pair;

static uint64_t read64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

/* The term of the 16 bytes at `at`; block n is mixed with these bytes of the secret. */
static uint64_t term(const uint8_t *at, const uint8_t *secret) {
    unsigned __int128 product =
        (unsigned __int128)(read64(at) ^ read64(secret)) * (read64(at + 8) ^ read64(secret + 8));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static const int SECRET_OF[8] = {0, 32, 64, 96, 112, 80, 48, 16};

static uint64_t next(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Writes candidate `number` of a list: 12 letters between those that the template has there. */
static void fill(uint8_t *block, const uint8_t *template, uint64_t number, int list, uint64_t seed) {
    uint64_t bits = next(number + seed * 0x9E3779B97F4A7C15u + ((uint64_t)list << 56));
    memcpy(block, template, 16);
    for (int i = 2; i < 14; i++, bits >>= 5) block[i] = (uint8_t)LETTERS[bits & 31];
}

/* Sorts pairs (of which `count` are given) by the low bits of their sums: `starts` has SIZE + 1 entries. */
static void by_low_bits(const Pair *from, size_t count, Pair *to, uint32_t *starts) {
    memset(starts, 0, (SIZE + 1) * sizeof *starts);
    for (size_t i = 0; i < count; i++) starts[(from[i].sum & MASK) + 1]++;
    for (size_t i = 0; i < SIZE; i++) starts[i + 1] += starts[i];
    for (size_t i = count; i-- > 0;) to[--starts[(from[i].sum & MASK) + 1]] = from[i];
    /* After filling from the end, entry b + 1 is where b begins. */
    memmove(starts, starts + 1, SIZE * sizeof *starts);
    starts[SIZE] = (uint32_t)count;
}

/* Pairs of two lists whose sums have the low bits of `target`. */
static size_t merge(const uint64_t *a, const uint64_t *b, uint64_t target, Pair *out, size_t room, Pair *work,
                    Pair *sorted, uint32_t *starts) {
    size_t count = 0;
    for (size_t i = 0; i < SIZE; i++) work[i] = (Pair){b[i], 0, (uint32_t)i};
    by_low_bits(work, SIZE, sorted, starts);
    for (size_t i = 0; i < SIZE; i++) {
        size_t low = (target - a[i]) & MASK;
        for (uint32_t k = starts[low]; k < starts[low + 1] && count < room; k++)
            out[count++] = (Pair){a[i] + sorted[k].sum, (uint32_t)i, sorted[k].right};
    }
    return count;
}

static uint64_t unshift(uint64_t value, int by) {
    uint64_t found = value;
    for (int i = 0; i < 64 / by + 1; i++) found = value ^ found >> by;
    return found;
}

/* Writes up to `room` texts with this hash to `out`, and returns how many. They differ from the template in its four
   free blocks. */
int forge(const uint8_t *template, const int *free_blocks, uint64_t hash, const uint8_t *secret, uint64_t seed,
          uint8_t *out, int room) {
    uint64_t multiplier = 0x165667919E3779F9u, inv = multiplier;
    for (int i = 0; i < 6; i++) inv *= 2 - multiplier * inv; /* Newton: its inverse modulo 2^64 */
    uint64_t target = unshift(unshift(hash, 32) * inv, 37) - LENGTH * P1;
    for (int n = 0; n < 8; n++) {
        int is_free = 0;
        for (int i = 0; i < 4; i++) is_free |= free_blocks[i] == n;
        if (!is_free) target -= term(template + 16 * n, secret + SECRET_OF[n]);
    }
    size_t most = SIZE + SIZE / 4;
    uint64_t *lists[4];
    for (int l = 0; l < 4; l++) lists[l] = malloc(SIZE * 8);
    Pair *left = malloc(most * sizeof(Pair)), *right = malloc(most * sizeof(Pair));
    Pair *work = malloc(most * sizeof(Pair)), *sorted = malloc(most * sizeof(Pair));
    uint32_t *starts = malloc((SIZE + 1) * sizeof *starts);
    uint8_t block[16];
    int found = 0;
    for (int l = 0; l < 4; l++)
        for (size_t i = 0; i < SIZE; i++) {
            fill(block, template + 16 * free_blocks[l], i, l, seed);
            lists[l][i] = term(block, secret + SECRET_OF[free_blocks[l]]);
        }
    size_t lefts = merge(lists[0], lists[1], 0, left, most, work, sorted, starts);
    size_t rights = merge(lists[2], lists[3], target, right, most, work, sorted, starts);
    /* Both sums now agree with the target in the low bits; the next bits decide. */
    for (size_t i = 0; i < rights; i++) right[i].sum = (target - right[i].sum) >> BITS;
    by_low_bits(right, rights, sorted, starts);
    for (size_t i = 0; i < lefts && found < room; i++) {
        uint64_t wanted = left[i].sum >> BITS;
        for (uint32_t k = starts[wanted & MASK]; k < starts[(wanted & MASK) + 1] && found < room; k++) {
            if (sorted[k].sum != wanted) continue;
            uint8_t *text = out + LENGTH * found++;
            memcpy(text, template, LENGTH);
            const uint32_t numbers[4] = {left[i].left, left[i].right, sorted[k].left, sorted[k].right};
            for (int l = 0; l < 4; l++)
                fill(text + 16 * free_blocks[l], template + 16 * free_blocks[l], numbers[l], l, seed);
        }
    }
    for (int l = 0; l < 4; l++) free(lists[l]);
    free(left), free(right), free(work), free(sorted), free(starts);
    return found;
}
