/* Requests of FUSE 7.36 and newer to a file system that is one file: its root.
 *
 * The kernel's values are checked: lengths are compared with the received bytes, offsets with the size of the volume.  Reads and writes that a signal interrupts in a layer below are repeated (filter.c sends one).
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "file_pages.h"
#include "requests.h"

/* The greatest number of bytes of one zero request to the layer below. */
#define ZEROES (UINT64_C (1) << 30)
#define BLOCK 4096

struct request {
  const struct volume *volume;
  int device;
  uint64_t unique;
  const void *body; /* after its header */
  size_t length;
  char *buffer; /* space for the data of the answer, in the request's buffer */
};

int
volume_prepare (struct volume *volume, nbdkit_next *next)
{
  const int64_t size = next->get_size (next);
  const int writable = next->can_write (next), flushes = next->can_flush (next), zeroes = next->can_zero (next);
  const int caches = next->can_cache (next);

  /* nbdkit requires these calls, too, before requests */
  if (size == -1 || writable == -1 || flushes == -1 || zeroes == -1 || caches == -1 || next->can_trim (next) == -1
      || next->can_fua (next) == -1 || next->can_fast_zero (next) == -1 || next->can_multi_conn (next) == -1)
    return -1;
  *volume = (struct volume) {
    .next = next,
    .size = size,
    .writable = writable == 1,
    .flushes = flushes == 1,
    .direct = file_pages_are_there () && caches == NBDKIT_CACHE_NATIVE,
    .zeroes = zeroes == NBDKIT_ZERO_NATIVE, /* else zeroes are written, which the caller can do better */
  };
  return 0;
}

/* A failed answer means that the kernel has dropped the request: no process waits for it. */
static void
answer (const struct request *request, int error, const void *data, size_t length)
{
  struct fuse_out_header header = { .unique = request->unique };
  struct iovec parts[] = { { &header, sizeof header }, { (void *) data, error == 0 ? length : 0 } };

  header.error = error < 0 || error >= 512 ? -EIO : -error; /* the kernel accepts no others */
  header.len = sizeof header + parts[1].iov_len;
  if (writev (request->device, parts, 2) == -1 && errno != ENOENT && errno != ENODEV)
    nbdkit_error ("fuse: an answer is not taken: %m");
}

static bool
is_within (const struct volume *volume, uint64_t offset, uint64_t count)
{
  return offset <= volume->size && count <= volume->size - offset;
}

/* The layers in between count this read and limit it like one with bytes. */
static bool
is_read_directly (const struct request *request, uint64_t offset, uint64_t count)
{
  const struct volume *volume = request->volume;
  int error = 0;

  if (!volume->direct || count < FILE_PAGES_LEAST || !file_pages_are_there ())
    return false;
  while (volume->next->cache (volume->next, count, offset, 0, &error) == -1) {
    if (error != EINTR)
      return false;
    error = 0;
  }
  return file_pages_answer (request->device, request->unique, offset, count);
}

static void
serve_read (const struct request *request)
{
  const struct fuse_read_in *in = request->body;
  const struct volume *volume = request->volume;
  const uint64_t offset = in->offset;
  uint64_t count = in->size;
  int error = 0;

  if (count > PROTOCOL_DATA) {
    answer (request, EINVAL, NULL, 0);
    return;
  }
  if (!is_within (volume, offset, count))
    count = offset < volume->size ? volume->size - offset : 0;
  if (is_read_directly (request, offset, count))
    return;
  while (count > 0 && volume->next->pread (volume->next, request->buffer, count, offset, 0, &error) == -1 && error == EINTR)
    error = 0;
  answer (request, error, request->buffer, count);
}

static void
serve_write (const struct request *request)
{
  const struct fuse_write_in *in = request->body;
  const struct volume *volume = request->volume;
  const struct fuse_write_out out = { .size = in->size };
  const size_t given = request->length - sizeof *in;
  int error = 0;

  if (in->size != given)
    error = EINVAL;
  else if (!volume->writable)
    error = EROFS;
  else if (!is_within (volume, in->offset, given))
    error = ENOSPC;
  else
    while (given > 0 && volume->next->pwrite (volume->next, in + 1, given, in->offset, 0, &error) == -1 && error == EINTR)
      error = 0;
  answer (request, error, &out, sizeof out);
}

static void
serve_sync (const struct request *request)
{
  const struct volume *volume = request->volume;
  int error = 0;

  while (volume->flushes && volume->next->flush (volume->next, 0, &error) == -1 && error == EINTR)
    error = 0;
  answer (request, error, NULL, 0);
}

/* A loop device sends PUNCH_HOLE both for discarded ranges and for ranges that must be zero, so it writes zeroes. */
static void
serve_allocate (const struct request *request)
{
  const struct fuse_fallocate_in *in = request->body;
  const struct volume *volume = request->volume;
  const uint32_t flags = in->mode & FALLOC_FL_PUNCH_HOLE ? NBDKIT_FLAG_MAY_TRIM : 0;
  const uint32_t mode = in->mode & ~(uint32_t) FALLOC_FL_KEEP_SIZE;
  uint64_t offset = in->offset, left = in->length;
  int error = 0;

  if (!volume->zeroes || (mode != FALLOC_FL_PUNCH_HOLE && mode != FALLOC_FL_ZERO_RANGE))
    error = EOPNOTSUPP;
  else if (!volume->writable)
    error = EROFS;
  else if (!is_within (volume, offset, left))
    error = ENOSPC;
  while (error == 0 && left > 0) {
    const uint32_t count = left < ZEROES ? left : ZEROES;

    if (volume->next->zero (volume->next, count, offset, flags, &error) == 0) {
      offset += count;
      left -= count;
    } else if (error == EINTR)
      error = 0;
  }
  answer (request, error, NULL, 0);
}

static void
serve_attributes (const struct request *request)
{
  const struct volume *volume = request->volume;
  const struct fuse_attr_out out = { /* valid for no time: the next nbdkit may have another size */
    .attr = {
      .ino = FUSE_ROOT_ID,
      .size = volume->size,
      .blocks = volume->size / 512,
      .mode = S_IFREG | 0600,
      .nlink = 1,
      .blksize = BLOCK,
    },
  };

  answer (request, 0, &out, sizeof out);
}

static void
serve_change (const struct request *request)
{
  const struct fuse_setattr_in *in = request->body;

  if ((in->valid & FATTR_SIZE) != 0 && in->size != request->volume->size)
    answer (request, EPERM, NULL, 0);
  else
    serve_attributes (request);
}

static void
serve_open (const struct request *request)
{
  const struct fuse_open_out out = { .open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES };

  answer (request, 0, &out, sizeof out);
}

static void
serve_statistics (const struct request *request)
{
  const struct fuse_statfs_out out = {
    .st = { .blocks = request->volume->size / BLOCK, .files = 1, .bsize = BLOCK, .frsize = BLOCK, .namelen = 255 },
  };

  answer (request, 0, &out, sizeof out);
}

static void
serve_nothing (const struct request *request)
{
  answer (request, 0, NULL, 0);
}

static const struct operation {
  void (*serve) (const struct request *);
  size_t least; /* bytes after the header */
} operations[] = {
  [FUSE_READ] = { serve_read, sizeof (struct fuse_read_in) },
  [FUSE_WRITE] = { serve_write, sizeof (struct fuse_write_in) },
  [FUSE_FSYNC] = { serve_sync, 0 },
  [FUSE_FALLOCATE] = { serve_allocate, sizeof (struct fuse_fallocate_in) },
  [FUSE_GETATTR] = { serve_attributes, 0 },
  [FUSE_SETATTR] = { serve_change, sizeof (struct fuse_setattr_in) },
  [FUSE_OPEN] = { serve_open, 0 },
  [FUSE_STATFS] = { serve_statistics, 0 },
  [FUSE_FLUSH] = { serve_nothing, 0 }, /* of close(2): all writes have been answered */
  [FUSE_RELEASE] = { serve_nothing, 0 },
  [FUSE_DESTROY] = { serve_nothing, 0 },
};

void
request_serve (const struct volume *volume, int device, void *buffer, size_t length)
{
  const struct fuse_in_header *header = buffer;
  const struct operation *operation;
  struct request request = { volume, device, header->unique, header + 1, length - sizeof *header, buffer };

  if (length < sizeof *header || header->len != length)
    nbdkit_error ("fuse: a request of %zu bytes is cut", length);
  else if (header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET)
    return; /* which have no answer */
  else {
    operation = header->opcode < sizeof operations / sizeof operations[0] ? &operations[header->opcode] : &operations[0];
    if (operation->serve == NULL)
      answer (&request, ENOSYS, NULL, 0); /* the kernel does not send most of these again */
    else if (header->nodeid != FUSE_ROOT_ID && header->opcode != FUSE_DESTROY)
      answer (&request, ENOENT, NULL, 0);
    else if (request.length < operation->least)
      answer (&request, EINVAL, NULL, 0);
    else
      operation->serve (&request);
  }
}
