/* The log of requests. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <nbdkit-filter.h>

#include "request_log.h"

static int log_fd = -1;
static atomic_bool failed;

int
request_log_open (const char *file)
{
  log_fd = open (file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (log_fd == -1) {
    nbdkit_error ("nop-log: cannot open `%s`: %m", file);
    return -1;
  }
  return 0;
}

void
request_log_close (void)
{
  if (log_fd != -1)
    close (log_fd);
  log_fd = -1;
}

void
request_log_write (const char *kind, uint64_t offset, uint32_t count, uint64_t ns, int error)
{
  char line[96];
  int length;

  if (log_fd == -1)
    return;
  length = snprintf (line, sizeof line, "%s %" PRIu64 " %" PRIu32 " %" PRIu64 " %d\n", kind, offset, count, ns / 1000, error);
  /* a full disk must not fail the volume's requests, nor fill nbdkit's own log */
  if (write (log_fd, line, length) != length && !atomic_exchange (&failed, true))
    nbdkit_error ("nop-log: a line could not be written: %m");
}
