/* One connection to an NBD server on a unix socket: one request at a time, and no structured replies. */

#ifndef SLUICE_CONNECTION_H
#define SLUICE_CONNECTION_H

#include <stdint.h>

/* Flags of a request, and outcomes. */
#define ANSWERED 0
#define LOST -1

/* As of the NBD protocol (doc/proto.md). */
enum kind { KIND_READ = 0, KIND_WRITE = 1, KIND_FLUSH = 3, KIND_TRIM = 4, KIND_ZERO = 6 };

#define SERVER_READ_ONLY (1 << 1)
#define SERVER_FLUSH (1 << 2)
#define SERVER_FUA (1 << 3)
#define SERVER_ROTATIONAL (1 << 4)
#define SERVER_TRIM (1 << 5)
#define SERVER_ZERO (1 << 6)
#define SERVER_MULTI (1 << 8)
#define SERVER_FAST_ZERO (1 << 11)

#define REQUEST_FUA (1 << 0)
#define REQUEST_NO_HOLE (1 << 1)
#define REQUEST_FAST_ZERO (1 << 4)

struct export {
  uint64_t size;
  uint16_t flags;
};

struct request {
  enum kind kind;
  uint16_t flags;
  uint64_t offset;
  uint32_t count;
  const void *written; /* data of a write */
  void *read;          /* buffer for that of a read */
};

/* Connects to the server at PATH and chooses the export NAME.  The socket; -1 and a message in REASON, of ROOM bytes. */
int connection_open (const char *path, const char *name, struct export *export, char *reason, unsigned room);

/* Sends REQUEST to the server.  Returns ANSWERED, with an errno or 0 in *ERROR; LOST when the connection cannot be used any
 * more.
 */
int connection_ask (int fd, const struct request *request, int *error);

/* Ends a connection when the server has done all of its requests. */
void connection_end (int fd);

#endif /* SLUICE_CONNECTION_H */
