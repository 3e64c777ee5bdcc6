/* sluice-fuse-keeper: keeps the parts of a volume's block device that must outlive its nbdkit.
 *
 *     sluice-fuse-keeper check                      whether this kernel supports it
 *     sluice-fuse-keeper PLACE SOCKET PIDFILE       mounts the file PLACE, and listens at SOCKET
 *
 * The kernel keeps a FUSE file system, and its unanswered requests, as long as a process has its device open.  The keeper has
 * it open and never reads from it.  A volume's nbdkit (filter.c) requests the device from it and serves.
 *
 * One process serves at a time.  The next one receives the device when the kernel reports that the former one has ended, all
 * of its threads and so all of its system calls: its requests are done, and the next process repeats those that it did not
 * answer.
 *
 * Writes in a socket.  If the source is an NBD server, a request of the ended nbdkit may be in that server or on its way to
 * it.  It must not be executed after its repetition, and after later requests.  So the plugin (../nbd) lets the keeper keep
 * its sockets, too.  When their process has ended, the keeper shuts down its half of each and reads until the server has
 * closed the other half, which a server does when it has done all requests of the connection.  Only then the next nbdkit
 * receives the device.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "link.h"
#include "mount.h"

/* Two nbdkit with two connections each, during a replacement, and a few that failed. */
#define CLIENTS 16
/* Sockets of an nbdkit: at most one for each of its threads, and those of the former one. */
#define SOCKETS 256
#define NOBODY -1

static int device = -1, listening = -1;

static struct client {
  int link; /* -1: a free slot */
  pid_t pid;
  bool waits; /* for the device */
} clients[CLIENTS];

static struct kept {
  int fd; /* -1: a free slot */
  pid_t pid;
  bool ending; /* its process has ended: it is read until the server has closed it */
} sockets[SOCKETS];

/* The serving process. */
static pid_t server = NOBODY;
static int server_pidfd = -1;

static void
forget_client (struct client *client)
{
  close (client->link);
  client->link = -1;
  client->waits = false;
}

static void
forget_socket (struct kept *kept)
{
  close (kept->fd);
  kept->fd = -1;
}

/* The sockets of PID are read until their server has closed them. */
static void
end_sockets (pid_t pid)
{
  for (struct kept *kept = sockets; kept < sockets + SOCKETS; kept++)
    if (kept->fd != -1 && kept->pid == pid && !kept->ending) {
      kept->ending = true;
      shutdown (kept->fd, SHUT_WR);
    }
}

static void
accept_client (void)
{
  const int link = accept4 (listening, NULL, NULL, SOCK_CLOEXEC);
  struct ucred peer;
  socklen_t length = sizeof peer;

  if (link == -1)
    return;
  if (getsockopt (link, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
    for (struct client *client = clients; client < clients + CLIENTS; client++)
      if (client->link == -1) {
        *client = (struct client) { .link = link, .pid = peer.pid };
        return;
      }
  close (link);
}

/* Keeps FD, a socket of PID; without a free slot it is closed, and its process is not served any more. */
static bool
keep_socket (int fd, pid_t pid)
{
  for (struct kept *kept = sockets; kept < sockets + SOCKETS; kept++)
    if (kept->fd == -1) {
      *kept = (struct kept) { .fd = fd, .pid = pid };
      return true;
    }
  close (fd);
  return false;
}

static void
listen_to (struct client *client)
{
  int fd;
  const int kind = link_receive (client->link, &fd);

  if (kind == LINK_DEVICE && fd == -1)
    client->waits = true;
  else if (kind == LINK_SOCKET && fd != -1 && keep_socket (fd, client->pid))
    return;
  else {
    forget_client (client);
    if (client->pid != server) /* else it may be about to end, but is not yet */
      end_sockets (client->pid);
  }
}

/* Reads the server's remaining answers to an ended process. */
static void
read_on (struct kept *kept)
{
  static char scratch[1 << 16];
  const ssize_t got = recv (kept->fd, scratch, sizeof scratch, MSG_DONTWAIT);

  if (got == 0 || (got == -1 && errno != EAGAIN && errno != EINTR))
    forget_socket (kept);
}

static void
end_server (void)
{
  for (struct client *client = clients; client < clients + CLIENTS; client++)
    if (client->link != -1 && client->pid == server)
      while (client->link != -1) { /* messages from before its end */
        int fd;
        const int kind = link_receive (client->link, &fd);

        if (kind != LINK_SOCKET || fd == -1)
          forget_client (client);
        else
          keep_socket (fd, client->pid);
      }
  end_sockets (server);
  close (server_pidfd);
  server = NOBODY;
  server_pidfd = -1;
}

static bool
is_free (void)
{
  if (server != NOBODY)
    return false;
  for (const struct kept *kept = sockets; kept < sockets + SOCKETS; kept++)
    if (kept->fd != -1 && kept->ending)
      return false;
  return true;
}

static void
give_device (void)
{
  for (struct client *client = clients; client < clients + CLIENTS; client++)
    if (client->link != -1 && client->waits) {
      client->waits = false;
      server_pidfd = syscall (SYS_pidfd_open, client->pid, 0);
      if (server_pidfd == -1 || link_send (client->link, LINK_DEVICE, device) == -1) {
        if (server_pidfd != -1)
          close (server_pidfd);
        server_pidfd = -1;
        forget_client (client);
        continue;
      }
      server = client->pid;
      return;
    }
}

/* One round: waits for an event, and handles it. */
static void
turn (void)
{
  struct pollfd polled[2 + CLIENTS + SOCKETS] = { { .fd = listening, .events = POLLIN }, { .fd = server_pidfd, .events = POLLIN } };
  struct pollfd *links = polled + 2, *ends = links + CLIENTS;

  for (unsigned i = 0; i < CLIENTS; i++)
    links[i] = (struct pollfd) { .fd = clients[i].link, .events = POLLIN };
  for (unsigned i = 0; i < SOCKETS; i++) /* one in use is not read, but its close is noticed */
    ends[i] = (struct pollfd) { .fd = sockets[i].fd, .events = sockets[i].ending ? POLLIN : 0 };
  if (poll (polled, sizeof polled / sizeof polled[0], -1) <= 0)
    return;
  for (unsigned i = 0; i < CLIENTS; i++)
    if (links[i].revents != 0 && clients[i].link == links[i].fd)
      listen_to (&clients[i]);
  for (unsigned i = 0; i < SOCKETS; i++)
    if (ends[i].revents != 0 && sockets[i].fd == ends[i].fd) {
      if (sockets[i].ending)
        read_on (&sockets[i]);
      else if (ends[i].revents & (POLLHUP | POLLERR))
        forget_socket (&sockets[i]);
    }
  if (polled[1].revents != 0)
    end_server ();
  if (polled[0].revents != 0)
    accept_client ();
  if (is_free ())
    give_device ();
}

static bool
listen_at (const char *path)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };

  if (strlen (path) >= sizeof address.sun_path) {
    fprintf (stderr, "`%s` is too long for a socket\n", path);
    return false;
  }
  strcpy (address.sun_path, path);
  unlink (path);
  listening = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (listening == -1 || bind (listening, (struct sockaddr *) &address, sizeof address) == -1
      || listen (listening, CLIENTS) == -1) {
    fprintf (stderr, "cannot listen at `%s`: %m\n", path);
    return false;
  }
  return true;
}

static bool
write_line (const char *path, long number)
{
  FILE *file = fopen (path, "we");

  if (file == NULL)
    return false;
  fprintf (file, "%ld\n", number);
  return fclose (file) == 0;
}

/* In its own mount namespace, over its own program. */
static int
check (void)
{
  char program[4096] = "";

  if (readlink ("/proc/self/exe", program, sizeof program - 1) == -1 || unshare (CLONE_NEWNS) == -1 || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1) {
    fprintf (stderr, "no mounts of its own: %m\n");
    return 1;
  }
  return mount_file (program) == -1;
}

int
main (int argc, char **argv)
{
  if (argc == 2 && strcmp (argv[1], "check") == 0)
    return check ();
  if (argc != 4) {
    fprintf (stderr, "usage: %s check | PLACE SOCKET PIDFILE\n", argv[0]);
    return 2;
  }
  for (struct client *client = clients; client < clients + CLIENTS; client++)
    client->link = -1;
  for (struct kept *kept = sockets; kept < sockets + SOCKETS; kept++)
    kept->fd = -1;
  if (!listen_at (argv[2]))
    return 1;
  device = mount_file (argv[1]);
  if (device == -1)
    return 1;
  if (chdir ("/") == -1) /* so that other file systems can be unmounted */
    return 1;
  write_line ("/proc/self/oom_score_adj", -1000); /* it uses little memory, and the volume ends with it */
  if (!write_line (argv[3], getpid ())) {
    fprintf (stderr, "cannot write `%s`: %m\n", argv[3]);
    umount2 (argv[1], MNT_DETACH);
    return 1;
  }
  for (;;)
    turn ();
}
