/* A disk that fails: loaded into a process before the C library, it makes calls on files fail while a flag exists.

   FAILING_DISK_PART   only files whose path contains this
   FAILING_DISK_FLAG   calls fail while a file of this name exists; the first failure makes FLAG.met
   FAILING_DISK_CALLS  which calls, for example "write,fsync"
   FAILING_DISK_ERRNO  with which error number
   FAILING_DISK_FORM   "half": a write stores half of its bytes before the next one fails */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int is_failing(const char *call, const char *path) {
    const char *flag = setting("FAILING_DISK_FLAG");
    if (!*flag || !strstr(setting("FAILING_DISK_CALLS"), call) || !strstr(path, setting("FAILING_DISK_PART")))
        return 0;
    if (access(flag, F_OK) != 0)
        return 0;
    char met[4096];
    snprintf(met, sizeof met, "%s.met", flag);
    symlink(path, met);
    errno = atoi(setting("FAILING_DISK_ERRNO"));
    return 1;
}

static int is_failing_file(const char *call, int fd) {
    char link[64], path[4096];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_failing(call, path);
}

ssize_t write(int fd, const void *data, size_t size) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (is_failing_file("write", fd)) {
        if (size > 1 && strstr(setting("FAILING_DISK_FORM"), "half")) {
            setenv("FAILING_DISK_FORM", "", 1);
            return real(fd, data, size / 2);
        }
        return -1;
    }
    return real(fd, data, size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return is_failing_file("write", fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return pwrite64(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t (*real)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
    return is_failing_file("write", fd) ? -1 : real(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "pwritev");
    return is_failing_file("write", fd) ? -1 : real(fd, parts, count, at);
}

int fdatasync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    return is_failing_file("fsync", fd) ? -1 : real(fd);
}

int fsync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return is_failing_file("fsync", fd) ? -1 : real(fd);
}

int ftruncate64(int fd, off64_t length) {
    int (*real)(int, off64_t) = dlsym(RTLD_NEXT, "ftruncate64");
    return is_failing_file("truncate", fd) ? -1 : real(fd, length);
}

int ftruncate(int fd, off_t length) {
    return ftruncate64(fd, length);
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return is_failing("rename", from) ? -1 : real(from, to);
}

int open64(const char *path, int flags, ...) {
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return is_failing("open", path) ? -1 : real(path, flags, mode);
}

ssize_t read(int fd, void *data, size_t size) {
    ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
    return is_failing_file("read", fd) ? -1 : real(fd, data, size);
}
