/* Definitions that are missing in older <linux/fuse.h>, and the sizes that keeper and filter share. */

#ifndef SLUICE_FUSE_PROTOCOL_H
#define SLUICE_FUSE_PROTOCOL_H

#include <linux/fuse.h>
#include <stdint.h>

/* Linux 6.9: the kernel repeats unanswered requests when it is ordered to (FUSE_NOTIFY_RESEND). */
#define PROTOCOL_HAS_RESEND (UINT64_C (1) << 39)
#define PROTOCOL_NOTIFY_RESEND 7

/* The greatest number of bytes of a read or a write, and of its pages. */
#define PROTOCOL_DATA (1 << 19)
#define PROTOCOL_PAGES (PROTOCOL_DATA / 4096)

/* Greatest number of reads and writes that the kernel has in progress; the others wait in its queue. */
#define PROTOCOL_UNDER_WAY 64

#endif /* SLUICE_FUSE_PROTOCOL_H */
