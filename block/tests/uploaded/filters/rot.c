/* Stores each byte plus `rot-by` (13 by default): an example of a third-party filter. */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nbdkit-filter.h>

/* Added by another revision. */
#ifndef EXTRA
#define EXTRA 0
#endif

static unsigned by = 13;

static int
rot_config (nbdkit_next_config *next, nbdkit_backend *nxdata, const char *name, const char *value)
{
  if (strcmp (name, "rot-by") != 0)
    return next (nxdata, name, value);
  return nbdkit_parse_unsigned (name, value, &by);
}

static int
rot_pread (nbdkit_next *next, void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  uint8_t *bytes = buf;

  if (next->pread (next, buf, count, offset, flags, err) == -1)
    return -1;
  for (uint32_t i = 0; i < count; i++)
    bytes[i] -= by + EXTRA;
  return 0;
}

static int
rot_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  const uint8_t *bytes = buf;
  uint8_t *changed = malloc (count);
  int result;

  if (changed == NULL) {
    *err = ENOMEM;
    return -1;
  }
  for (uint32_t i = 0; i < count; i++)
    changed[i] = bytes[i] + by + EXTRA;
  result = next->pwrite (next, changed, count, offset, flags, err);
  free (changed);
  return result;
}

#ifndef ZEROES_PASS
static int
zeroes_are_written (nbdkit_next *next, void *handle)
{
  return NBDKIT_ZERO_NONE;
}

static int
not_offered (nbdkit_next *next, void *handle)
{
  return 0;
}
#endif

static struct nbdkit_filter filter = {
  .name = "rot",
  .config = rot_config,
  .pread = rot_pread,
  .pwrite = rot_pwrite,
#ifndef ZEROES_PASS
  .can_zero = zeroes_are_written,
  .can_trim = not_offered,
  .can_extents = not_offered,
#endif
};

NBDKIT_REGISTER_FILTER (filter)
