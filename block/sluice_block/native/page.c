/* Mapping and checking the page of a volume. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nbdkit-filter.h>

#include "page.h"

static struct page *
map (const char *parameter, const char *file, int fd)
{
  struct stat status;
  void *memory;

  if (fstat (fd, &status) == -1) {
    nbdkit_error ("%s: cannot stat `%s`: %m", parameter, file);
    return NULL;
  }
  if (!S_ISREG (status.st_mode) || status.st_size != PAGE_SIZE_BYTES) {
    nbdkit_error ("%s: `%s` has %lld bytes, expected a file of %d", parameter, file, (long long) status.st_size,
                  PAGE_SIZE_BYTES);
    return NULL;
  }
  memory = mmap (NULL, PAGE_SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    nbdkit_error ("%s: cannot map `%s`: %m", parameter, file);
    return NULL;
  }
  return memory;
}

struct page *
page_open (const char *parameter, const char *file)
{
  struct page *page;
  uint64_t magic, version;
  int fd = open (file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

  if (fd == -1) {
    nbdkit_error ("%s: cannot open the page `%s`: %m", parameter, file);
    return NULL;
  }
  page = map (parameter, file, fd);
  close (fd);
  if (page == NULL)
    return NULL;
  magic = page_get (&page->magic);
  version = page_get (&page->version);
  if (magic == PAGE_MAGIC && version == PAGE_VERSION)
    return page;
  if (magic != PAGE_MAGIC)
    nbdkit_error ("%s: `%s` is no page of a volume: its magic number is 0x%llx, expected 0x%llx", parameter, file,
                  (unsigned long long) magic, (unsigned long long) PAGE_MAGIC);
  else
    nbdkit_error ("%s: `%s` is a page of version %llu, expected %d", parameter, file, (unsigned long long) version,
                  PAGE_VERSION);
  page_close (page);
  return NULL;
}

void
page_close (struct page *page)
{
  if (page != NULL)
    munmap (page, PAGE_SIZE_BYTES);
}
