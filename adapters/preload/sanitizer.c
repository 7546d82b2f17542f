/* AddressSanitizer refuses to start after another library, although it works there. It takes its defaults from this
 * function, unless ASAN_OPTIONS or a function of this name in the program itself overrides them; the latter then has to
 * set the same option. */
#include "preload.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
MPRUN_EXPORT const char* __asan_default_options(void);

// NOLINTNEXTLINE(bugprone-reserved-identifier)
const char* __asan_default_options(void) {
#ifdef MPRUN_SHARED_ASAN /* a test of mprun: what Python and others do not free at exit is not mprun's leak */
  return "verify_asan_link_order=0:detect_leaks=0";
#else
  return "verify_asan_link_order=0";
#endif
}
