/* Ends the process with a line if it dies of a damaged ledger.
 *
 * watch(status, text)   from now on, a fatal signal that reading the ledger causes writes the text to stderr and ends
 *                       the process with the status; any other one ends it as before
 *
 * LMDB trusts its file: in a damaged one it follows numbers of pages that do not exist (SIGBUS, SIGSEGV), or finds
 * that something cannot be and calls abort (SIGABRT). It is the ledger if LMDB is among the functions that are being
 * called, or if the address that cannot be read belongs to its file. What is called here is not all allowed in a handler
 * of signals; but the process is about to die, and an alarm ends it if that takes long.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <Python.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT 8192 /* a path has at most 4,096 bytes */
#define MAX_FRAMES 64
#define LIMIT_S 10
#define LIBRARY "/lmdb/" /* part of the path of LMDB's module */
#define FILE_NAME "/data.mdb"

static const int numbers[] = {SIGBUS, SIGSEGV, SIGABRT};
static struct sigaction earlier[3];
static int status = 1, is_installed;
static size_t text_length;
static char text[MAX_TEXT];

static int calls_library(void)
{
    void *frames[MAX_FRAMES];
    Dl_info info;
    int count = backtrace(frames, MAX_FRAMES);
    for (int i = 0; i < count; i++)
        if (dladdr(frames[i], &info) && info.dli_fname && strstr(info.dli_fname, LIBRARY))
            return 1;
    return 0;
}

/* Returns whether the line of /proc/self/maps names the ledger's file, and an address in it. */
static int is_of_file(const char *line, uintptr_t address)
{
    uintptr_t bounds[2] = {0, 0};
    for (int i = 0; i < 2; i++, line++)
        for (;; line++) {
            int digit = *line >= '0' && *line <= '9' ? *line - '0' : *line >= 'a' && *line <= 'f' ? *line - 'a' + 10 : -1;
            if (digit < 0)
                break;
            bounds[i] = bounds[i] << 4 | (uintptr_t)digit;
        }
    size_t length = strlen(line), end = strlen(FILE_NAME);
    return address >= bounds[0] && address < bounds[1] && length >= end && !strcmp(line + length - end, FILE_NAME);
}

static int is_in_file(uintptr_t address)
{
    static char line[8192], part[4096];
    size_t length = 0;
    ssize_t count;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), found = 0;
    if (maps < 0)
        return 0;
    while (!found && (count = read(maps, part, sizeof part)) > 0)
        for (ssize_t i = 0; i < count && !found; i++) {
            if (part[i] != '\n') {
                if (length < sizeof line - 1)
                    line[length++] = part[i];
                continue;
            }
            line[length] = 0;
            found = is_of_file(line, address);
            length = 0;
        }
    close(maps);
    return found;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (int i = 0; i < 3; i++) /* what goes wrong from here on ends the process as before */
        sigaction(numbers[i], &earlier[i], NULL);
    signal(SIGALRM, SIG_DFL);
    alarm(LIMIT_S);
    if (calls_library() || (number != SIGABRT && is_in_file((uintptr_t)info->si_addr))) {
        if (write(STDERR_FILENO, text, text_length) < 0) {
            /* nobody to tell */
        }
        _exit(status);
    }
    alarm(0);
    raise(number); /* takes effect on return */
}

static PyObject *watch(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *given;
    Py_ssize_t length;
    int given_status;
    if (!PyArg_ParseTuple(arguments, "iy#", &given_status, &given, &length))
        return NULL;
    if (length > MAX_TEXT)
        return PyErr_Format(PyExc_ValueError, "a text of %zd bytes; expected at most %d", length, MAX_TEXT);
    status = given_status;
    memcpy(text, given, (size_t)length);
    text_length = (size_t)length;
    if (is_installed)
        Py_RETURN_NONE;
    void *frame[1];
    backtrace(frame, 1); /* loads what it needs: that is not possible in a handler */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    for (int i = 0; i < 3; i++)
        if (sigaction(numbers[i], &action, &earlier[i]) < 0)
            return PyErr_SetFromErrno(PyExc_OSError);
    is_installed = 1;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"watch", watch, METH_VARARGS, "watch(status, text): end with a line if the process dies of a damaged ledger"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_damage", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__damage(void)
{
    return PyModule_Create(&module);
}
