/* The pages of the file go from the page cache through a pipe to the kernel's FUSE, which copies them to the reader.  So they
 * are copied once and not twice, and none of them is in this process' memory when it is killed.
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <unistd.h>

#include <nbdkit-filter.h>

#include "file_pages.h"
#include "protocol.h"

static int file = -1;
/* A file that once gave no pages is not tried again: the layers below count and limit each attempt. */
static atomic_bool works = true;
/* Buffer of a thread; as large as an answer. */
static __thread int in = -1, out = -1;

int
file_pages_open (const char *path)
{
  file = open (path, O_RDONLY | O_CLOEXEC);
  if (file == -1)
    nbdkit_error ("fuse-file: cannot open `%s`: %m", path);
  return file == -1 ? -1 : 0;
}

bool
file_pages_are_there (void)
{
  return file != -1 && atomic_load (&works);
}

static void
drop_pipe (void)
{
  close (in);
  close (out);
  in = out = -1;
}

static bool
has_pipe (void)
{
  int made[2];

  if (in != -1)
    return true;
  if (pipe2 (made, O_CLOEXEC) == -1)
    return false;
  out = made[0];
  in = made[1];
  if (fcntl (in, F_SETPIPE_SZ, PROTOCOL_DATA + 4096) >= PROTOCOL_DATA + 4096) /* a page for the header */
    return true;
  drop_pipe ();
  return false;
}

/* Fills the pipe; false when it then has other content. */
static bool
fill_pipe (const struct fuse_out_header *header, uint64_t offset, size_t count)
{
  loff_t at = offset;

  if (write (in, header, sizeof *header) != sizeof *header)
    return false;
  while (count > 0) {
    const ssize_t moved = splice (file, &at, in, NULL, count, SPLICE_F_NONBLOCK);

    if (moved <= 0)
      return false;
    count -= moved;
  }
  return true;
}

bool
file_pages_answer (int device, uint64_t unique, uint64_t offset, size_t count)
{
  const struct fuse_out_header header = { .len = sizeof header + count, .unique = unique };

  if (has_pipe ()) {
    if (fill_pipe (&header, offset, count) && splice (out, NULL, device, NULL, header.len, 0) == (ssize_t) header.len)
      return true;
    drop_pipe ();
  }
  atomic_store (&works, false);
  return false;
}
