/* Ends the process although nothing in Python can run: the event loop is held, perhaps by C code with the GIL.
 *
 * on_second(numbers, status)   the first of these signals goes to the handler that is installed now (Python's);
 *                              a second one ends the process with the status
 * at_alarm(status)             SIGALRM ends the process with the status
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

static void (*earlier[MAX_NUMBER + 1])(int);
static volatile sig_atomic_t received;
static int second_status, alarm_status;

static void leave(const char *text, int status)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        /* nobody to tell */
    }
    _exit(status);
}

static void count(int number)
{
    if (++received > 1)
        leave("\ngossamer: ended by a second signal; 'gossamer resume' continues\n", second_status);
    if (earlier[number] != SIG_DFL && earlier[number] != SIG_IGN && earlier[number] != NULL)
        earlier[number](number);
}

static void end(int number)
{
    (void)number;
    leave("\ngossamer: the time limit is over and the event loop is held: ended at once; 'gossamer resume' continues\n",
          alarm_status);
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
    if (!PyArg_ParseTuple(arguments, "O!i", &PyTuple_Type, &numbers, &second_status))
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
    if (!PyArg_ParseTuple(arguments, "i", &alarm_status))
        return NULL;
    if (install(SIGALRM, end, NULL) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"on_second", on_second, METH_VARARGS, "on_second(numbers, status): a second of these signals ends the process"},
    {"at_alarm", at_alarm, METH_VARARGS, "at_alarm(status): SIGALRM ends the process"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_forced_exit", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__forced_exit(void)
{
    return PyModule_Create(&module);
}
