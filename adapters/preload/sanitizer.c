/* AddressSanitizer refuses to start behind another library, and works there all the same. It asks this function what to
 * do unless it is told otherwise: by ASAN_OPTIONS, or by a function of this name in the program itself, which then has
 * to say so too. */
#include "preload.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
MPRUN_EXPORT const char* __asan_default_options(void);

// NOLINTNEXTLINE(bugprone-reserved-identifier)
const char* __asan_default_options(void) {
#ifdef MPRUN_SHARED_ASAN /* a test of mprun: what Python and others do not free at their end is no fault of ours */
  return "verify_asan_link_order=0:detect_leaks=0";
#else
  return "verify_asan_link_order=0";
#endif
}
