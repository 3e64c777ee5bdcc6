/* Mounting, and the kernel's first request: INIT. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mount.h"
#include "protocol.h"

/* As of <linux/fuse.h> 7.36, which split the flags. */
static uint64_t
offered_flags (const struct fuse_init_in *init)
{
  return init->flags | (init->flags & FUSE_INIT_EXT ? (uint64_t) init->flags2 << 32 : 0);
}

static int
answer (int device, uint64_t unique, uint64_t offered)
{
  const uint64_t flags = FUSE_INIT_EXT | FUSE_ASYNC_DIO | FUSE_BIG_WRITES | FUSE_MAX_PAGES | PROTOCOL_HAS_RESEND;
  struct fuse_init_out init = {
    .major = FUSE_KERNEL_VERSION,
    .minor = FUSE_KERNEL_MINOR_VERSION,
    .flags = (uint32_t) (flags & offered),
    .flags2 = (uint32_t) ((flags & offered) >> 32),
    .max_background = PROTOCOL_UNDER_WAY,
    .congestion_threshold = PROTOCOL_UNDER_WAY,
    .max_write = PROTOCOL_DATA,
    .time_gran = 1,
    .max_pages = PROTOCOL_PAGES,
  };
  struct fuse_out_header header = { .len = sizeof header + sizeof init, .unique = unique };
  struct iovec parts[] = { { &header, sizeof header }, { &init, sizeof init } };

  if (writev (device, parts, 2) == header.len)
    return 0;
  fprintf (stderr, "the kernel does not take the answer to its FUSE_INIT: %m\n");
  return -1;
}

static int
agree (int device)
{
  static _Alignas (8) char buffer[FUSE_MIN_READ_BUFFER + PROTOCOL_DATA];
  const struct fuse_in_header *header = (const void *) buffer;
  const struct fuse_init_in *init = (const void *) (header + 1);
  ssize_t got;

  do
    got = read (device, buffer, sizeof buffer);
  while (got == -1 && errno == EINTR);
  if (got < (ssize_t) (sizeof *header + sizeof *init) || header->opcode != FUSE_INIT) {
    fprintf (stderr, "the kernel begins with no FUSE_INIT of version 7.36 or newer: %m\n");
    return -1;
  }
  if ((offered_flags (init) & PROTOCOL_HAS_RESEND) == 0) {
    fprintf (stderr, "the kernel's FUSE %" PRIu32 ".%" PRIu32 " does not send requests again, expected Linux 6.9\n",
             init->major, init->minor);
    return -1;
  }
  return answer (device, header->unique, offered_flags (init));
}

int
mount_file (const char *place)
{
  char options[96];
  const int device = open ("/dev/fuse", O_RDWR | O_CLOEXEC);

  if (device == -1) {
    fprintf (stderr, "cannot open `/dev/fuse`: %m\n");
    return -1;
  }
  snprintf (options, sizeof options, "fd=%d,rootmode=%o,user_id=0,group_id=0", device, S_IFREG | 0600);
  if (mount ("sluice", place, "fuse", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) == -1)
    fprintf (stderr, "cannot mount `%s`: %m\n", place);
  else if (agree (device) == -1)
    umount2 (place, MNT_DETACH);
  else
    return device;
  close (device);
  return -1;
}
