/* Stores each byte XOR a constant, `xor-key` (1 to 255, default 0x55).
 *
 * Zeroes are not zeroes below: the data that the plugin would store for a zero request, or leave after a trim, reads as the
 * key.  So neither is offered (a client writes zeroes as bytes), and extents are not offered either, since a hole below is
 * not a run of zeroes above.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <nbdkit-filter.h>

#include "content.h"

static uint8_t key = 0x55;
static bool complete;

static int
xor_config (nbdkit_next_config *next, nbdkit_backend *nxdata, const char *name, const char *value)
{
  if (strcmp (name, "xor-key") != 0)
    return next (nxdata, name, value);
  if (nbdkit_parse_uint8_t (name, value, &key) == -1)
    return -1;
  if (key == 0) {
    nbdkit_error ("xor-key is `%s`, expected 1 to 255", value);
    return -1;
  }
  return 0;
}

/* One process has one key: a second `xor` in the chain would undo the first. */
static int
xor_config_complete (nbdkit_next_config_complete *next, nbdkit_backend *nxdata)
{
  if (complete) {
    nbdkit_error ("the filter `sluice-xor` stands in the chain twice, expected once");
    return -1;
  }
  complete = true;
  return next (nxdata);
}

static void
change (uint8_t *to, const uint8_t *from, size_t count)
{
  const uint8_t constant = key;

  for (size_t i = 0; i < count; i++)
    to[i] = from[i] ^ constant;
}

static int
xor_pread (nbdkit_next *next, void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  return content_pread (next, change, buf, count, offset, flags, err);
}

static int
xor_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  return content_pwrite (next, change, buf, count, offset, flags, err);
}

static int
xor_can_zero (nbdkit_next *next, void *handle)
{
  return NBDKIT_ZERO_NONE;
}

static int
not_offered (nbdkit_next *next, void *handle)
{
  return 0;
}

static struct nbdkit_filter filter = {
  .name = "sluice-xor",
  .longname = "each byte XOR a constant",
  .config = xor_config,
  .config_complete = xor_config_complete,
  .config_help = "xor-key=<N>   The constant, 1 to 255 (default 0x55).",
  .can_zero = xor_can_zero,
  .can_fast_zero = not_offered,
  .can_trim = not_offered,
  .can_extents = not_offered,
  .pread = xor_pread,
  .pwrite = xor_pwrite,
};

NBDKIT_REGISTER_FILTER (filter)
