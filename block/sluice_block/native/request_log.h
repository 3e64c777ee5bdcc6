/* The file to which nop writes a line for each request: kind, offset, bytes, microseconds, errno (0: none). */

#ifndef SLUICE_REQUEST_LOG_H
#define SLUICE_REQUEST_LOG_H

#include <stdint.h>

/* Opens FILE for appending.  -1 and a message when that fails. */
int request_log_open (const char *file);

void request_log_close (void);

/* Writes one line atomically: lines of several threads do not mix, and no line waits to be flushed. */
void request_log_write (const char *kind, uint64_t offset, uint32_t count, uint64_t ns, int error);

#endif /* SLUICE_REQUEST_LOG_H */
