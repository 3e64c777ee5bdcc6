/* Answers large reads of a volume that is an unfiltered file, without its bytes in this process' memory. */

#ifndef SLUICE_FILE_PAGES_H
#define SLUICE_FILE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Smaller reads cost less with a copy. */
#define FILE_PAGES_LEAST (64 << 10)

/* Opens the file at PATH.  -1 and a message when that fails. */
int file_pages_open (const char *path);

/* Whether there is a file, and it has given its pages so far. */
bool file_pages_are_there (void);

/* Answers the request UNIQUE at DEVICE with COUNT bytes of the file.  False when that was not possible, and no answer is
 * sent.
 */
bool file_pages_answer (int device, uint64_t unique, uint64_t offset, size_t count);

#endif /* SLUICE_FILE_PAGES_H */
