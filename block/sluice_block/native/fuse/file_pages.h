/* Answers to large reads of a volume that is a file as it is, without its bytes in memory of ours. */

#ifndef SLUICE_FILE_PAGES_H
#define SLUICE_FILE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads of fewer bytes cost less with a copy. */
#define FILE_PAGES_LEAST (64 << 10)

/* Opens the file at PATH.  -1 and a message when that fails. */
int file_pages_open (const char *path);

/* Whether there is one, and it has given its pages so far. */
bool file_pages_are_there (void);

/* Answers the request UNIQUE at DEVICE with COUNT bytes of the file.  False when that was not possible, and nothing is answered. */
bool file_pages_answer (int device, uint64_t unique, uint64_t offset, size_t count);

#endif /* SLUICE_FILE_PAGES_H */
