/* A file of FUSE. */

#ifndef SLUICE_MOUNT_H
#define SLUICE_MOUNT_H

/* Mounts a FUSE file system of one file over the file PLACE and negotiates the protocol with the kernel.  Returns the device;
 * -1 and a message on standard error, without a mount, when that fails or the kernel does not repeat requests.
 */
int mount_file (const char *place);

#endif /* SLUICE_MOUNT_H */
