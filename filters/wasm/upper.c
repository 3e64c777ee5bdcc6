/* ASCII letters in upper case.  Build:
 *   clang --target=wasm32 -O3 -nostdlib -Wl,--no-entry -o upper.wasm upper.c
 */
#define EXPORT(name) __attribute__((export_name(#name)))

static unsigned char room[1 << 20];

/* The host writes up to `size` bytes here before each `feed`. */
EXPORT(alloc) unsigned char *alloc(int size) { return size <= (int)sizeof room ? room : (unsigned char *)-1; }

/* Returns the position of the output: address in the upper half, length in the lower one. */
EXPORT(feed) long long feed(unsigned char *at, int size)
{
    for (int place = 0; place < size; place++)
        if (at[place] >= 'a' && at[place] <= 'z')
            at[place] -= 32;
    return (long long)(unsigned long)at << 32 | size;
}

EXPORT(finish) long long finish(void) { return 0; }
