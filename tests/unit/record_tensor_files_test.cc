#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "os/shared_memory.h"
#include "record/tensor_files.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kHeaderBytes = 128;

std::string header(const std::string& dictionary) {
  std::string text = "\x93NUMPY\x01";
  text += '\0';
  text += static_cast<char>(kHeaderBytes - 10);
  text += '\0';
  text += dictionary;
  text.resize(kHeaderBytes - 1, ' ');
  return text + '\n';
}

std::string floats(const std::string& shape) {
  return header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }");
}

std::string claim(std::uint32_t kind, const std::string& name, std::uint64_t begin, std::uint64_t end) {
  const mprun_tensor head{begin, end, kind, static_cast<std::uint32_t>(name.size())};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + name;
}

std::string rows(std::uint64_t begin, std::uint64_t end, const std::string& name = "result") {
  return claim(MPRUN_TENSOR_ROWS, name, begin, end);
}

class RecordTensorFilesTest : public testing::Test {
 protected:
  RecordTensorFilesTest() {
    std::string pattern = testing::TempDir() + "tensorsXXXXXX";
    folder_ = mkdtemp(pattern.data());
    fs::create_directory(folder_ / "tensors");
  }
  ~RecordTensorFilesTest() override { fs::remove_all(folder_); }

  void put(const std::string& file, const std::string& bytes) const {
    std::ofstream(folder_ / "tensors" / file, std::ios::binary) << bytes;
  }
  [[nodiscard]] std::string get(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "tensors" / file, std::ios::binary).rdbuf();
    return text.str();
  }
  /// Five tasks, one row of two floats each.
  [[nodiscard]] TensorFiles five_tasks() const { return {folder_.string(), 5, std::nullopt}; }
  /// Ten rows of two floats in batches of four.
  [[nodiscard]] TensorFiles batches() const { return {folder_.string(), 3, 10}; }

  static void end(TensorFiles* files, TaskId task, TaskStatus status = TaskStatus::kOk) {
    TaskEnded ended;
    ended.task = task;
    ended.status = status;
    files->on_event(ended);
  }

  fs::path folder_;
};

TEST_F(RecordTensorFilesTest, ATaskMayClaimItsOwnRowOnly) {
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  EXPECT_EQ(files.check(2, "2", rows(2, 3)), std::nullopt);
  EXPECT_EQ(files.check(4, "[0,5]", rows(4, 5)), std::nullopt);
  EXPECT_THAT(files.check(2, "2", rows(3, 4)).value_or(""), HasSubstr("not its own"));
  EXPECT_THAT(files.check(2, "2", rows(2, 4)).value_or(""), HasSubstr("not its own"));
  EXPECT_THAT(files.check(2, "[0,5]", rows(0, 5)).value_or(""), HasSubstr("not its own"));
  EXPECT_THAT(files.check(5, "5", rows(5, 6)).value_or(""), HasSubstr("ends before row 6"));
}

TEST_F(RecordTensorFilesTest, ANewFileIsWrittenWithItsName) {
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  const auto written = [&files] {
    std::vector<std::string> names;
    for (const Fd& fd : files.take_written()) {
      names.push_back(fs::read_symlink(path_of_descriptor(fd.get())).filename());
    }
    return names;
  };
  const auto end_well = [&files](TaskId task) {
    ASSERT_EQ(files.check(task, std::to_string(task), rows(task, task + 1)), std::nullopt);
    end(&files, task);
  };
  end_well(0);
  EXPECT_THAT(written(), ElementsAre("result.npy", "tensors", folder_.filename().string()));
  EXPECT_THAT(written(), IsEmpty());
  end_well(1);
  EXPECT_THAT(written(), ElementsAre("result.npy"));
  EXPECT_TRUE(files.finish().empty());
  EXPECT_THAT(written(), ElementsAre("result.npy"));
}

TEST_F(RecordTensorFilesTest, OfBatchesATaskMayClaimTheRowsOfItsInput) {
  put("result.npy", floats("10, 2") + std::string(80, 'x'));
  put("mean.npy", floats("3,") + std::string(12, 'x'));
  TensorFiles files = batches();
  EXPECT_EQ(files.check(2, "[8,10]", rows(8, 10)), std::nullopt);
  EXPECT_EQ(files.check(2, "[8,10]", rows(2, 3, "mean")), std::nullopt);
  EXPECT_THAT(files.check(2, "[8,10]", rows(4, 8)).value_or(""), HasSubstr("not its own"));
  EXPECT_THAT(files.check(2, "[8,10]", rows(8, 10, "mean")).value_or(""), HasSubstr("3 rows"));
  EXPECT_THAT(files.check(2, "[8,10]", rows(2, 3)).value_or(""), HasSubstr("10 rows"));
  ASSERT_EQ(files.check(1, "[4,8]", rows(4, 8) + rows(1, 2, "mean")), std::nullopt);
  end(&files, 1);
  EXPECT_TRUE(files.finish().empty());
  EXPECT_EQ(get("result.npy").substr(kHeaderBytes),
            std::string(32, '\0') + std::string(32, 'x') + std::string(16, '\0'));
  EXPECT_EQ(get("mean.npy").substr(kHeaderBytes), std::string(4, '\0') + "xxxx" + std::string(4, '\0'));
}

TEST_F(RecordTensorFilesTest, TheFileIsNotBelieved) {
  const std::string data(40, 'x');
  put("short.npy", floats("5, 2") + data.substr(1));
  put("tasks.npy", floats("6, 2") + data + "12345678");
  put("text.npy", "hello");
  put("objects.npy", header("{'descr': '|O', 'fortran_order': False, 'shape': (5,), }") + data);
  put("fortran.npy", header("{'descr': '<f4', 'fortran_order': True, 'shape': (5, 2), }") + data);
  put("foreign.npy", header("{'shape': (5, 2), 'fortran_order': False, 'descr': '<f4', }") + data);
  put("huge.npy", floats("5, 4611686018427387904, 4611686018427387904, 0") + data);
  ASSERT_EQ(mkfifo((folder_ / "tensors/fifo.npy").c_str(), 0600), 0);
  fs::create_directory(folder_ / "tensors/folder.npy");
  fs::create_symlink("tasks.npy", folder_ / "tensors/link.npy");
  TensorFiles files = five_tasks();
  for (const char* name : {"short", "tasks", "text", "objects", "fortran", "foreign", "huge", "fifo", "folder", "link",
                           "absent", "../tensors/tasks", "", ".hidden", "a\nb"}) {
    EXPECT_NE(files.check(0, "0", rows(0, 1, name)), std::nullopt) << name;
  }
  EXPECT_EQ(files.to_json(), Json::array());
}

TEST_F(RecordTensorFilesTest, OneLookServesAllClaimsReadBeforeIt) {
  put("result.npy", floats("5, 2") + std::string(5 * 8, 'x'));
  TensorFiles files = five_tasks();
  const Nanos before = monotonic_now();
  ASSERT_EQ(files.check(0, "0", rows(0, 1), before), std::nullopt);
  put("result.npy", floats("5, 2") + std::string(8, 'x'));
  EXPECT_EQ(files.check(3, "3", rows(3, 4), before), std::nullopt) << "it was there when that was claimed";
  EXPECT_THAT(files.check(4, "4", rows(4, 5)).value_or(""), HasSubstr("ends before row 5"));
  fs::remove(folder_ / "tensors/result.npy");
  EXPECT_THAT(files.check(0, "0", rows(0, 1)).value_or(""), HasSubstr("cannot be read"));
}

TEST_F(RecordTensorFilesTest, AFileThatWasReplacedOrCutIsRefused) {
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  ASSERT_EQ(files.check(0, "0", rows(0, 1)), std::nullopt);
  fs::resize_file(folder_ / "tensors/result.npy", kHeaderBytes + 15);
  EXPECT_EQ(files.check(0, "0", rows(0, 1)), std::nullopt);
  EXPECT_THAT(files.check(1, "1", rows(1, 2)).value_or(""), HasSubstr("ends before row 2"));
  fs::rename(folder_ / "tensors/result.npy", folder_ / "tensors/other.npy");
  EXPECT_NE(files.check(0, "0", rows(0, 1)), std::nullopt);
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  EXPECT_THAT(files.check(0, "0", rows(0, 1)).value_or(""), HasSubstr("was replaced"));
}

TEST_F(RecordTensorFilesTest, RowsCountWhenTheirTaskEndedWellAndAllOthersAreZeros) {
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  put(".result.npy.77.tmp", "left by a dead worker");
  TensorFiles files = five_tasks();
  for (const TaskId task : {0U, 1U, 3U, 4U}) {
    ASSERT_EQ(files.check(task, "0", rows(task, task + 1)), std::nullopt);
    end(&files, task, task == 3 ? TaskStatus::kCancelled : TaskStatus::kOk);
  }
  end(&files, 2);  // it claimed nothing
  EXPECT_TRUE(files.finish().empty());
  const std::string row(8, 'x');
  const std::string none(8, '\0');
  EXPECT_EQ(get("result.npy"), floats("5, 2") + row + row + none + none + row);
  EXPECT_FALSE(fs::exists(folder_ / "tensors/.result.npy.77.tmp"));
  EXPECT_EQ(files.to_json(), Json::parse(R"([{"name": "result", "file": "tensors/result.npy", "dtype": "<f4",
                                              "shape": [5, 2], "rows_done": 3, "rows_missing": 2}])"));
}

// Of ranks that start again: what was held counts when it ends well, and not if it is given up.
TEST_F(RecordTensorFilesTest, ClaimsOfSeveralTasksWaitForTheirEnds) {
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  for (const TaskId task : {0U, 1U, 2U}) ASSERT_EQ(files.check(task, "0", rows(task, task + 1)), std::nullopt);
  files.on_event(TaskRetried{1, 1, 1, "another rank failed"});
  for (const TaskId task : {2U, 1U, 0U}) end(&files, task);  // task 1 claims nothing the second time
  EXPECT_TRUE(files.finish().empty());
  const std::string row(8, 'x');
  const std::string none(8, '\0');
  EXPECT_EQ(get("result.npy"), floats("5, 2") + row + none + row + none + none);
}

TEST_F(RecordTensorFilesTest, AnUnknownNumberOfRowsIsWrittenInTheEnd) {
  put("result.npy", floats("0, 2") + std::string(32, 'x') + "what a task without a result wrote");
  TensorFiles files(folder_.string(), std::nullopt, std::nullopt);
  for (const TaskId task : {0U, 3U}) {
    ASSERT_EQ(files.check(task, "\"line\"", rows(task, task + 1)), std::nullopt);
    end(&files, task);
  }
  end(&files, 4, TaskStatus::kFailed);
  EXPECT_TRUE(files.finish().empty());
  const std::string row(8, 'x');
  EXPECT_EQ(get("result.npy"), floats("5, 2") + row + std::string(16, '\0') + row + std::string(8, '\0'));
}

TEST_F(RecordTensorFilesTest, AFileThatWasCutOrReplacedInTheEndIsReported) {
  put("cut.npy", floats("5, 2") + std::string(40, 'x'));
  put("replaced.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  ASSERT_EQ(files.check(3, "3", rows(3, 4, "cut") + rows(3, 4, "replaced")), std::nullopt);
  end(&files, 3);
  fs::resize_file(folder_ / "tensors/cut.npy", kHeaderBytes + 31);
  fs::rename(folder_ / "tensors/cut.npy", folder_ / "tensors/kept");
  put("replaced.npy.new", "something else");
  fs::rename(folder_ / "tensors/replaced.npy.new", folder_ / "tensors/replaced.npy");
  fs::rename(folder_ / "tensors/kept", folder_ / "tensors/cut.npy");
  EXPECT_THAT(files.finish(),
              testing::ElementsAre(HasSubstr("cut.npy was cut"), HasSubstr("replaced.npy was replaced")));
  EXPECT_EQ(get("replaced.npy"), "something else");
}

TEST_F(RecordTensorFilesTest, ADamagedHeaderIsWrittenAgain) {
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  ASSERT_EQ(files.check(0, "0", rows(0, 1)), std::nullopt);
  end(&files, 0);
  std::fstream(folder_ / "tensors/result.npy", std::ios::in | std::ios::out | std::ios::binary) << "damage";
  EXPECT_TRUE(files.finish().empty());
  EXPECT_EQ(get("result.npy").substr(0, kHeaderBytes), floats("5, 2"));
}

TEST_F(RecordTensorFilesTest, ASafetensorsFileMustHoldWhatIsClaimed) {
  const auto file = [](const std::string& text, std::size_t data) {
    const std::uint64_t length = text.size();
    const std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    return bytes + text + std::string(data, 'x');
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const std::string good = R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  const std::string own = claim(MPRUN_TENSOR_SAFETENSORS, "a", 0, 0);
  TensorFiles files = five_tasks();
  put("1.safetensors", file(good, 8));
  EXPECT_EQ(files.check(1, "1", own), std::nullopt);
  end(&files, 1);
  EXPECT_NE(files.check(2, "2", own), std::nullopt) << "another task's file";
  EXPECT_THAT(files.check(1, "1", claim(MPRUN_TENSOR_SAFETENSORS, "b", 0, 0)).value_or(""), HasSubstr("'b'"));
  for (const std::string& bad :
       {file(good, 7), file(good, 8).substr(0, 30), std::string("short"), std::string(8, '\xFF'), file("[1]", 8),
        file("{", 8), file(R"({"b":)" + deep + "}", 8), file(R"({"a":)" + deep + "}", 8), file(R"({"a":1})", 8),
        file(R"({"a":{"dtype":"F32","shape":[2]}})", 8),
        file(R"({"a":{"dtype":"X","shape":[2],"data_offsets":[0,8]}})", 8),
        file(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
        file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
        file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
        file(R"({"a":{"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]}})", 8)}) {
    put("1.safetensors", bad);
    EXPECT_NE(files.check(1, "1", own), std::nullopt) << bad;
  }
  EXPECT_EQ(files.to_json(), Json::parse(R"([{"file": "tensors/TASK.safetensors", "tasks": 1}])"));
}

TEST_F(RecordTensorFilesTest, TheNamesOfAJobHaveALimit) {
  put("0.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  ASSERT_EQ(files.check(0, "0", rows(0, 1, "0")), std::nullopt);
  for (int i = 1; i <= 4096; ++i) {
    const std::string name = std::to_string(i);
    fs::create_hard_link(folder_ / "tensors/0.npy", folder_ / "tensors" / (name + ".npy"));
    const auto fault = files.check(0, "0", rows(0, 1, name));
    if (i < 4096) {
      ASSERT_EQ(fault, std::nullopt) << i;
    } else {
      EXPECT_THAT(fault.value_or(""), HasSubstr("more than 4096 names"));
    }
  }
}

TEST_F(RecordTensorFilesTest, ATensorsFolderThatIsALinkIsNotFollowed) {
  fs::create_directory(folder_ / "elsewhere");
  fs::remove(folder_ / "tensors");
  fs::create_symlink("elsewhere", folder_ / "tensors");
  put("result.npy", floats("5, 2") + std::string(40, 'x'));
  TensorFiles files = five_tasks();
  EXPECT_THAT(files.check(0, "0", rows(0, 1)).value_or(""), HasSubstr("cannot open"));
}

}  // namespace
}  // namespace mprun
