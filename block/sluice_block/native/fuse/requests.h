/* The kernel's requests to the file of a volume, and their answers. */

#ifndef SLUICE_REQUESTS_H
#define SLUICE_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nbdkit-filter.h>

#include "protocol.h"

/* Buffer of a thread: a request, or the data of its answer. */
#define REQUEST_BUFFER (PROTOCOL_DATA + 4096)

/* The layer below, and its capabilities. */
struct volume {
  nbdkit_next *next;
  uint64_t size;
  bool writable, flushes, zeroes;
  bool direct; /* large reads are answered from the file itself */
};

/* Determines the capabilities of the layer below NEXT.  Returns -1 and a message when that fails. */
int volume_prepare (struct volume *volume, nbdkit_next *next);

/* Processes the request of LENGTH bytes in BUFFER, and answers it at DEVICE. */
void request_serve (const struct volume *volume, int device, void *buffer, size_t length);

#endif /* SLUICE_REQUESTS_H */
