/* Of the functions of linear algebra that Quern has in itself (quern_linear_loaded): LAPACK, which they call. */
#ifndef QUERN_SRC_LINEAR_LOAD_LAPACK_H_
#define QUERN_SRC_LINEAR_LOAD_LAPACK_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads LAPACK, the library that the environment's QUERN_LAPACK names or liblapacke.so.3, before the first of the
 * functions is called. 0: it is not there, and `error` says why, in at most so many bytes. For one thread. */
int quern_load_lapack(char* error, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_SRC_LINEAR_LOAD_LAPACK_H_ */
