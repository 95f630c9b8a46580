// All system functions of the kernels: threads, clock, memory, files, and processor features.
#ifndef RUVLLM_PLATFORM_H
#define RUVLLM_PLATFORM_H
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(_WIN32)
// POSIX names over Windows locks: a thread library would be one more file to find at load time.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef HANDLE pthread_t;
typedef SRWLOCK pthread_mutex_t;
typedef CONDITION_VARIABLE pthread_cond_t;
#define pthread_mutex_init(mutex, attributes) InitializeSRWLock(mutex)
#define pthread_mutex_destroy(mutex) ((void)(mutex))
#define pthread_mutex_lock(mutex) AcquireSRWLockExclusive(mutex)
#define pthread_mutex_unlock(mutex) ReleaseSRWLockExclusive(mutex)
#define pthread_cond_init(condition, attributes) InitializeConditionVariable(condition)
#define pthread_cond_destroy(condition) ((void)(condition))
#define pthread_cond_broadcast(condition) WakeAllConditionVariable(condition)
#define pthread_cond_wait(condition, mutex) (SleepConditionVariableSRW(condition, mutex, INFINITE, 0) == 0)
#define pthread_detach(thread) CloseHandle(thread)
#undef CLOCK_REALTIME
#undef CLOCK_MONOTONIC
enum { CLOCK_REALTIME, CLOCK_MONOTONIC }; // one clock for both: only differences are used
#define clock_gettime platform_clock
#define pthread_cond_timedwait platform_wait_until
#define pthread_create platform_start_thread
#define pthread_join platform_join_thread
int platform_clock(int clock, struct timespec *now);
int platform_wait_until(pthread_cond_t *, pthread_mutex_t *, const struct timespec *end);
int platform_start_thread(pthread_t *, const void *attributes, void *(*start)(void *), void *argument);
int platform_join_thread(pthread_t, void **result);
#else
#include <pthread.h>
#endif

void *allocate_aligned(size_t alignment, size_t bytes);
void free_aligned(void *);

// Zeroed memory in large pages if available, committed on first touch; NULL on failure.
void *reserve_memory(size_t bytes);
void release_memory(void *, size_t bytes);
// Replaces pages by zeros. Returns whether it succeeded.
int clear_pages(uint8_t *, size_t bytes);
// Maps whole pages of a file over memory; writes stay private to this process. Returns whether it succeeded.
int map_file_pages(uint8_t *, size_t bytes, int file, uint64_t file_offset);
// Maps memory before it is touched.
void populate_pages(uint8_t *, size_t bytes);
// Returns whether all bytes were read.
int read_file_at(int file, uint8_t *target, size_t bytes, uint64_t offset);

typedef struct {
  const char *name;
  int has;
} Feature;
enum { MAX_FEATURES = 4 };
// The features of processor and system that builds may need (../../../platform/node/kernels/native-addon.ts).
int find_features(Feature out[MAX_FEATURES]);

#endif
