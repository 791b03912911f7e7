/* A wall clock that is CLOCK_SHIFT seconds ahead, for the programs that load this before libc.

   Shifted alike: what a program reads of the wall clock, the times of files that it reads or sets,
   and the deadlines on the wall clock that it waits for. Not shifted: the monotonic clock, by which
   Python, uvloop and the servers measure and wait. (libfaketime 0.9.10, which Debian 12 and Ubuntu
   24.04 have, cannot keep the two apart for Python 3.11: `time.sleep` ends with EINVAL, or a lock
   with a timeout waits for as long as the shift.)

   The kernel is called directly, without a lock or an allocation, so that signal handlers and forks
   may call all of this. Its `struct stat` is that of libc on 64-bit machines, the only ones here. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

_Static_assert(sizeof(long) == 8, "a machine of 64 bits");

/* Another name under which programs were linked with a function. */
#define ALIAS(name, other) __asm__(".globl " #name "\n.set " #name ", " #other)

static long shift;

__attribute__((constructor)) static void read_shift(void) {
    const char *seconds = getenv("CLOCK_SHIFT");
    shift = seconds ? atol(seconds) : 0;
}

/* The wall clock. */

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        now->tv_sec += shift;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *also) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (also)
        *also = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

/* A deadline on the wall clock: multiprocessing has them. */

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline) {
    int (*next)(sem_t *, const struct timespec *) = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec real = {deadline->tv_sec - shift, deadline->tv_nsec};
    return next(semaphore, &real);
}

/* Times of files, read. */

int fstatat(int folder, const char *restrict path, struct stat *restrict found, int flags) {
    int failed = (int)syscall(SYS_newfstatat, folder, path, found, flags);
    if (!failed) {
        found->st_atim.tv_sec += shift;
        found->st_mtim.tv_sec += shift;
        found->st_ctim.tv_sec += shift;
    }
    return failed;
}

int stat(const char *restrict path, struct stat *restrict found) {
    return fstatat(AT_FDCWD, path, found, 0);
}

int lstat(const char *restrict path, struct stat *restrict found) {
    return fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *found) { return fstatat(file, "", found, AT_EMPTY_PATH); }

ALIAS(fstatat64, fstatat);
ALIAS(stat64, stat);
ALIAS(lstat64, lstat);
ALIAS(fstat64, fstat);

int __fxstatat(int version, int folder, const char *path, struct stat *found, int flags) {
    (void)version;
    return fstatat(folder, path, found, flags);
}

int __xstat(int version, const char *path, struct stat *found) {
    (void)version;
    return stat(path, found);
}

int __lxstat(int version, const char *path, struct stat *found) {
    (void)version;
    return lstat(path, found);
}

int __fxstat(int version, int file, struct stat *found) {
    (void)version;
    return fstat(file, found);
}

ALIAS(__fxstatat64, __fxstatat);
ALIAS(__xstat64, __xstat);
ALIAS(__lxstat64, __lxstat);
ALIAS(__fxstat64, __fxstat);

int statx(int folder, const char *restrict path, int flags, unsigned mask,
          struct statx *restrict found) {
    int failed = (int)syscall(SYS_statx, folder, path, flags, mask, found);
    if (!failed) {
        found->stx_atime.tv_sec += shift;
        found->stx_btime.tv_sec += shift;
        found->stx_ctime.tv_sec += shift;
        found->stx_mtime.tv_sec += shift;
    }
    return failed;
}

/* Times of files, set. A null pointer stands for now, and so does one of two special values. */

static struct timespec real_time(struct timespec given) {
    if (given.tv_nsec != UTIME_NOW && given.tv_nsec != UTIME_OMIT)
        given.tv_sec -= shift;
    return given;
}

static int set_times(int folder, const char *path, const struct timespec *given, int flags) {
    if (!given)
        return (int)syscall(SYS_utimensat, folder, path, NULL, flags);
    struct timespec real[2] = {real_time(given[0]), real_time(given[1])};
    return (int)syscall(SYS_utimensat, folder, path, real, flags);
}

static int set_timevals(int folder, const char *path, const struct timeval *given, int flags) {
    if (!given)
        return set_times(folder, path, NULL, flags);
    struct timespec exact[2] = {{given[0].tv_sec, given[0].tv_usec * 1000},
                                {given[1].tv_sec, given[1].tv_usec * 1000}};
    return set_times(folder, path, exact, flags);
}

int utimensat(int folder, const char *path, const struct timespec given[2], int flags) {
    return set_times(folder, path, given, flags);
}

int futimens(int file, const struct timespec given[2]) { return set_times(file, NULL, given, 0); }

int utimes(const char *path, const struct timeval given[2]) {
    return set_timevals(AT_FDCWD, path, given, 0);
}

int lutimes(const char *path, const struct timeval given[2]) {
    return set_timevals(AT_FDCWD, path, given, AT_SYMLINK_NOFOLLOW);
}

int futimes(int file, const struct timeval given[2]) { return set_timevals(file, NULL, given, 0); }

int utime(const char *path, const struct utimbuf *given) {
    if (!given)
        return set_times(AT_FDCWD, path, NULL, 0);
    struct timespec exact[2] = {{given->actime, 0}, {given->modtime, 0}};
    return set_times(AT_FDCWD, path, exact, 0);
}
