/* Limits bytes and operations per second of reads, of writes, and of both together, by the limits in the page of its volume
 * (throttle-page).  limits.c has the rules.
 *
 * Flush, trim and zero are operations of the direction *write*, of no bytes.  A request for the cache is a read.  Extents are
 * not offered: a client that knows of a hole answers reads of it by itself, past every limit.  It counts only the waiting
 * time of requests.  It makes no errors: a request that waits when nbdkit is ended passes at once.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <nbdkit-filter.h>

#include "limits.h"
#include "page.h"

static struct page *page;
static bool complete;

static void
throttle_unload (void)
{
  page_close (page);
}

static int
throttle_config (nbdkit_next_config *next, nbdkit_backend *nxdata, const char *name, const char *value)
{
  if (strcmp (name, "throttle-page") != 0)
    return next (nxdata, name, value);
  if (page != NULL) {
    nbdkit_error ("throttle-page is given twice, expected once");
    return -1;
  }
  page = page_open (name, value);
  return page == NULL ? -1 : 0;
}

static int
throttle_config_complete (nbdkit_next_config_complete *next, nbdkit_backend *nxdata)
{
  if (page == NULL) {
    nbdkit_error ("the filter `sluice-throttle` needs the parameter throttle-page");
    return -1;
  }
  if (complete) {
    nbdkit_error ("the filter `sluice-throttle` stands in the chain twice, expected once");
    return -1;
  }
  complete = true;
  return next (nxdata);
}

static void
wait_for (enum direction direction, uint32_t bytes)
{
  const uint64_t ns = limits_wait (&page->limits, direction, bytes);

  if (ns > 0)
    page_add (&page->waited_ns, ns);
}

static int
throttle_pread (nbdkit_next *next, void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  wait_for (READ, count);
  return next->pread (next, buf, count, offset, flags, err);
}

/* A read whose bytes are answered by fuse/file_pages.c. */
static int
throttle_cache (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  wait_for (READ, count);
  return next->cache (next, count, offset, flags, err);
}

static int
throttle_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  wait_for (WRITE, count);
  return next->pwrite (next, buf, count, offset, flags, err);
}

static int
throttle_flush (nbdkit_next *next, void *handle, uint32_t flags, int *err)
{
  wait_for (WRITE, 0);
  return next->flush (next, flags, err);
}

static int
throttle_trim (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  wait_for (WRITE, 0);
  return next->trim (next, count, offset, flags, err);
}

static int
throttle_zero (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  wait_for (WRITE, 0);
  return next->zero (next, count, offset, flags, err);
}

static int
throttle_can_extents (nbdkit_next *next, void *handle)
{
  return 0;
}

static struct nbdkit_filter filter = {
  .name = "sluice-throttle",
  .longname = "limits of bytes and operations per second",
  .unload = throttle_unload,
  .config = throttle_config,
  .config_complete = throttle_config_complete,
  .config_help = "throttle-page=<FILE>   (required) The volume's page of shared memory.",
  .can_extents = throttle_can_extents,
  .pread = throttle_pread,
  .cache = throttle_cache,
  .pwrite = throttle_pwrite,
  .flush = throttle_flush,
  .trim = throttle_trim,
  .zero = throttle_zero,
};

NBDKIT_REGISTER_FILTER (filter)
