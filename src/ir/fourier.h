// Discrete Fourier transforms as products with small matrices: what Fft and its like expand into.
//
// A line of n = r m elements is a matrix [r, m]; its columns are transformed by one product with the matrix of the
// roots of unity of r, every element is turned by a root of n (the twiddle), and the rows are lines of m, whose
// transforms, column beside column, are those of the whole in order (Cooley and Tukey). Real and imaginary parts lie in
// planes, so that a complex product is one product of reals of twice the size. A large prime is a convolution with a
// chirp by transforms of a power of two (Bluestein). Roots are computed in double and rounded once.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// Lines of one transform, along dimension 1 of [planes, n, columns].
struct Lines {
  int64_t n = 1;
  bool inverse = false;  // the sign of the exponent
  double scale = 1;      // of the results
  // Planes of x and of the result: 1 are real parts alone.
  int planes_in = 2, planes_out = 2;
  // x has the first `have` elements, and the rest are 0; the first `keep` of the results are wanted.
  int64_t have = 1, keep = 1;
};
// x f32 [.., planes_in, have, C]: f32 [.., planes_out, keep, C], of one batch dimension or none.
Value Transformed(Expansion& e, Value x, const Lines& lines);

// Whether lines along `axis` are rows so short that one product transforms them as they lie: x f32 [.., n] or pairs
// [.., n, 2] to pairs [dims, 2], dims with `keep` elements last. The other fields of `lines` are as for all of a line.
bool AreShort(const std::vector<Extent>& dims, int64_t axis);
Value TransformedRows(Expansion& e, Value x, const Lines& lines, std::vector<Extent> dims);

// The longest line that is transformed: tables of roots are part of the graph.
inline constexpr int64_t kLongestLine = int64_t{1} << 22;

// Along which axis, of how many elements; errors of an axis that is none, or not of 1 to kLongestLine elements.
struct LineAxis {
  int axis;
  int64_t n;
};
StatusOr<LineAxis> LineOf(const InferContext& context);
// `axis` and `norm`, and what `norm` multiplies by: "backward", "ortho", "forward" as numpy's, "none" by 1.
std::vector<AttrDef> FourierAttributes();
double ScaleOf(const Attributes& attributes, int64_t n, bool inverse);

// `axis` of x [.., n, ..] in front of all others, which are the columns: [planes, n, C]; without `pairs` one plane.
// Where the lines that are transformed, of up to `longest` elements, are long, what stands before `axis` is a batch.
Value AsPlanes(Expansion& e, Value x, int64_t axis, bool pairs, int64_t longest);
// Back: such planes as [.., n, .., planes], or without planes where there is one. `dims`: of the result without planes.
Value FromPlanes(Expansion& e, Value planes, int64_t axis, const std::vector<Extent>& dims, int64_t longest);

// The transform of `line` in double, for references: by halves, and by the definition where n is odd.
std::vector<std::complex<double>> ReferenceTransform(const std::vector<std::complex<double>>& line, bool inverse);
// By element of a c64 result along `axis`: `of` the lines of the operand, of which those of the result are made.
// Magnitude: what `of` gives is the same for all elements of the line.
void ForEachPairOfLines(
    const RefTensor& x, RefTensor& y, int64_t axis,
    const std::function<void(const std::vector<int64_t>& of, const std::vector<int64_t>& to)>& line);

}  // namespace quern::ir
