/* Finds the functions of LAPACK in its shared library. */
#include "linear/load_lapack.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "linear/lapack.h"

quern_lapack_functions quern_lapack;

int quern_load_lapack(char* error, size_t bytes) {
  const char* const given = getenv("QUERN_LAPACK");
  const char* const name = given != 0 && *given != 0 ? given : "liblapacke.so.3";
  /* Now: what it wants of other libraries is missing here or never. */
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == 0) {
    const char* const why = dlerror();
    snprintf(error, bytes, "linear algebra needs LAPACK (Debian's package liblapacke): %s", why == 0 ? name : why);
    return 0;
  }
  quern_lapack_functions found;
#define FIND(name_)                                                                            \
  found.name_ = (__typeof__(found.name_))dlsym(library, "LAPACKE_" #name_);                    \
  if (found.name_ == 0) {                                                                      \
    snprintf(error, bytes, "linear algebra needs LAPACK: %s has no LAPACKE_%s", name, #name_); \
    return 0;                                                                                  \
  }
  QUERN_LAPACK_FUNCTIONS(FIND)
  quern_lapack = found;
  return 1;
}
