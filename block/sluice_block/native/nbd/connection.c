/* The NBD protocol: newstyle handshake with NBD_OPT_GO, then requests and simple replies. */

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "connection.h"

#define GREETING UINT64_C (0x4e42444d41474943)
#define HAVE_OPTION UINT64_C (0x49484156454f5054)
#define OPTION_REPLY UINT64_C (0x0003e889045565a9)
#define OPTION_GO 7
#define REPLY_ACK 1
#define REPLY_INFO 3
#define REPLY_ERROR UINT32_C (0x80000000)
#define INFO_EXPORT 0
#define FIXED_NEWSTYLE (1 << 0)
#define NO_ZEROES (1 << 1)

#define REQUEST_MAGIC UINT32_C (0x25609513)
#define REPLY_MAGIC UINT32_C (0x67446698)
#define COOKIE UINT64_C (0x736c75696365) /* one request at a time */

struct __attribute__ ((packed)) greeting {
  uint64_t magic, option_magic;
  uint16_t flags;
};

struct __attribute__ ((packed)) choice {
  uint32_t client_flags;
  uint64_t magic;
  uint32_t option, length;
  uint32_t name_length; /* after this: the name, and a number of 16 bits, 0: further requests */
};

struct __attribute__ ((packed)) option_reply {
  uint64_t magic;
  uint32_t option, kind, length;
};

struct __attribute__ ((packed)) info {
  uint16_t kind;
  uint64_t size;
  uint16_t flags;
};

struct __attribute__ ((packed)) wire_request {
  uint32_t magic;
  uint16_t flags, kind;
  uint64_t cookie, offset;
  uint32_t count;
};

struct __attribute__ ((packed)) wire_reply {
  uint32_t magic, error;
  uint64_t cookie;
};

/* Receives the expected PARTS; returns 0 and errno when the connection has ended. */
static size_t
receive_some (int fd, struct iovec *parts, size_t number)
{
  struct msghdr message = { .msg_iov = parts, .msg_iovlen = number };
  ssize_t got;

  do
    got = recvmsg (fd, &message, 0);
  while (got == -1 && errno == EINTR);
  if (got == 0)
    errno = ECONNRESET;
  return got > 0 ? got : 0;
}

static bool
receive (int fd, void *data, size_t count)
{
  while (count > 0) {
    struct iovec part = { data, count };
    const size_t got = receive_some (fd, &part, 1);

    if (got == 0)
      return false;
    data = (char *) data + got;
    count -= got;
  }
  return true;
}

static bool
send_all (int fd, struct iovec *parts, size_t number)
{
  while (number > 0) {
    const struct msghdr message = { .msg_iov = parts, .msg_iovlen = number };
    ssize_t sent = sendmsg (fd, &message, MSG_NOSIGNAL);

    if (sent == -1 && errno == EINTR)
      continue;
    if (sent == -1)
      return false;
    while (number > 0 && (size_t) sent >= parts->iov_len) {
      sent -= parts->iov_len;
      parts++;
      number--;
    }
    if (number > 0) {
      parts->iov_base = (char *) parts->iov_base + sent;
      parts->iov_len -= sent;
    }
  }
  return true;
}

static int
socket_at (const char *path)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int fd;

  if (strlen (path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy (address.sun_path, path);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd != -1 && connect (fd, (struct sockaddr *) &address, sizeof address) == -1) {
    const int error = errno;

    close (fd);
    errno = error;
    return -1;
  }
  return fd;
}

static bool
send_choice (int fd, const char *name)
{
  const uint32_t length = strlen (name);
  uint16_t asked = 0;
  struct choice choice = {
    .client_flags = htobe32 (FIXED_NEWSTYLE | NO_ZEROES),
    .magic = htobe64 (HAVE_OPTION),
    .option = htobe32 (OPTION_GO),
    .length = htobe32 (sizeof length + length + sizeof asked),
    .name_length = htobe32 (length),
  };
  struct iovec parts[] = { { &choice, sizeof choice }, { (void *) name, length }, { &asked, sizeof asked } };

  return send_all (fd, parts, 3);
}

/* The server sends one or more properties of the export, and then that it may be used; or an error. */
static bool
receive_choice (int fd, struct export *export, char *reason, unsigned room)
{
  struct option_reply reply;
  char text[4096];
  bool known = false;

  for (;;) {
    if (!receive (fd, &reply, sizeof reply))
      return false;
    reply.kind = be32toh (reply.kind);
    reply.length = be32toh (reply.length);
    if (be64toh (reply.magic) != OPTION_REPLY || reply.length >= sizeof text) {
      errno = EPROTO;
      return false;
    }
    if (!receive (fd, text, reply.length))
      return false;
    text[reply.length] = 0;
    if (reply.kind & REPLY_ERROR) {
      snprintf (reason, room, "it refuses the export: %s", reply.length > 0 ? text : "it does not say why");
      return false;
    }
    if (reply.kind == REPLY_INFO && reply.length >= sizeof (struct info)) {
      const struct info *info = (const void *) text;

      if (be16toh (info->kind) == INFO_EXPORT) {
        *export = (struct export) { .size = be64toh (info->size), .flags = be16toh (info->flags) };
        known = true;
      }
    }
    if (reply.kind == REPLY_ACK) {
      errno = EPROTO;
      return known;
    }
  }
}

static bool
shake_hands (int fd, const char *name, struct export *export, char *reason, unsigned room)
{
  struct greeting greeting;

  if (!receive (fd, &greeting, sizeof greeting))
    return false;
  if (be64toh (greeting.magic) != GREETING || be64toh (greeting.option_magic) != HAVE_OPTION
      || (be16toh (greeting.flags) & FIXED_NEWSTYLE) == 0) {
    errno = EPROTO;
    return false;
  }
  return send_choice (fd, name) && receive_choice (fd, export, reason, room);
}

int
connection_open (const char *path, const char *name, struct export *export, char *reason, unsigned room)
{
  const int fd = socket_at (path);

  reason[0] = 0;
  if (fd != -1 && shake_hands (fd, name, export, reason, room))
    return fd;
  if (reason[0] == 0)
    snprintf (reason, room, "%s", strerror (errno));
  if (fd != -1)
    close (fd);
  return -1;
}

/* The protocol has its own error numbers, which are Linux's; other numbers count as EINVAL. */
static int
known_error (uint32_t error)
{
  switch (error) {
  case 0: case EPERM: case EIO: case ENOMEM: case EINVAL: case ENOSPC: case EOVERFLOW: case EOPNOTSUPP: return error;
  case ESHUTDOWN: return LOST; /* the server ends: the request was not done */
  default: return EINVAL;
  }
}

/* Receives the answer to REQUEST, with an errno or 0 in *ERROR.  Data of a read mostly arrive with it; after an error there
 * are none.
 */
static bool
receive_reply (int fd, const struct request *request, int *error)
{
  const size_t expected = request->kind == KIND_READ ? request->count : 0;
  struct wire_reply reply;
  struct iovec parts[] = { { &reply, sizeof reply }, { request->read, expected } };
  size_t got = receive_some (fd, parts, 2);

  if (got == 0)
    return false;
  if (got < sizeof reply) {
    if (!receive (fd, (char *) &reply + got, sizeof reply - got))
      return false;
    got = sizeof reply;
  }
  got -= sizeof reply;
  if (be32toh (reply.magic) != REPLY_MAGIC || reply.cookie != COOKIE)
    return false;
  *error = known_error (be32toh (reply.error));
  return *error != 0 || receive (fd, (char *) request->read + got, expected - got);
}

int
connection_ask (int fd, const struct request *request, int *error)
{
  struct wire_request sent = {
    .magic = htobe32 (REQUEST_MAGIC),
    .flags = htobe16 (request->flags),
    .kind = htobe16 (request->kind),
    .cookie = COOKIE,
    .offset = htobe64 (request->offset),
    .count = htobe32 (request->count),
  };
  struct iovec parts[] = { { &sent, sizeof sent }, { (void *) request->written, request->count } };

  if (!send_all (fd, parts, request->kind == KIND_WRITE ? 2 : 1) || !receive_reply (fd, request, error))
    return LOST;
  return *error == LOST ? LOST : ANSWERED;
}

void
connection_end (int fd)
{
  char scratch[4096];
  ssize_t got;

  shutdown (fd, SHUT_WR);
  do
    got = recv (fd, scratch, sizeof scratch, 0);
  while (got > 0 || (got == -1 && errno == EINTR));
  close (fd);
}
