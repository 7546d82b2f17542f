/* Recognises runtimes with threads or locks of their own among the loaded objects: the one table of what mprun knows,
 * for the adapters and for `mprun doctor`. core/report says what would happen at fork(). */
#include <string.h>

#include "preload.h"

/* Arrays, not pointers: the dynamic linker has nothing to relocate while a process starts. */
static const struct runtime_kind kinds[] = {
    /* LLVM's libomp has libgomp's functions too. */
    [RUNTIME_LIBGOMP] = {"libgomp", "libgomp", "GOMP_parallel_start", "__kmpc_fork_call", ""},
    {"libomp", "", "__kmpc_fork_call", "", ""},
    /* numpy's and scipy's wheels rename OpenBLAS's functions. */
    {"openblas", "", "openblas_get_parallel", "", ""},
    {"openblas", "", "openblas_get_parallel64_", "", ""},
    {"openblas", "", "scipy_openblas_get_parallel", "", ""},
    {"openblas", "", "scipy_openblas_get_parallel64_", "", ""},
    {"mkl", "", "MKL_Get_Max_Threads", "", ""},
    {"mkl-gnu-thread", "libgomp", "", "", "libmkl_gnu_thread.so"},
    {"mkl-intel-thread", "", "", "", "libmkl_intel_thread.so"},
    {"mkl-tbb-thread", "tbb", "", "", "libmkl_tbb_thread.so"},
    {"mkl-sequential", "", "", "", "libmkl_sequential.so"},
    {"tbb-classic", "", "TBB_runtime_version", "", ""},
    {"tbb", "tbb", "TBB_runtime_interface_version", "", ""},
    /* Wheels of OpenCV hide its symbols in the Python module, which the Debian package links to libopencv_core. */
    {"opencv", "", "_ZN2cv13setNumThreadsEi", "", ""},
    {"opencv-python", "opencv", "", "", "cv2."},
    {"torch", "torch", "_ZN2at15set_num_threadsEi", "", ""},
    {"mindspore", "mindspore", "", "", "libmindspore_core.so"},
    {"python", "python", "PyOS_BeforeFork", "", ""},
};

/* What openblas_get_parallel() returns (OpenBLAS, cblas.h). */
static const struct runtime_kind openblas_builds[] = {
    {"openblas-serial", "", "", "", ""},
    {"openblas-pthread", "", "", "", ""},
    {"openblas-openmp", "libgomp", "", "", ""},
};

static bool is_kind(const struct loaded_object* object, const struct runtime_kind* kind) {
  if (*kind->file != '\0') {
    const char* slash = strrchr(object->path, '/');
    return strncmp(slash != NULL ? slash + 1 : object->path, kind->file, strlen(kind->file)) == 0;
  }
  return find_symbol(object, kind->symbol) != NULL &&
         (*kind->without == '\0' || find_symbol(object, kind->without) == NULL);
}

bool is_libgomp(const struct loaded_object* object) { return is_kind(object, &kinds[RUNTIME_LIBGOMP]); }

bool is_runtime_library(const char* file) {
  static const char libraries[][12] = {"libgomp.so", "libomp.so", "libiomp5.so", "libtbb.so", "libopenblas", "libmkl_"};
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; ++i) {
    if (strncmp(file, libraries[i], strlen(libraries[i])) == 0) return true;
  }
  return false;
}

static const struct runtime_kind* openblas_build(const struct loaded_object* object, const struct runtime_kind* kind) {
  int (*get_parallel)(void) = NULL;
  void* symbol = find_symbol(object, kind->symbol);
  memcpy(&get_parallel, &symbol, sizeof symbol);
  const int build = get_parallel(); /* returns a constant */
  return build >= 0 && build <= 2 ? &openblas_builds[build] : kind;
}

void each_runtime(const struct loaded_object* object, void (*visit)(const struct runtime_kind*, void*), void* data) {
  const char* last = "";
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    if (strcmp(kinds[i].name, last) == 0 || !is_kind(object, &kinds[i])) continue;
    last = kinds[i].name;
    visit(strcmp(last, "openblas") == 0 ? openblas_build(object, &kinds[i]) : &kinds[i], data);
  }
}
