/* Ends the process although nothing in Python can run: the event loop is held, perhaps by C code with the GIL.
 *
 * on_second(numbers, status, text)   the first of these signals goes to the handler that is installed now (Python's);
 *                                    a second one writes the text to stderr and ends the process with the status
 * at_alarm(status, text)             SIGALRM does that
 *
 * A handler of the operating system runs at once, whatever the interpreter does. Only functions that POSIX
 * allows in such a handler are called: write and _exit.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define _POSIX_C_SOURCE 200809L
#include <Python.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define MAX_NUMBER 64
#define MAX_TEXT 8192 /* a path has at most 4,096 bytes */

struct last_words {
    int status;
    size_t length;
    char text[MAX_TEXT];
};

static void (*earlier[MAX_NUMBER + 1])(int);
static volatile sig_atomic_t received;
static struct last_words second, alarm_words;

static void leave(const struct last_words *words)
{
    if (write(STDERR_FILENO, words->text, words->length) < 0) {
        /* nobody to tell */
    }
    _exit(words->status);
}

static int store(struct last_words *words, int status, const char *text, Py_ssize_t length)
{
    if (length > MAX_TEXT) {
        PyErr_Format(PyExc_ValueError, "a text of %zd bytes; expected at most %d", length, MAX_TEXT);
        return -1;
    }
    words->status = status;
    words->length = (size_t)length;
    memcpy(words->text, text, (size_t)length);
    return 0;
}

static void count(int number)
{
    if (++received > 1)
        leave(&second);
    if (earlier[number] != SIG_DFL && earlier[number] != SIG_IGN && earlier[number] != NULL)
        earlier[number](number);
}

static void end(int number)
{
    (void)number;
    leave(&alarm_words);
}

static int install(int number, void (*handler)(int), void (**before)(int))
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) < 0)
        return -1;
    if (action.sa_handler == handler) /* installed already */
        return 0;
    if (before)
        *before = action.sa_handler;
    action.sa_handler = handler;
    return sigaction(number, &action, NULL);
}

static PyObject *on_second(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *numbers;
    int status;
    const char *text;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "O!iy#", &PyTuple_Type, &numbers, &status, &text, &length) ||
        store(&second, status, text, length) < 0)
        return NULL;
    received = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(numbers); i++) {
        long number = PyLong_AsLong(PyTuple_GetItem(numbers, i));
        if (number == -1 && PyErr_Occurred())
            return NULL;
        if (number < 1 || number > MAX_NUMBER)
            return PyErr_Format(PyExc_ValueError, "no signal has the number %ld", number);
        if (install((int)number, count, &earlier[number]) < 0)
            return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *at_alarm(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int status;
    const char *text;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "iy#", &status, &text, &length) || store(&alarm_words, status, text, length) < 0)
        return NULL;
    if (install(SIGALRM, end, NULL) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"on_second", on_second, METH_VARARGS, "on_second(numbers, status, text): a second of these signals ends the process"},
    {"at_alarm", at_alarm, METH_VARARGS, "at_alarm(status, text): SIGALRM ends the process"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_forced_exit", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__forced_exit(void)
{
    return PyModule_Create(&module);
}
