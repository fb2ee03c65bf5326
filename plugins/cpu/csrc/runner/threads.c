/* The process's one pool of worker threads.
 *
 * A call of parallel_for is a job on its caller's stack. The caller works on it too; idle workers join jobs that have
 * ranges left and room for one more thread. A job has a share for each thread, the same part of every job, so that a
 * kernel finds in its thread's cache what the kernel before it left there; who has finished a share takes from others.
 * Workers start at the first job that wants them, and a forked child, in which they do not exist, starts its own. */
#include <stdatomic.h>
#include <stdbool.h>

#include "common/platform.h"
#include "runner/floating_point.h"
#include "runner/program.h"
#include "runner/runner.h"

/* A quarter to half a millisecond, depending on the processor: longer than most gaps between the parallel parts of a run.
 * To wake a thread that sleeps takes a virtual machine longer than many of these parts. */
enum { SPINS = 8000, MAX_WORKERS = 255, RANGES_PER_THREAD = 4, MAX_SHARES = 64 };

/* Consecutive ranges of a job, of which the last may be shorter. */
typedef struct share {
  _Alignas(64) atomic_llong next; /* where the first range begins that nobody has taken */
  int64_t end;
} share;

typedef struct job {
  struct job *next;
  tf_range *body;
  void *argument;
  int64_t step;
  atomic_int helpers; /* workers inside; changed under the lock */
  int room;           /* workers that may still join; under the lock */
  int share_count;
  tf_context *context;
  share shares[MAX_SHARES];
} job;

static platform_lock lock = PLATFORM_LOCK;
static platform_condition work = PLATFORM_CONDITION; /* a job was added */
static platform_condition done = PLATFORM_CONDITION; /* a worker left a job */
static job *jobs;
static int workers;
static int sleepers;
static atomic_uint additions; /* jobs ever added, what idle workers watch */
static platform_once fork_handlers = PLATFORM_ONCE;
static _Thread_local bool inside; /* this thread runs a body, or is a worker */
static _Thread_local int number;  /* of this worker, from 1; 0: the thread is none */

static inline void pause_thread(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static inline bool has_ranges(share *s) { return atomic_load_explicit(&s->next, memory_order_relaxed) < s->end; }

/* Works on ranges until none is left, first on those of this thread's share. */
static void run_ranges(job *j) {
  for (int i = 0; i < j->share_count; i++) {
    share *s = &j->shares[(number + i) % j->share_count];
    while (has_ranges(s) && !tf_cancelled(j->context)) {
      int64_t begin = atomic_fetch_add_explicit(&s->next, j->step, memory_order_relaxed);
      if (begin >= s->end) break;
      int64_t left = s->end - begin;
      j->body(j->argument, begin, begin + (left < j->step ? left : j->step));
      if (!number && j->context->runtime) tf_poll(j->context->runtime);
    }
  }
}

/* A job to help with; the lock is held. */
static job *find_job(void) {
  for (job *j = jobs; j; j = j->next) {
    for (int i = 0; j->room > 0 && i < j->share_count; i++) {
      if (has_ranges(&j->shares[i])) return j;
    }
  }
  return NULL;
}

/* Waits until a job was added since `seen`; the lock is held on entry and on return. */
static void await_addition(unsigned seen) {
  platform_release(&lock);
  for (int i = 0; i < SPINS && atomic_load_explicit(&additions, memory_order_relaxed) == seen; i++) pause_thread();
  platform_acquire(&lock);
  sleepers++;
  while (atomic_load_explicit(&additions, memory_order_relaxed) == seen) platform_wait(&work, &lock);
  sleepers--;
}

PLATFORM_THREAD(worker, own_number) {
  tf_set_floating_point();
  number = (int)(intptr_t)own_number;
  inside = true;
  platform_acquire(&lock);
  for (;;) {
    unsigned seen = atomic_load_explicit(&additions, memory_order_relaxed);
    job *j = find_job();
    if (!j) {
      await_addition(seen);
      continue;
    }
    j->room--;
    atomic_fetch_add_explicit(&j->helpers, 1, memory_order_relaxed);
    platform_release(&lock);
    run_ranges(j);
    platform_acquire(&lock);
    /* The job may be gone as soon as its last helper has left. */
    if (atomic_fetch_sub_explicit(&j->helpers, 1, memory_order_release) == 1) platform_broadcast(&done);
  }
  PLATFORM_THREAD_END
}

static void before_fork(void) { platform_acquire(&lock); }
static void after_fork_in_parent(void) { platform_release(&lock); }

static void after_fork_in_child(void) {
  lock = (platform_lock)PLATFORM_LOCK;
  work = (platform_condition)PLATFORM_CONDITION;
  done = (platform_condition)PLATFORM_CONDITION;
  jobs = NULL;
  workers = 0;
  sleepers = 0;
}

static void add_fork_handlers(void) { platform_at_fork(before_fork, after_fork_in_parent, after_fork_in_child); }

/* Starts workers until there are `wanted`, or as many as the system allows; the lock is held. */
static void start_workers(int wanted) {
  if (wanted > MAX_WORKERS) wanted = MAX_WORKERS;
  if (workers < wanted) workers += platform_start_threads(worker, workers + 1, wanted - workers);
}

static void add_job(job *j) {
  platform_call_once(&fork_handlers, add_fork_handlers);
  platform_acquire(&lock);
  start_workers(j->room);
  j->next = jobs;
  jobs = j;
  atomic_fetch_add_explicit(&additions, 1, memory_order_relaxed);
  if (sleepers) platform_broadcast(&work);
  platform_release(&lock);
}

/* Takes the job off the list, so that nobody joins any more, and waits for those who are inside. */
static void finish_job(job *j) {
  platform_acquire(&lock);
  job **link = &jobs;
  while (*link != j) link = &(*link)->next;
  *link = j->next;
  if (atomic_load_explicit(&j->helpers, memory_order_acquire)) {
    platform_release(&lock);
    for (int i = 0; i < SPINS && atomic_load_explicit(&j->helpers, memory_order_acquire); i++) pause_thread();
    platform_acquire(&lock);
    while (atomic_load_explicit(&j->helpers, memory_order_acquire)) platform_wait(&done, &lock);
  }
  platform_release(&lock);
}

/* Rounds up to whole grains the length of `parts` equal ranges. */
static int64_t range_length(int64_t count, int64_t grain, int64_t parts) {
  int64_t grains = (count - 1) / grain + 1;
  return ((grains - 1) / parts + 1) * grain;
}

/* Cuts [0, count) into shares of equally many grains. */
static void share_out(job *j, int64_t count, int64_t grain, int64_t threads) {
  int64_t grains = (count - 1) / grain + 1, begin = 0;
  j->share_count = (int)(threads < MAX_SHARES ? threads : MAX_SHARES);
  for (int i = 0; i < j->share_count; i++) {
    int64_t end = (i + 1) * grains / j->share_count * grain;
    atomic_init(&j->shares[i].next, begin);
    j->shares[i].end = begin = end < count ? end : count;
  }
}

void tf_parallel_for(tf_context *context, int64_t count, int64_t grain, tf_range *body, void *argument) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  if (grain >= count) {
    body(argument, 0, count);
    return;
  }
  int64_t threads = inside || context->thread_count < 1 ? 1 : context->thread_count;
  if (threads > (count - 1) / grain + 1) threads = (count - 1) / grain + 1;
  job j;
  j.body = body;
  j.argument = argument;
  j.context = context;
  j.room = (int)threads - 1;
  atomic_init(&j.helpers, 0);
  bool outer = inside;
  inside = true;
  /* In one thread there are parts, too, so that a cancelled run stops soon. */
  j.step = range_length(count, grain, threads == 1 ? 16 : RANGES_PER_THREAD * threads);
  share_out(&j, count, grain, threads);
  if (threads == 1) {
    run_ranges(&j);
  } else {
    add_job(&j);
    run_ranges(&j);
    finish_job(&j);
  }
  inside = outer;
}

int32_t tf_worker_count(void) {
  platform_acquire(&lock);
  int32_t count = workers;
  platform_release(&lock);
  return count;
}
