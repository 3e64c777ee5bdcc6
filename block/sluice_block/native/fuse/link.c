/* Messages of one byte and a descriptor (unix(7), SCM_RIGHTS). */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "link.h"

union control {
  struct cmsghdr align;
  char bytes[CMSG_SPACE (sizeof (int))];
};

int
link_open (const char *path)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int fd;

  if (strlen (path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy (address.sun_path, path);
  fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd == -1)
    return -1;
  if (connect (fd, (struct sockaddr *) &address, sizeof address) == -1) {
    const int error = errno;

    close (fd);
    errno = error;
    return -1;
  }
  return fd;
}

int
link_send (int link, char kind, int fd)
{
  union control control;
  struct iovec text = { &kind, 1 };
  struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1 };

  if (fd != -1) {
    struct cmsghdr *header = &control.align;

    memset (&control, 0, sizeof control);
    header->cmsg_len = CMSG_LEN (sizeof fd);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    memcpy (CMSG_DATA (header), &fd, sizeof fd);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
  }
  return sendmsg (link, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int
link_receive (int link, int *fd)
{
  union control control;
  char kind = 0;
  struct iovec text = { &kind, 1 };
  struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
  const ssize_t got = recvmsg (link, &message, MSG_CMSG_CLOEXEC);
  const struct cmsghdr *header = got == -1 ? NULL : CMSG_FIRSTHDR (&message);

  *fd = -1;
  if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    memcpy (fd, CMSG_DATA (header), sizeof *fd);
  return got == 1 ? kind : got;
}
