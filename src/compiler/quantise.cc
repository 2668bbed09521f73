// Quantise of the public interface: tensors go through a slab of rows at a time.

#include "quern/quantise.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/block_format.h"
#include "base/half.h"
#include "base/output_file.h"
#include "base/threads.h"
#include "compiler/public_error.h"
#include "import/gguf.h"
#include "import/gguf_writer.h"
#include "import/importance.h"
#include "import/mixture.h"
#include "kir/decode.h"
#include "kir/quantise.h"
#include "quern/rt.h"
#include "text/folder_vocabulary.h"

namespace quern {
namespace {

constexpr int64_t kSlabElements = int64_t{1} << 20;

void DecodeFloats(DType dtype, const uint8_t* row, int64_t count, float* values) {
  if (IsBlock(dtype)) return kir::DecodeRow(dtype, row, count, values);
  if (dtype == DType::kF32) {
    std::memcpy(values, row, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    uint16_t half;
    double wide;
    if (dtype == DType::kF64) {
      std::memcpy(&wide, row + j * 8, sizeof wide);
      values[j] = static_cast<float>(wide);
    } else {
      std::memcpy(&half, row + j * 2, sizeof half);
      values[j] = dtype == DType::kF16 ? HalfToFloat(half) : BFloat16ToFloat(half);
    }
  }
}

// `importance`: of each value, or null.
void EncodeFloats(DType dtype, const float* values, const float* importance, int64_t count, uint8_t* row) {
  if (IsBlock(dtype) && importance != nullptr) return kir::QuantiseToBlocksBy(dtype, values, importance, count, row);
  if (IsBlock(dtype)) return kir::QuantiseToBlocks(dtype, values, count, row);
  if (dtype == DType::kF32) {
    std::memcpy(row, values, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    const uint16_t half = dtype == DType::kF16 ? FloatToHalf(values[j]) : FloatToBFloat16(values[j]);
    std::memcpy(row + j * 2, &half, sizeof half);
  }
}

float MostOf(const float* values, int64_t count) {
  float most = 0;
  for (int64_t j = 0; j < count; ++j) {
    if (!std::isfinite(values[j])) return values[j];
    most = std::max(most, std::fabs(values[j]));
  }
  return most;
}

// The row of the tensor that row `r` of a GGUF file is: there the two halves of a head that turn together lie side by
// side.
int64_t SourceRow(const ModelTensor& tensor, int64_t r) {
  if (tensor.half_split_heads <= 0 || tensor.dims[0] % (2 * tensor.half_split_heads) != 0) return r;
  const int64_t head = tensor.dims[0] / tensor.half_split_heads, half = head / 2, at = r % head;
  return r - at + at % 2 * half + at / 2;
}

// Rows of a matrix, and how many matrices a tensor has.
struct Matrices {
  int64_t count = 1, rows = 1, columns = 1;
};
Matrices MatricesOf(const ModelTensor& tensor) {
  Matrices matrices;
  const size_t rank = tensor.dims.size();
  for (size_t d = 0; d + 2 < rank; ++d) matrices.count *= tensor.dims[d];
  if (rank > 1) matrices.rows = tensor.dims[rank - 2];
  if (rank > 0) matrices.columns = tensor.dims[rank - 1];
  return matrices;
}

// One tensor, from its format to another; by `importance` [matrices, columns], where there is some.
class TensorWriter {
 public:
  TensorWriter(const ModelTensor& tensor, DType dtype, std::vector<float> importance, int threads,
               const CancelToken* cancel)
      : tensor_(tensor),
        from_(*tensor.dtype),
        to_(dtype),
        importance_(std::move(importance)),
        matrix_rows_(MatricesOf(tensor).rows),
        threads_(threads),
        cancel_(cancel) {
    // Rows: all but the last extent. A vector is one.
    for (size_t d = 0; d + 1 < tensor.dims.size(); ++d) rows_ *= tensor.dims[d];
    columns_ = tensor.dims.empty() ? 1 : tensor.dims.back();
    // Where heads are turned, a vector's elements are rows.
    if (tensor.dims.size() == 1 && tensor.half_split_heads > 0) std::swap(rows_, columns_);
  }

  Status Write(OutputStream& out) {
    const int64_t row_from = RowBytes(from_, columns_), row_to = RowBytes(to_, columns_);
    const bool as_it_is = from_ == to_ && tensor_.half_split_heads <= 0;
    const int64_t slab =
        std::clamp<int64_t>(kSlabElements / std::max<int64_t>(columns_, 1), 1, std::max(rows_, int64_t{1}));
    if (as_it_is) return out.Write({reinterpret_cast<const char*>(tensor_.bytes.data()), tensor_.bytes.size()});
    std::vector<uint8_t> made(static_cast<size_t>(slab * row_to));
    for (int64_t first = 0; first < rows_; first += slab) {
      if (cancel_ != nullptr && cancel_->cancelled()) return absl::CancelledError("quantising was cancelled");
      const int64_t count = std::min(slab, rows_ - first);
      std::atomic<int64_t> next = 0;
      std::vector<Status> failed(threads_);
      const auto work = [&](int worker) {
        std::vector<float> values(static_cast<size_t>(columns_));
        for (int64_t r = next++; r < count && failed[worker].ok(); r = next++) {
          const uint8_t* row = tensor_.bytes.data() + SourceRow(tensor_, first + r) * row_from;
          failed[worker] = Convert(row, first + r, values.data(), &made[r * row_to]);
        }
      };
      const int workers = static_cast<int>(std::min<int64_t>(threads_, (count * columns_ + 16383) / 16384));
      RunOnThreads(workers, work);
      for (const Status& status : failed) QUERN_RETURN_IF_ERROR(status);
      QUERN_RETURN_IF_ERROR(
          out.Write({reinterpret_cast<const char*>(made.data()), static_cast<size_t>(count * row_to)}));
    }
    return absl::OkStatus();
  }

 private:
  Status Convert(const uint8_t* row, int64_t number, float* values, uint8_t* made) const {
    DecodeFloats(from_, row, columns_, values);
    const float most = MostOf(values, columns_);
    if (IsBlock(to_) && !std::isfinite(most)) {
      return absl::InvalidArgumentError(absl::StrFormat("the tensor %s has %s in row %d: it cannot be quantised",
                                                        tensor_.name, std::isnan(most) ? "a NaN" : "an infinity",
                                                        number));
    }
    const bool guided = !importance_.empty();
    EncodeFloats(to_, values, guided ? &importance_[number / matrix_rows_ * columns_] : nullptr, columns_, made);
    // Only of numbers near those that a half can hold can a scale be none, and sums of their squares as well; by an
    // importance of any, and what does not count may become nothing.
    if (!IsBlock(to_) || (most < 8192 && !guided)) return absl::OkStatus();
    kir::DecodeRow(to_, made, columns_, values);
    const float kept = MostOf(values, columns_);
    if (std::isfinite(kept) && (guided || kept >= most / 4)) return absl::OkStatus();
    if (most < 8192) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the importance matrix has numbers for the tensor %s that are too large for row %d", tensor_.name, number));
    }
    return absl::InvalidArgumentError(absl::StrFormat("the tensor %s has %g in row %d, which is too large for %s",
                                                      tensor_.name, most, number, FormatOf(to_).gguf_name));
  }

  const ModelTensor& tensor_;
  const DType from_, to_;
  const std::vector<float> importance_;
  const int64_t matrix_rows_;
  const int threads_;
  const CancelToken* const cancel_;
  int64_t rows_ = 1, columns_ = 1;
};

const char* GgmlName(DType dtype) {
  if (IsBlock(dtype)) return FormatOf(dtype).gguf_name;
  return dtype == DType::kF32 ? "F32" : dtype == DType::kF16 ? "F16" : "BF16";
}

// From a folder: what is not quantised becomes f32, as architectures expect it in GGUF files.
bool BecomesF32(const ModelFile& file, const ModelTensor& tensor) {
  return !file.folder().empty() && (tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16);
}

StatusOr<Metadata> MetadataOf(const std::shared_ptr<const ModelFile>& file, const Mixture& mixture,
                              const std::string& path, const ImportanceMatrix& importance) {
  Metadata metadata;
  metadata.PutAll(*file);
  if (!file->folder().empty()) {
    StatusOr<std::shared_ptr<const Metadata>> vocabulary = text::VocabularyOf(file);
    if (!vocabulary.ok() && !absl::IsNotFound(vocabulary.status())) return vocabulary.status();
    if (vocabulary.ok()) metadata.PutAll(**vocabulary);
  }
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) metadata.Remove(key);
  metadata.PutInt("general.file_type", mixture.file_type);
  metadata.PutInt("general.quantization_version", 2);
  if (path.empty()) return metadata;
  metadata.PutText("quantize.imatrix.file", path);
  if (!importance.datasets.empty()) metadata.PutText("quantize.imatrix.dataset", importance.datasets[0]);
  metadata.PutInt("quantize.imatrix.entries_count", static_cast<int64_t>(importance.entries.size()));
  if (importance.chunks > 0) metadata.PutInt("quantize.imatrix.chunks_count", importance.chunks);
  return metadata;
}

// Of the columns of each matrix of the tensor; empty: the importance matrix does not have it.
StatusOr<std::vector<float>> ImportanceOf(const ImportanceMatrix& importance, const ModelTensor& tensor) {
  const auto found = importance.entries.find(tensor.name);
  if (found == importance.entries.end()) return std::vector<float>();
  const Matrices matrices = MatricesOf(tensor);
  if (static_cast<int64_t>(found->second.sums.size()) == matrices.count * matrices.columns)
    return MeansOf(found->second);
  return absl::InvalidArgumentError(absl::StrFormat("%s has %u numbers, the model's tensor %d matrices of %d columns",
                                                    tensor.name, found->second.sums.size(), matrices.count,
                                                    matrices.columns));
}

StatusOr<QuantiseReport> Write(const std::string& in, const std::string& path, const QuantiseOptions& options) {
  QUERN_ASSIGN(const Mixture* mixture, FindMixture(options.type));
  QUERN_ASSIGN(const std::shared_ptr<const ModelFile> file, OpenModelFile(in));
  const std::string& by = options.importance;
  ImportanceMatrix importance;
  if (!by.empty()) {
    QUERN_ASSIGN(importance, ReadImportance(by));
  }
  QUERN_ASSIGN(const Metadata metadata, MetadataOf(file, *mixture, by, importance));
  std::vector<std::string> inputs;
  for (const ModelFile::Weights& weights : file->weights()) inputs.push_back(weights.path);

  if (!by.empty()) inputs.push_back(by);

  const std::vector<Quantised> formats = FormatsOf(*mixture, *file, options.pure, !by.empty());
  QuantiseReport report;
  std::vector<GgufTensor> tensors;
  std::vector<DType> dtypes;
  bool is_any_guided = false;
  for (size_t t = 0; t < formats.size(); ++t) {
    const ModelTensor& tensor = file->tensors()[t];
    const bool same = formats[t].kept && !BecomesF32(*file, tensor);
    const DType dtype = formats[t].kept && !same ? DType::kF32 : formats[t].dtype;
    const std::string after = same ? tensor.type_name : GgmlName(dtype);
    if (!same && IsBlock(*tensor.dtype) && dtype != *tensor.dtype && !options.requantise) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: the tensor %s is %s already; quantising it again loses more (--requantise does it all "
                          "the same)",
                          in, tensor.name, tensor.type_name));
    }
    const std::optional<uint32_t> type = GgmlTypeOf(after);
    if (!type)
      return absl::UnimplementedError(absl::StrFormat("%s: the tensor %s is of type %s", in, tensor.name, after));
    bool guided = false;
    if (!formats[t].kept && IsBlock(dtype)) {
      const StatusOr<std::vector<float>> own = ImportanceOf(importance, tensor);
      if (!own.ok()) return Status(own.status().code(), absl::StrCat(by, ": ", own.status().message()));
      guided = !own->empty() && FormatOf(dtype).quantise_by != nullptr;
      is_any_guided |= !own->empty();
      if (own->empty() && formats[t].needs_importance) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: the type %s needs an importance matrix (--imatrix), with the tensor %s in it", in,
                            mixture->name, tensor.name));
      }
    }
    int64_t elements = 1;
    for (const int64_t dim : tensor.dims) elements *= dim;
    const uint64_t bytes = same ? tensor.bytes.size() : static_cast<uint64_t>(RowBytes(dtype, elements));
    tensors.push_back({tensor.name, tensor.dims, *type, bytes});
    dtypes.push_back(dtype);
    report.tensors.push_back({.name = tensor.name,
                              .before = tensor.type_name,
                              .after = after,
                              .bytes_before = static_cast<int64_t>(tensor.bytes.size()),
                              .bytes_after = static_cast<int64_t>(bytes),
                              .fell_back = formats[t].fell_back,
                              .guided = guided});
    report.bytes_before += report.tensors.back().bytes_before;
    report.bytes_after += report.tensors.back().bytes_after;
  }

  if (!by.empty() && !is_any_guided && IsBlock(mixture->dtype))
    return absl::InvalidArgumentError(absl::StrFormat("%s has none of the tensors of %s", by, in));
  QUERN_ASSIGN(OutputStream out, OutputStream::Create(path, inputs));
  QUERN_RETURN_IF_ERROR(out.Write(GgufHeader(metadata, tensors)));
  const int threads =
      static_cast<int>(std::clamp<int64_t>(options.threads > 0 ? options.threads : quern_thread_count(), 1, 256));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const ModelTensor& tensor = file->tensors()[t];
    const bool turned = tensor.half_split_heads > 0 || BecomesF32(*file, tensor);
    if (tensor.dtype && (!formats[t].kept || turned)) {
      std::vector<float> own;
      if (report.tensors[t].guided) {
        QUERN_ASSIGN(own, ImportanceOf(importance, tensor));
      }
      const Status written = TensorWriter(tensor, dtypes[t], std::move(own), threads, options.cancel).Write(out);
      if (!written.ok()) return Status(written.code(), absl::StrCat(in, ": ", written.message()));
    } else {
      QUERN_RETURN_IF_ERROR(out.Write({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()}));
    }
    QUERN_RETURN_IF_ERROR(out.Write(GgufPadding(metadata, tensors[t].bytes)));
    if (options.progress) options.progress(static_cast<int64_t>(t) + 1, static_cast<int64_t>(tensors.size()));
  }
  QUERN_RETURN_IF_ERROR(out.Finish());
  return report;
}

}  // namespace

std::vector<std::string> QuantiseTypes() { return MixtureNames(); }

Result<QuantiseReport> Quantise(const std::string& in, const std::string& out, const QuantiseOptions& options) {
  return compiler::ToResult(Write(in, out, options));
}

}  // namespace quern
