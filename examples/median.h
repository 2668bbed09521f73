/* The median of each window of elements in a row: an op that Quern does not have. */
#ifndef MEDIAN_H_
#define MEDIAN_H_

#include "quern/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x [rows, n] and the width of a window, an odd i32, as the attribute -> y [rows, n]; at the ends of a row the window
 * is cut. */
quern_kernel median_filter;

#ifdef __cplusplus
}
#endif

#endif /* MEDIAN_H_ */
