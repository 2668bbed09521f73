#include "ir/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// Lines of up to that are one product; primes up to the other. Longer ones are transformed by factors of up to
// kMostRadix: a product with larger ones has more arithmetic than it saves passes.
constexpr int64_t kMostDirect = 32, kMostRadix = 16, kMostPrime = 128;
// Rows of up to that, where they lie, are one product.
constexpr int64_t kMostShort = 64;

using Complex = std::complex<double>;

// e^(2 pi i k / n), forward with -k.
Complex Root(int64_t k, int64_t n, bool inverse) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
}

Value Table(Expansion& e, const std::vector<double>& values, std::vector<Extent> dims) {
  return e.Sized(e.Floats(values, DType::kF32), std::move(dims));
}

// The first divisor of n above 1.
int64_t LeastPrime(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// The first of the factors that n is transformed by: the least that is as large as its share of the fewest that are
// small enough, so that they fall; what is left of the line is then short where its columns are many.
int64_t Radix(int64_t n) {
  if (n <= kMostDirect) return n;
  const double share = std::ceil(std::log(static_cast<double>(n)) / std::log(static_cast<double>(kMostRadix)) - 1e-9);
  const double aim = std::pow(static_cast<double>(n), 1 / share) - 1e-9;
  int64_t best = 1;
  for (int64_t r = 2; r <= kMostRadix && static_cast<double>(best) < aim; ++r) {
    if (n % r == 0) best = r;
  }
  if (best > 1) return best;
  const int64_t prime = LeastPrime(n);  // none is below kMostRadix
  return prime <= kMostPrime ? prime : n;
}

// The matrix that takes `have` elements in planes to `keep` in planes: [planes_out keep, planes_in have].
Value Matrix(Expansion& e, const Lines& lines) {
  std::vector<Complex> roots;
  for (int64_t k = 0; k < lines.n; ++k) roots.push_back(Root(k, lines.n, lines.inverse) * lines.scale);
  std::vector<double> values;
  for (int to = 0; to < lines.planes_out; ++to) {
    for (int64_t k = 0; k < lines.keep; ++k) {
      for (int from = 0; from < lines.planes_in; ++from) {
        for (int64_t j = 0; j < lines.have; ++j) {
          const Complex root = roots[j * k % lines.n];
          values.push_back(to == from ? root.real() : to == 0 ? -root.imag() : root.imag());
        }
      }
    }
  }
  return Table(e, values, {lines.planes_out * lines.keep, lines.planes_in * lines.have});
}

// Batches before the planes: how many dimensions, and x with these others behind them.
int64_t Leading(Expansion& e, Value x) { return static_cast<int64_t>(e.type(x).dims.size()) - 3; }
Value Batched(Expansion& e, Value x, int64_t leading, std::vector<Extent> behind) {
  if (!e.ok()) return x;
  std::vector<Extent> dims(e.type(x).dims.begin(), e.type(x).dims.begin() + leading);
  dims.insert(dims.end(), behind.begin(), behind.end());
  return e.Sized(x, std::move(dims));
}

Value Direct(Expansion& e, Value x, const Lines& lines) {
  if (!e.ok()) return x;
  const int64_t leading = Leading(e, x);
  const Extent columns = e.type(x).dims.back();
  const Extent rows(lines.planes_in * lines.have);
  const Value matrix = Matrix(e, lines);
  const Value product = columns == Extent(1) ? e.Add("MatMul", {Batched(e, x, leading, {Extent(1), rows}), matrix},
                                                     {{"transpose_b", true}})
                                             : e.Add("MatMul", {matrix, Batched(e, x, leading, {rows, columns})});
  return Batched(e, product, leading, {Extent(lines.planes_out), Extent(lines.keep), columns});
}

// x [.., 2, dims] times a number for each of `dims`, columns alike.
Value Turned(Expansion& e, Value x, const std::vector<Complex>& by, std::vector<Extent> dims) {
  const int64_t planes = -static_cast<int64_t>(dims.size()) - 1;
  std::vector<double> re, im;
  for (const Complex& number : by) re.push_back(number.real()), im.push_back(-number.imag());
  for (const Complex& number : by) im.push_back(number.imag());
  const Value same = Table(e, re, dims);
  dims.insert(dims.begin(), Extent(2));
  // (re, im) times re, and (im, re) times (-im, im).
  const Value other = e.Add("Reverse", {x}, {{"axes", std::vector<int64_t>{planes}}});
  return e.Add("Add", {e.Add("Mul", {x, same}), e.Add("Mul", {other, Table(e, im, dims)})});
}

// x [.., p, have, C] with zeros behind: [.., p, n, C].
Value Filled(Expansion& e, Value x, int64_t n) {
  if (!e.ok()) return x;
  std::vector<Extent> dims = e.type(x).dims;
  Extent& along = dims[dims.size() - 2];
  if (along == Extent(n)) return x;
  along = Extent(n) - along;
  const Value zeros = e.Add("Expand", {e.Scalar(0, DType::kF32)}, {{"shape", dims}});
  return e.Add("Concat", {x, zeros}, {{"axis", int64_t{-2}}});
}

// `axis` from the end.
Value First(Expansion& e, Value x, int64_t axis, int64_t count) {
  if (!e.ok() || e.type(x).dims.end()[axis] == Extent(count)) return x;
  return e.Add(
      "Narrow", {x},
      {{"axis", axis}, {"start", std::vector<Extent>{Extent(0)}}, {"length", std::vector<Extent>{Extent(count)}}});
}

// Two planes, of which the second is 0.
Value TwoPlanes(Expansion& e, Value x) {
  if (!e.ok() || e.type(x).dims.end()[-3] == Extent(2)) return x;
  const Value zeros = e.Add("Expand", {e.Scalar(0, DType::kF32)}, {{"shape", e.type(x).dims}});
  return e.Add("Concat", {x, zeros}, {{"axis", int64_t{-3}}});
}

// With j k = (j^2 + k^2 - (k - j)^2) / 2 the transform is a convolution with e^(i pi j^2 / n).
Value ByChirp(Expansion& e, Value x, const Lines& lines) {
  const int64_t n = lines.n;
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  const auto chirp = [&](int64_t j) { return Root(j * j % (2 * n), 2 * n, lines.inverse); };
  std::vector<Complex> before, after, wave(size);
  for (int64_t j = 0; j < n; ++j) {
    if (j < lines.have) before.push_back(chirp(j));
    if (j < lines.keep) after.push_back(chirp(j) * lines.scale);
    wave[j] = std::conj(chirp(j));
    if (j > 0) wave[size - j] = wave[j];
  }
  const Value turned = Turned(e, TwoPlanes(e, x), before, {Extent(lines.have), Extent(1)});
  const Value there = Transformed(e, turned, {.n = size, .have = lines.have, .keep = size});
  const Value both = Turned(e, there, ReferenceTransform(wave, false), {Extent(size), Extent(1)});
  const Value back = Transformed(
      e, both, {.n = size, .inverse = true, .scale = 1 / static_cast<double>(size), .have = size, .keep = lines.keep});
  return First(e, Turned(e, back, after, {Extent(lines.keep), Extent(1)}), -3, lines.planes_out);
}

}  // namespace

Value Transformed(Expansion& e, Value x, const Lines& lines) {
  if (!e.ok()) return x;
  const int64_t n = lines.n, r = Radix(n), m = n / r;
  if (r == n && n <= kMostPrime) return Direct(e, x, lines);
  if (r == n) return ByChirp(e, x, lines);
  const int64_t leading = Leading(e, x);
  const Extent columns = e.type(x).dims.back();
  const int64_t rows = (lines.have + m - 1) / m;  // of [r, m] that are not 0
  const Value filled = Filled(e, x, rows * m);
  const Value first = Direct(e, Batched(e, filled, leading, {Extent(lines.planes_in), Extent(rows), columns * m}),
                             {.n = r, .inverse = lines.inverse, .planes_in = lines.planes_in, .have = rows, .keep = r});
  std::vector<Complex> twiddles;
  for (int64_t k = 0; k < r; ++k) {
    for (int64_t j = 0; j < m; ++j) twiddles.push_back(Root(k * j, n, lines.inverse));
  }
  const Value apart = Batched(e, first, leading, {Extent(2), Extent(r), Extent(m), columns});
  const Value turned = Turned(e, apart, twiddles, {Extent(r), Extent(m), Extent(1)});
  std::vector<int64_t> perm(static_cast<size_t>(leading) + 4);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm.end()[-2], perm.end()[-3]);
  const Value lines_of_m =
      Batched(e, e.Add("Transpose", {turned}, {{"perm", perm}}), leading, {Extent(2), Extent(m), columns * r});
  const int64_t keep = (lines.keep + r - 1) / r;
  const Value made = Transformed(e, lines_of_m,
                                 {.n = m,
                                  .inverse = lines.inverse,
                                  .scale = lines.scale,
                                  .planes_out = lines.planes_out,
                                  .have = m,
                                  .keep = keep});
  return First(e, Batched(e, made, leading, {Extent(lines.planes_out), Extent(keep * r), columns}), -2, lines.keep);
}

bool AreShort(const std::vector<Extent>& dims, int64_t axis) {
  Extent lines(1);
  for (int64_t d = 0; d < axis; ++d) lines = lines * dims[d];
  // The matrix of all roots is not worth its reading for one line.
  const int64_t most = lines == Extent(1) ? kMostShort / 4 : kMostShort;
  return axis + 1 == static_cast<int64_t>(dims.size()) && dims[axis].constant() <= most;
}

Value TransformedRows(Expansion& e, Value x, const Lines& lines, std::vector<Extent> dims) {
  const int64_t in = lines.planes_in;
  std::vector<double> values;  // [keep, 2, n, planes_in]
  for (int64_t k = 0; k < lines.keep; ++k) {
    for (const int to : {0, 1}) {
      for (int64_t j = 0; j < lines.n; ++j) {
        const Complex root = Root(j * k, lines.n, lines.inverse) * lines.scale;
        values.push_back(to == 0 ? root.real() : root.imag());
        if (in == 2) values.push_back(to == 0 ? -root.imag() : root.real());
      }
    }
  }
  const Value matrix = Table(e, values, {Extent(2 * lines.keep), Extent(in * lines.n)});
  const Value rows = e.Sized(x, {Extent(-1), Extent(in * lines.n)});
  dims.emplace_back(2);
  return e.Sized(e.Add("MatMul", {rows, matrix}, {{"transpose_b", true}}), std::move(dims));
}

StatusOr<LineAxis> LineOf(const InferContext& context) {
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const Extent& size = context.operands[0].dims[axis];
  if (!size.is_constant())
    return context.UnsupportedError(0, absl::StrFormat("a number of elements along axis %d", axis));
  if (size.constant() < 1) return context.ShapeError(0, absl::StrFormat("1 element or more along axis %d", axis));
  if (size.constant() > kLongestLine)
    return context.UnsupportedError(0, absl::StrFormat("up to %d elements along axis %d", kLongestLine, axis));
  return LineAxis{axis, size.constant()};
}

std::vector<AttrDef> FourierAttributes() {
  return {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}},
          {.name = "norm",
           .kind = AttrKind::kString,
           .default_value = std::string("backward"),
           .doc = "what is divided by n: the inverse, both by its root, the forward transform, none",
           .choices = {"backward", "ortho", "forward", "none"}}};
}

double ScaleOf(const Attributes& attributes, int64_t n, bool inverse) {
  const std::string& norm = attributes.String("norm");
  const double size = static_cast<double>(n);
  if (norm == "ortho") return 1 / std::sqrt(size);
  return norm == (inverse ? "backward" : "forward") ? 1 / size : 1;
}

namespace {

// Of lines that are longer each batch before them is transformed by itself: their columns would be far apart, and what
// reads and writes them beside each other would take lines of caches from itself.
constexpr int64_t kMostTogether = 128;

// Dimensions before `axis` that are batches, and not columns.
int64_t BatchesOf(int64_t axis, int64_t longest) { return longest > kMostTogether && axis > 0 ? axis : 0; }

}  // namespace

Value AsPlanes(Expansion& e, Value x, int64_t axis, bool pairs, int64_t longest) {
  if (!e.ok()) return x;
  const std::vector<Extent> dims = e.type(x).dims;
  const int64_t rank = static_cast<int64_t>(dims.size()) - (pairs ? 1 : 0), batches = BatchesOf(axis, longest);
  std::vector<int64_t> perm;
  Extent batch(1), columns(1);
  for (int64_t d = 0; d < batches; ++d) {
    perm.push_back(d);
    batch = batch * dims[d];
  }
  if (pairs) perm.push_back(rank);
  perm.push_back(axis);
  for (int64_t d = batches; d < rank; ++d) {
    if (d == axis) continue;
    perm.push_back(d);
    columns = columns * dims[d];
  }
  std::vector<Extent> made = {Extent(pairs ? 2 : 1), dims[axis], columns};
  if (batches > 0) made.insert(made.begin(), batch);
  return e.Sized(e.Add("Transpose", {x}, {{"perm", perm}}), std::move(made));
}

Value FromPlanes(Expansion& e, Value planes, int64_t axis, const std::vector<Extent>& dims, int64_t longest) {
  if (!e.ok()) return planes;
  const bool pairs = e.type(planes).dims.end()[-3] == Extent(2);
  const int64_t rank = static_cast<int64_t>(dims.size()), batches = BatchesOf(axis, longest);
  std::vector<Extent> apart(dims.begin(), dims.begin() + batches);
  std::vector<int64_t> perm;
  if (pairs) apart.emplace_back(2);
  apart.push_back(dims[axis]);
  const int64_t along = static_cast<int64_t>(apart.size()) - 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (d < batches) {
      perm.push_back(d);
    } else if (d == axis) {
      perm.push_back(along);
    } else {
      perm.push_back(static_cast<int64_t>(apart.size()));
      apart.push_back(dims[d]);
    }
  }
  if (pairs) perm.push_back(batches);
  return e.Add("Transpose", {e.Sized(planes, std::move(apart))}, {{"perm", perm}});
}

std::vector<Complex> ReferenceTransform(const std::vector<Complex>& line, bool inverse) {
  const int64_t n = static_cast<int64_t>(line.size());
  std::vector<Complex> result(n);
  if (n % 2 == 0 && n > 0) {
    std::vector<Complex> even, odd;
    for (int64_t j = 0; j < n; ++j) (j % 2 == 0 ? even : odd).push_back(line[j]);
    even = ReferenceTransform(even, inverse);
    odd = ReferenceTransform(odd, inverse);
    for (int64_t k = 0; k < n / 2; ++k) {
      const Complex turned = Root(k, n, inverse) * odd[k];
      result[k] = even[k] + turned;
      result[k + n / 2] = even[k] - turned;
    }
    return result;
  }
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < n; ++j) result[k] += line[j] * Root(j * k, n, inverse);
  }
  return result;
}

void ForEachPairOfLines(
    const RefTensor& x, RefTensor& y, int64_t axis,
    const std::function<void(const std::vector<int64_t>& of, const std::vector<int64_t>& to)>& line) {
  std::vector<std::vector<int64_t>> from;
  ForEachLine(x, axis, [&](const std::vector<int64_t>& offsets) { from.push_back(offsets); });
  size_t next = 0;
  ForEachLine(y, axis, [&](const std::vector<int64_t>& offsets) { line(from[next++], offsets); });
}

}  // namespace quern::ir
