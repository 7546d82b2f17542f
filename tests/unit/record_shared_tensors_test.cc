// Shared tensors, from their files into memory and from memory into the run directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/npy_reader.h"
#include "formats/npy_writer.h"
#include "formats/safetensors_writer.h"
#include "json/json.h"
#include "os/shared_memory.h"
#include "record/shared_tensors.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(RecordNpyText, ReadsAsItWasWritten) {
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {5}, {0, 3}, {2, 3, 4}, std::vector<std::int64_t>(32, 1)};
  for (const auto& shape : shapes) {
    const std::string text = NpyText{"<f4", shape.size() == 2, shape}.aligned();
    const auto header = parse_npy_header(text, text.size() + 96);
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->shape, shape);
    EXPECT_EQ(header->descr, "<f4");
    EXPECT_EQ(header->fortran_order, shape.size() == 2);
    EXPECT_EQ(header->data_offset, text.size());
    EXPECT_EQ(text.size() % 64, 0U);
  }
  EXPECT_EQ(NpyText({"<f4", false, {5}}).of_length(70).size(), 70U);
  EXPECT_EQ(NpyText({"<f4", false, {5}}).of_length(60), "");
}

TEST(OsMemoryFile, NoProcessCanChangeItsSize) {
  const auto file = create_memory_file("test", 4096);
  ASSERT_TRUE(file);
  EXPECT_EQ(ftruncate(file->get(), 0), -1);
  EXPECT_EQ(ftruncate(file->get(), 8192), -1);
  EXPECT_EQ(fcntl(file->get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  const Fd again(open(path_of_descriptor(file->get()).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again);
  EXPECT_EQ(ftruncate(again.get(), 0), -1);
  EXPECT_EQ(pwrite(again.get(), "x", 1, 4095), 1);
}

// An empty pool is what most machines have; tests/contract/test_shared_contract.py fills one.
TEST(OsMemoryFile, HugePagesAreTakenOrRefused) {
  const auto file = create_huge_memory_file("test", 4096);
  if (!file) GTEST_SKIP() << file.error().message;
  struct stat info {};
  ASSERT_EQ(fstat(file->get(), &info), 0);
  EXPECT_EQ(info.st_size, info.st_blksize);
  EXPECT_EQ(ftruncate(file->get(), 0), -1);
  if (!take_huge_pages("test", file->get())) return;
  const MemoryMapping mapped(file->get());
  ASSERT_NE(mapped.data(), nullptr);
  EXPECT_EQ(mapped.bytes(), static_cast<std::size_t>(info.st_size));
  mapped.data()[mapped.bytes() - 1] = 'x';
}

class RecordSharedTensors : public testing::Test {
 protected:
  RecordSharedTensors() {
    std::string pattern = testing::TempDir() + "sharedXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~RecordSharedTensors() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string get(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / file, std::ios::binary).rdbuf();
    return text.str();
  }
  /// Of bytes, one page each.
  [[nodiscard]] static SharedTensor tensor(const std::string& name, std::uint64_t page, std::int64_t length) {
    SharedTensor result;
    result.name = name;
    result.dtype = "|u1";
    result.shape = {length};
    result.bytes = static_cast<std::uint64_t>(length);
    result.offset = page * 4096;
    return result;
  }
  fs::path folder_;
};

TEST_F(RecordSharedTensors, AreFilledChangedAndSaved) {
  std::ofstream(folder_ / "source") << "--abc";
  SharedTensor from_file = tensor("a", 0, 3);
  from_file.path = folder_ / "source";
  from_file.path_offset = 2;
  SharedTensor brain = tensor("brain", 1, 1);
  brain.dtype = "bfloat16";
  brain.bytes = 2;
  auto shared = SharedTensors::create({from_file, brain}, {}, folder_);
  ASSERT_TRUE(shared) << shared.error().message;
  const Json all = Json::parse(shared->variable());
  EXPECT_EQ(all["a"]["shape"], Json::parse("[3]"));
  EXPECT_EQ(all["brain"]["offset"], 4096);
  const Fd memory(open(all["a"]["path"].get<std::string>().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(pwrite(memory.get(), "xy", 2, 4096), 2);
  ASSERT_EQ(pwrite(memory.get(), "B", 1, 1), 1);
  const auto saved = shared->save(folder_, OnDisk::kNow);
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(get("shared/a.npy"), (NpyText{"|u1", false, {3}}.aligned() + "aBc"));
  EXPECT_EQ(get("shared/brain.safetensors"), safetensors_header({"brain", "BF16", {1}, 2}) + "xy");
  const Fd file(open((folder_ / "shared/brain.safetensors").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(safetensors_fault(file.get(), {"brain"}), std::nullopt);
  EXPECT_EQ(shared->to_json().size(), 2U);
}

TEST_F(RecordSharedTensors, AFileHasBecomeShorterOrIsGone) {
  std::ofstream(folder_ / "source") << "ab";
  SharedTensor from_file = tensor("a", 0, 3);
  from_file.path = folder_ / "source";
  auto shared = SharedTensors::create({from_file}, {}, folder_);
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().fault, Fault::kUsage);
  EXPECT_THAT(shared.error().message, HasSubstr("/shared/a: "));
  EXPECT_THAT(shared.error().message, HasSubstr("it has become shorter"));
  fs::remove(folder_ / "source");
  EXPECT_THAT(SharedTensors::create({from_file}, {}, folder_).error().message, HasSubstr("No such file"));
}

TEST_F(RecordSharedTensors, WhatCanBeSavedIs) {
  fs::create_directories(folder_ / "shared/a.npy/full");
  fs::create_directories(folder_ / "shared/c.npy/full");
  std::ofstream(folder_ / "shared/.b.npy.tmp") << "of another program";
  auto shared = SharedTensors::create({tensor("a", 0, 3), tensor("b", 1, 3), tensor("c", 2, 3)}, {}, folder_);
  ASSERT_TRUE(shared);
  const auto saved = shared->save(folder_, OnDisk::kNow);
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("cannot write " + (folder_ / "shared/a.npy").string()));
  EXPECT_THAT(saved.error().message, HasSubstr("2 shared tensors are lost"));
  ASSERT_EQ(shared->to_json().size(), 1U);
  EXPECT_EQ(shared->to_json()[0]["file"], "shared/b.npy");
  EXPECT_EQ(get("shared/b.npy").size(), 131U);
  EXPECT_FALSE(fs::exists(folder_ / "shared/.b.npy.tmp"));
  EXPECT_FALSE(fs::exists(folder_ / "shared/.a.npy.tmp"));
}

TEST_F(RecordSharedTensors, ThereAreNone) {
  auto shared = SharedTensors::create({}, {}, folder_);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->variable(), "");
  EXPECT_TRUE(shared->save(folder_, OnDisk::kNow));
  EXPECT_FALSE(fs::exists(folder_ / "shared"));
}

}  // namespace
}  // namespace mprun
