/* Limits of rate: which requests wait, for how long, in which order.  limits.c has the rules. */

#ifndef SLUICE_LIMITS_H
#define SLUICE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "page.h"

enum direction { READ, WRITE, DIRECTIONS };

/* Lets a request of BYTES pass when the page's limits permit it, and waits until then.
 *
 * Returns the nanoseconds for which the request waited.  It returns early, and the request may pass, when nbdkit ends or the
 * request's connection is closed.
 */
uint64_t limits_wait (struct page_limits *limits, enum direction direction, uint32_t bytes);

#endif /* SLUICE_LIMITS_H */
