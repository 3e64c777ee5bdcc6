/* The connections to the server of a volume's source. */

#ifndef SLUICE_POOL_H
#define SLUICE_POOL_H

#include "connection.h"

/* The server: the PATH of its socket, the NAME of the export, and the socket of the volume's KEEPER. */
struct pool_server {
  const char *path, *name, *keeper;
};

/* Connects to SERVER, which stays valid.  Returns the export's properties in *EXPORT; -1 and a message when it cannot be
 * used.
 */
int pool_open (const struct pool_server *server, struct export *export);

/* Sends REQUEST to the server, again when a connection is lost.  Returns 0; -1 and an errno in *ERROR. */
int pool_ask (const struct request *request, int *error);

/* Ends all connections, which must be unused. */
void pool_close (void);

#endif /* SLUICE_POOL_H */
