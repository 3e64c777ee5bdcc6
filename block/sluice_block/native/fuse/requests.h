/* What the kernel asks of the file that shows a volume, and what it is answered. */

#ifndef SLUICE_REQUESTS_H
#define SLUICE_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nbdkit-filter.h>

#include "protocol.h"

/* Of a thread: a request, or the data of its answer. */
#define REQUEST_BUFFER (PROTOCOL_DATA + 4096)

/* The layer below, and what it can. */
struct volume {
  nbdkit_next *next;
  uint64_t size;
  bool writable, flushes, zeroes;
  bool direct; /* large reads are answered from the file itself */
};

/* Finds out what the layer below NEXT can.  -1 and a message when it does not say. */
int volume_prepare (struct volume *volume, nbdkit_next *next);

/* Does the request of LENGTH bytes in BUFFER, and answers it at DEVICE. */
void request_serve (const struct volume *volume, int device, void *buffer, size_t length);

#endif /* SLUICE_REQUESTS_H */
