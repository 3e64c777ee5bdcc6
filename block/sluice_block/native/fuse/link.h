/* What a volume's nbdkit says to its keeper (keeper.c), over a unix socket that keeps messages apart.
 *
 * Each message is one byte, with one descriptor where the table says so.
 *
 *   LINK_DEVICE          nbdkit asks for the FUSE device
 *   LINK_DEVICE  + fd    the keeper's answer, once nobody else serves it
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

/* Receives a message, whose descriptor is in *FD, or -1.  Its kind; 0 when the other side has gone; -1 and errno. */
int link_receive (int link, int *fd);

#endif /* SLUICE_LINK_H */
