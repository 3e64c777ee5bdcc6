/* nbdkit's plugin for a volume whose source is an NBD server on a unix socket of this machine (Cinder's NBD back end).
 *
 * nbdkit's own plugin has one connection for all requests, and answers with errors for ever after it is lost.  This one has a
 * connection for each request in progress, on which its thread sends and waits, so that no other thread is woken.  pool.c has
 * the rules for a lost server.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "pool.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static char *path, *keeper;
static const char *name = "";
static struct pool_server server;
static struct export export;

static int
set_path (char **place, const char *value)
{
  free (*place);
  *place = nbdkit_absolute_path (value);
  return *place == NULL ? -1 : 0;
}

static int
nbd_config (const char *key, const char *value)
{
  if (strcmp (key, "nbd-socket") == 0)
    return set_path (&path, value);
  if (strcmp (key, "nbd-keeper") == 0)
    return set_path (&keeper, value);
  if (strcmp (key, "nbd-export") == 0) {
    name = value;
    return 0;
  }
  nbdkit_error ("unknown parameter `%s`", key);
  return -1;
}

static int
nbd_config_complete (void)
{
  if (path == NULL || keeper == NULL) {
    nbdkit_error ("the plugin `sluice-nbd` needs the parameters nbd-socket and nbd-keeper");
    return -1;
  }
  server = (struct pool_server) { path, name, keeper };
  return 0;
}

static void
nbd_unload (void)
{
  free (path);
  free (keeper);
}

/* There is one client, the filter `fuse`: the pool belongs to the process. */
static void *
nbd_open (int readonly)
{
  return pool_open (&server, &export) == -1 ? NULL : NBDKIT_HANDLE_NOT_NEEDED;
}

static void
nbd_close (void *handle)
{
  pool_close ();
}

static int64_t
nbd_get_size (void *handle)
{
  return export.size;
}

static int
nbd_can_write (void *handle)
{
  return (export.flags & SERVER_READ_ONLY) == 0;
}

static int
nbd_can_flush (void *handle)
{
  return (export.flags & SERVER_FLUSH) != 0;
}

static int
nbd_can_trim (void *handle)
{
  return (export.flags & SERVER_TRIM) != 0;
}

static int
nbd_can_zero (void *handle)
{
  return (export.flags & SERVER_ZERO) != 0;
}

static int
nbd_can_fast_zero (void *handle)
{
  return (export.flags & SERVER_FAST_ZERO) != 0;
}

static int
nbd_can_fua (void *handle)
{
  return export.flags & SERVER_FUA ? NBDKIT_FUA_NATIVE : NBDKIT_FUA_EMULATE;
}

static int
nbd_is_rotational (void *handle)
{
  return (export.flags & SERVER_ROTATIONAL) != 0;
}

static int
ask (struct request request, uint32_t flags)
{
  int error = 0;

  if (flags & NBDKIT_FLAG_FUA)
    request.flags |= REQUEST_FUA;
  if (flags & NBDKIT_FLAG_FAST_ZERO)
    request.flags |= REQUEST_FAST_ZERO;
  if (pool_ask (&request, &error) == 0)
    return 0;
  errno = error; /* nbdkit_set_error keeps it for nbdkit's own threads only, and those of the filter `fuse` are not */
  return -1;
}

static int
nbd_pread (void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
  return ask ((struct request) { .kind = KIND_READ, .offset = offset, .count = count, .read = buf }, 0);
}

static int
nbd_pwrite (void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
  return ask ((struct request) { .kind = KIND_WRITE, .offset = offset, .count = count, .written = buf }, flags);
}

static int
nbd_flush (void *handle, uint32_t flags)
{
  return ask ((struct request) { .kind = KIND_FLUSH }, 0);
}

static int
nbd_trim (void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
  return ask ((struct request) { .kind = KIND_TRIM, .offset = offset, .count = count }, flags);
}

static int
nbd_zero (void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
  const uint16_t kept = flags & NBDKIT_FLAG_MAY_TRIM ? 0 : REQUEST_NO_HOLE;

  return ask ((struct request) { .kind = KIND_ZERO, .flags = kept, .offset = offset, .count = count }, flags);
}

static struct nbdkit_plugin plugin = {
  .name = "sluice-nbd",
  .longname = "an NBD server that may be away for a while",
  .unload = nbd_unload,
  .config = nbd_config,
  .config_complete = nbd_config_complete,
  .config_help = "nbd-socket=<SOCKET>   (required) The server.\n"
                 "nbd-keeper=<SOCKET>   (required) The keeper of the volume.\n"
                 "nbd-export=<NAME>     The export, by default the one without a name.",
  .open = nbd_open,
  .close = nbd_close,
  .errno_is_preserved = 1,
  .get_size = nbd_get_size,
  .can_write = nbd_can_write,
  .can_flush = nbd_can_flush,
  .can_trim = nbd_can_trim,
  .can_zero = nbd_can_zero,
  .can_fast_zero = nbd_can_fast_zero,
  .can_fua = nbd_can_fua,
  .is_rotational = nbd_is_rotational,
  .pread = nbd_pread,
  .pwrite = nbd_pwrite,
  .flush = nbd_flush,
  .trim = nbd_trim,
  .zero = nbd_zero,
};

NBDKIT_REGISTER_PLUGIN (plugin)
