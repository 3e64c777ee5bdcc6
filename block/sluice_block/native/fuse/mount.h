/* A file that FUSE shows. */

#ifndef SLUICE_MOUNT_H
#define SLUICE_MOUNT_H

/* Mounts a FUSE file system of one file over the file PLACE and agrees with the kernel on the protocol.  The device; -1 and a
 * message on standard error, and nothing is mounted, when that fails or the kernel does not send requests again.
 */
int mount_file (const char *place);

#endif /* SLUICE_MOUNT_H */
