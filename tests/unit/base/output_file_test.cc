// Files are written whole or not at all.
#include "base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/temp_folder.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

std::string Text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

int FilesIn(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(OutputFile, ReplacesWhatIsThere) {
  const testing::TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "a.o";
  ASSERT_TRUE(WriteFile(path.string(), "one").ok());
  ASSERT_TRUE(WriteFile(path.string(), std::string("t\0o", 3)).ok());
  EXPECT_EQ(Text(path), std::string("t\0o", 3));
  EXPECT_EQ(FilesIn(folder.path()), 1);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

// The second file cannot be written: the first stays what it was, and nothing else is left.
TEST(OutputFile, AllOrNothing) {
  const testing::TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "a.o";
  ASSERT_TRUE(WriteFile(path.string(), "one").ok());
  const OutputFile files[] = {{path.string(), "two"}, {(fs::path(folder.path()) / "no/such/folder.h").string(), "x"}};
  const Status status = WriteFiles(files);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("no/such/folder.h: No such file"), std::string::npos) << status;
  EXPECT_EQ(Text(path), "one");
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

// Before hours of work, not after them.
TEST(OutputFile, IsCheckedBeforeThereIsAnythingToWrite) {
  const testing::TempFolder folder;
  const std::string path = (fs::path(folder.path()) / "a.o").string();
  EXPECT_TRUE(CheckOutput(path, {}).ok());
  EXPECT_TRUE(CheckOutput("", {}).ok());
  EXPECT_TRUE(CheckOutput("a.o", {}).ok());
  EXPECT_TRUE(CheckOutput("/dev/null", {}).ok());
  EXPECT_EQ(FilesIn(folder.path()), 0);
  const Status nowhere = CheckOutput(path + "/b", {}), whole = CheckOutput(std::string(folder.path()), {});
  EXPECT_EQ(std::string(nowhere.message()), "cannot write " + path + "/b: No such file or directory");
  EXPECT_EQ(std::string(whole.message()), "cannot write " + std::string(folder.path()) + ": Is a directory");
}

TEST(OutputFile, KeepsInputsByAnyName) {
  const testing::TempFolder folder;
  const std::string model = (fs::path(folder.path()) / "model.gguf").string();
  ASSERT_TRUE(WriteFile(model, "weights").ok());
  const std::string hard = model + ".hard", soft = model + ".soft";
  fs::create_hard_link(model, hard);
  fs::create_symlink(model, soft);
  for (const std::string& name : {model, hard, soft, (fs::path(folder.path()) / "./model.gguf").string()}) {
    const Status status = WriteFile(name, "x", {&model, 1});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << ": " << status;
  }
  EXPECT_EQ(Text(model), "weights");
}

TEST(OutputFile, LinksStayLinks) {
  const testing::TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "real", link = fs::path(folder.path()) / "link";
  ASSERT_TRUE(WriteFile(path.string(), "one").ok());
  fs::create_symlink(path, link);
  ASSERT_TRUE(WriteFile(link.string(), "two").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Text(path), "two");
}

TEST(OutputFile, StreamsAreWrittenTo) {
  EXPECT_TRUE(WriteFile("/dev/null", "x").ok());
  const Status full = WriteFile("/dev/full", "x");
  if (fs::exists("/dev/full")) EXPECT_EQ(full.code(), absl::StatusCode::kUnavailable) << full;
}

TEST(OutputStream, HasItsNameWhenItIsFinished) {
  const testing::TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "a.gguf";
  ASSERT_TRUE(WriteFile(path.string(), "before").ok());
  {
    StatusOr<OutputStream> stream = OutputStream::Create(path.string());
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_TRUE(stream->Write("part").ok());
    EXPECT_EQ(Text(path), "before");
  }
  EXPECT_EQ(Text(path), "before");
  EXPECT_EQ(FilesIn(folder.path()), 1);  // what was not finished is gone
  StatusOr<OutputStream> stream = OutputStream::Create(path.string());
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE(stream->Write("one ").ok() && stream->Write("two").ok());
  OutputStream moved = *std::move(stream);
  ASSERT_TRUE(moved.Finish().ok());
  EXPECT_EQ(Text(path), "one two");
  EXPECT_EQ(FilesIn(folder.path()), 1);
  EXPECT_FALSE(OutputStream::Create(path.string(), std::vector{path.string()}).ok());  // an input
  EXPECT_FALSE(OutputStream::Create((fs::path(folder.path()) / "no" / "file").string()).ok());
}

}  // namespace
}  // namespace quern
