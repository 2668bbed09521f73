#include "import/npz.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "import/npy.h"

namespace quern {
namespace {

// A file in memory, as minizip wants one: read from `bytes`, or written to `text`.
struct MemoryFile {
  std::span<const uint8_t> bytes;
  std::string* text = nullptr;
  uint64_t at = 0;

  uint64_t size() const { return text != nullptr ? text->size() : bytes.size(); }
};

MemoryFile& FileOf(void* opaque) { return *static_cast<MemoryFile*>(opaque); }

uLong Read(void* opaque, void* /*stream*/, void* to, uLong count) {
  MemoryFile& file = FileOf(opaque);
  count = std::min<uint64_t>(count, file.size() - file.at);
  if (count > 0)
    std::memcpy(to,
                (file.text != nullptr ? file.text->data() : reinterpret_cast<const char*>(file.bytes.data())) + file.at,
                count);
  file.at += count;
  return count;
}

uLong Write(void* opaque, void* /*stream*/, const void* from, uLong count) {
  MemoryFile& file = FileOf(opaque);
  if (file.text == nullptr) return 0;
  if (file.at + count > file.size()) file.text->resize(file.at + count);
  if (count > 0) std::memcpy(file.text->data() + file.at, from, count);
  file.at += count;
  return count;
}

long Seek(void* opaque, void* /*stream*/, ZPOS64_T offset, int origin) {
  MemoryFile& file = FileOf(opaque);
  const uint64_t from = origin == ZLIB_FILEFUNC_SEEK_CUR ? file.at : origin == ZLIB_FILEFUNC_SEEK_END ? file.size() : 0;
  uint64_t to = 0;
  if (__builtin_add_overflow(from, offset, &to) || to > file.size()) return -1;
  file.at = to;
  return 0;
}

zlib_filefunc64_def Functions(MemoryFile& file) {
  return {.zopen64_file = [](void* opaque, const void*, int) -> void* { return opaque; },
          .zread_file = Read,
          .zwrite_file = Write,
          .ztell64_file = [](void* opaque, void*) -> ZPOS64_T { return FileOf(opaque).at; },
          .zseek64_file = Seek,
          .zclose_file = [](void*, void*) { return 0; },
          .zerror_file = [](void*, void*) { return 0; },
          .opaque = &file};
}

constexpr std::string_view kEnding = ".npy";

Status Named(std::string_view name, const Status& status) {
  return WithMessage(status, absl::StrCat(std::string(name), ": ", status.message()));
}

// The bytes of the entry that the archive is at.
StatusOr<std::vector<uint8_t>> Entry(unzFile archive, const unz_file_info64& info) {
  // What a byte of the archive can stand for: more is a lie, and nothing is allocated for it.
  constexpr uint64_t kMostOfByte = 1032;
  const uint64_t size = info.uncompressed_size;
  if (size / kMostOfByte > info.compressed_size) return absl::InvalidArgumentError("its size cannot be");
  if ((info.flag & 1) != 0) return absl::UnimplementedError("it is encrypted");
  if (unzOpenCurrentFile(archive) != UNZ_OK) return absl::InvalidArgumentError("it cannot be read");
  const std::unique_ptr<void, int (*)(unzFile)> closed(archive, unzCloseCurrentFile);
  std::vector<uint8_t> bytes;
  // A part at a time: a compressed size may be a lie, too.
  constexpr uint64_t kPart = 1 << 20;
  while (bytes.size() < size) {
    const size_t had = bytes.size();
    bytes.resize(std::min(size, had + kPart));
    const int got = unzReadCurrentFile(archive, bytes.data() + had, static_cast<unsigned>(bytes.size() - had));
    if (got <= 0) return absl::InvalidArgumentError("it is cut short or damaged");
    bytes.resize(had + static_cast<size_t>(got));
  }
  uint8_t more = 0;
  if (unzReadCurrentFile(archive, &more, 1) != 0) return absl::InvalidArgumentError("it is longer than it says");
  return bytes;
}

}  // namespace

StatusOr<FileTensors> ParseNpz(std::span<const uint8_t> file) {
  MemoryFile memory{.bytes = file};
  zlib_filefunc64_def functions = Functions(memory);
  const std::unique_ptr<void, int (*)(unzFile)> archive(unzOpen2_64("", &functions), unzClose);
  if (archive == nullptr) return absl::InvalidArgumentError("no .npz file: it is no ZIP archive");
  FileTensors tensors;
  int at = unzGoToFirstFile(archive.get());
  for (; at == UNZ_OK; at = unzGoToNextFile(archive.get())) {
    unz_file_info64 info;
    char text[1024] = {};
    if (unzGetCurrentFileInfo64(archive.get(), &info, text, sizeof text - 1, nullptr, 0, nullptr, 0) != UNZ_OK)
      return absl::InvalidArgumentError("the archive's list of arrays is damaged");
    std::string_view name = text;
    if (info.size_filename >= sizeof text || name.size() != info.size_filename || !name.ends_with(kEnding))
      return absl::InvalidArgumentError(absl::StrCat("\"", std::string(name), "\" is no array"));
    name.remove_suffix(kEnding.size());
    const StatusOr<std::vector<uint8_t>> bytes = Entry(archive.get(), info);
    if (!bytes.ok()) return Named(name, bytes.status());
    StatusOr<FileTensor> tensor = ParseNpy(*bytes);
    if (!tensor.ok()) return Named(name, tensor.status());
    if (!tensors.emplace(name, *std::move(tensor)).second)
      return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": there are two of that name"));
  }
  if (at != UNZ_END_OF_LIST_OF_FILE) return absl::InvalidArgumentError("the archive's list of arrays is damaged");
  return tensors;
}

StatusOr<std::string> PrintNpz(const FileTensors& tensors) {
  std::string text;
  MemoryFile memory{.bytes = {}, .text = &text};
  zlib_filefunc64_def functions = Functions(memory);
  const zipFile archive = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &functions);
  bool whole = archive != nullptr;
  Status status;
  for (const auto& [name, tensor] : tensors) {
    const StatusOr<std::string> array = PrintNpy(tensor);
    if (!array.ok()) {
      status = Named(name, array.status());
      break;
    }
    const zip_fileinfo info{};
    const int wide = array->size() >= 0xffffffff;
    whole = whole && zipOpenNewFileInZip64(archive, absl::StrCat(name, std::string(kEnding)).c_str(), &info, nullptr, 0,
                                           nullptr, 0, nullptr, /*method=*/0, /*level=*/0, wide) == ZIP_OK;
    constexpr size_t kPart = 1 << 30;
    for (size_t i = 0; whole && i < array->size(); i += kPart)
      whole = zipWriteInFileInZip(archive, array->data() + i,
                                  static_cast<unsigned>(std::min(kPart, array->size() - i))) == ZIP_OK;
    whole = whole && zipCloseFileInZip(archive) == ZIP_OK;
  }
  if (archive != nullptr) whole = zipClose(archive, nullptr) == ZIP_OK && whole;
  if (!status.ok()) return status;
  if (!whole) return absl::InternalError("an .npz file could not be written");
  return text;
}

}  // namespace quern
