/* Misbehaves at the write of a block that begins with BAD; DO selects how.  Other requests pass. */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <nbdkit-filter.h>

#define BAD "BAD!"

enum { CRASH, HANG, EAT, LEAVE };

/* The refused calls, as a bit for each attempt. */
static uint32_t
try_everything (void)
{
  const struct sockaddr_in away = { .sin_family = AF_INET, .sin_port = htons (80), .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  char *const program[] = { "/usr/bin/true", NULL };
  uint32_t refused = 0;
  int fd = socket (AF_INET, SOCK_STREAM, 0);

  refused |= (uint32_t) (open ("/etc/shadow", O_RDONLY) == -1) << 0;
  refused |= (uint32_t) (open ("/proc/self/environ", O_RDONLY) == -1) << 1;
  refused |= (uint32_t) (open ("/written", O_CREAT | O_WRONLY, 0600) == -1) << 2;
  refused |= (uint32_t) (fd == -1 || connect (fd, (const struct sockaddr *) &away, sizeof away) == -1) << 3;
  refused |= (uint32_t) (socket (AF_UNIX, SOCK_STREAM, 0) == -1) << 4;
  refused |= (uint32_t) (execv (program[0], program) == -1) << 5;
  refused |= (uint32_t) (fork () == -1) << 6;
  refused |= (uint32_t) (ptrace (PTRACE_TRACEME, 0, NULL, NULL) == -1) << 7;
  refused |= (uint32_t) (syscall (SYS_setuid, 0) == -1) << 8;
  return refused;
}

static void
misbehave (uint8_t *changed)
{
  const uint32_t refused = DO == LEAVE ? try_everything () : 0;

  memcpy (changed, &refused, sizeof refused);
  if (DO == CRASH)
    *(volatile int *) NULL = 1;
  while (DO == HANG)
    pause ();
  while (DO == EAT) {
    char *eaten = malloc (1 << 20);

    if (eaten == NULL)
      pause ();
    memset (eaten, 1, 1 << 20);
    usleep (10000); /* slowly, so that it is detected before memory runs out, when it may end in several ways */
  }
}

static int
bad_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  uint8_t *changed = malloc (count);
  int result;

  if (changed == NULL) {
    *err = ENOMEM;
    return -1;
  }
  memcpy (changed, buf, count);
  if (memcmp (buf, BAD, strlen (BAD)) == 0)
    misbehave (changed);
  result = next->pwrite (next, changed, count, offset, flags, err);
  free (changed);
  return result;
}

static struct nbdkit_filter filter = { .name = "bad", .pwrite = bad_pwrite };

NBDKIT_REGISTER_FILTER (filter)
