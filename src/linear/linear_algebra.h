/* Linear algebra of dense matrices, batch by batch: the C functions behind DenseSolve, Cholesky, Det, LogDet, Qr, Svd
 * and Eigh (ir/linear_algebra.h), as launches of a plan (quern/call.h). A program around a compiled model that names
 * one links libquern_linear.a and -llapacke.
 *
 * f32 and f64 alike are computed in double, and rounded once. Batches are shared out among the parts. What has no
 * answer, a singular system or memory that is not there, is NaN; nothing fails. Reentrant; memory beside
 * the operands is taken for the length of a call. */
#ifndef QUERN_SRC_LINEAR_LINEAR_ALGEBRA_H_
#define QUERN_SRC_LINEAR_LINEAR_ALGEBRA_H_

#include <stdint.h>

#include "quern/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `_f64`: of f64, else of f32. The first byte of the attributes, if there is one: 'u', of the upper triangle. */
quern_kernel quern_solve, quern_solve_f64;       /* a [.., N, N], b [.., N, K]: x of a x = b */
quern_kernel quern_cholesky, quern_cholesky_f64; /* a [.., N, N]: l of l l^T = a, from one triangle of a */
quern_kernel quern_det, quern_det_f64;           /* a [.., N, N]: [..] */
quern_kernel quern_log_det, quern_log_det_f64;   /* a [.., N, N]: the sign [..], and the logarithm of its size [..] */
quern_kernel quern_qr, quern_qr_f64;             /* a [.., M, N]: q [.., M, K], r [.., K, N], K the smaller of both */
quern_kernel quern_svd, quern_svd_f64;           /* a [.., M, N]: u [.., M, K], s [.., K], v^T [.., K, N] */
quern_kernel quern_eigh, quern_eigh_f64; /* a [.., N, N]: values [.., N] rising, vectors [.., N, N] in columns */

/* What both files have in common: matrices of doubles, row-major. */

/* One batch: doubles of the operands in, of the results out; `work` holds what `work_elements` said, at least. Returns
 * 0 where there is no answer: the results are NaN then. */
typedef struct quern_matrices {
  int64_t m, n, columns; /* of a; of b, or 0 */
  char attribute;
  const double* in[2];
  double* out[3];
  double* work;
} quern_matrices;
typedef int64_t quern_work_elements(int64_t m, int64_t n, int64_t columns);
typedef int quern_compute(const quern_matrices*);
/* All batches of parts [begin, end): what each kernel does around its own work. */
void quern_for_batches(const quern_args* args, int64_t begin, int64_t end, int f64, quern_work_elements* work,
                       quern_compute* compute);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_SRC_LINEAR_LINEAR_ALGEBRA_H_ */
