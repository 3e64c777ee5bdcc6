/* What this machine's <linux/fuse.h> may be too old to say, and sizes that keeper and filter agree on. */

#ifndef SLUICE_FUSE_PROTOCOL_H
#define SLUICE_FUSE_PROTOCOL_H

#include <linux/fuse.h>
#include <stdint.h>

/* Linux 6.9: the kernel sends unanswered requests again when it is told to (FUSE_NOTIFY_RESEND). */
#define PROTOCOL_HAS_RESEND (UINT64_C (1) << 39)
#define PROTOCOL_NOTIFY_RESEND 7

/* The most bytes of a read or a write, and the pages that they are. */
#define PROTOCOL_DATA (1 << 19)
#define PROTOCOL_PAGES (PROTOCOL_DATA / 4096)

/* Reads and writes that the kernel has under way at most; the others wait in its queue. */
#define PROTOCOL_UNDER_WAY 64

#endif /* SLUICE_FUSE_PROTOCOL_H */
