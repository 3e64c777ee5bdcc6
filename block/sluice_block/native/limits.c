/* Limits of rate, in one process.
 *
 * There are six buckets: bytes and operations of reads, of writes, and of both.  A bucket has a debt, in its own unit, which
 * is paid at the limit's rate.  A request adds its cost to the debts of its direction when it becomes the first in its line
 * (reads and writes have one each), and to the debts of both when it is its turn there: among the first of each line whose
 * direction has let them pass, the one that arrived first.  It passes when the remaining debt is not more than its own cost,
 * and not more than SLACK of the rate.  So
 *
 *   - a small request passes at once without debt, and a large one when all but SLACK of its cost is paid: never more than
 *     SLACK of the rate, or one request, is ahead of the limit, except for credit;
 *   - a request of any size passes at some time, and later ones wait until it is paid;
 *   - a limit on writes does not delay reads, and the reverse;
 *   - debts below zero are credit.  It results from late wake-ups, from a storage that has all requests and does not answer
 *     for a moment, and from short pauses of a client.  It is at most CREDIT of the rate, and is lost when no request waits
 *     for longer than CREDIT.
 *
 * Debts are amounts and not times, and the page is read at each check, so a changed limit applies to waiting requests.  Only
 * the first of a line sleeps until it is due, in nbdkit_nanosleep, which returns early when nbdkit ends; the others wait to
 * be woken.  Both check again after SLACK at the latest.
 */

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#include <nbdkit-filter.h>

#include "buckets.h"
#include "clock.h"
#include "limits.h"

#define NOT_ITS_TURN UINT64_MAX

struct waiter {
  struct waiter *next;
  pthread_cond_t woken;
  uint64_t number;  /* in order of arrival */
  double bytes;
  bool owed;        /* its cost is in the debts of its direction */
  bool passed;      /* its direction lets it pass */
  bool owed_both;
};

struct line {
  struct waiter *first, *last;
  uint64_t left;  /* when the last one left */
  struct pair own;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct line lines[DIRECTIONS];
static struct pair both;
static uint64_t arrivals;

static void
settle_all (struct page_limits *limits, uint64_t now)
{
  settle (&lines[READ].own.bytes, &limits->read_bytes, now);
  settle (&lines[READ].own.ops, &limits->read_ops, now);
  settle (&lines[WRITE].own.bytes, &limits->write_bytes, now);
  settle (&lines[WRITE].own.ops, &limits->write_ops, now);
  settle (&both.bytes, &limits->both_bytes, now);
  settle (&both.ops, &limits->both_ops, now);
}

/* Nanoseconds for which the first of LINE still waits in its direction; 0 when that lets it pass, or the line is empty. */
static uint64_t
own_wait (struct line *line)
{
  struct waiter *first = line->first;
  uint64_t ns;

  if (first == NULL || first->passed)
    return 0;
  if (!first->owed) {
    owe (&line->own, first->bytes);
    first->owed = true;
  }
  ns = pair_wait (&line->own, first->bytes);
  first->passed = ns == 0;
  return ns;
}

/* Nanoseconds until SELF may pass, 0 when it may now; NOT_ITS_TURN when another one leaves before. */
static uint64_t
look (struct line *line, struct line *other, struct waiter *self)
{
  const struct waiter *rival = other->first;
  uint64_t ns;

  if (line->first != self)
    return NOT_ITS_TURN;
  ns = own_wait (line);
  if (ns > 0)
    return ns;
  if (!self->owed_both) {
    own_wait (other); /* the other may not have been checked since it became the first */
    if (rival != NULL && rival->passed && (rival->owed_both || rival->number < self->number))
      return NOT_ITS_TURN;
    owe (&both, self->bytes);
    self->owed_both = true;
  }
  return pair_wait (&both, self->bytes);
}

static void
enter (struct line *line, const struct line *other, struct waiter *self, uint64_t now)
{
  const bool idle = line->first == NULL && now - line->left > CREDIT_NS;

  if (idle)
    lose_credit (&line->own);
  if (idle && other->first == NULL && now - other->left > CREDIT_NS)
    lose_credit (&both);
  self->number = arrivals++;
  if (line->first == NULL)
    line->first = self;
  else
    line->last->next = self;
  line->last = self;
}

static void
leave (struct line *line, struct line *other, struct waiter *self, uint64_t now)
{
  struct waiter **place = &line->first;
  struct waiter *before = NULL;

  while (*place != self) {
    before = *place;
    place = &before->next;
  }
  *place = self->next;
  if (line->last == self)
    line->last = before;
  line->left = now;
  if (line->first != NULL)
    pthread_cond_signal (&line->first->woken);
  if (other->first != NULL)
    pthread_cond_signal (&other->first->woken);
}

/* Sleeps without the lock: NS nanoseconds, or until SELF is woken.  False when nbdkit or the connection ends. */
static bool
rest (struct waiter *self, uint64_t ns)
{
  int result;

  if (ns == NOT_ITS_TURN) {
    struct timespec until;

    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLACK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait (&self->woken, &lock, &until);
    ns = 0;
  }
  pthread_mutex_unlock (&lock);
  result = nbdkit_nanosleep (0, ns);
  pthread_mutex_lock (&lock);
  return result == 0;
}

static void
init_condition (pthread_cond_t *condition)
{
  pthread_condattr_t attributes;

  pthread_condattr_init (&attributes);
  pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
  pthread_cond_init (condition, &attributes);
  pthread_condattr_destroy (&attributes);
}

/* The path of requests without a limit, which does not take the lock. */
static bool
unlimited (struct page_limits *limits, enum direction direction)
{
  page_u64 *bytes = direction == READ ? &limits->read_bytes : &limits->write_bytes;
  page_u64 *ops = direction == READ ? &limits->read_ops : &limits->write_ops;

  return (page_get (bytes) | page_get (ops) | page_get (&limits->both_bytes) | page_get (&limits->both_ops)) == 0;
}

uint64_t
limits_wait (struct page_limits *limits, enum direction direction, uint32_t bytes)
{
  struct line *line = &lines[direction];
  struct line *other = &lines[direction == READ ? WRITE : READ];
  struct waiter self = { .bytes = bytes };
  uint64_t began, now, ns;
  bool waited = false;

  if (unlimited (limits, direction))
    return 0;
  init_condition (&self.woken);
  pthread_mutex_lock (&lock);
  began = now = clock_ns ();
  settle_all (limits, now);
  enter (line, other, &self, now);
  while ((ns = look (line, other, &self)) > 0) {
    waited = true;
    if (!rest (&self, ns))
      break;
    now = clock_ns ();
    settle_all (limits, now);
  }
  now = clock_ns ();
  leave (line, other, &self, now);
  pthread_mutex_unlock (&lock);
  pthread_cond_destroy (&self.woken);
  return waited ? now - began : 0;
}
