/* Serves the block device of a volume: the first filter of its stack, whose client is the kernel and not an NBD client.
 *
 * A keeper (keeper.c, parameter fuse-keeper) has mounted a file and has its FUSE device.  When the stack below has opened its
 * source, this filter creates the file fuse-ready and requests the device, which it receives when no other process serves any
 * more.  First it lets the kernel repeat the requests that a former process received and did not answer: the kernel holds all
 * requests meanwhile, and users of the device only wait.
 *
 * Threads take requests from the device, process them and answer.  A request may wait (for a limit, for an unreachable
 * server) and occupies its thread, so there are as many threads as the kernel has reads and writes in progress; and a few for
 * flushes.  All use one context of the layers below, like the threads of one connection of nbdkit, so the layers' rules for
 * parallel requests apply; if they require one request at a time there is one thread.
 *
 * The end.  After SIGTERM `throttle` lets all requests pass.  A signal wakes threads that wait for a request, threads with a
 * request finish it, and requests that the kernel still holds go to the next process.  NBD clients are refused, since nbdkit
 * would wait for them.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "file_pages.h"
#include "link.h"
#include "requests.h"

#define THREADS (PROTOCOL_UNDER_WAY + 4)
#define WAKE SIGUSR1

struct thread {
  pthread_t id;
  void *buffer;
  atomic_bool waits; /* for a request or the device, or is about to: a signal is harmless */
};

static char *keeper, *ready, *file;
static int said = -1; /* standard error, before nbdkit went into the background */
static int device = -1;
static unsigned count = THREADS, running;
static char *buffers;
static struct thread threads[THREADS];
static struct volume volume;
static atomic_bool ending;

static int
set_path (char **path, const char *name, const char *value)
{
  if (*path != NULL) {
    nbdkit_error ("%s is given twice, expected once", name);
    return -1;
  }
  *path = nbdkit_absolute_path (value);
  return *path == NULL ? -1 : 0;
}

static int
fuse_config (nbdkit_next_config *next, nbdkit_backend *nxdata, const char *name, const char *value)
{
  if (strcmp (name, "fuse-keeper") == 0)
    return set_path (&keeper, name, value);
  if (strcmp (name, "fuse-ready") == 0)
    return set_path (&ready, name, value);
  if (strcmp (name, "fuse-file") == 0)
    return set_path (&file, name, value);
  return next (nxdata, name, value);
}

static int
fuse_config_complete (nbdkit_next_config_complete *next, nbdkit_backend *nxdata)
{
  if (keeper == NULL || ready == NULL) {
    nbdkit_error ("the filter `sluice-fuse` needs the parameters fuse-keeper and fuse-ready");
    return -1;
  }
  return next (nxdata);
}

static void
fuse_unload (void)
{
  free (keeper);
  free (ready);
  free (file);
}

static void
do_nothing (int number)
{
}

static int
fuse_get_ready (int thread_model)
{
  struct sigaction action = { .sa_handler = do_nothing }; /* without SA_RESTART */

  if (thread_model < NBDKIT_THREAD_MODEL_PARALLEL)
    count = 1;
  said = fcntl (STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  return sigaction (WAKE, &action, NULL);
}

static void
take_requests (struct thread *self)
{
  for (;;) {
    ssize_t got;

    atomic_store (&self->waits, true);
    if (atomic_load (&ending))
      return;
    got = read (device, self->buffer, REQUEST_BUFFER);
    atomic_store (&self->waits, false);
    if (got >= 0)
      request_serve (&volume, device, self->buffer, got);
    else if (errno == ENODEV) /* it was unmounted */
      return;
    else if (errno != EINTR && errno != ENOENT && errno != EAGAIN) {
      nbdkit_error ("fuse: no request can be read: %m");
      return;
    }
  }
}

static void *
run_thread (void *opaque)
{
  take_requests (opaque);
  return NULL;
}

/* The kernel copies requests into this process' memory.  If a page is missing at the moment of a SIGKILL the kernel cannot
 * allocate it, and the user of the device gets EIO and is not served by the next process.  So all pages are allocated in
 * advance.
 */
static int
make_buffers (void)
{
  const size_t size = (size_t) count * REQUEST_BUFFER;

  buffers = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffers == MAP_FAILED || madvise (buffers, size, MADV_NOHUGEPAGE) == -1 || mlock (buffers, size) == -1) {
    nbdkit_error ("fuse: no %zu bytes of locked memory: %m", size);
    return -1;
  }
  return 0;
}

static int
start_thread (void *(*run) (void *))
{
  const unsigned number = running++; /* before it runs: the first thread starts the others */
  struct thread *made = &threads[number];
  int error;

  made->buffer = buffers + (size_t) number * REQUEST_BUFFER;
  atomic_store (&made->waits, true);
  error = pthread_create (&made->id, NULL, run, made);
  if (error != 0) {
    nbdkit_error ("fuse: no thread: %s", strerror (error));
    running--;
    return -1;
  }
  return 0;
}

static int
have_sent_again (void)
{
  struct fuse_out_header header = { .len = sizeof header, .error = PROTOCOL_NOTIFY_RESEND };

  return write (device, &header, sizeof header) == sizeof header ? 0 : -1;
}

/* The first thread: receives the device, and starts the others. */
static void *
run_first (void *opaque)
{
  const int link = link_open (keeper); /* which stays open: it identifies this process for the keeper */
  int kind;

  if (link == -1 || link_send (link, LINK_DEVICE, -1) == -1) {
    nbdkit_error ("fuse: no keeper at `%s`: %m", keeper);
    return NULL;
  }
  do
    kind = link_receive (link, &device);
  while (kind == -1 && errno == EINTR && !atomic_load (&ending));
  if (device == -1)
    return NULL;
  if (have_sent_again () == -1) {
    nbdkit_error ("fuse: the kernel sends nothing again: %m");
    return NULL;
  }
  while (running < count)
    if (start_thread (run_thread) == -1)
      break; /* it also works with fewer */
  take_requests (opaque);
  return NULL;
}

static int
open_source (nbdkit_backend *backend)
{
  nbdkit_next *next = nbdkit_next_context_open (backend, 0, "", 1);

  if (next == NULL)
    return -1;
  if (next->prepare (next) == -1 || volume_prepare (&volume, next) == -1) {
    nbdkit_next_context_close (next);
    return -1;
  }
  return 0;
}

/* In the background nbdkit's messages go to the system's log.  The reason why the source cannot be opened also goes to
 * standard error.
 */
static int
fuse_after_fork (nbdkit_backend *backend)
{
  const int before = fcntl (STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  int result, fd;

  dup2 (said, STDERR_FILENO);
  openlog ("nbdkit", LOG_PID | LOG_PERROR, 0);
  result = make_buffers ();
  if (result == 0 && file != NULL)
    result = file_pages_open (file);
  if (result == 0)
    result = open_source (backend);
  if (result == -1)
    return -1;
  openlog ("nbdkit", LOG_PID, 0);
  dup2 (before, STDERR_FILENO);
  close (before);
  close (said);
  if (start_thread (run_first) == -1)
    return -1;
  fd = open (ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd == -1) {
    nbdkit_error ("fuse-ready: cannot make `%s`: %m", ready);
    return -1;
  }
  close (fd);
  return 0;
}

static void
end_thread (struct thread *thread)
{
  struct timespec until;

  do {
    if (atomic_load (&thread->waits))
      pthread_kill (thread->id, WAKE);
    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_sec++;
      until.tv_nsec -= 1000000000;
    }
  } while (pthread_timedjoin_np (thread->id, NULL, &until) == ETIMEDOUT);
}

static void
fuse_cleanup (nbdkit_backend *backend)
{
  atomic_store (&ending, true);
  for (unsigned i = 0; i < running; i++) /* the first one first, so that it starts no others */
    end_thread (&threads[i]);
  volume.next->finalize (volume.next);
  nbdkit_next_context_close (volume.next);
}

static int
fuse_preconnect (nbdkit_next_preconnect *next, nbdkit_backend *nxdata, int readonly)
{
  nbdkit_error ("this nbdkit serves a block device and no NBD clients");
  return -1;
}

static struct nbdkit_filter filter = {
  .name = "sluice-fuse",
  .longname = "a block device by FUSE",
  .unload = fuse_unload,
  .config = fuse_config,
  .config_complete = fuse_config_complete,
  .config_help = "fuse-keeper=<SOCKET>   (required) The keeper of the FUSE device.\n"
                 "fuse-ready=<FILE>      (required) Is made when the source is open.\n"
                 "fuse-file=<FILE>       The source, if no layer changes its bytes: large reads are answered from its pages.",
  .get_ready = fuse_get_ready,
  .after_fork = fuse_after_fork,
  .cleanup = fuse_cleanup,
  .preconnect = fuse_preconnect,
};

NBDKIT_REGISTER_FILTER (filter)
