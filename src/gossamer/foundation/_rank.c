/* The arithmetic of gossamer.core.rank in C: the same results, about two hundred times as fast.

   Optional, as `_kernel.c` is: without a compiler, or with `GOSSAMER_NO_KERNEL` in the environment, Python does the work. What the
   functions compute is defined by `plain_sort_unique` and `plain_link_rank` in core/rank.py; tests compare them.

   A link is a 64-bit number: the node that has it in the upper half, the one that it leads to in the lower one. Buffers are arrays in
   the machine's own byte order. Limited API of Python 3.11. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

/* Sort by digits, from the lowest: a pass per digit in which the numbers differ. The result is in `numbers`. */
static int sort_numbers(uint64_t *numbers, size_t count) {
    uint64_t *other = malloc(count * sizeof *other), *from = numbers, *to = other;
    if (other == NULL) return -1;
    uint64_t differ = 0;
    for (size_t i = 1; i < count; i++) differ |= numbers[i] ^ numbers[0];
    for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (((differ >> shift) & (DIGITS - 1)) == 0) continue;
        size_t starts[DIGITS] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++) starts[(from[i] >> shift) & (DIGITS - 1)]++;
        for (size_t digit = 0; digit < DIGITS; digit++) {
            size_t here = starts[digit];
            starts[digit] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++) to[starts[(from[i] >> shift) & (DIGITS - 1)]++] = from[i];
        uint64_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != numbers) memcpy(numbers, from, count * sizeof *numbers);
    free(other);
    return 0;
}

static PyObject *sort_unique(PyObject *module, PyObject *args) {
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "w*", &buffer)) return NULL;
    size_t count = (size_t)buffer.len / sizeof(uint64_t), kept = 0;
    uint64_t *numbers = buffer.buf;
    int failed = buffer.len % (Py_ssize_t)sizeof(uint64_t) != 0;
    if (failed) PyErr_SetString(PyExc_ValueError, "sort_unique: expected an array of 64-bit numbers");
    if (!failed && count > 0) {
        Py_BEGIN_ALLOW_THREADS
        failed = sort_numbers(numbers, count);
        if (!failed) {
            kept = 1;
            for (size_t i = 1; i < count; i++)
                if (numbers[i] != numbers[kept - 1]) numbers[kept++] = numbers[i];
        }
        Py_END_ALLOW_THREADS
        if (failed) PyErr_NoMemory();
    }
    PyBuffer_Release(&buffer);
    return failed ? NULL : PyLong_FromSize_t(kept);
}

typedef struct {
    const uint64_t *links;
    size_t link_count, nodes;
    const double *teleport, *self_share;
    double damping, tolerance;
} Graph;

/* One step: what every node passes on, then what every node has. Returns the largest relative change. */
static double step(const Graph *graph, const uint32_t *degrees, double *rank, double *next, double *gives) {
    double lost = 0.0, largest = 0.0;
    for (size_t node = 0; node < graph->nodes; node++) {
        if (degrees[node] == 0) {
            lost += rank[node];
            next[node] = gives[node] = 0.0;
        } else {
            next[node] = rank[node] * graph->self_share[node];
            gives[node] = (rank[node] - next[node]) / degrees[node];
        }
    }
    for (size_t i = 0; i < graph->link_count; i++)
        next[(uint32_t)graph->links[i]] += gives[graph->links[i] >> 32];
    double all = 1.0 - graph->damping + graph->damping * lost;
    for (size_t node = 0; node < graph->nodes; node++) {
        double value = all * graph->teleport[node] + graph->damping * next[node];
        double change = fabs(value - rank[node]);
        if (value > 0.0 && change > largest * value) largest = change / value;
        rank[node] = value;
    }
    return largest;
}

/* Returns the number of steps; -1 without memory, -2 if a link leads to a node that does not exist or to itself. */
static long solve(const Graph *graph, double *rank, long max_steps) {
    uint32_t *degrees = calloc(graph->nodes ? graph->nodes : 1, sizeof *degrees);
    double *spare = malloc((2 * graph->nodes + 1) * sizeof *spare);
    long steps = degrees == NULL || spare == NULL ? -1 : 0;
    for (size_t i = 0; steps == 0 && i < graph->link_count; i++) {
        uint64_t from = graph->links[i] >> 32, to = (uint32_t)graph->links[i];
        if (from >= graph->nodes || to >= graph->nodes || from == to) steps = -2;
        else degrees[from]++;
    }
    if (steps == 0) {
        memcpy(rank, graph->teleport, graph->nodes * sizeof *rank);
        while (steps < max_steps) {
            steps++;
            if (step(graph, degrees, rank, spare, spare + graph->nodes) <= graph->tolerance) break;
        }
    }
    free(degrees);
    free(spare);
    return steps;
}

static PyObject *link_rank(PyObject *module, PyObject *args) {
    Py_buffer links, teleport, self_share, rank;
    Graph graph;
    long max_steps, steps = -3;
    if (!PyArg_ParseTuple(args, "y*y*y*w*ddl", &links, &teleport, &self_share, &rank, &graph.damping, &graph.tolerance,
                          &max_steps))
        return NULL;
    if (links.len % 8 == 0 && teleport.len % 8 == 0 && teleport.len == self_share.len && teleport.len == rank.len) {
        graph.links = links.buf;
        graph.link_count = (size_t)links.len / 8;
        graph.nodes = (size_t)teleport.len / 8;
        graph.teleport = teleport.buf;
        graph.self_share = self_share.buf;
        Py_BEGIN_ALLOW_THREADS
        steps = solve(&graph, rank.buf, max_steps);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&links);
    PyBuffer_Release(&teleport);
    PyBuffer_Release(&self_share);
    PyBuffer_Release(&rank);
    if (steps == -1) return PyErr_NoMemory();
    if (steps == -2) PyErr_SetString(PyExc_ValueError, "link_rank: expected links from a node to another one");
    if (steps == -3) PyErr_SetString(PyExc_ValueError, "link_rank: a buffer has the wrong size");
    return steps < 0 ? NULL : PyLong_FromLong(steps);
}

static int set_up(PyObject *module) {
    const char *refused = getenv("GOSSAMER_NO_KERNEL");
    if (refused != NULL && *refused != '\0') {
        PyErr_SetString(PyExc_ImportError, "GOSSAMER_NO_KERNEL is set");
        return -1;
    }
    return 0;
}

static PyMethodDef methods[] = {
    {"sort_unique", sort_unique, METH_VARARGS, "sort_unique(numbers) -> how many different ones are now at the beginning."},
    {"link_rank", link_rank, METH_VARARGS,
     "link_rank(links, teleport, self_share, rank, damping, tolerance, max_steps) -> steps"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, set_up}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "gossamer.foundation._rank", "Rank of hosts.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__rank(void) { return PyModuleDef_Init(&definition); }
