/* Confines the nbdkit of an uploaded filter.  It is not a filter: the dynamic linker loads it first (LD_PRELOAD), so that it
 * runs before nbdkit's main and before any code of the upload, and nbdkit needs no execve afterwards.
 *
 * SLUICE_CONFINE is `<descriptor> <bytes>`: the listening socket, which is passed to nbdkit in systemd's way (as descriptor
 * 3, sd_listen_fds(3)), and the limit of the address space.  If the confinement fails, the process ends.
 *
 * System calls are an allow-list; other calls fail with EPERM.  Intentionally missing: execve, processes (threads are
 * permitted), new sockets, files for writing, limits, tracing, mounts, keys, io_uring, bpf.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system calls of this machine are not known"
#endif

/* The first descriptor of sd_listen_fds(3). */
#define LISTENING 3
#define STACK (1 << 20)
#define DESCRIPTORS 256
#define THREADS 64
/* Greatest size of the log that it inherits. */
#define LARGEST_FILE (1 << 20)

/* The most frequent calls first: the program is evaluated from the top. */
static const int allowed[] = {
  SYS_recvfrom, SYS_sendto, SYS_futex, SYS_recvmsg, SYS_sendmsg, SYS_read, SYS_write, SYS_ppoll, SYS_readv, SYS_writev,
  SYS_close, SYS_mmap, SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise, SYS_mprotect, SYS_clock_gettime, SYS_gettimeofday,
  SYS_accept, SYS_accept4, SYS_getsockopt, SYS_setsockopt, SYS_getsockname, SYS_getpeername, SYS_shutdown, SYS_pipe2,
  SYS_eventfd2, SYS_dup, SYS_dup3, SYS_fcntl, SYS_lseek, SYS_pread64, SYS_openat, SYS_newfstatat, SYS_fstat, SYS_statx,
  SYS_readlinkat, SYS_faccessat, SYS_faccessat2, SYS_getdents64, SYS_getcwd, SYS_getrandom, SYS_getpid, SYS_gettid, SYS_getppid,
  SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_uname, SYS_sysinfo, SYS_sched_yield, SYS_sched_getaffinity,
  SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_getres, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
  SYS_tgkill, SYS_restart_syscall, SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_getrusage, SYS_exit, SYS_exit_group,
#ifdef __x86_64__
  SYS_poll, SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_dup2, SYS_pipe, SYS_select, SYS_time, SYS_arch_prctl,
#endif
};

#define ALLOWED (sizeof allowed / sizeof allowed[0])
#define ANSWER(verdict) BPF_STMT (BPF_RET | BPF_K, (verdict))
#define LOAD(field) BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, field))
#define DENY(number) ANSWER (SECCOMP_RET_ERRNO | (number))

static void
require (int fine, const char *what)
{
  if (fine)
    return;
  fprintf (stderr, "confine: %s: %s\n", what, strerror (errno));
  _exit (EXIT_FAILURE);
}

static void
limit (int what, rlim_t value)
{
  const struct rlimit both = { value, value };

  require (setrlimit (what, &both) == 0, "a limit is not set");
}

static void
forbid_calls (void)
{
  static struct sock_filter program[2 * ALLOWED + 20];
  struct sock_fprog whole = { 0, program };
  size_t n = 0;

#define ADD(...) program[n++] = (struct sock_filter) __VA_ARGS__
  ADD (LOAD (arch));
  ADD (BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
  ADD (ANSWER (SECCOMP_RET_KILL_PROCESS));
  ADD (LOAD (nr));
#ifdef __x86_64__
  ADD (BPF_JUMP (BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1)); /* the x32 ABI */
  ADD (ANSWER (SECCOMP_RET_KILL_PROCESS));
#endif
  for (size_t i = 0; i < ALLOWED; i++) {
    ADD (BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1));
    ADD (ANSWER (SECCOMP_RET_ALLOW));
  }
  /* the C library falls back to clone, whose flags can be checked */
  ADD (BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
  ADD (DENY (ENOSYS));
  ADD (BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
  ADD (LOAD (args[0]));
  ADD (BPF_JUMP (BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
  ADD (ANSWER (SECCOMP_RET_ALLOW));
  ADD (DENY (EPERM));
  /* in the foreground nbdkit requests SIGTERM at its parent's end: it gets success, and bubblewrap's setting stays */
  ADD (BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3));
  ADD (LOAD (args[0]));
  ADD (BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 0, 1));
  ADD (DENY (0));
  ADD (DENY (EPERM));
#undef ADD
  whole.len = n;
  require (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "new privileges are not forbidden");
  require (prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0, "system calls are not forbidden");
}

static void __attribute__ ((constructor))
confine (void)
{
  const char *wanted = getenv ("SLUICE_CONFINE");
  pthread_attr_t threads;
  char number[16];
  int listening;
  unsigned long long space;

  errno = EINVAL;
  require (wanted != NULL && sscanf (wanted, "%d %llu", &listening, &space) == 2, "SLUICE_CONFINE");
  require (dup2 (listening, LISTENING) == LISTENING && close (listening) == 0, "the listening socket");
  snprintf (number, sizeof number, "%ld", (long) getpid ());
  require (setenv ("LISTEN_PID", number, 1) == 0 && setenv ("LISTEN_FDS", "1", 1) == 0, "the environment");
  require (unsetenv ("SLUICE_CONFINE") == 0 && unsetenv ("LD_PRELOAD") == 0, "the environment");
  errno = pthread_attr_init (&threads);
  require (errno == 0 && (errno = pthread_attr_setstacksize (&threads, STACK)) == 0, "the stack of threads");
  errno = pthread_setattr_default_np (&threads);
  require (errno == 0, "the stack of threads");
  signal (SIGXFSZ, SIG_IGN);
  limit (RLIMIT_CORE, 0);
  limit (RLIMIT_FSIZE, LARGEST_FILE);
  limit (RLIMIT_MEMLOCK, 0);
  limit (RLIMIT_NOFILE, DESCRIPTORS);
  limit (RLIMIT_NPROC, THREADS);
  limit (RLIMIT_AS, space);
  forbid_calls ();
}
