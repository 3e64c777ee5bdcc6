/* Messages between a volume's nbdkit and its keeper (keeper.c), over a unix socket that preserves message boundaries.
 *
 * Each message is one byte, with one descriptor where the table says so.
 *
 *   LINK_DEVICE          nbdkit requests the FUSE device
 *   LINK_DEVICE  + fd    the keeper's answer, once no other process serves it
 *   LINK_SOCKET  + fd    nbdkit has connected to the server of its source; no answer
 */

#ifndef SLUICE_LINK_H
#define SLUICE_LINK_H

#define LINK_DEVICE 'D'
#define LINK_SOCKET 'S'

/* A connection to the keeper that listens at PATH; -1 and errno. */
int link_open (const char *path);

/* Sends KIND, with the descriptor FD unless that is -1.  -1 and errno when it is not sent. */
int link_send (int link, char kind, int fd);

/* Receives a message, whose descriptor is in *FD, or -1.  Returns its kind; 0 when the other side has closed; -1 and errno.
 */
int link_receive (int link, int *fd);

#endif /* SLUICE_LINK_H */
