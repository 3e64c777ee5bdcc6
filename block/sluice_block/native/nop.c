/* Changes nothing.  Counts requests into the page of its volume (nop-page), and logs them to a file (nop-log) while the
 * page's log switch is on.
 *
 * It stands next to the client, so that its latencies are the client's and include the time in `throttle`.  `nop` may stand
 * in a chain several times.  All of these share one code with one set of variables, and only the first counts: the others
 * pass everything on.  A request for the cache is a read; those for extents are not counted.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <nbdkit-filter.h>

#include "clock.h"
#include "page.h"
#include "request_log.h"

static struct page *page;

/* The handle of a connection shows whether this is the first nop of the chain. */
static char counting, passing;

static void
nop_unload (void)
{
  request_log_close ();
  page_close (page);
}

static int
nop_config (nbdkit_next_config *next, nbdkit_backend *nxdata, const char *name, const char *value)
{
  if (strcmp (name, "nop-page") == 0) {
    if (page != NULL) {
      nbdkit_error ("nop-page is given twice, expected once");
      return -1;
    }
    page = page_open (name, value);
    return page == NULL ? -1 : 0;
  }
  if (strcmp (name, "nop-log") == 0) {
    request_log_close ();
    return request_log_open (value);
  }
  return next (nxdata, name, value);
}

/* The handles of a chain are opened from the client's side to the plugin's, each within that of the filter above. */
static void *
nop_open (nbdkit_next_open *next, nbdkit_context *context, int readonly, const char *exportname, int is_tls)
{
  static _Thread_local bool within;
  const bool first = !within;
  int result;

  within = true;
  result = next (context, readonly, exportname);
  if (first)
    within = false;
  if (result == -1)
    return NULL;
  return first && page != NULL ? &counting : &passing;
}

static uint64_t
begin (void *handle)
{
  if (handle != &counting)
    return 0;
  page_add (&page->counters.under_way, 1);
  return clock_ns ();
}

static void
count_error (int error)
{
  switch (error) {
  case EIO: page_add (&page->counters.errors_eio, 1); break;
  case ENOSPC: page_add (&page->counters.errors_enospc, 1); break;
  default: page_add (&page->counters.errors_other, 1);
  }
}

/* Counts the common fields of all kinds; returns the request's nanoseconds. */
static uint64_t
end (const char *kind, uint64_t offset, uint32_t count, uint64_t began, int result, int error)
{
  const uint64_t ns = clock_ns () - began;

  page_add (&page->counters.busy_ns, ns);
  page_add (&page->counters.under_way, -1);
  if (result == -1)
    count_error (error);
  if (page_get (&page->log) != 0)
    request_log_write (kind, offset, count, ns, result == -1 ? error : 0);
  return ns;
}

static void
count_read (void *handle, uint64_t offset, uint32_t count, uint64_t began, int result, int error)
{
  if (handle == &counting) {
    page_add (&page->counters.reads, 1);
    page_add (&page->counters.read_bytes, result == -1 ? 0 : count);
    page_add (&page->counters.read_histogram[histogram_bucket (end ("read", offset, count, began, result, error))], 1);
  }
}

static int
nop_pread (nbdkit_next *next, void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  const uint64_t began = begin (handle);
  const int result = next->pread (next, buf, count, offset, flags, err);

  count_read (handle, offset, count, began, result, *err);
  return result;
}

/* A read whose bytes are answered by fuse/file_pages.c. */
static int
nop_cache (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  const uint64_t began = begin (handle);
  const int result = next->cache (next, count, offset, flags, err);

  count_read (handle, offset, count, began, result, *err);
  return result;
}

static int
nop_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  const uint64_t began = begin (handle);
  const int result = next->pwrite (next, buf, count, offset, flags, err);

  if (handle == &counting) {
    page_add (&page->counters.writes, 1);
    page_add (&page->counters.written_bytes, result == -1 ? 0 : count);
    page_add (&page->counters.write_histogram[histogram_bucket (end ("write", offset, count, began, result, *err))], 1);
  }
  return result;
}

static int
nop_flush (nbdkit_next *next, void *handle, uint32_t flags, int *err)
{
  const uint64_t began = begin (handle);
  const int result = next->flush (next, flags, err);

  if (handle == &counting) {
    page_add (&page->counters.flushes, 1);
    end ("flush", 0, 0, began, result, *err);
  }
  return result;
}

static int
nop_trim (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  const uint64_t began = begin (handle);
  const int result = next->trim (next, count, offset, flags, err);

  if (handle == &counting) {
    page_add (&page->counters.trims, 1);
    end ("trim", offset, count, began, result, *err);
  }
  return result;
}

static int
nop_zero (nbdkit_next *next, void *handle, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  const uint64_t began = begin (handle);
  const int result = next->zero (next, count, offset, flags, err);

  if (handle == &counting) {
    page_add (&page->counters.zeroes, 1);
    end ("zero", offset, count, began, result, *err);
  }
  return result;
}

static struct nbdkit_filter filter = {
  .name = "sluice-nop",
  .longname = "nothing but counters and a log",
  .unload = nop_unload,
  .config = nop_config,
  .config_help = "nop-page=<FILE>   The volume's page of shared memory.\n"
                 "nop-log=<FILE>    A line for each request while the page says so.",
  .open = nop_open,
  .pread = nop_pread,
  .cache = nop_cache,
  .pwrite = nop_pwrite,
  .flush = nop_flush,
  .trim = nop_trim,
  .zero = nop_zero,
};

NBDKIT_REGISTER_FILTER (filter)
