/* AddressSanitizer refuses to start behind another library, and works there all the same. It asks this function what to
 * do unless it is told otherwise: by ASAN_OPTIONS, or by a function of this name in the program itself, which then has
 * to say so too. */
#include "preload.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
MPRUN_EXPORT const char* __asan_default_options(void);

// NOLINTNEXTLINE(bugprone-reserved-identifier)
const char* __asan_default_options(void) { return "verify_asan_link_order=0"; }
