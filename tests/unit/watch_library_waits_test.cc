// Which polls and helper threads of libraries are known by their Python stacks.
#include "watch/library_waits.h"

#include <gtest/gtest.h>

namespace mprun {
namespace {

constexpr const char* kLoader = "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py";
constexpr const char* kTryGetData = "_MultiProcessingDataLoaderIter._try_get_data";
constexpr const char* kLoaderWorker = "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py";

const PythonFrame kSelecting{"/usr/lib/python3.11/selectors.py", 415, "_PollLikeSelector.select"};
const PythonFrame kGetting{"/usr/lib/python3.11/multiprocessing/queues.py", 113, "Queue.get"};

TEST(LibraryWaits, KnowsWhoLooksAroundNowAndThen) {
  const LibraryPoll* loader =
      find_library_poll({kSelecting, kGetting, {kLoader, 1120, kTryGetData}, {"train.py", 3, "main"}});
  ASSERT_NE(loader, nullptr);
  EXPECT_TRUE(loader->ends_with_child);
  EXPECT_FALSE(loader->ends_with_parent);
  const LibraryPoll* worker = find_library_poll({kSelecting, kGetting, {kLoaderWorker, 270, "_worker_loop"}});
  ASSERT_NE(worker, nullptr);
  EXPECT_TRUE(worker->ends_with_parent);
}

// What a worker is given to do may wait with limits of its own.
TEST(LibraryWaits, LeavesAloneWhatTheLibraryHasCalled) {
  EXPECT_EQ(find_library_poll(
                {kSelecting, kGetting, {"train.py", 9, "Numbers.__getitem__"}, {kLoaderWorker, 302, "_worker_loop"}}),
            nullptr);
  EXPECT_EQ(
      find_library_poll({kSelecting, kGetting, {kLoaderWorker, 302, "fetch"}, {kLoaderWorker, 302, "_worker_loop"}}),
      nullptr);
}

TEST(LibraryWaits, KnowsNoOthers) {
  EXPECT_EQ(find_library_poll({}), nullptr);
  EXPECT_EQ(find_library_poll({kSelecting, kGetting}), nullptr);
  EXPECT_EQ(find_library_poll({kSelecting, kGetting, {"/home/me/dataloader.py", 1, kTryGetData}}), nullptr);
}

TEST(LibraryWaits, KnowsHelpers) {
  EXPECT_TRUE(is_library_helper({kSelecting, {"/usr/lib/python3.11/multiprocessing/queues.py", 1, "Queue._feed"}}));
  EXPECT_FALSE(is_library_helper({kSelecting, kGetting}));
  EXPECT_FALSE(is_library_helper({}));
}

}  // namespace
}  // namespace mprun
