/* The common part of filters that change single bytes, at every position: reads in place, writes in a separate buffer, since
 * the caller's may be read again (a client's write that is repeated, a filter above that compares).
 */

#ifndef SLUICE_CONTENT_H
#define SLUICE_CONTENT_H

#include <errno.h>
#include <stdlib.h>

#include <nbdkit-filter.h>

/* Changes COUNT bytes of FROM into TO, which may be the same buffer. */
typedef void content_change (uint8_t *to, const uint8_t *from, size_t count);

static inline int
content_pread (nbdkit_next *next, content_change *undo, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  if (next->pread (next, buf, count, offset, flags, err) == -1)
    return -1;
  undo (buf, buf, count);
  return 0;
}

static inline int
content_pwrite (nbdkit_next *next, content_change *change, const void *buf, uint32_t count, uint64_t offset, uint32_t flags,
                int *err)
{
  int result;
  uint8_t *changed = malloc (count);

  if (changed == NULL) {
    *err = ENOMEM;
    nbdkit_error ("no memory for a write of %u bytes", (unsigned) count);
    return -1;
  }
  change (changed, buf, count);
  result = next->pwrite (next, changed, count, offset, flags, err);
  free (changed);
  return result;
}

#endif /* SLUICE_CONTENT_H */
