// Entries and the folder they lie in: what is damaged, foreign or unsafe is a miss; what is written is whole.
#include "cache/object_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "cache/folder.h"
#include "support/temp_folder.h"

namespace quern::cache {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20251;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = root_ + "/cache"; }
  std::unique_ptr<ObjectStore> Open(int64_t limit = kDefaultLimit) {
    auto store = ObjectStore::Open(folder_, limit);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& at : fs::directory_iterator(folder_)) files.push_back(at.path());
    return files;
  }

  const testing::TempFolder place_;
  const std::string root_ = place_.path();
  std::string folder_;
};

Entry MakeEntry(int number, size_t object_bytes = 5003) {
  Entry entry;
  for (const KeyField& field : KeyFields())
    entry.key.*field.value = absl::StrFormat("%s of entry %d", field.name, number);
  std::mt19937_64 random(kSeed + number);
  for (size_t i = 0; i < object_bytes; ++i) entry.object += static_cast<char>(random());
  entry.origins = {"layers.0/ffn: Mul", "", "layers.0/ffn/down: MatMul"};
  return entry;
}

void ExpectSame(const std::optional<Entry>& got, const Entry& want) {
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->key, want.key);
  EXPECT_EQ(got->object, want.object);
  EXPECT_EQ(got->origins, want.origins);
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST_F(StoreTest, FindsWhatWasInserted) {
  auto store = Open();
  EXPECT_FALSE(store->Find(MakeEntry(1).key).has_value());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store->Insert(MakeEntry(i, i * 1009)).ok());
  for (int i = 0; i < 5; ++i) ExpectSame(store->Find(MakeEntry(i).key), MakeEntry(i, i * 1009));
  EXPECT_FALSE(store->Find(MakeEntry(5).key).has_value());
  EXPECT_EQ(store->List().size(), 5u);
  struct stat info;
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (const fs::path& file : Files()) {
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_EQ(
      store->RemoveIf([](const StoredFile& file) { return file.entry.ok() && file.entry->key == MakeEntry(3).key; })
          .files,
      1);
  EXPECT_FALSE(store->Find(MakeEntry(3).key).has_value());
}

// Each field of the key alone makes another entry.
TEST_F(StoreTest, EveryFieldOfTheKeyCounts) {
  auto store = Open();
  const Entry entry = MakeEntry(1);
  ASSERT_TRUE(store->Insert(entry).ok());
  for (const KeyField& field : KeyFields()) {
    CompileKey key = entry.key;
    key.*field.value += " ";
    EXPECT_FALSE(store->Find(key).has_value()) << field.name;
    EXPECT_NE(HashOf(key), HashOf(entry.key)) << field.name;
  }
  // Text that moves from one field to the next is another key.
  CompileKey moved = entry.key;
  moved.llvm = moved.build + moved.llvm;
  moved.build = "";
  EXPECT_NE(HashOf(moved), HashOf(entry.key));
}

// Every byte of an entry, changed, and every length, cut off: a miss, never a wrong entry or a crash.
TEST_F(StoreTest, DamageIsAMiss) {
  auto store = Open();
  const Entry entry = MakeEntry(1, 211);
  ASSERT_TRUE(store->Insert(entry).ok());
  const fs::path path = Files().at(0);
  const std::string whole = ReadFile(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(Decode(bytes).ok()) << "byte " << i;
    EXPECT_FALSE(Decode(whole.substr(0, i)).ok()) << "cut off at " << i;
  }
  for (const std::string& bytes : {whole + "x", whole.substr(1), std::string(), std::string(100, '\0')}) {
    WriteFile(path, bytes);
    EXPECT_FALSE(store->Find(entry.key).has_value());
    ASSERT_EQ(store->List().size(), 1u);
    EXPECT_FALSE(store->List()[0].entry.ok());
  }
  // It is written anew at the next chance.
  ASSERT_TRUE(store->Insert(entry).ok());
  ExpectSame(store->Find(entry.key), entry);
}

// Lengths and counts that lie, under a checksum that is right: whoever can write the file can make one.
TEST_F(StoreTest, LyingLengthsUnderAGoodChecksum) {
  const Entry entry = MakeEntry(1, 97);
  const std::string whole = Encode(entry);
  constexpr size_t kHeader = 52, kChecksum = 36;
  ASSERT_TRUE(Decode(whole).ok());
  std::mt19937_64 random(kSeed);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    const size_t at = kHeader + random() % (bytes.size() - kHeader - 8);
    const uint64_t value = round % 3 == 0 ? random() : round % 3 == 1 ? ~uint64_t{0} - random() % 64 : random() % 300;
    std::memcpy(bytes.data() + at, &value, round % 2 == 0 ? 8 : 1);
    const Hash128 sum = HashBytes(std::string_view(bytes).substr(kHeader));
    std::memcpy(bytes.data() + kChecksum, &sum.high, 8);
    std::memcpy(bytes.data() + kChecksum + 8, &sum.low, 8);
    const StatusOr<Entry> decoded = Decode(bytes);
    refused += !decoded.ok();
    if (decoded.ok()) EXPECT_EQ(HashOf(decoded->key), HashOf(entry.key));
  }
  EXPECT_GT(refused, 10000);
}

TEST_F(StoreTest, FilesOfOthersAreNotRead) {
  auto store = Open();
  const Entry entry = MakeEntry(1);
  ASSERT_TRUE(store->Insert(entry).ok());
  const fs::path path = Files().at(0);
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_FALSE(store->Find(entry.key).has_value()) << "others may write to it";
  }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  ExpectSame(store->Find(entry.key), entry);
  // A link, even to a good entry.
  fs::rename(path, root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", path);
  EXPECT_FALSE(store->Find(entry.key).has_value());
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Opening a pipe without a writer would wait for ever.
  EXPECT_EXIT(
      {
        alarm(10);
        std::exit(store->Find(entry.key).has_value() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
  fs::remove(path);
  // A good entry under the name of another.
  fs::copy(root_ + "/elsewhere", folder_ + "/" + HashOf(MakeEntry(2).key).ToHex() + ".qo");
  EXPECT_FALSE(store->Find(MakeEntry(2).key).has_value());
  EXPECT_FALSE(store->List().at(0).entry.ok());
  if (geteuid() == 0) {
    ASSERT_TRUE(store->Insert(entry).ok());
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    EXPECT_FALSE(store->Find(entry.key).has_value()) << "another user's file";
  }
}

TEST_F(StoreTest, FoldersThatOthersCanWriteToAreRefused) {
  auto refused = [&](const std::string& folder, const std::string& reason) {
    auto store = ObjectStore::Open(folder, kDefaultLimit);
    ASSERT_FALSE(store.ok()) << folder;
    EXPECT_NE(store.status().message().find(reason), std::string::npos) << store.status();
  };
  refused("/tmp", geteuid() == 0 ? "may be written to by others" : "belongs to another user");
  fs::create_directory(root_ + "/open");
  ASSERT_EQ(chmod((root_ + "/open").c_str(), 0777), 0);
  refused(root_ + "/open", "may be written to by others");
  refused(root_ + "/open/cache", "could be replaced by others");
  ASSERT_EQ(chmod((root_ + "/open").c_str(), 01777), 0);  // as /tmp: others cannot rename what is ours
  EXPECT_TRUE(ObjectStore::Open(root_ + "/open/cache", kDefaultLimit).ok());
  WriteFile(root_ + "/file", "x");
  refused(root_ + "/file", "is no folder");
  refused(root_ + "/file/cache", "cannot be");
  // A link is judged by what it points at.
  ASSERT_EQ(chmod((root_ + "/open").c_str(), 0777), 0);
  fs::create_directory_symlink(root_ + "/open", root_ + "/link");
  refused(root_ + "/link", "may be written to by others");
}

TEST_F(StoreTest, ChoosesThePlace) {
  const auto choose = [](const char* cache, const char* xdg, const char* home, const std::string& choice) {
    for (const auto& [name, value] : {std::pair("QUERN_CACHE", cache), {"XDG_CACHE_HOME", xdg}, {"HOME", home}}) {
      if (value == nullptr)
        unsetenv(name);
      else
        setenv(name, value, 1);
    }
    return ChooseFolder(choice).value_or("off");
  };
  EXPECT_EQ(choose(nullptr, nullptr, "/home/u", ""), "/home/u/.cache/quern");
  EXPECT_EQ(choose(nullptr, "/x", "/home/u", ""), "/x/quern");
  EXPECT_EQ(choose(nullptr, "relative", "/home/u", ""), "/home/u/.cache/quern");
  EXPECT_EQ(choose(nullptr, nullptr, nullptr, ""), "off");
  EXPECT_EQ(choose("off", "/x", "/home/u", ""), "off");
  EXPECT_EQ(choose("/mine", "/x", "/home/u", ""), "/mine");
  EXPECT_EQ(choose("", "/x", "/home/u", ""), "/x/quern");
  EXPECT_EQ(choose("off", "/x", "/home/u", "/given"), "/given");
  EXPECT_EQ(choose("/mine", "/x", "/home/u", "off"), "off");
}

TEST_F(StoreTest, KeepsWhatWasUsedLast) {
  auto store = Open(3 * 6000);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store->Insert(MakeEntry(i)).ok());
    // Ages a minute apart: the file system's clock is coarse.
    const struct timespec times[2] = {{1000000 + 60 * i, 0}, {1000000 + 60 * i, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder_ + "/" + HashOf(MakeEntry(i).key).ToHex() + ".qo").c_str(), times, 0), 0);
  }
  ASSERT_TRUE(store->Find(MakeEntry(0).key).has_value());  // the oldest, used now
  WriteFile(folder_ + "/1-2.tmp", "left by a writer that died");
  const struct timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (folder_ + "/1-2.tmp").c_str(), old, 0), 0);
  WriteFile(folder_ + "/3-4.tmp", "being written");
  WriteFile(folder_ + "/notes.txt", "not ours");
  const ObjectStore::Removed removed = store->Collect();
  EXPECT_EQ(removed.files, 3);
  for (const auto& [entry, kept] : {std::pair(0, true), {1, false}, {2, false}, {3, true}, {4, true}}) {
    EXPECT_EQ(store->Find(MakeEntry(entry).key).has_value(), kept) << entry;
  }
  EXPECT_FALSE(fs::exists(folder_ + "/1-2.tmp"));
  EXPECT_TRUE(fs::exists(folder_ + "/3-4.tmp"));
  EXPECT_TRUE(fs::exists(folder_ + "/notes.txt"));
}

// Listing a folder of thousands of entries takes longer than compiling a kernel: that is not done each time.
TEST_F(StoreTest, CollectsAtTimes) {
  auto store = Open(1 << 20);
  const std::string abandoned = folder_ + "/1-2.tmp", marker = folder_ + "/collected";
  const struct timespec old[2] = {{1000, 0}, {1000, 0}};
  const auto collects = [&] {
    WriteFile(abandoned, "left by a writer that died");
    EXPECT_EQ(utimensat(AT_FDCWD, abandoned.c_str(), old, 0), 0);
    store->CollectAtTimes();
    return !fs::exists(abandoned);
  };
  EXPECT_TRUE(collects());  // nobody ever has
  ASSERT_TRUE(store->Insert(MakeEntry(1)).ok());
  EXPECT_FALSE(collects());
  EXPECT_TRUE(store->Find(MakeEntry(1).key).has_value());
  // More than ten minutes ago, or by a clock that is ahead.
  ASSERT_EQ(utimensat(AT_FDCWD, marker.c_str(), old, 0), 0);
  EXPECT_TRUE(collects());
  const struct timespec ahead[2] = {{time(nullptr) + 500, 0}, {time(nullptr) + 500, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, marker.c_str(), ahead, 0), 0);
  EXPECT_TRUE(collects());
  // An eighth of the limit.
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(store->Insert(MakeEntry(i)).ok());
  EXPECT_TRUE(collects());
  EXPECT_FALSE(collects());
  EXPECT_EQ(store->List().size(), 40u) << "the marker is no entry";
}

// Runs `body` in a process of its own and returns its exit status.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// A disk that takes no more: the limit on the size of files stands in for it. Nothing half-written stays.
TEST_F(StoreTest, AFullDiskLosesNothing) {
  auto store = Open();
  const Entry old = MakeEntry(1), large = MakeEntry(2, 100003);
  ASSERT_TRUE(store->Insert(old).ok());
  EXPECT_EQ(InChild([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const struct rlimit limit = {20000, 20000};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
              const Status status = store->Insert(large);
              if (status.ok()) return 3;
              if (status.message().find("cannot write") == std::string::npos) return 4;
              return store->Insert(MakeEntry(3)).ok() ? 0 : 5;  // small ones still fit
            }),
            0);
  EXPECT_EQ(Files().size(), 2u);
  EXPECT_FALSE(store->Find(large.key).has_value());
  ExpectSame(store->Find(old.key), old);
}

// Permissions do not hold the superuser: then as nobody.
TEST_F(StoreTest, AReadOnlyFolderStillServes) {
  auto store = Open();
  const Entry entry = MakeEntry(1);
  ASSERT_TRUE(store->Insert(entry).ok());
  if (geteuid() == 0) {
    ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
    for (const std::string& path : {folder_, Files().at(0).string()}) ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0500), 0);
  EXPECT_EQ(InChild([&] {
              if (geteuid() == 0 && setuid(65534) != 0) return 2;
              auto again = ObjectStore::Open(folder_, kDefaultLimit);
              if (!again.ok()) return 3;
              if (!(*again)->Find(entry.key).has_value()) return 4;
              const Status status = (*again)->Insert(MakeEntry(2));
              if (status.ok()) return 5;
              return (*again)->Collect().files == 0 ? 0 : 6;
            }),
            0);
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
}

// Processes that write, read and tidy up the same entries: a reader sees an entry whole or not at all.
TEST_F(StoreTest, ProcessesMayShareIt) {
  constexpr int kProcesses = 4, kEntries = 7;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = ObjectStore::Open(folder_, 5 * 6000);
      if (!store.ok()) _exit(2);
      std::mt19937_64 random(kSeed + p);
      for (int round = 0; round < 400; ++round) {
        const Entry entry = MakeEntry(static_cast<int>(random() % kEntries));
        if (random() % 2 == 0 && !(*store)->Insert(entry).ok()) _exit(3);
        const std::optional<Entry> found = (*store)->Find(entry.key);
        if (found && found->object != entry.object) _exit(4);
        if (random() % 16 == 0) (*store)->Collect();
        if (random() % 64 == 0) (*store)->RemoveIf([](const StoredFile& file) { return !file.entry.ok(); });
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  for (const StoredFile& file : Open()->List()) EXPECT_TRUE(file.entry.ok()) << file.entry.status();
}

}  // namespace
}  // namespace quern::cache
