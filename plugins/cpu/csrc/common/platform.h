/* What operating systems do differently: locks, threads, libraries that are opened by path, and the clock; by Windows, or
 * by POSIX. Only these functions know which it is. */
#ifndef TIMBERFRAME_CPU_PLATFORM_H
#define TIMBERFRAME_CPU_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

typedef SRWLOCK platform_lock;
typedef CONDITION_VARIABLE platform_condition;
typedef INIT_ONCE platform_once;
#define PLATFORM_LOCK SRWLOCK_INIT
#define PLATFORM_CONDITION CONDITION_VARIABLE_INIT
#define PLATFORM_ONCE INIT_ONCE_STATIC_INIT

static inline void platform_acquire(platform_lock *lock) { AcquireSRWLockExclusive(lock); }
static inline void platform_release(platform_lock *lock) { ReleaseSRWLockExclusive(lock); }
static inline void platform_broadcast(platform_condition *condition) { WakeAllConditionVariable(condition); }
static inline void platform_wait(platform_condition *condition, platform_lock *lock) {
  SleepConditionVariableSRW(condition, lock, INFINITE, 0);
}

/* Windows copies no process, so there is nothing to call. */
static inline void platform_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  (void)before, (void)in_parent, (void)in_child;
}

static inline BOOL CALLBACK platform_call(PINIT_ONCE once, PVOID function, PVOID *context) {
  (void)once, (void)context;
  ((void (*)(void))(intptr_t)function)();
  return TRUE;
}
static inline void platform_call_once(platform_once *once, void (*function)(void)) {
  InitOnceExecuteOnce(once, platform_call, (PVOID)(intptr_t)function, NULL);
}

/* The definition of a function that a thread runs, `PLATFORM_THREAD(name, argument) { ...; PLATFORM_THREAD_END }`. */
#define PLATFORM_THREAD(name, argument) static DWORD WINAPI name(LPVOID argument)
#define PLATFORM_THREAD_END return 0;
typedef LPTHREAD_START_ROUTINE platform_body;

/* Starts threads with the arguments first, first + 1... until there are `count`, or as many as the system allows; returns
 * how many. Nobody waits for their end. */
static inline int platform_start_threads(platform_body body, intptr_t first, int count) {
  int started = 0;
  for (HANDLE thread; started < count; started++, CloseHandle(thread)) {
    thread = CreateThread(NULL, 0, body, (LPVOID)(first + started), 0, NULL);
    if (!thread) break;
  }
  return started;
}

/* The calling thread, as Python's `threading.get_ident` numbers it. */
static inline uint64_t platform_thread(void) { return GetCurrentThreadId(); }

/* Nanoseconds of a clock that only ever goes on. */
static inline int64_t platform_nanoseconds(void) {
  LARGE_INTEGER rate, ticks;
  QueryPerformanceFrequency(&rate);
  QueryPerformanceCounter(&ticks);
  return ticks.QuadPart / rate.QuadPart * 1000000000 + ticks.QuadPart % rate.QuadPart * 1000000000 / rate.QuadPart;
}

/* Opens a library by its path in UTF-8; NULL where that fails, as platform_find does, and then platform_error says why. */
static inline void *platform_open(const char *path) {
  WCHAR wide[32768];
  int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, (int)(sizeof wide / sizeof *wide));
  return length ? (void *)LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH) : NULL;
}
static inline void *platform_find(void *library, const char *name) {
  return (void *)(intptr_t)GetProcAddress((HMODULE)library, name);
}
static inline const char *platform_error(void) {
  static _Thread_local char text[512];
  DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
  if (!FormatMessageA(flags, NULL, GetLastError(), 0, text, sizeof text, NULL)) return "the system does not say why";
  return text;
}

#else
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

typedef pthread_mutex_t platform_lock;
typedef pthread_cond_t platform_condition;
typedef pthread_once_t platform_once;
#define PLATFORM_LOCK PTHREAD_MUTEX_INITIALIZER
#define PLATFORM_CONDITION PTHREAD_COND_INITIALIZER
#define PLATFORM_ONCE PTHREAD_ONCE_INIT

static inline void platform_acquire(platform_lock *lock) { pthread_mutex_lock(lock); }
static inline void platform_release(platform_lock *lock) { pthread_mutex_unlock(lock); }
static inline void platform_broadcast(platform_condition *condition) { pthread_cond_broadcast(condition); }
static inline void platform_wait(platform_condition *condition, platform_lock *lock) {
  pthread_cond_wait(condition, lock);
}

static inline void platform_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  pthread_atfork(before, in_parent, in_child);
}
static inline void platform_call_once(platform_once *once, void (*function)(void)) { pthread_once(once, function); }

#define PLATFORM_THREAD(name, argument) static void *name(void *argument)
#define PLATFORM_THREAD_END return NULL;
typedef void *(*platform_body)(void *);

static inline int platform_start_threads(platform_body body, intptr_t first, int count) {
  /* Signals belong to Python's main thread: new threads inherit a mask that blocks them all. */
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  int started = 0;
  for (pthread_t thread; started < count; started++) {
    if (pthread_create(&thread, &attributes, body, (void *)(first + started))) break;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return started;
}

static inline uint64_t platform_thread(void) { return (uint64_t)(uintptr_t)pthread_self(); }

static inline int64_t platform_nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void *platform_open(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static inline void *platform_find(void *library, const char *name) { return dlsym(library, name); }
static inline const char *platform_error(void) { return dlerror(); }
#endif

#endif
