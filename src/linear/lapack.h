/* What is used of LAPACK's C interface: LAPACK(dgesv)(..). A program around a compiled model links the library; Quern
 * itself loads it when a graph first has such an op (QUERN_LOAD_LAPACK): it brings libraries that few runs need. */
#ifndef QUERN_SRC_LINEAR_LAPACK_H_
#define QUERN_SRC_LINEAR_LAPACK_H_

#include <lapacke.h>

#ifdef QUERN_LOAD_LAPACK

#define QUERN_LAPACK_FUNCTIONS(row) row(dgesv) row(dgetrf) row(dpotrf) row(dgeqrf) row(dorgqr) row(dgesdd) row(dsyevd)
#define QUERN_LAPACK_POINTER(name) __typeof__(LAPACKE_##name)* name;
typedef struct quern_lapack_functions {
  QUERN_LAPACK_FUNCTIONS(QUERN_LAPACK_POINTER)
} quern_lapack_functions;
/* Null until quern_load_lapack. */
extern quern_lapack_functions quern_lapack;
#define LAPACK(name) quern_lapack.name

#else
#define LAPACK(name) LAPACKE_##name
#endif

#endif /* QUERN_SRC_LINEAR_LAPACK_H_ */
