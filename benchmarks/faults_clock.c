/* Clocks of the day that are off by as many seconds as a file says; loaded before the C library (LD_PRELOAD).

   The monotonic clock does not jump, as it does not when a machine's clock is set. Who waits on a condition until some
   time of this clock waits as long as if it were right: the kernel knows the right one only. The file, named by
   FAULTS_CLOCK, is eight bytes, a signed number, mapped into every process: it takes effect at once. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NEAR_S (30 * 24 * 3600)

static int (*real)(clockid_t, struct timespec *);
static volatile int64_t *ahead;
static int64_t none = 0;

__attribute__((constructor)) static void begin(void) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    ahead = &none;
    const char *name = getenv("FAULTS_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) ahead = (volatile int64_t *)mapped;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real) begin();
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (into) *into = exact.tv_sec;
    return exact.tv_sec;
}

/* A deadline far from any time of day is one of the monotonic clock, as Java's are. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!wait) *(void **)&wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!wait) *(void **)&wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec right = *deadline, now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t off = (int64_t)right.tv_sec - (int64_t)now.tv_sec;
    if (off > -NEAR_S && off < NEAR_S) right.tv_sec -= *ahead;
    return wait(condition, mutex, &right);
}
