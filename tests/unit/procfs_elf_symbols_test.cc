// Symbols of objects in memory: of this very process, and of corrupt images.
#include "procfs/elf_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <random>
#include <utility>

#include "fake_process.h"

namespace mprun {
namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 24U;

std::uint64_t header_of(const void* inside) {
  Dl_info info{};
  EXPECT_NE(dladdr(inside, &info), 0);
  return reinterpret_cast<std::uint64_t>(info.dli_fbase);
}

TEST(ElfImage, FindsWhatTheLoaderFinds) {
  const auto proc = live_proc();
  ProcessMemory memory(proc.get(), getpid(), kPlenty);
  auto libc = ElfImage::open(&memory, header_of(dlsym(RTLD_DEFAULT, "getpid")));
  ASSERT_TRUE(libc);
  for (const char* name : {"getpid", "environ", "stdout", "mmap", "_IO_2_1_stdin_", "__libc_start_main"}) {
    const auto symbol = libc->find(name);
    ASSERT_TRUE(symbol) << name;
    void* handle = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
    EXPECT_EQ(symbol->address, reinterpret_cast<std::uint64_t>(dlsym(handle, name))) << name;
    EXPECT_GT(symbol->size, 0U) << name;
    dlclose(handle);
  }
  EXPECT_FALSE(libc->find("errno"));  // thread-local
  EXPECT_FALSE(libc->find(""));
  EXPECT_FALSE(libc->find("getpi"));
  EXPECT_FALSE(libc->find("getpidd"));
  EXPECT_FALSE(libc->find("no such symbol"));
}

TEST(ElfImage, FindsSymbolsByTheOldHashTableToo) {
  void* handle = dlopen(MPRUN_SYSV_HASH_LIBRARY, RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto proc = live_proc();
  ProcessMemory memory(proc.get(), getpid(), kPlenty);
  auto image = ElfImage::open(&memory, header_of(dlsym(handle, "mprun_test_first")));
  ASSERT_TRUE(image);
  for (const char* name : {"mprun_test_first", "mprun_test_second", "mprun_test_function"}) {
    const auto symbol = image->find(name);
    ASSERT_TRUE(symbol) << name;
    EXPECT_EQ(symbol->address, reinterpret_cast<std::uint64_t>(dlsym(handle, name))) << name;
  }
  EXPECT_EQ(image->find("mprun_test_second")->size, 16U);
  EXPECT_FALSE(image->find("mprun_test_third"));
  dlclose(handle);
}

/// A library with one function, which calls alarm().
class AlarmLibrary {
 public:
  explicit AlarmLibrary(const char* path, int binding = RTLD_LAZY) : handle_(dlopen(path, binding)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
    call_ = reinterpret_cast<unsigned (*)(unsigned)>(dlsym(handle_, "mprun_test_alarm"));
    image_ = ElfImage::open(&memory_, header_of(reinterpret_cast<void*>(call_)));
    EXPECT_TRUE(image_);
  }
  ~AlarmLibrary() { dlclose(handle_); }
  AlarmLibrary(const AlarmLibrary&) = delete;
  AlarmLibrary& operator=(const AlarmLibrary&) = delete;

  void call() const { call_(0); }
  bool has_name(std::string_view function) { return image_->has_name(function); }
  bool has_called(std::string_view function) { return image_->has_called({&function, 1}); }

 private:
  void* handle_;
  unsigned (*call_)(unsigned) = nullptr;
  std::unique_ptr<ProcSource> proc_ = live_proc();
  ProcessMemory memory_{proc_.get(), getpid(), kPlenty};
  std::optional<ElfImage> image_;
};

TEST(ElfImage, ShowsWhichFunctionsWereCalled) {
  AlarmLibrary lazy(MPRUN_ALARM_LAZY);
  EXPECT_FALSE(lazy.has_called("alarm"));
  lazy.call();
  EXPECT_TRUE(lazy.has_called("alarm"));
  EXPECT_FALSE(lazy.has_called("larm"));
  EXPECT_FALSE(lazy.has_called("mprun_test_alarm")) << "its own";
}

TEST(ElfImage, HasTheNamesOfWhatItDefinesOrMayCall) {
  AlarmLibrary library(MPRUN_ALARM_NOW);
  EXPECT_TRUE(library.has_name("alarm"));
  EXPECT_TRUE(library.has_name("mprun_test_alarm"));
  EXPECT_FALSE(library.has_name("setitimer"));
}

TEST(ElfImage, ShowsNothingOfAnImageThatWasBoundWhenItWasLoaded) {
  AlarmLibrary now(MPRUN_ALARM_NOW);
  now.call();
  EXPECT_FALSE(now.has_called("alarm"));
  AlarmLibrary by_dlopen(MPRUN_ALARM_LAZY, RTLD_NOW);
  by_dlopen.call();
  EXPECT_FALSE(by_dlopen.has_called("alarm"));
}

TEST(ElfImage, RefusesWhatIsNone) {
  FakeProcess proc;
  ProcessMemory memory(&proc, 1, kPlenty);
  EXPECT_FALSE(ElfImage::open(&memory, 0));
  EXPECT_FALSE(ElfImage::open(&memory, 0x1000));
  proc.map(0x1000, 0x1000);
  EXPECT_FALSE(ElfImage::open(&memory, 0x1000));
}

/// Detects reads of no bytes, for which there is no place.
class ExactProcess : public FakeProcess {
 public:
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    EXPECT_GT(size, 0U);
    EXPECT_NE(to, nullptr);
    return FakeProcess::memory(pid, address, to, size);
  }
};

TEST(ElfImage, RefusesADynamicSectionWithoutEntries) {
  constexpr std::uint64_t kBase = 0x1000;
  ExactProcess proc;
  proc.map(kBase, 0x1000);
  Elf64_Ehdr header{};
  std::memcpy(static_cast<unsigned char*>(header.e_ident), ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  header.e_type = ET_DYN;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  proc.put(kBase, header);
  std::array<Elf64_Phdr, 2> segments{};
  segments[0].p_type = PT_LOAD;
  segments[0].p_memsz = 0x1000;
  segments[1].p_type = PT_DYNAMIC;
  segments[1].p_vaddr = 0x200;
  segments[1].p_memsz = sizeof(Elf64_Dyn) - 1;
  proc.put(kBase + sizeof header, segments);
  ProcessMemory memory(&proc, 1, kPlenty);
  EXPECT_FALSE(ElfImage::open(&memory, kBase));
}

// Real images with overwritten bytes in headers and tables, a thousand times: no crash, no endless loop.
TEST(ElfImage, SurvivesGarbage) {
  const auto live = live_proc();
  void* handle = dlopen(MPRUN_SYSV_HASH_LIBRARY, RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  const std::uint64_t base = header_of(dlsym(handle, "mprun_test_first"));
  std::array<char, 0x1000> page{};
  FakeProcess proc;
  constexpr std::uint64_t kMost = 0x40000;  // what follows belongs to others, and is endless under a sanitizer
  constexpr std::size_t kPages = 4;         // of so small a library; arm64 leaves room between them
  std::vector<std::uint64_t> pages;
  for (std::uint64_t at = base; at < base + kMost; at += page.size()) {
    if (!live->memory(getpid(), at, page.data(), page.size())) continue;
    proc.put_bytes(at, {page.data(), page.size()});
    if (pages.size() < kPages) pages.push_back(at);
  }
  std::mt19937 random(4711);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): reproducible
  const auto overwrite = [&](std::uint64_t address) {
    std::uint32_t was = 0;
    EXPECT_TRUE(proc.memory(1, address, &was, sizeof was));
    proc.put<std::uint32_t>(address, random() % 3 == 0 ? random() : random() % 64);
    return std::pair(address, was);
  };
  int opened = 0;
  for (int round = 0; round < 1000; ++round) {
    std::array<std::pair<std::uint64_t, std::uint32_t>, 32> before;
    for (auto& word : before) word = overwrite(pages[random() % pages.size()] + random() % (page.size() / 4) * 4);
    ProcessMemory memory(&proc, 1, kPlenty);
    if (auto image = ElfImage::open(&memory, base)) {
      ++opened;
      const auto symbol = image->find("mprun_test_second");
      EXPECT_TRUE(!symbol || symbol->address != 0);
      constexpr std::array<std::string_view, 1> kCalled{"mprun_test_undefined"};
      (void)image->has_called(kCalled);
    }
    for (auto word = before.rbegin(); word != before.rend(); ++word) proc.put(word->first, word->second);
  }
  EXPECT_GT(opened, 0);
  dlclose(handle);
}

}  // namespace
}  // namespace mprun
