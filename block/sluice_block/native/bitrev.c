/* Stores each byte with its bits in reverse order.  A zero stays a zero: zero, trim and extents pass. */

#include <stdint.h>

#include <nbdkit-filter.h>

#include "content.h"

static void
change (uint8_t *to, const uint8_t *from, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    uint8_t byte = from[i];

    byte = (uint8_t) ((byte & 0x0f) << 4) | (byte & 0xf0) >> 4;
    byte = (uint8_t) ((byte & 0x33) << 2) | (byte & 0xcc) >> 2;
    to[i] = (uint8_t) ((byte & 0x55) << 1) | (byte & 0xaa) >> 1;
  }
}

static int
bitrev_pread (nbdkit_next *next, void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  return content_pread (next, change, buf, count, offset, flags, err);
}

static int
bitrev_pwrite (nbdkit_next *next, void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
  return content_pwrite (next, change, buf, count, offset, flags, err);
}

static struct nbdkit_filter filter = {
  .name = "sluice-bitrev",
  .longname = "the bits of each byte reversed",
  .pread = bitrev_pread,
  .pwrite = bitrev_pwrite,
};

NBDKIT_REGISTER_FILTER (filter)
