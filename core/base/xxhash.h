// xxHash, compiled into the files that include this one.
#pragma once

#define XXH_INLINE_ALL
#ifndef NDEBUG
#define XXH_NO_INLINE_HINTS 1  // g++ 14 with -Og refuses to inline all that xxHash wants inlined
#endif
#include <xxhash.h>
