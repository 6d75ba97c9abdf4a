// SPDX-License-Identifier: Apache-2.0
//
// files_native_signals CASE FILE: reads FILE often enough to be read in place, and changes handlers and masks of
// SIGBUS and SIGSEGV. Prints what it finds: the same natively and by wherry run --files. An ordinary program.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { kRecord = 512, kReads = 3000, kHundredths = 4500 };

static char record[kRecord];
static int fd;
static void* volatile bad_pointer = (void*)16;
static sigset_t none, both, all;
static const char* name_of_file;

static void read_once(int signal) {
  (void)signal;
  if (pread(fd, record, kRecord, kRecord) != kRecord) _exit(8);
}

/// Reads that would end the process if they were made in place where a signal is blocked.
static int is_refused(void) { return pread(fd, bad_pointer, kRecord, kRecord) == -1 && errno == EFAULT ? 0 : 9; }

/// Runs in a child, whose end it prints. One that does not end is killed after ten seconds.
static void say_in_child(const char* what, int (*body)(void), const char* file) {
  const pid_t child = fork();
  if (child == 0) {
    fd = open(file, O_RDONLY);
    for (int i = 0; i < kReads; i++) read_once(0);
    _exit(body());
  }
  int status = 0;
  int waits = 0;
  const struct timespec hundredth = {0, 10000000};
  while (waitpid(child, &status, WNOHANG) == 0) {
    nanosleep(&hundredth, NULL);
    if (++waits == kHundredths) kill(child, SIGKILL);
  }
  printf("%s: %s %d\n", what, WIFSIGNALED(status) ? "signal" : "exit",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  fflush(stdout);
}

/// All is blocked, and a signal is pending whose handler reads. `wait` lets it in.
static int read_in_a_wait(int (*wait)(void)) {
  signal(SIGUSR1, read_once);
  sigprocmask(SIG_BLOCK, &all, NULL);
  raise(SIGUSR1);
  if (wait() != -1 || errno != EINTR) return 7;
  return is_refused();
}

static int wait_sigsuspend(void) { return sigsuspend(&none); }
static int wait_ppoll(void) { return ppoll(NULL, 0, NULL, &none); }
static int wait_pselect(void) { return pselect(0, NULL, NULL, NULL, NULL, &none); }
static int wait_epoll(void) {
  struct epoll_event event;
  return epoll_pwait(epoll_create1(0), &event, 1, -1, &none);
}
static int wait_syscall(void) { return (int)syscall(SYS_rt_sigsuspend, &none, (size_t)8); }

static int by_sigsuspend(void) { return read_in_a_wait(wait_sigsuspend); }
static int by_ppoll(void) { return read_in_a_wait(wait_ppoll); }
static int by_pselect(void) { return read_in_a_wait(wait_pselect); }
static int by_epoll(void) { return read_in_a_wait(wait_epoll); }
static int by_syscall(void) { return read_in_a_wait(wait_syscall); }

static int refused_in_handler = 7;
static void be_refused(int signal) {
  (void)signal;
  refused_in_handler = is_refused();
}

/// The mask of a wait blocks both, so its handler has them blocked.
static int by_a_wait_that_blocks(void) {
  signal(SIGUSR1, be_refused);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one, NULL);
  raise(SIGUSR1);
  read_once(0);
  sigsuspend(&both);
  return refused_in_handler;
}

static int wait_sigpause(void) { return sigpause(SIGUSR1); }
static int by_sigpause(void) { return read_in_a_wait(wait_sigpause); }
static int by_sighold(void) {
  sighold(SIGSEGV);
  return is_refused();
}
static int by_sigblock(void) {
  sigblock(1 << (SIGSEGV - 1));
  return is_refused();
}
static int by_sigsetmask(void) {
  sigsetmask(1 << (SIGSEGV - 1));
  return is_refused();
}
static int by_sigrelse(void) {
  sighold(SIGSEGV);
  if (is_refused() != 0) return 1;
  sigrelse(SIGSEGV);
  return is_refused();
}

static sigjmp_buf back;
static int by_siglongjmp(void) {
  sigprocmask(SIG_BLOCK, &both, NULL);
  if (sigsetjmp(back, 1) == 0) {
    sigprocmask(SIG_UNBLOCK, &both, NULL);
    read_once(0);
    siglongjmp(back, 1);
  }
  return is_refused();
}

static ucontext_t first, second;
static volatile int visits;
static int by_setcontext(void) {
  sigprocmask(SIG_BLOCK, &both, NULL);
  getcontext(&first);
  if (visits++ == 0) {
    sigprocmask(SIG_UNBLOCK, &both, NULL);
    read_once(0);
    setcontext(&first);
  }
  return is_refused();
}

static char stack[1 << 16];
static void read_unblocked(void) {
  sigprocmask(SIG_UNBLOCK, &both, NULL);
  read_once(0);
}

/// Both contexts switch twice, and the second time comes back to the same place.
static int by_swapcontext(void) {
  sigprocmask(SIG_BLOCK, &both, NULL);
  getcontext(&second);
  second.uc_stack.ss_sp = stack;
  second.uc_stack.ss_size = sizeof(stack);
  second.uc_link = &first;
  makecontext(&second, read_unblocked, 0);
  if (swapcontext(&first, &second) != 0) return 1;
  const int refused = is_refused();
  if (visits++ == 0) setcontext(&first);
  return visits == 2 ? refused : 2;
}

static void masks(const char* file) {
  say_in_child("sigsuspend", by_sigsuspend, file);
  say_in_child("ppoll", by_ppoll, file);
  say_in_child("pselect", by_pselect, file);
  say_in_child("epoll_pwait", by_epoll, file);
  say_in_child("sigpause", by_sigpause, file);
  say_in_child("syscall", by_syscall, file);
  say_in_child("a wait that blocks", by_a_wait_that_blocks, file);
  say_in_child("sighold", by_sighold, file);
  say_in_child("sigrelse", by_sigrelse, file);
  say_in_child("sigblock", by_sigblock, file);
  say_in_child("sigsetmask", by_sigsetmask, file);
  say_in_child("siglongjmp", by_siglongjmp, file);
  say_in_child("setcontext", by_setcontext, file);
  say_in_child("swapcontext", by_swapcontext, file);
}

static void set_default(int number) { signal(number, SIG_DFL); }

static int sets_a_bad_action(void) {
  signal(SIGSEGV, set_default);
  return sigaction(SIGBUS, (const struct sigaction*)bad_pointer, NULL);
}

static int asks_for_a_bad_action(void) {
  signal(SIGSEGV, set_default);
  return sigaction(SIGBUS, NULL, (struct sigaction*)bad_pointer);
}

static void leave(int signal) { _exit(signal == SIGSEGV ? 7 : 8); }
static int fault(void) { return *(volatile char*)bad_pointer; }

static int by_sigset(void) {
  if (sigset(SIGSEGV, leave) != SIG_DFL || sigset(SIGSEGV, SIG_HOLD) != leave) return 1;
  if (sigset(SIGSEGV, SIG_HOLD) != SIG_HOLD || is_refused() != 0) return 2;
  if (sigset(SIGSEGV, SIG_DFL) != SIG_HOLD || sigset(SIGSEGV, leave) != SIG_DFL) return 3;
  sigignore(SIGBUS);
  raise(SIGBUS);
  if (signal(SIGBUS, SIG_DFL) != SIG_IGN || is_refused() != 0) return 4;
  return fault();
}

static int reset(void* nothing) {
  (void)nothing;
  signal(SIGSEGV, SIG_DFL);
  return 0;
}

/// A child that runs in this memory, and has actions of its own.
static int beside_a_child_with_own_actions(void) {
  signal(SIGSEGV, leave);
  const int child = clone(reset, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
  waitpid(child, NULL, 0);
  return fault();
}

static int with_one_ignored(void) {
  signal(SIGBUS, SIG_IGN);
  return is_refused();
}

static volatile int has_place, all_sent;
static void* send_faults(void* reader) {
  while (!has_place) sched_yield();
  for (int i = 0; i < kReads; i++) {
    pthread_kill(*(pthread_t*)reader, i % 2 == 0 ? SIGSEGV : SIGBUS);
    sched_yield();
  }
  all_sent = 1;
  return NULL;
}

static void jump_back(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

/// Handlers of signals that another thread sends leave whatever they interrupt, often a read that asks for the size.
static int left_by_jumps(void) {
  static pthread_t sender, reader;
  reader = pthread_self();
  const int writer = open(name_of_file, O_RDWR);
  const off_t size = lseek(writer, 0, SEEK_END);
  signal(SIGSEGV, jump_back);
  signal(SIGBUS, jump_back);
  pthread_create(&sender, NULL, send_faults, &reader);
  sigsetjmp(back, 1);
  has_place = 1;
  while (!all_sent) {
    if (ftruncate(writer, size) != 0) return 1;
    read_once(0);
  }
  sigprocmask(SIG_BLOCK, &both, NULL);
  pthread_join(sender, NULL);
  return close(fd);
}

static void actions(const char* file) {
  name_of_file = file;
  say_in_child("left by jumps", left_by_jumps, file);
  say_in_child("sigset", by_sigset, file);
  say_in_child("clone", beside_a_child_with_own_actions, file);
  say_in_child("ignored", with_one_ignored, file);
  say_in_child("a bad action", sets_a_bad_action, file);
  say_in_child("a bad place for one", asks_for_a_bad_action, file);
}

/// Forbids a call that this program does not make.
static void forbid(unsigned call, int by_number) {
  struct sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long result = by_number ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)
                                : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
  if (result != 0) _exit(3);
}

static int fault_after_prctl(void) {
  forbid(SYS_rt_sigaction, 0);
  return fault();
}

static int fault_after_seccomp(void) {
  forbid(SYS_rt_sigaction, 1);
  return fault();
}

static void* read_on(void* nothing) {
  while (1) read_once(0);
  return nothing;
}

static int fault_beside_a_thread_that_reads(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, read_on, NULL);
  forbid(SYS_rt_sigaction, 0);
  return fault();
}

static int handler_after_seccomp(void) {
  forbid(SYS_rt_sigprocmask, 1);
  signal(SIGSEGV, leave);
  return fault();
}

static int places_after_prctl(void) {
  const int segment = shmget(IPC_PRIVATE, sizeof(stack), IPC_CREAT | 0600);
  char* const place = shmat(segment, NULL, 0);
  shmctl(segment, IPC_RMID, NULL);
  forbid(SYS_shmctl, 0);
  forbid(SYS_rt_sigprocmask, 0);
  if (shmat(segment, place, SHM_REMAP) != place) return 1;
  return mmap(place, sizeof(stack), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != place;
}

static int executed_by_path(void) {
  forbid(SYS_madvise, 0);
  execl("/proc/self/exe", "program", "executed", name_of_file, (char*)NULL);
  return 1;
}

static int executed_by_name(void) {
  forbid(SYS_madvise, 1);
  execlp("/proc/self/exe", "program", "executed", name_of_file, (char*)NULL);
  return 1;
}

static int executed_by_descriptor(void) {
  forbid(SYS_madvise, 0);
  char* const words[] = {"program", "executed", (char*)name_of_file, NULL};
  fexecve(open("/proc/self/exe", O_RDONLY), words, environ);
  return 1;
}

static int executed_by_a_vfork_child(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(executed_by_path());
  int status = 0;
  waitpid(child, &status, 0);
  return status != 0;
}

static int after_a_filter_that_fails(void) { return prctl(PR_SET_SECCOMP, 99, NULL, 0, 0) == -1 ? is_refused() : 1; }

static void filters(const char* file) {
  name_of_file = file;
  say_in_child("fault after prctl", fault_after_prctl, file);
  say_in_child("fault after seccomp", fault_after_seccomp, file);
  say_in_child("fault beside a thread", fault_beside_a_thread_that_reads, file);
  say_in_child("handler after seccomp", handler_after_seccomp, file);
  say_in_child("places after prctl", places_after_prctl, file);
  say_in_child("executed by its path", executed_by_path, file);
  say_in_child("executed by its name", executed_by_name, file);
  say_in_child("executed by its descriptor", executed_by_descriptor, file);
  say_in_child("executed by a child of vfork", executed_by_a_vfork_child, file);
  say_in_child("no filter", after_a_filter_that_fails, file);
}

static void executed(const char* file) {
  fd = open(file, O_RDONLY);
  for (int i = 0; i < kReads; i++) read_once(0);
}

int main(int words, char** word) {
  static const struct {
    const char* name;
    void (*body)(const char*);
  } cases[] = {{"masks", masks}, {"actions", actions}, {"filters", filters}, {"executed", executed}};
  sigemptyset(&none);
  sigfillset(&all);
  sigemptyset(&both);
  sigaddset(&both, SIGBUS);
  sigaddset(&both, SIGSEGV);
  for (size_t i = 0; words == 3 && i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(word[1], cases[i].name) == 0) {
      cases[i].body(word[2]);
      return 0;
    }
  }
  fprintf(stderr, "usage: files_native_signals CASE FILE\n");
  return 2;
}
