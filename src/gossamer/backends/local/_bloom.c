/* A Bloom filter of ids of 16 bytes, in 64 partitions. The twin in Python is `bloom_python`; a test compares the two.
 *
 * An id is mixed to a digest of 8 bytes. Its top 6 bits select the partition, the others the bits in it: position i is
 * the upper half of a + i * b, scaled to the partition's size. A lower number of probes checks the first positions only.
 *
 * One partition at a time can get another size. `start` gives it a second, empty array; from then on `add` sets bits in
 * both, `fill` sets those of earlier digests in the second only, and `finish` replaces the first by the second. Nothing
 * that was added is denied in between, since `in` looks at the first. Which digests are filled is the caller's duty.
 *
 * Large arrays are mapped, so that the system gets them back whole: the allocator would reuse the hole that an array
 * leaves for something else, and not for the next, larger array.
 */
#define _DEFAULT_SOURCE
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ID_BYTES 16
#define DIGEST_BYTES 8
#define PARTITION_BITS 6
#define PARTITIONS (1 << PARTITION_BITS)
#define MAX_PROBES 10
#define MAX_BITS UINT32_MAX
#define MAPPED_BYTES 65536
#define KEPT_DIGESTS 65536 /* a larger list of new digests is freed when it is taken */

/* The fractions of the golden ratio, and of the square roots of 3 and 5. */
#define MIX_1 UINT64_C(0x9E3779B97F4A7C15)
#define MIX_2 UINT64_C(0xBB67AE8584CAA73B)
#define MIX_3 UINT64_C(0x3C6EF372FE94F82B)

static inline uint64_t load_64(const uint8_t *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static inline void store_64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t digest_of(const uint8_t *id)
{
    uint64_t x = load_64(id) * MIX_1;
    x = ((x ^ x >> 32) + load_64(id + 8)) * MIX_2;
    x = (x ^ x >> 29) * MIX_3;
    return x ^ x >> 32;
}

typedef struct {
    uint8_t *bytes;
    uint64_t bits;
    uint64_t capacity;
    int probes;
} array;

static size_t bytes_of(const array *one)
{
    return (size_t)((one->bits + 7) / 8);
}

static int allocate(array *one)
{
    size_t size = bytes_of(one);
    if (size < MAPPED_BYTES) {
        one->bytes = calloc(size, 1);
    } else {
        void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        one->bytes = mapped == MAP_FAILED ? NULL : mapped;
    }
    return one->bytes ? 0 : -1;
}

static void release(array *one)
{
    if (one->bytes && bytes_of(one) >= MAPPED_BYTES)
        munmap(one->bytes, bytes_of(one));
    else
        free(one->bytes);
    one->bytes = NULL;
}

#define EACH_POSITION(one, digest, position)                                                    \
    uint64_t a_ = (digest) << PARTITION_BITS, b_ = ((digest) ^ (digest) >> 31) * MIX_1 | 1, position; \
    for (int i_ = 0; i_ < (one)->probes && (position = (a_ >> 32) * (one)->bits >> 32, 1); i_++, a_ += b_)

static inline void set_bits(array *one, uint64_t digest)
{
    EACH_POSITION(one, digest, position)
        one->bytes[position >> 3] |= (uint8_t)(1 << (position & 7));
}

static inline int has_bits(const array *one, uint64_t digest)
{
    EACH_POSITION(one, digest, position)
        if (!(one->bytes[position >> 3] >> (position & 7) & 1))
            return 0;
    return 1;
}

typedef struct {
    PyObject_HEAD
    array arrays[PARTITIONS];
    uint64_t counts[PARTITIONS];
    array next;      /* the second array of the partition `growing` */
    int growing;     /* -1 if there is none */
    Py_ssize_t wait; /* how many are added until `add` returns True while a partition grows */
    uint8_t *fresh;  /* the digests added since `take_new` */
    size_t fresh_count, fresh_room;
} filter;

static int partition_of(uint64_t digest)
{
    return (int)(digest >> (64 - PARTITION_BITS));
}

static const uint8_t *id_bytes(PyObject *id)
{
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(id, &bytes, &length) < 0)
        return NULL;
    if (length != ID_BYTES) {
        PyErr_Format(PyExc_ValueError, "an id has %d bytes, not %zd", ID_BYTES, length);
        return NULL;
    }
    return (const uint8_t *)bytes;
}

static PyObject *filter_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    allocfunc allocate_object = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    filter *self = (filter *)allocate_object(type, 0);
    if (!self)
        return NULL;
    self->growing = -1;
    for (int partition = 0; partition < PARTITIONS; partition++) {
        self->arrays[partition] = (array){NULL, 8, 0, 1};
        if (allocate(&self->arrays[partition]) < 0) {
            Py_DECREF(self);
            return PyErr_NoMemory();
        }
    }
    return (PyObject *)self;
}

static void filter_dealloc(filter *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    for (int partition = 0; partition < PARTITIONS; partition++)
        release(&self->arrays[partition]);
    release(&self->next);
    free(self->fresh);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int filter_contains(filter *self, PyObject *id)
{
    const uint8_t *bytes = id_bytes(id);
    if (!bytes)
        return -1;
    uint64_t digest = digest_of(bytes);
    return has_bits(&self->arrays[partition_of(digest)], digest);
}

static int append_fresh(filter *self, uint64_t digest)
{
    if (self->fresh_count == self->fresh_room) {
        size_t room = self->fresh_room ? 2 * self->fresh_room : 512;
        uint8_t *moved = realloc(self->fresh, room * DIGEST_BYTES);
        if (!moved)
            return -1;
        self->fresh = moved;
        self->fresh_room = room;
    }
    store_64(self->fresh + DIGEST_BYTES * self->fresh_count++, digest);
    return 0;
}

static PyObject *filter_add(filter *self, PyObject *id)
{
    const uint8_t *bytes = id_bytes(id);
    if (!bytes)
        return NULL;
    uint64_t digest = digest_of(bytes);
    int partition = partition_of(digest);
    if (append_fresh(self, digest) < 0)
        return PyErr_NoMemory();
    set_bits(&self->arrays[partition], digest);
    uint64_t count = ++self->counts[partition];
    if (self->growing < 0)
        return PyBool_FromLong(count > self->arrays[partition].capacity);
    if (self->growing == partition)
        set_bits(&self->next, digest);
    return PyBool_FromLong(--self->wait <= 0);
}

/* Calls of `load` and `fill`: digests one after the other. */
static PyObject *over_digests(filter *self, PyObject *digests, int is_fill)
{
    Py_buffer view;
    if (PyObject_GetBuffer(digests, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *at = view.buf, *end = at + view.len / DIGEST_BYTES * DIGEST_BYTES;
    for (; at < end; at += DIGEST_BYTES) {
        uint64_t digest = load_64(at);
        int partition = partition_of(digest);
        if (!is_fill) {
            set_bits(&self->arrays[partition], digest);
            self->counts[partition]++;
        } else if (partition == self->growing) {
            set_bits(&self->next, digest);
        }
    }
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *filter_load(filter *self, PyObject *digests)
{
    return over_digests(self, digests, 0);
}

static PyObject *filter_fill(filter *self, PyObject *digests)
{
    return over_digests(self, digests, 1);
}

static int checked_partition(int partition)
{
    if (partition >= 0 && partition < PARTITIONS)
        return 0;
    PyErr_Format(PyExc_IndexError, "there are %d partitions, not %d", PARTITIONS, partition);
    return -1;
}

static PyObject *filter_start(filter *self, PyObject *args)
{
    int partition;
    unsigned long long bits, capacity;
    array next = {0};
    if (!PyArg_ParseTuple(args, "iKiK:start", &partition, &bits, &next.probes, &capacity))
        return NULL;
    if (checked_partition(partition) < 0)
        return NULL;
    if (bits < 1 || bits > MAX_BITS || next.probes < 1 || next.probes > MAX_PROBES)
        return PyErr_Format(PyExc_ValueError, "%llu bits and %d probes; expected up to %llu and %d", bits, next.probes,
                            (unsigned long long)MAX_BITS, MAX_PROBES);
    if (self->growing >= 0)
        return PyErr_Format(PyExc_RuntimeError, "partition %d is not finished", self->growing);
    next.bits = bits;
    next.capacity = capacity;
    if (allocate(&next) < 0)
        return PyErr_NoMemory();
    self->next = next;
    self->growing = partition;
    self->wait = 1;
    Py_RETURN_NONE;
}

static PyObject *filter_finish(filter *self, PyObject *Py_UNUSED(none))
{
    if (self->growing < 0)
        return PyErr_Format(PyExc_RuntimeError, "no partition was started");
    release(&self->arrays[self->growing]);
    self->arrays[self->growing] = self->next;
    self->next = (array){0};
    self->growing = -1;
    Py_RETURN_NONE;
}

static PyObject *filter_clear(filter *self, PyObject *Py_UNUSED(none))
{
    for (int partition = 0; partition < PARTITIONS; partition++) {
        memset(self->arrays[partition].bytes, 0, bytes_of(&self->arrays[partition]));
        self->counts[partition] = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *filter_set_wait(filter *self, PyObject *adds)
{
    Py_ssize_t wait = PyLong_AsSsize_t(adds);
    if (wait == -1 && PyErr_Occurred())
        return NULL;
    self->wait = wait;
    Py_RETURN_NONE;
}

static PyObject *filter_set_capacity(filter *self, PyObject *args)
{
    int partition;
    unsigned long long capacity;
    if (!PyArg_ParseTuple(args, "iK:set_capacity", &partition, &capacity) || checked_partition(partition) < 0)
        return NULL;
    self->arrays[partition].capacity = capacity;
    Py_RETURN_NONE;
}

static PyObject *filter_overfull(filter *self, PyObject *Py_UNUSED(none))
{
    for (int partition = 0; partition < PARTITIONS; partition++)
        if (self->counts[partition] > self->arrays[partition].capacity)
            return PyLong_FromLong(partition);
    return PyLong_FromLong(-1);
}

static PyObject *filter_shape(filter *self, PyObject *number)
{
    long partition = PyLong_AsLong(number);
    if ((partition == -1 && PyErr_Occurred()) || checked_partition((int)partition) < 0)
        return NULL;
    const array *one = &self->arrays[partition];
    return Py_BuildValue("(KiKK)", (unsigned long long)one->bits, one->probes, (unsigned long long)one->capacity,
                         (unsigned long long)self->counts[partition]);
}

static PyObject *filter_contents(filter *self, PyObject *number)
{
    long partition = PyLong_AsLong(number);
    if ((partition == -1 && PyErr_Occurred()) || checked_partition((int)partition) < 0)
        return NULL;
    const array *one = &self->arrays[partition];
    return PyBytes_FromStringAndSize((const char *)one->bytes, (Py_ssize_t)bytes_of(one));
}

static PyObject *filter_peek_new(filter *self, PyObject *Py_UNUSED(none))
{
    return PyBytes_FromStringAndSize((const char *)self->fresh, (Py_ssize_t)(DIGEST_BYTES * self->fresh_count));
}

static PyObject *filter_take_new(filter *self, PyObject *none)
{
    PyObject *taken = filter_peek_new(self, none);
    if (!taken)
        return NULL;
    self->fresh_count = 0;
    if (self->fresh_room > KEPT_DIGESTS) {
        free(self->fresh);
        self->fresh = NULL;
        self->fresh_room = 0;
    }
    return taken;
}

static PyObject *filter_growing(filter *self, void *Py_UNUSED(none))
{
    return PyLong_FromLong(self->growing);
}

static PyObject *filter_size(filter *self, void *Py_UNUSED(none))
{
    size_t size = self->growing < 0 ? 0 : bytes_of(&self->next);
    for (int partition = 0; partition < PARTITIONS; partition++)
        size += bytes_of(&self->arrays[partition]);
    return PyLong_FromSize_t(size);
}

static PyMethodDef filter_methods[] = {
    {"add", (PyCFunction)filter_add, METH_O, "add(id) -> whether a partition is to be enlarged or filled further"},
    {"load", (PyCFunction)filter_load, METH_O, "load(digests): add digests that are stored already"},
    {"start", (PyCFunction)filter_start, METH_VARARGS, "start(partition, bits, probes, capacity): begin a second array"},
    {"fill", (PyCFunction)filter_fill, METH_O, "fill(digests): add those of the growing partition to its second array"},
    {"finish", (PyCFunction)filter_finish, METH_NOARGS, "finish(): use the second array instead of the first"},
    {"clear", (PyCFunction)filter_clear, METH_NOARGS, "clear(): forget what was loaded"},
    {"set_wait", (PyCFunction)filter_set_wait, METH_O, "set_wait(adds): when add returns True while a partition grows"},
    {"set_capacity", (PyCFunction)filter_set_capacity, METH_VARARGS, "set_capacity(partition, capacity)"},
    {"overfull", (PyCFunction)filter_overfull, METH_NOARGS, "overfull() -> first partition beyond its capacity, or -1"},
    {"shape", (PyCFunction)filter_shape, METH_O, "shape(partition) -> bits, probes, capacity, count"},
    {"contents", (PyCFunction)filter_contents, METH_O, "contents(partition) -> its bytes"},
    {"peek_new", (PyCFunction)filter_peek_new, METH_NOARGS, "peek_new() -> digests added since take_new"},
    {"take_new", (PyCFunction)filter_take_new, METH_NOARGS, "take_new() -> digests added since the last call"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef filter_properties[] = {
    {"growing", (getter)filter_growing, NULL, "the partition that has a second array, or -1", NULL},
    {"size_in_bytes", (getter)filter_size, NULL, "memory of all arrays", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot filter_slots[] = {
    {Py_tp_doc, "A Bloom filter in partitions."},
    {Py_tp_new, filter_new},
    {Py_tp_dealloc, filter_dealloc},
    {Py_tp_methods, filter_methods},
    {Py_tp_getset, filter_properties},
    {Py_sq_contains, filter_contains},
    {0, NULL}};

static PyType_Spec filter_spec = {
    "gossamer.backends.local._bloom.Partitions", sizeof(filter), 0, Py_TPFLAGS_DEFAULT, filter_slots};

static PyObject *digests(PyObject *Py_UNUSED(module), PyObject *ids)
{
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(ids, &bytes, &length) < 0)
        return NULL;
    if (length % ID_BYTES)
        return PyErr_Format(PyExc_ValueError, "ids have %d bytes each, not %zd in all", ID_BYTES, length);
    PyObject *result = PyBytes_FromStringAndSize(NULL, length / ID_BYTES * DIGEST_BYTES);
    if (!result)
        return NULL;
    uint8_t *out = (uint8_t *)PyBytes_AsString(result);
    for (const uint8_t *at = (uint8_t *)bytes, *end = at + length; at < end; at += ID_BYTES, out += DIGEST_BYTES)
        store_64(out, digest_of(at));
    return result;
}

static PyObject *split(PyObject *Py_UNUSED(module), PyObject *all)
{
    char *bytes;
    Py_ssize_t length;
    size_t sizes[PARTITIONS] = {0};
    uint8_t *ends[PARTITIONS];
    if (PyBytes_AsStringAndSize(all, &bytes, &length) < 0)
        return NULL;
    const uint8_t *start = (uint8_t *)bytes, *end = start + length / DIGEST_BYTES * DIGEST_BYTES;
    for (const uint8_t *at = start; at < end; at += DIGEST_BYTES)
        sizes[partition_of(load_64(at))] += DIGEST_BYTES;
    PyObject *result = PyList_New(PARTITIONS);
    for (int partition = 0; result && partition < PARTITIONS; partition++) {
        PyObject *part = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizes[partition]);
        if (!part || PyList_SetItem(result, partition, part) < 0) {
            Py_DECREF(result);
            return NULL;
        }
        ends[partition] = (uint8_t *)PyBytes_AsString(part);
    }
    for (const uint8_t *at = start; result && at < end; at += DIGEST_BYTES) {
        uint8_t **out = &ends[partition_of(load_64(at))];
        memcpy(*out, at, DIGEST_BYTES);
        *out += DIGEST_BYTES;
    }
    return result;
}

static PyMethodDef methods[] = {
    {"digests", digests, METH_O, "digests(ids) -> the digests of ids, both one after the other"},
    {"split", split, METH_O, "split(digests) -> the digests of each partition"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_bloom", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__bloom(void)
{
    PyObject *self = PyModule_Create(&module), *type = self ? PyType_FromSpec(&filter_spec) : NULL;
    if (!type || PyModule_AddObjectRef(self, "Partitions", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(self);
        return NULL;
    }
    Py_DECREF(type);
    return self;
}
