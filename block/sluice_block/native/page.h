/* The page of shared memory of one volume: the interface to control and observe a stack of filters.
 *
 * A file of 4096 bytes, mapped by the konnector (stack/page.py) and by the nbdkit process of the volume.  Every field is a
 * little-endian 64-bit number at an offset that is a multiple of 8; it is read and written whole, with relaxed atomics.
 * Fields are independent: there is no lock, and no order between two of them.
 *
 * Writers:   limits and log switch   the konnector
 *            waited                  throttle
 *            pending                 pending
 *            counters                nop
 * so a page that these filters of one stack share counts nothing twice.
 */

#ifndef SLUICE_PAGE_H
#define SLUICE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the page is little-endian"
#endif

#define PAGE_SIZE_BYTES 4096
#define PAGE_MAGIC UINT64_C (0x31454741504c5653) /* "SVLPAGE1" */
#define PAGE_VERSION 1

/* Latencies fall into buckets of nanoseconds, four to each power of two from 2^10 (1 us) to 2^36 (69 s): bucket 0 is below
 * that range, the last one above it.
 */
#define HISTOGRAM_FIRST_POWER 10
#define HISTOGRAM_LAST_POWER 36
#define HISTOGRAM_BUCKETS ((HISTOGRAM_LAST_POWER - HISTOGRAM_FIRST_POWER) * 4 + 2)

/* Slots for unanswered requests; more than nbdkit processes at a time. */
#define PAGE_PENDING 64

typedef _Atomic uint64_t page_u64;

/* Per second; 0 is no limit.  `both` limits reads and writes together. */
struct page_limits {
  page_u64 read_bytes, read_ops;
  page_u64 write_bytes, write_ops;
  page_u64 both_bytes, both_ops;
};

/* The fields that every request changes are in one cache line. */
struct page_counters {
  page_u64 under_way;  /* requests that are not answered yet */
  page_u64 busy_ns;    /* total time of answered requests, waiting included */
  page_u64 reads, read_bytes;
  page_u64 writes, written_bytes;
  page_u64 flushes, trims, zeroes;
  page_u64 errors_eio, errors_enospc, errors_other;
  page_u64 read_histogram[HISTOGRAM_BUCKETS];
  page_u64 write_histogram[HISTOGRAM_BUCKETS];
};

struct page {
  page_u64 magic, version;
  _Alignas (64) struct page_limits limits;
  page_u64 log;                                /* not 0: nop logs each request */
  _Alignas (64) page_u64 waited_ns;            /* total waiting time in throttle */
  _Alignas (64) struct page_counters counters;
  _Alignas (64) page_u64 pending[PAGE_PENDING]; /* when each began, nanoseconds of CLOCK_MONOTONIC; 0: a free slot */
};

_Static_assert (sizeof (struct page) <= PAGE_SIZE_BYTES, "the page is full");
_Static_assert (ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics need no lock");

/* Maps the page in FILE, the value of PARAMETER, and checks size, magic and version.  NULL and a message when it is not a
 * page.
 */
struct page *page_open (const char *parameter, const char *file);

/* Unmaps PAGE, which may be NULL. */
void page_close (struct page *page);

static inline uint64_t
page_get (page_u64 *field)
{
  return atomic_load_explicit (field, memory_order_relaxed);
}

static inline void
page_add (page_u64 *field, uint64_t value)
{
  atomic_fetch_add_explicit (field, value, memory_order_relaxed);
}

/* Returns the bucket of a latency in nanoseconds. */
static inline unsigned
histogram_bucket (uint64_t ns)
{
  unsigned power;

  if (ns < UINT64_C (1) << HISTOGRAM_FIRST_POWER)
    return 0;
  power = 63 - __builtin_clzll (ns);
  if (power >= HISTOGRAM_LAST_POWER)
    return HISTOGRAM_BUCKETS - 1;
  return 1 + (power - HISTOGRAM_FIRST_POWER) * 4 + ((ns >> (power - 2)) & 3);
}

#endif /* SLUICE_PAGE_H */
