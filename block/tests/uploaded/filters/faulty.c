/* Breaks one expectation of a volume, chosen by a definition.  Other requests pass. */

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nbdkit-filter.h>

#ifdef CRASHES_AT_LOAD
static void __attribute__ ((constructor))
crash (void)
{
  abort ();
}
#endif

#ifdef STAYS
static int
faulty_after_fork (nbdkit_backend *nxdata)
{
  signal (SIGTERM, SIG_IGN);
  return 0;
}
#endif

#ifdef SHRINKS
static int64_t
faulty_get_size (nbdkit_next *next, void *handle)
{
  const int64_t size = next->get_size (next);

  return size == -1 ? -1 : size - 512;
}
#endif

#if defined FORGETS || defined KEEPS_IN_MEMORY || defined HANGS
static uint8_t memory[8 << 20];
static unsigned writes;

static int
faulty_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
#if defined HANGS
  for (;;)
    sleep (1);
#elif defined FORGETS
  if (++writes % 10 == 0)
    return 0;
  return next->pwrite (next, buf, count, offset, flags, err);
#else
  memcpy (memory + offset, buf, count);
  return 0;
#endif
}

#ifdef KEEPS_IN_MEMORY
static int
faulty_pread (nbdkit_next *next, void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  memcpy (buf, memory + offset, count);
  return 0;
}

static int
faulty_can_zero (nbdkit_next *next, void *handle)
{
  return NBDKIT_ZERO_NONE;
}

static int
not_offered (nbdkit_next *next, void *handle)
{
  return 0;
}
#endif
#endif

static struct nbdkit_filter filter = {
  .name = "faulty",
#ifdef STAYS
  .after_fork = faulty_after_fork,
#endif
#ifdef SHRINKS
  .get_size = faulty_get_size,
#endif
#if defined FORGETS || defined KEEPS_IN_MEMORY || defined HANGS
  .pwrite = faulty_pwrite,
#endif
#ifdef KEEPS_IN_MEMORY
  .pread = faulty_pread,
  .can_zero = faulty_can_zero,
  .can_trim = not_offered,
  .can_extents = not_offered,
#endif
};

NBDKIT_REGISTER_FILTER (filter)
