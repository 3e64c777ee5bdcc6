/* The choice of a request's connection, and the handling of a lost one.
 *
 * A request takes the unused connection that was used last, or makes another.  A server that does not declare that several
 * connections are consistent (NBD_FLAG_CAN_MULTI_CONN) has one, and requests wait for it.
 *
 * Order.  A connection is lost when the server has closed it, which it does when it has done, or will not do, the requests on
 * it; else it is ended here and its end is awaited (connection_end).  So when a request is repeated over another connection,
 * none of its earlier attempts is in progress, and none of them can undo later requests.  Sockets of this process that are
 * open when it is killed are ended by the keeper in the same way, before their requests are repeated.
 *
 * An unreachable server is waited for.  A server that returns with a smaller export is not the same volume, and is waited
 * for, too.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "../clock.h"
#include "../fuse/link.h"
#include "pool.h"

/* More than the number of concurrent requests. */
#define CONNECTIONS 128
/* Seconds after which a request to an unreachable server fails. */
#define PATIENCE 600
/* Between two attempts, nanoseconds. */
#define PAUSE 10000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static const struct pool_server *server;
static struct export known;
static int keeper = -1;
static int unused[CONNECTIONS];
static unsigned unused_count, used_count, most = 1;

static void
rest (void)
{
  const struct timespec pause = { .tv_nsec = PAUSE };

  nanosleep (&pause, NULL); /* not nbdkit's, which ends with it: a request must not fail then */
}

static bool
is_the_same (const struct export *found)
{
  return found->size >= known.size && (known.flags & ~found->flags) == 0;
}

/* Makes a connection, and passes it to the keeper; -1 and a message in REASON, of ROOM bytes. */
static int
make_connection (struct export *found, char *reason, unsigned room)
{
  const int fd = connection_open (server->path, server->name, found, reason, room);

  if (fd == -1)
    return -1;
  if (!is_the_same (found))
    snprintf (reason, room, "it has %" PRIu64 " bytes and flags 0x%x, expected %" PRIu64 " and 0x%x", found->size,
              found->flags, known.size, known.flags);
  else if (link_send (keeper, LINK_SOCKET, fd) == -1)
    snprintf (reason, room, "no keeper at `%s`: %s", server->keeper, strerror (errno));
  else
    return fd;
  close (fd);
  return -1;
}

static void
give_back (int fd)
{
  pthread_mutex_lock (&lock);
  used_count--;
  if (fd != -1)
    unused[unused_count++] = fd;
  pthread_cond_signal (&freed);
  pthread_mutex_unlock (&lock);
}

/* Returns a connection for one request; -1 when none is free at this moment. */
static int
take (void)
{
  struct export found;
  char reason[512];
  int fd = -1;

  pthread_mutex_lock (&lock);
  while (unused_count == 0 && used_count >= most)
    pthread_cond_wait (&freed, &lock);
  used_count++;
  if (unused_count > 0)
    fd = unused[--unused_count];
  pthread_mutex_unlock (&lock);
  if (fd == -1)
    fd = make_connection (&found, reason, sizeof reason);
  if (fd == -1)
    give_back (-1);
  return fd;
}

int
pool_open (const struct pool_server *wanted, struct export *export)
{
  char reason[512];
  int fd;

  server = wanted;
  keeper = link_open (server->keeper);
  if (keeper == -1) {
    nbdkit_error ("no keeper at `%s`: %m", server->keeper);
    return -1;
  }
  fd = make_connection (&known, reason, sizeof reason);
  if (fd == -1) {
    nbdkit_error ("the NBD server at `%s` cannot be used: %s", server->path, reason);
    close (keeper);
    return -1;
  }
  most = known.flags & SERVER_MULTI ? CONNECTIONS : 1;
  used_count++;
  give_back (fd);
  *export = known;
  return 0;
}

int
pool_ask (const struct request *request, int *error)
{
  const uint64_t until = clock_ns () + PATIENCE * UINT64_C (1000000000);

  do {
    const int fd = take ();

    if (fd == -1)
      rest ();
    else if (connection_ask (fd, request, error) == ANSWERED) {
      give_back (fd);
      return *error == 0 ? 0 : -1;
    } else {
      connection_end (fd);
      give_back (-1);
    }
  } while (clock_ns () < until);
  nbdkit_error ("the NBD server at `%s` was away for %d seconds", server->path, PATIENCE);
  *error = EIO;
  return -1;
}

void
pool_close (void)
{
  while (unused_count > 0)
    close (unused[--unused_count]);
  close (keeper);
}
