/* Loaded before libc (LD_PRELOAD) into a node that a test starts: system calls on the files below one folder fail, write
 * less than they were asked to, or take long; and the wall clock is another. What happens is said in a page of memory
 * that the test shares (preload.py has the same fields, in this order).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct page {
    _Atomic int64_t clock;        /* ns that the wall clock is ahead */
    _Atomic int64_t write_error;  /* errno, 0 for none */
    _Atomic int64_t short_writes; /* in 1000 */
    _Atomic int64_t flush_error;
    _Atomic int64_t flush_delay;  /* us */
    _Atomic int64_t open_error;
    _Atomic int64_t read_error;
    _Atomic int64_t often;        /* how many calls in 1000 fail */
    _Atomic int64_t met;          /* how many did, or were short */
};

static struct page *page;
static const char *below;
static __thread uint64_t draw = 0;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TORTURE_PAGE");
    below = getenv("TORTURE_BELOW");
    int fd = path && below ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *found = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED) page = found;
    close(fd);
}

static int hits(int64_t in_thousand) {
    if (!draw) draw = (uint64_t)(uintptr_t)&draw ^ 0x9e3779b97f4a7c15ULL;
    draw ^= draw << 13, draw ^= draw >> 7, draw ^= draw << 17;
    return (int64_t)(draw % 1000) < in_thousand;
}

static int ours(const char *path) { return !strncmp(path, below, strlen(below)); }

static int ours_fd(int fd) {
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return ours(path);
}

/* Whether this call fails now; errno is set. */
static int fails(int64_t error) {
    if (!error || !hits(page->often)) return 0;
    page->met++;
    errno = (int)error;
    return 1;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static size_t as_much(int fd, size_t size) {
    if (size < 2 || !page->short_writes || !hits(page->short_writes) || !ours_fd(fd)) return size;
    page->met++;
    return size / 2;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    if (page && page->write_error && ours_fd(fd) && fails(page->write_error)) return -1;
    return real(fd, data, page ? as_much(fd, size) : size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return pwrite(fd, data, size, at); }

ssize_t pread(int fd, void *data, size_t size, off_t at) {
    REAL(pread);
    if (page && page->read_error && ours_fd(fd) && fails(page->read_error)) return -1;
    return real(fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at) { return pread(fd, data, size, at); }

static int flush(int fd, int (*real)(int)) {
    if (page && (page->flush_error || page->flush_delay) && ours_fd(fd)) {
        if (page->flush_delay) usleep((useconds_t)page->flush_delay);
        if (fails(page->flush_error)) return -1;
    }
    return real(fd);
}

int fdatasync(int fd) { REAL(fdatasync); return flush(fd, real); }
int fsync(int fd) { REAL(fsync); return flush(fd, real); }

int open(const char *path, int flags, ...) {
    REAL(open);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (page && page->open_error && ours(path) && fails(page->open_error)) return -1;
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open(path, flags, mode);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    if (page && page->open_error && ours(to) && fails(page->open_error)) return -1;
    return real(from, to);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    REAL(clock_gettime);
    int found = real(clock, time);
    if (page && clock == CLOCK_REALTIME) time->tv_sec += page->clock / 1000000000;
    return found;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    REAL(gettimeofday);
    int found = real(time, zone);
    if (page) time->tv_sec += page->clock / 1000000000;
    return found;
}

time_t time(time_t *where) {
    REAL(time);
    time_t found = real(NULL) + (page ? page->clock / 1000000000 : 0);
    if (where) *where = found;
    return found;
}
