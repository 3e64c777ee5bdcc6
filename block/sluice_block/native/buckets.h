/* Debts that are paid at a rate: the arithmetic of limits.c, which has the rules. */

#ifndef SLUICE_BUCKETS_H
#define SLUICE_BUCKETS_H

#include <stdint.h>

#include "page.h"

/* The part of a limit that may be used ahead besides credit, and the longest sleep of a waiter. */
#define SLACK_NS UINT64_C (20000000)
/* Unused rate is made up for up to this: the storage or the processor was busy, or the client paused. */
#define CREDIT_NS UINT64_C (100000000)
#define SECOND_NS 1e9

struct bucket {
  double debt;
  double rate;      /* at the last payment; 0: no limit */
  uint64_t looked;  /* the time of the last payment */
};

/* Bytes and operations. */
struct pair {
  struct bucket bytes, ops;
};

/* Pays the debt with the rate since the last payment, and reads the present limit. */
static inline void
settle (struct bucket *bucket, page_u64 *limit, uint64_t now)
{
  const double rate = page_get (limit);
  const double paid = (rate > bucket->rate ? rate : bucket->rate) * (now - bucket->looked) / SECOND_NS;
  const double credit = rate * CREDIT_NS / SECOND_NS;

  if (rate == 0 || bucket->rate == 0)
    bucket->debt = 0;
  else if (bucket->debt - paid < -credit)
    bucket->debt = -credit;
  else
    bucket->debt -= paid;
  bucket->rate = rate;
  bucket->looked = now;
}

static inline void
owe (struct pair *pair, double bytes)
{
  pair->bytes.debt += bytes;
  pair->ops.debt += 1;
}

static inline void
lose_credit (struct pair *pair)
{
  if (pair->bytes.debt < 0)
    pair->bytes.debt = 0;
  if (pair->ops.debt < 0)
    pair->ops.debt = 0;
}

/* Nanoseconds until a request that has added COST may pass. */
static inline uint64_t
bucket_wait (const struct bucket *bucket, double cost)
{
  const double slack = bucket->rate * SLACK_NS / SECOND_NS;
  const double excess = bucket->debt - (cost < slack ? cost : slack);

  /* less than the clock's unit counts as 0 */
  if (bucket->rate == 0 || excess * SECOND_NS < bucket->rate)
    return 0;
  return excess < slack ? (uint64_t) (excess / bucket->rate * SECOND_NS) + 1 : SLACK_NS;
}

static inline uint64_t
pair_wait (const struct pair *pair, double bytes)
{
  const uint64_t for_bytes = bucket_wait (&pair->bytes, bytes);
  const uint64_t for_ops = bucket_wait (&pair->ops, 1);

  return for_bytes > for_ops ? for_bytes : for_ops;
}

#endif /* SLUICE_BUCKETS_H */
