/* Changes nothing.  Records in the page of its stack (pending-page) when each unanswered request began, so that the konnector
 * sees how long the oldest one waits.
 *
 * It stands next to the plugin: it records the time of the layers behind it, without the time in `throttle`.
 */

#include <stdlib.h>
#include <string.h>

#include <nbdkit-filter.h>

#include "clock.h"
#include "page.h"

static struct page *page;

static void
pending_unload (void)
{
  page_close (page);
}

static int
pending_config (nbdkit_next_config *next, nbdkit_backend *nxdata, const char *name, const char *value)
{
  if (strcmp (name, "pending-page") != 0)
    return next (nxdata, name, value);
  if (page != NULL) {
    nbdkit_error ("pending-page is given twice, expected once");
    return -1;
  }
  page = page_open (name, value);
  return page == NULL ? -1 : 0;
}

static int
pending_config_complete (nbdkit_next_config_complete *next, nbdkit_backend *nxdata)
{
  if (page == NULL) {
    nbdkit_error ("pending-page is missing, expected the file of a page");
    return -1;
  }
  return next (nxdata);
}

/* Returns a free slot, with the present time in it; NULL when all are in use, and the request is not recorded. */
static page_u64 *
begin (void)
{
  const uint64_t now = clock_ns ();

  for (unsigned i = 0; i < PAGE_PENDING; i++) {
    uint64_t none = 0;

    if (atomic_compare_exchange_strong_explicit (&page->pending[i], &none, now, memory_order_relaxed, memory_order_relaxed))
      return &page->pending[i];
  }
  return NULL;
}

static int
end (page_u64 *place, int result)
{
  if (place != NULL)
    atomic_store_explicit (place, 0, memory_order_relaxed);
  return result;
}

static int
pending_pread (nbdkit_next *next, void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  page_u64 *place = begin ();

  return end (place, next->pread (next, buf, count, offset, flags, err));
}

static int
pending_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  page_u64 *place = begin ();

  return end (place, next->pwrite (next, buf, count, offset, flags, err));
}

static int
pending_flush (nbdkit_next *next, void *handle, uint32_t flags, int *err)
{
  page_u64 *place = begin ();

  return end (place, next->flush (next, flags, err));
}

static int
pending_trim (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  page_u64 *place = begin ();

  return end (place, next->trim (next, count, offset, flags, err));
}

static int
pending_zero (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  page_u64 *place = begin ();

  return end (place, next->zero (next, count, offset, flags, err));
}

static int
pending_extents (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags,
                 struct nbdkit_extents *extents, int *err)
{
  page_u64 *place = begin ();

  return end (place, next->extents (next, count, offset, flags, extents, err));
}

static int
pending_cache (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  page_u64 *place = begin ();

  return end (place, next->cache (next, count, offset, flags, err));
}

static struct nbdkit_filter filter = {
  .name = "sluice-pending",
  .longname = "when requests began that are not answered",
  .unload = pending_unload,
  .config = pending_config,
  .config_complete = pending_config_complete,
  .config_help = "pending-page=<FILE>   The page that they are noted in (required).",
  .pread = pending_pread,
  .pwrite = pending_pwrite,
  .flush = pending_flush,
  .trim = pending_trim,
  .zero = pending_zero,
  .extents = pending_extents,
  .cache = pending_cache,
};

NBDKIT_REGISTER_FILTER (filter)
