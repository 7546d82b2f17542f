// Recordings of /proc: what goes in comes out, and invalid ones are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "procfs/proc_source.h"

namespace mprun {
namespace {

using testing::HasSubstr;

/// Returns the given answers, one after another.
class ScriptedProc : public ProcSource {
 public:
  std::optional<std::string> read(const std::string&) override { return next(); }
  std::optional<std::string> link(const std::string&) override { return next(); }
  std::optional<std::vector<std::string>> list(const std::string&) override { return names; }
  bool memory(pid_t, std::uint64_t, void* to, std::size_t size) override {
    const auto bytes = next();
    if (bytes) std::memcpy(to, bytes->data(), std::min(size, bytes->size()));
    return bytes.has_value();
  }
  std::optional<std::vector<UnixSocket>> unix_sockets() override { return sockets; }
  std::optional<Nanos> time_limit(pid_t, int fd) override {
    return fd < 0 ? std::nullopt : std::optional<Nanos>(fd == 0 ? 1 : 0);
  }
  std::optional<bool> same_memory(pid_t one, pid_t other) override { return one == other; }
  std::optional<bool> same_files(pid_t one, pid_t other) override { return one < other; }
  std::optional<std::vector<std::string>> names_of(pid_t, const std::string&, std::uint64_t) override { return names; }
  std::optional<bool> is_private_folder(pid_t, const std::string&) override { return true; }

  std::deque<std::optional<std::string>> texts;
  std::optional<std::vector<std::string>> names;
  std::optional<std::vector<UnixSocket>> sockets;

 private:
  std::optional<std::string> next() {
    auto text = texts.front();
    texts.pop_front();
    return text;
  }
};

std::unique_ptr<ProcSource> replay(const std::string& text) {
  auto proc = recorded_proc(text);
  EXPECT_TRUE(proc) << proc.error().message << '\n' << text;
  return proc ? std::move(*proc) : nullptr;
}

std::string all_bytes() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

TEST(Recording, KeepsEveryTextAsItWas) {
  for (const std::string& text : {std::string(), std::string("\n"), std::string("a"), std::string("a\n\nb\n"),
                                  std::string("|\n#\n\\\n\\x00\\"), std::string("none read x\n"), all_bytes()}) {
    ScriptedProc asked;
    asked.texts = {text, text};
    ProcRecorder recorder(&asked);
    EXPECT_EQ(recorder.read("1/environ"), text);
    EXPECT_EQ(recorder.link("1/fd/3"), text);
    const auto proc = replay(recorder.recording());
    EXPECT_EQ(proc->read("1/environ"), text);
    EXPECT_EQ(proc->link("1/fd/3"), text);
    EXPECT_EQ(proc->read("1/other"), std::nullopt);
    EXPECT_EQ(proc->link("1/environ"), std::nullopt);
  }
}

TEST(Recording, IsTextForPeople) {
  ScriptedProc asked;
  asked.texts = {"cat\0a b\0", "pipe:[123]", std::nullopt, "\1\2\3\4"};
  asked.texts[0] = std::string("cat\0a b\0", 8);
  asked.names = {{"0", "a b"}};
  asked.sockets = {
      {{5, 6, false, ""}, {7, 0, true, "/tmp/a b"}, {8, 9, false, "", true}, {9, 8, false, "", false, 12}}};
  ProcRecorder recorder(&asked);
  std::array<char, 4> bytes{};
  (void)recorder.read("12/cmdline");
  (void)recorder.link("12/fd/3");
  (void)recorder.read("12/environ");
  (void)recorder.memory(12, 0x7ffc0010, bytes.data(), bytes.size());
  (void)recorder.list("12/a: b");
  (void)recorder.unix_sockets();
  (void)recorder.time_limit(12, 0);
  (void)recorder.time_limit(12, -1);
  (void)recorder.same_memory(12, 13);
  (void)recorder.same_files(12, 13);
  (void)recorder.names_of(12, "/dev/shm", 4711);
  (void)recorder.is_private_folder(12, "/tmp/a");
  EXPECT_EQ(recorder.recording(),
            "read 12/cmdline\n|cat\\x00a b\\x00\\\n"
            "link 12/fd/3: pipe:[123]\n"
            "none read 12/environ\n"
            "memory 12 7ffc0010 4\n|01020304\n"
            "list 12/a\\x3a\\x20b: 0 a\\x20b\n"
            "sockets\n|5 6 open\n|7 0 listening /tmp/a\\x20b\n|8 9 datagram\n|9 8 +12 open\n"
            "timeout 12 0: yes\n"
            "none timeout 12 -1\n"
            "same-memory 12 13: no\n"
            "same-files 12 13: yes\n"
            "names 12/root/dev/shm 4711: 0 a\\x20b\n"
            "private 12/root/tmp/a: yes\n");
  const auto proc = replay(recorder.recording());
  EXPECT_EQ(proc->list("12/a: b"), asked.names);
  EXPECT_EQ(proc->unix_sockets(), asked.sockets);
  EXPECT_EQ(proc->time_limit(12, 0), 1);
  EXPECT_EQ(proc->time_limit(12, -1), std::nullopt);
  EXPECT_EQ(proc->same_memory(12, 13), false);
  EXPECT_EQ(proc->same_memory(13, 12), std::nullopt);
  EXPECT_EQ(proc->same_files(12, 13), true);
  EXPECT_EQ(proc->same_files(13, 12), std::nullopt);
  EXPECT_EQ(proc->names_of(12, "/dev/shm", 4711), asked.names);
  EXPECT_EQ(proc->names_of(12, "/dev/shm", 4712), std::nullopt);
  EXPECT_EQ(proc->is_private_folder(12, "/tmp/a"), true);
  EXPECT_EQ(proc->is_private_folder(12, "/tmp/b"), std::nullopt);
}

TEST(Recording, GivesChangingAnswersInTheirOrder) {
  const std::deque<std::optional<std::string>> answers = {"a", "a", "b", std::nullopt, std::nullopt, "a", "c", "c"};
  ScriptedProc asked;
  ProcRecorder recorder(&asked);
  for (const auto& answer : answers) {
    asked.texts = {answer, "other"};
    (void)recorder.read("1/stat");
    (void)recorder.read("2/stat");  // between them, without disturbing them
  }
  for (const std::string& recording : {recorder.recording(), "# said of it\n\n" + recorder.recording()}) {
    const auto proc = replay(recording);
    for (const auto& answer : answers) {
      EXPECT_EQ(proc->read("1/stat"), answer);
      EXPECT_EQ(proc->read("2/stat"), "other");
    }
    EXPECT_EQ(proc->read("1/stat"), "c");  // from then on
  }
  EXPECT_THAT(recorder.recording(), HasSubstr("none read*2 1/stat\n"));
}

TEST(Recording, KeepsMemoryByAddressAndSize) {
  ScriptedProc asked;
  asked.texts = {all_bytes(), "1234", std::nullopt, ""};
  ProcRecorder recorder(&asked);
  std::string bytes(256, '\0');
  EXPECT_TRUE(recorder.memory(1, 0x1000, bytes.data(), 256));
  EXPECT_TRUE(recorder.memory(1, 0x1000, bytes.data(), 4));
  EXPECT_FALSE(recorder.memory(1, 0x2000, bytes.data(), 4));
  EXPECT_TRUE(recorder.memory(1, ~std::uint64_t{0}, bytes.data(), 0));
  const auto proc = replay(recorder.recording());
  std::string again(256, '\0');
  EXPECT_TRUE(proc->memory(1, 0x1000, again.data(), 4));
  EXPECT_EQ(again.substr(0, 4), "1234");
  EXPECT_TRUE(proc->memory(1, 0x1000, again.data(), 256));
  EXPECT_EQ(again, all_bytes());
  EXPECT_FALSE(proc->memory(1, 0x2000, again.data(), 4));
  EXPECT_FALSE(proc->memory(1, 0x1000, again.data(), 8));
  EXPECT_FALSE(proc->memory(2, 0x1000, again.data(), 4));
  EXPECT_TRUE(proc->memory(1, ~std::uint64_t{0}, again.data(), 0));
}

TEST(Recording, ThatMakesNoSenseIsRefusedByLine) {
  for (const char* bad : {"|lost",
                          "read",
                          "read a b",
                          "read a: b",
                          "read*0 a",
                          "read* a",
                          "read*x a",
                          "read*99999999999 a",
                          "write a",
                          "link a",
                          "link a: b\n|c",
                          "link a: \\q",
                          "link a: \\x0",
                          "link a: \\",
                          "list a",
                          "list a: \\y",
                          "read a\n|\\x",
                          "memory 1 2 3",
                          "memory 1 2 1\n|0",
                          "memory 1 2 1\n|0001",
                          "memory 1 2 1\n|0g",
                          "memory 1 2",
                          "memory 1 2 -1",
                          "memory x 2 1\n|00",
                          "sockets x",
                          "sockets\n|1",
                          "sockets\n|1 2 shut",
                          "sockets\n|1 2 open a b",
                          "timeout 1: yes",
                          "timeout 1 2: maybe",
                          "timeout 1 2",
                          "same-memory 1 2 3: no",
                          "none",
                          "none read a\n|b",
                          "none link a: b",
                          "none none read a",
                          "\1\2"}) {
    const auto proc = recorded_proc("# a\nread 1/stat\n|fine\n" + std::string(bad) + "\n");
    // A lost line of an answer belongs to the entry before it.
    if (std::string_view(bad) == "|lost") {
      EXPECT_FALSE(recorded_proc(bad));
      continue;
    }
    ASSERT_FALSE(proc) << bad;
    EXPECT_THAT(proc.error().message, HasSubstr("line 4:")) << bad;
  }
}

}  // namespace
}  // namespace mprun
