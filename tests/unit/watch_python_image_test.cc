// Stacks of a made-up Python 3.14: a version that mprun reads but that is not installed here, and what no healthy
// interpreter would show.
#include <elf.h>
#include <gmock/gmock.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "fake_process.h"
#include "python_descriptions.h"
#include "watch/judge/wait.h"
#include "watch/sample/architecture.h"
#include "watch/stacks/python_stack.h"
#include "watch/stalls/polls.h"

namespace mprun {
namespace {

constexpr std::uint64_t kImage = 0x400000;
constexpr std::uint64_t kVersion = kImage + 0x1000, kCodeType = kImage + 0x1100, kStringType = kImage + 0x1200,
                        kBytesType = kImage + 0x1300, kFloatType = kImage + 0x1400, kRuntime = kImage + 0x2000;
constexpr std::uint64_t kInterpreter = 0x500000, kThread = 0x510000, kLostThread = 0x511000;
constexpr std::uint64_t kEntry = 0x520000, kInner = 0x521000, kIncomplete = 0x522000, kOuter = 0x523000;
constexpr std::uint64_t kInnerCode = 0x530000, kOuterCode = 0x531000, kFile = 0x540000, kLines = 0x541000;
constexpr std::uint64_t kValue = 0x550000, kOtherValue = 0x551000, kFunction = 0x560000, kDefaults = 0x561000;
constexpr pid_t kPid = 70, kTid = 77;

class PythonImage : public testing::Test {
 protected:
  FakeProcess proc_;
  PythonLayout layout_{};

  explicit PythonImage(const std::vector<std::uint64_t>& words = words_of_314()) {
    layout_ = described_python_layout(14, description(words)).value();
    proc_.files["70/maps"] = "00400000-00410000 rw-p 00000000 fe:00 7 /usr/bin/python3.14\n";
    proc_.files["70/status"] = "Name:\tpython\nNSpid:\t70\n";
    proc_.links["70/exe"] = "/usr/bin/python3.14";
    proc_.folders["70/task"] = {"70", "77"};
    put_elf();
    proc_.put<std::uint64_t>(kVersion, 0x030e00f0);
    proc_.put_bytes(kRuntime, description(words));
    proc_.put(kRuntime + layout_.runtime.finalizing, kThread);
    proc_.put(kRuntime + layout_.runtime.interpreters, kInterpreter);
    put_interpreter();
    put_frame(kEntry, kInner, 3, 0x9999, 0);
    put_frame(kInner, kIncomplete, 0, kInnerCode | 1U, kInnerCode + layout_.code.instructions + 8);
    put_frame(kIncomplete, kOuter, 0, kInnerCode | 1U, kInnerCode + layout_.code.instructions);
    put_frame(kOuter, 0, 1, kOuterCode, kOuterCode + layout_.code.instructions);
    put_code(kInnerCode, "inner");
    put_code(kOuterCode, "outer");
    put_text(kFile, "train.py");
    put_object(kLines, kBytesType);
    proc_.put<std::uint64_t>(kLines + layout_.object_size, 6);
    proc_.put_bytes(kLines + layout_.text.bytes_data, "\xd1\x01\x02\xdf\x01\x02");  // two units: line 5; eight: line 6
  }

  void put_elf() {
    proc_.map(kImage, 0x4000);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_EXEC;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    proc_.put(kImage, header);
    proc_.put(kImage + sizeof header, Elf64_Phdr{PT_LOAD, PF_R, 0, kImage, kImage, 0x10000, 0x10000, 0x1000});
    proc_.put(kImage + sizeof header + sizeof(Elf64_Phdr),
              Elf64_Phdr{PT_DYNAMIC, PF_R, 0x200, kImage + 0x200, kImage + 0x200, 96, 96, 8});
    std::uint64_t entry = kImage + 0x200;
    for (const Elf64_Dyn& dynamic : {Elf64_Dyn{DT_HASH, {kImage + 0x400}}, Elf64_Dyn{DT_SYMTAB, {kImage + 0x600}},
                                     Elf64_Dyn{DT_STRTAB, {kImage + 0x900}}, Elf64_Dyn{DT_STRSZ, {0x100}},
                                     Elf64_Dyn{DT_SYMENT, {sizeof(Elf64_Sym)}}, Elf64_Dyn{DT_NULL, {0}}}) {
      proc_.put(entry, dynamic);
      entry += sizeof dynamic;
    }
    const std::vector<std::pair<std::string, std::uint64_t>> symbols = {
        {"_PyRuntime", kRuntime},        {"Py_Version", kVersion},     {"PyCode_Type", kCodeType},
        {"PyUnicode_Type", kStringType}, {"PyBytes_Type", kBytesType}, {"PyFloat_Type", kFloatType}};
    const auto count = static_cast<std::uint32_t>(symbols.size());
    proc_.put(kImage + 0x400, std::array<std::uint32_t, 3>{1, count + 1, 1});  // one bucket: from symbol 1 on
    std::uint32_t name = 1;
    for (std::uint32_t i = 1; i <= count; ++i) {
      proc_.put(kImage + 0x400 + 12 + std::uint64_t{i} * 4, i < count ? i + 1 : 0);
      proc_.put(kImage + 0x600 + i * sizeof(Elf64_Sym),
                Elf64_Sym{name, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, symbols[i - 1].second, 0x800});
      proc_.put_bytes(kImage + 0x900 + name, symbols[i - 1].first);
      name += static_cast<std::uint32_t>(symbols[i - 1].first.size()) + 1;
    }
  }

  void put_interpreter() {
    proc_.map(kInterpreter, 0x3000);
    proc_.put(kInterpreter + layout_.interpreter.threads, kThread);
    const std::uint64_t gil = kInterpreter + 0x2000;
    proc_.put(kInterpreter + layout_.interpreter.gil, gil);
    proc_.put(gil + layout_.gil.last_holder, kThread);
    proc_.put<std::int32_t>(gil + layout_.gil.locked, 1);
    proc_.put<std::uint64_t>(gil + layout_.gil.switch_number, 42);
    put_thread(kThread, kLostThread, kTid);
    put_thread(kLostThread, 0, 999);
  }

  void put_thread(std::uint64_t at, std::uint64_t next, std::uint64_t native_id) {
    proc_.map(at, 0x200);
    proc_.put(at + layout_.thread.next, next);
    proc_.put(at + layout_.thread.interpreter, kInterpreter);
    proc_.put(at + layout_.thread.native_id, native_id);
    proc_.put(at + layout_.thread.frame, kEntry);
  }

  void put_frame(std::uint64_t at, std::uint64_t previous, char owner, std::uint64_t code, std::uint64_t instruction) {
    proc_.map(at, 0x80);
    proc_.put(at + layout_.frame.previous, previous);
    proc_.put(at + layout_.frame.owner, owner);
    proc_.put(at + layout_.frame.code, code);
    proc_.put(at + layout_.frame.instruction, instruction);
  }

  void put_code(std::uint64_t at, std::string_view function) {
    proc_.map(at, 0x100);
    put_object(at, kCodeType);
    proc_.put<std::uint64_t>(at + layout_.object_size, 10);
    proc_.put<std::int32_t>(at + layout_.code.first_line, 5);
    proc_.put<std::int32_t>(at + layout_.code.first_traceable, 1);
    proc_.put(at + layout_.code.filename, kFile);
    proc_.put(at + layout_.code.qualified_name, at + 0x800);
    proc_.put(at + layout_.code.line_table, kLines);
    put_text(at + 0x800, function);
  }

  void put_object(std::uint64_t at, std::uint64_t type) { proc_.put(at + layout_.object_size - 8, type); }

  void put_text(std::uint64_t at, std::string_view text) {
    proc_.map(at, layout_.text.ascii_data);
    put_object(at, kStringType);
    proc_.put<std::uint64_t>(at + layout_.text.length, text.size());
    proc_.put<std::uint32_t>(at + layout_.text.state, (1U | 8U | 16U) << layout_.text.interned_bits);
    proc_.put_bytes(at + layout_.text.ascii_data, text);
  }

  /// An object with `content`, which is the variable of the function "inner".
  template <typename T>
  void put_variable(std::uint64_t at, std::uint64_t type, T content) {
    proc_.map(at, 0x40);
    proc_.put(at + 8, type);
    proc_.put(at + 16, content);
    proc_.put<std::uint32_t>(kInnerCode + layout_.code.local_count, 1);
    proc_.put(kInner + layout_.frame.locals, at | 1U);
  }

  /// The function "inner" has so many arguments; the last ones have these defaults.
  void put_defaults(std::uint32_t arguments, const std::vector<std::uint64_t>& defaults) {
    proc_.put(kInnerCode + layout_.code.argument_count, arguments);
    proc_.put(kInner + layout_.frame.function, kFunction | 1U);
    proc_.map(kFunction, 0x80);
    proc_.put(kFunction + layout_.function_defaults, kDefaults);
    proc_.map(kDefaults, 0x60);
    proc_.put<std::uint64_t>(kDefaults + layout_.object_size, defaults.size());
    for (std::size_t i = 0; i < defaults.size(); ++i) proc_.put(kDefaults + layout_.tuple_items + i * 8, defaults[i]);
  }
  void put_argument(std::uint64_t index, std::uint64_t value) {
    proc_.put(kInner + layout_.frame.locals + index * 8, value);
  }
  std::optional<bool> default_is_used(const char* function = "inner", pid_t tid = kTid) {
    return first_default_is_used(&proc_, kPid, tid, function);
  }

  /// Thread kTid at a futex, with a time limit.
  static ThreadSample waiting_thread(std::uint64_t runs) {
    ThreadSample thread;
    thread.pid = kPid;
    thread.tid = kTid;
    thread.state = 'S';
    thread.runs = runs;
    thread.call.running = false;
    thread.call.number = SYS_futex;
    thread.call.arguments = {0x5000, FUTEX_WAIT_PRIVATE, 0, 0x4000};
    return thread;
  }

  /// The function "inner" is `while True: sleep()`.
  void put_loop() {
    constexpr std::uint64_t kNames = 0x580000, kName = 0x581000;
    // RESUME; from its second unit on, LOAD_NAME, PUSH_NULL, CALL with three caches, POP_TOP, and JUMP_BACKWARD to
    // there with one.
    constexpr char kUnits[] = "\x80\0\x5d\0\x21\0\x34\0\0\0\0\0\0\0\x1f\0\x4b\x09\0";
    proc_.put_bytes(kInnerCode + layout_.code.instructions, std::string_view(kUnits, sizeof kUnits));
    proc_.put(kInner + layout_.frame.instruction, kInnerCode + layout_.code.instructions + 6);
    proc_.map(kNames, 0x40);
    proc_.put(kInnerCode + 32, kNames);
    proc_.put<std::uint64_t>(kNames + layout_.object_size, 1);
    proc_.put(kNames + layout_.tuple_items, kName);
    put_text(kName, "sleep");
  }

  /// Three looks of a PollMeter; `change` happens before the last.
  template <typename Change>
  std::set<pid_t> polls(const Change& change) {
    put_loop();
    PollMeter meter(&proc_);
    for (std::uint64_t look = 1; look <= 3; ++look) {
      if (look == 3) change();
      meter.take({{waiting_thread(look * 3)}}, static_cast<Nanos>(look));
    }
    return meter.polls();
  }

  PythonStacks read() { return read_python_stacks(&proc_, kPid); }

  static std::vector<std::string> frames(const PythonThread& thread) {
    std::vector<std::string> texts;
    for (const PythonFrame& frame : thread.frames) {
      texts.push_back(frame.file + ":" + std::to_string(frame.line) + " " + frame.function);
    }
    return texts;
  }
};

TEST_F(PythonImage, ShowsANumberThatIsAnArgument) {
  const auto first = [this] { return first_number(&proc_, kPid, kTid, "inner"); };
  put_argument(1, kValue);
  proc_.map(kValue, 0x40);
  proc_.put(kValue + 8, kFloatType);
  proc_.put(kValue + 16, 60.0);
  EXPECT_EQ(first(), 60.0);
  proc_.put(kValue + 8, kFunction);  // a type
  proc_.map(kFunction, 0x80);
  proc_.put(kFunction + 24, kDefaults);
  proc_.map(kDefaults, 0x60);
  proc_.put_bytes(kDefaults, std::string_view("int", sizeof "int"));
  proc_.put<std::uint64_t>(kValue + 16, 1U << 3U);
  proc_.put<std::uint32_t>(kValue + 24, 86400);
  EXPECT_EQ(first(), 86400.0);
  proc_.put<std::uint64_t>(kValue + 16, 1U << 3U | 2U);
  EXPECT_EQ(first(), std::nullopt) << "it is negative";
  proc_.put_bytes(kDefaults, std::string_view("str", sizeof "str"));
  EXPECT_EQ(first(), std::nullopt);
}

TEST_F(PythonImage, Of314IsRead) {
  const PythonStacks stacks = read();
  EXPECT_EQ(stacks.reason, "");
  EXPECT_EQ(stacks.version, "3.14.0");
  ASSERT_EQ(stacks.threads.size(), 1U);
  EXPECT_EQ(stacks.threads[0].tid, kTid);
  EXPECT_TRUE(stacks.threads[0].whole);
  EXPECT_THAT(frames(stacks.threads[0]), testing::ElementsAre("train.py:6 inner", "train.py:5 outer"));
  EXPECT_TRUE(stacks.finalizing);
  EXPECT_EQ(stacks.finalizing_tid, kTid);
  ASSERT_EQ(stacks.gils.size(), 1U);
  EXPECT_TRUE(stacks.gils[0].locked);
  EXPECT_EQ(stacks.gils[0].last_holder, kTid);
  EXPECT_EQ(stacks.gils[0].switch_number, 42U);
  EXPECT_EQ(stacks.gils[0].wait_begin, kInterpreter + 0x2000 + 32);
  EXPECT_EQ(stacks.runtime_begin, kRuntime);
}

class FreeThreadedImage : public PythonImage {
 protected:
  FreeThreadedImage() : PythonImage(words_of_free_threaded_314()) {}
};

// The thread of "outer" executes a copy of its instructions.
TEST_F(FreeThreadedImage, IsRead) {
  constexpr std::uint64_t kCopies = 0x570000, kCopy = 0x571000;
  proc_.map(kCopies, 0x20);
  proc_.put(kCopies, std::array<std::uint64_t, 3>{2, kOuterCode + layout_.code.instructions, kCopy});
  proc_.put(kOuterCode + layout_.code.copies, kCopies);
  proc_.put<std::int32_t>(kOuter + layout_.frame.copy, 1);
  proc_.put(kOuter + layout_.frame.instruction, kCopy + 8);
  const PythonStacks stacks = read();
  EXPECT_EQ(stacks.reason, "");
  ASSERT_EQ(stacks.threads.size(), 1U);
  EXPECT_TRUE(stacks.threads[0].whole);
  EXPECT_THAT(frames(stacks.threads[0]), testing::ElementsAre("train.py:6 inner", "train.py:6 outer"));
  EXPECT_TRUE(stacks.gils.empty()) << "it is not enabled";
  put_defaults(2, {kValue});
  put_argument(1, kValue);
  EXPECT_EQ(default_is_used(), true);

  proc_.put<std::int32_t>(kOuter + layout_.frame.copy, 2);
  EXPECT_FALSE(read().threads.at(0).whole) << "there is no such copy";
  proc_.put<std::int32_t>(kInterpreter + 0x2000 + layout_.gil.enabled, 1);
  ASSERT_EQ(read().gils.size(), 1U);
  EXPECT_EQ(read().gils[0].last_holder, kTid);
}

TEST_F(PythonImage, HasVariablesOfTheUsersOwnCode) {
  put_variable(kValue, 0x1234, std::uint64_t{5});
  EXPECT_EQ(read().threads.at(0).locals.fingerprint, 0U) << "it was not asked for";
  const auto fingerprint = [this] { return read_python_progress(&proc_, kPid).threads.at(0).locals.fingerprint; };
  const std::uint64_t before = fingerprint();
  EXPECT_NE(before, 0U);
  put_variable(kValue, 0x1234, std::uint64_t{6});
  EXPECT_NE(fingerprint(), before);
  put_text(kFile, "/usr/lib/python3.14/queue.py");
  EXPECT_EQ(fingerprint(), 0U) << "the library's are new at each call";
}

TEST_F(PythonImage, ShowsWhetherADefaultIsUsed) {
  put_defaults(2, {kValue});
  for (const std::uint64_t flags : {0, 1, 3}) {  // of a reference
    put_argument(1, kValue | flags);
    EXPECT_EQ(default_is_used(), true) << flags;
    put_argument(1, kOtherValue | flags);
    EXPECT_EQ(default_is_used(), false) << flags;
  }
  put_argument(0, kValue);
  EXPECT_EQ(default_is_used(), false) << "an argument without a default";
}

// They belong to the last arguments.
TEST_F(PythonImage, ShowsWhetherTheFirstOfSeveralDefaultsIsUsed) {
  put_defaults(4, {kValue, kOtherValue, kOtherValue});
  put_argument(0, kOtherValue);
  put_argument(1, kValue);
  put_argument(2, 0x1234);
  EXPECT_EQ(default_is_used(), true);
  put_argument(1, kOtherValue);
  put_argument(2, kOtherValue);
  EXPECT_EQ(default_is_used(), false);
  put_defaults(3, {kOtherValue, kValue, kValue});
  EXPECT_EQ(default_is_used(), true) << "all have one";
}

TEST_F(PythonImage, DoesNotShowWhetherADefaultIsUsedWhereThereIsNone) {
  put_defaults(2, {kValue});
  put_argument(1, kValue);
  EXPECT_EQ(default_is_used("other"), std::nullopt);
  EXPECT_EQ(default_is_used("inner", kPid), std::nullopt) << "another thread";
  EXPECT_EQ(default_is_used("outer"), std::nullopt) << "its function cannot be read";
  put_defaults(2, {});
  EXPECT_EQ(default_is_used(), std::nullopt) << "no default";
  put_defaults(1, {kValue, kValue});
  EXPECT_EQ(default_is_used(), std::nullopt) << "more defaults than arguments";
  put_defaults(100, {kValue});
  EXPECT_EQ(default_is_used(), std::nullopt) << "no such function exists";
  put_defaults(2, {kValue});
  EXPECT_EQ(default_is_used(), true);
  proc_.put(kFunction + layout_.function_defaults, std::uint64_t{0});
  EXPECT_EQ(default_is_used(), std::nullopt) << "the function has no defaults";
  proc_.files["70/maps"] = "";
  EXPECT_EQ(default_is_used(), std::nullopt) << "no Python";
}

// The values of a loop's attributes lie after the loop, in the order in which they were set.
TEST_F(PythonImage, CountsTheCallbacksOfAnEventLoop) {
  constexpr std::uint64_t kLoop = kValue, kLoopType = 0x570000, kDeque = 0x571000, kDequeType = 0x572000,
                          kName = 0x573000, kBasicSize = 0x20;
  put_text(kInnerCode + 0x800, "BaseEventLoop._run_once");
  put_variable(kLoop, kLoopType, std::uint64_t{0});
  for (const std::uint64_t at : {kLoopType, kDeque, kDequeType, kName}) proc_.map(at, 0x100);
  proc_.map(kLoop, 0x100);
  proc_.put(kLoop + 8, kLoopType);
  proc_.put(kLoopType + 32, kBasicSize);
  proc_.put<std::uint64_t>(kLoopType + 168, 1U << 4U | 1U << 2U);  // its attributes are in the object
  proc_.put(kLoop + kBasicSize, std::array<std::uint8_t, 4>{30, 20, 1, 1});
  proc_.put(kLoop + kBasicSize + 8 + 24, kDeque);
  proc_.put(kDeque + 8, kDequeType);
  proc_.put(kDeque + 16, std::uint64_t{3});
  proc_.put(kDequeType + 24, kName);
  proc_.put_bytes(kName, std::string_view("collections.deque", sizeof "collections.deque"));
  EXPECT_EQ(callbacks_of_loop(&proc_, kPid, kTid), 3U);
  EXPECT_EQ(callbacks_of_loop(&proc_, kPid, kPid), std::nullopt) << "another thread";
  proc_.put(kLoop + kBasicSize, std::array<std::uint8_t, 4>{30, 20, 1, 0});
  EXPECT_EQ(callbacks_of_loop(&proc_, kPid, kTid), std::nullopt) << "they are in a dictionary instead";
  proc_.put(kLoop + kBasicSize, std::array<std::uint8_t, 4>{30, 20, 1, 1});
  proc_.put_bytes(kName, std::string_view("collections.OrderedDict"));
  EXPECT_EQ(callbacks_of_loop(&proc_, kPid, kTid), std::nullopt) << "no deque";
}

TEST_F(PythonImage, PollsWhileItsVariablesStayAsTheyAre) {
  put_variable(kValue, 0x1234, std::uint64_t{5});
  EXPECT_THAT(polls([] {}), testing::ElementsAre(kTid));
  EXPECT_THAT(polls([this] { put_variable(kValue, 0x1234, std::uint64_t{6}); }), testing::IsEmpty());
  EXPECT_THAT(polls([this] { put_variable(kOtherValue, 0x1234, std::uint64_t{6}); }), testing::IsEmpty());
}

TEST_F(PythonImage, ShowsNoPollIfItsVariablesCannotBeRead) {
  proc_.put<std::uint64_t>(kVersion, 0x040000f0);
  EXPECT_THAT(polls([] {}), testing::IsEmpty());
}

TEST_F(PythonImage, DoesNotPollUntilATimeThatIsSoonToCome) {
  const double uptime = to_seconds(monotonic_now()), today = to_seconds(wall_now());
  for (const double now : {uptime, today}) {
    put_variable(kValue, kFloatType, now + 600);
    EXPECT_THAT(polls([] {}), testing::IsEmpty()) << now;
  }
  // As far as is known, the tree has just begun.
  for (const double other : {uptime - 5, today - 600, today + 1e6, 0.5}) {
    put_variable(kValue, kFloatType, other);
    EXPECT_THAT(polls([] {}), testing::ElementsAre(kTid)) << other;
  }
}

// It may check how long it has polled.
TEST_F(PythonImage, DoesNotPollFromATimeSinceItsTreeBegan) {
  const Nanos age = 60 * kNanosPerSecond;
  const auto ticks =
      static_cast<unsigned long long>((read_clock(CLOCK_BOOTTIME) - age) / 1'000'000 * sysconf(_SC_CLK_TCK) / 1000);
  std::string stat = "70 (python) S 1 70 70 0 -1 0";
  for (int field = 10; field <= 52; ++field) stat += " " + (field == 22 ? std::to_string(ticks) : std::string("0"));
  proc_.files["70/stat"] = stat + "\n";
  const double uptime = to_seconds(monotonic_now()), today = to_seconds(wall_now());
  for (const double begin : {uptime - 30, today - 30}) {
    put_variable(kValue, kFloatType, begin);
    EXPECT_THAT(polls([] {}), testing::IsEmpty()) << begin;
  }
  put_variable(kValue, kFloatType, today - 90);
  EXPECT_THAT(polls([] {}), testing::ElementsAre(kTid)) << "before it began";
}

// It has run and is treated as a poll, and yet it waits for the GIL.
TEST_F(PythonImage, WaitsForItsGil) {
  Sample sample{{waiting_thread(5)}};
  sample.threads[0].tid = kPid;
  sample.threads[0].moved = true;
  sample.threads[0].call.arguments[0] = kInterpreter + 0x2000 + 32;
  TreeBoundary boundary;
  boundary.assumptions.polls = {kPid};
  TreeSnapshot snapshot(&proc_, &sample, boundary);
  const Wait wait = decode_wait(sample.threads[0], &snapshot);
  EXPECT_EQ(wait.kind, WaitKind::kGil);
  EXPECT_THAT(wait.wakers, testing::ElementsAre(Waker{kPid, kTid}));
  EXPECT_THAT(snapshot.assumed(), testing::IsEmpty());
  sample.threads[0].call.arguments[0] = 0x5000;
  EXPECT_NE(decode_wait(sample.threads[0], &snapshot).kind, WaitKind::kGil);
}

class RankImage : public PythonImage {
 protected:
  const std::string kMachine = "0100007F:", kAnybody = "00000000:0000";

  RankImage() {
    put_text(kFile, "/torch/distributed/distributed_c10d.py");
    std::string stat = "70 (python) S 1";
    for (int field = 5; field <= 52; ++field) stat += " 0";
    proc_.files["70/stat"] = proc_.files["1/stat"] = stat + "\n";
    proc_.files["70/status"] =
        "Name:\tpython\nState:\tS (sleeping)\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nThreads:\t2\nNSpid:\t70\n"
        "SigPnd:\t0\nShdPnd:\t0\nSigBlk:\t0\nSigIgn:\t0\nSigCgt:\t0\n"
        "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t0\n";
    proc_.files["70/timers"] = "";
    proc_.folders["70/fd"] = {"3", "4"};
    proc_.links["70/fd/3"] = "socket:[90]";
    proc_.links["70/fd/4"] = "socket:[91]";
    proc_.files["70/fdinfo/3"] = proc_.files["70/fdinfo/4"] = "flags:\t02\n";
  }

  /// The wait for connections of a rank in `function`, with this table in addition to the listener.
  Wait wait(const std::string& function, const std::string& table, bool no_outside_peers = true, bool closed = true) {
    put_text(kInnerCode + 0x800, function);
    proc_.files["70/net/tcp"] = line(kMachine + "1F90", kAnybody, "0A", 90) + table;
    Sample sample{{waiting_thread(5)}};
    sample.threads[0].tid = kPid;
    TreeBoundary boundary;
    boundary.assumptions.no_outside_peers = no_outside_peers;
    boundary.closed = closed;
    boundary.may_start = may_start_;
    TreeSnapshot snapshot(&proc_, &sample, boundary);
    Wait found = decode_polled(sample.threads[0], 3, &snapshot);
    assumed_ = snapshot.assumed();
    return found;
  }
  static std::string line(const std::string& local, const std::string& remote, const std::string& state, int inode) {
    return "0: " + local + " " + remote + " " + state + " 00000000:00000000 00:00000000 00000000 1000 0 " +
           std::to_string(inode) + " 1\n";
  }
  std::vector<std::string> assumed_;
  bool may_start_ = false;
};

TEST_F(RankImage, IsReachedByOtherRanksAlone) {
  for (const char* function : {"init_process_group", "all_reduce"}) {
    const Wait connections = wait(function, "");
    EXPECT_EQ(connections.why_live, "");
    EXPECT_EQ(connections.kind, WaitKind::kSocket);
    EXPECT_THAT(connections.wakers, testing::ElementsAre(Waker{kPid, 0}));
    EXPECT_THAT(assumed_, testing::ElementsAre("a rank that was started elsewhere may connect to process 70"));
    EXPECT_EQ(wait(function, "", false).why_live, "any process may connect");
    EXPECT_THAT(assumed_, testing::IsEmpty());
  }
  put_text(kFile, "/home/me/server.py");
  EXPECT_EQ(wait("all_reduce", "").why_live, "any process may connect");
}

// multiprocessing's listeners: one that it has started itself, and one for others.
TEST_F(RankImage, ListensForItsOwnTree) {
  put_text(kFile, "/usr/lib/python3.14/multiprocessing/managers.py");
  proc_.sockets = {{{90, 0, true, "/tmp/pymp-a1/listener-b2", false}}};
  proc_.private_folders = {"/tmp/pymp-a1"};
  EXPECT_EQ(wait("BaseManager._run_server", "", false).why_live, "");
  EXPECT_THAT(assumed_, testing::IsEmpty());
  EXPECT_EQ(wait("Server.accepter", "", false).why_live, "any process may connect");
  EXPECT_EQ(wait("Server.accepter", "", true).why_live, "");
  EXPECT_THAT(assumed_, testing::ElementsAre("a process of another program may connect to process 70"));
  may_start_ = true;
  EXPECT_EQ(wait("BaseManager._run_server", "", false).why_live, "mprun will start another process");
  put_text(kFile, "/usr/lib/python3.14/multiprocessing/forkserver.py");
  EXPECT_EQ(wait("main", "", false).why_live, "");
}

// In a tree that mprun has not started, that is assumed.
TEST_F(RankImage, ListensForATreeOfOthers) {
  put_text(kFile, "/usr/lib/python3.14/multiprocessing/managers.py");
  proc_.sockets = {{{90, 0, true, "/tmp/pymp-a1/listener-b2", false}}};
  proc_.private_folders = {"/tmp/pymp-a1"};
  EXPECT_EQ(wait("BaseManager._run_server", "", false, false).why_live, "any process may connect");
  EXPECT_EQ(wait("Server.accepter", "", true, false).why_live, "any process may connect");
  EXPECT_EQ(wait("BaseManager._run_server", "", true, false).why_live, "");
  EXPECT_THAT(assumed_, testing::ElementsAre("a process of another program may connect to process 70"));
}

TEST_F(RankImage, IsReachedByOthersOfWhichOneHasConnected) {
  const std::string own = line("0100007F:A001", "0100007F:1F90", "01", 91);
  const std::string stranger = line("0100007F:A002", "0100007F:1F90", "01", 99);
  EXPECT_EQ(wait("all_reduce", own).why_live, "");
  EXPECT_EQ(wait("all_reduce", stranger).why_live, "any process may connect");
  EXPECT_EQ(wait("all_reduce", line("0100007F:A002", "0100007F:1F91", "01", 99)).why_live, "") << "another port";
}

// Through such an address ranks of other machines may connect.
TEST_F(RankImage, IsReachedByOtherMachinesUntilAllHaveMet) {
  const std::string far = line("0200000A:A001", "0100000A:1F90", "01", 91);
  EXPECT_EQ(wait("init_process_group", far).why_live, "any process may connect");
  EXPECT_EQ(wait("all_reduce", far).why_live, "");
  const std::string loopback = "00000000000000000000000001000000:";
  EXPECT_EQ(wait("init_process_group", line(loopback + "A001", loopback + "1F90", "01", 91)).why_live, "");
}

// Its own Python may be anywhere by then: gloo's listener stays open.
TEST_F(RankImage, IsTheOneThatARankHasConnectedTo) {
  for (const char* name : {"stat", "status", "timers"}) {
    proc_.files[std::string("71/") + name] = proc_.files[std::string("70/") + name];
  }
  proc_.folders["70/fd"] = {"4"};
  proc_.folders["71/fd"] = {"3"};
  proc_.links["71/fd/3"] = "socket:[90]";
  proc_.files["71/fdinfo/3"] = "flags:\t02\n";
  const auto why_live = [&](const std::string& function, const std::string& library) {
    put_text(kInnerCode + 0x800, function);
    proc_.files["71/maps"] = "7f0000000000-7f0000001000 r-xp 00000000 08:01 9 " + library + "\n";
    proc_.files["70/net/tcp"] = proc_.files["71/net/tcp"] =
        line(kMachine + "1F90", kAnybody, "0A", 90) + line("0100007F:A001", "0100007F:1F90", "01", 91);
    Sample sample{{waiting_thread(5), waiting_thread(5)}};
    sample.threads[0].tid = kPid;
    sample.threads[1].pid = sample.threads[1].tid = 71;
    TreeBoundary boundary;
    boundary.assumptions.no_outside_peers = true;
    TreeSnapshot snapshot(&proc_, &sample, boundary);
    return decode_polled(sample.threads[1], 3, &snapshot).why_live;
  };
  EXPECT_EQ(why_live("all_reduce", "/torch/lib/libtorch_cpu.so"), "");
  EXPECT_EQ(why_live("all_reduce", "/lib/libc.so.6"), "any process may connect") << "any server";
  EXPECT_EQ(why_live("init_process_group", "/torch/lib/libtorch_cpu.so"), "any process may connect");
  put_text(kFile, "/home/me/client.py");
  EXPECT_EQ(why_live("all_reduce", "/torch/lib/libtorch_cpu.so"), "any process may connect");
}

// Gloo's thread in process 71 polls its listener (92), which has no client, and perhaps a connection (91).
TEST_F(RankImage, IsTheOneInWhichGlooListens) {
  for (const char* name : {"stat", "status", "timers"}) {
    proc_.files[std::string("71/") + name] = proc_.files[std::string("70/") + name];
  }
  proc_.folders["70/fd"] = {"3"};
  proc_.folders["71/fd"] = {"3", "4", "5", "6"};
  proc_.links["71/fd/3"] = "socket:[92]";
  proc_.links["71/fd/4"] = "socket:[91]";
  proc_.links["71/fd/5"] = "pipe:[93]";
  proc_.links["71/fd/6"] = "anon_inode:[eventpoll]";
  for (const char* number : {"3", "4", "5"}) proc_.files[std::string("71/fdinfo/") + number] = "flags:\t02\n";
  proc_.files["71/maps"] = "7f0000000000-7f0000001000 r-xp 00000000 08:01 9 /torch/lib/libtorch_cpu.so\n";
  proc_.files["70/net/tcp"] = proc_.files["71/net/tcp"] = line(kMachine + "1F90", kAnybody, "0A", 90) +
                                                          line(kMachine + "1F91", kAnybody, "0A", 92) +
                                                          line("0100007F:A001", "0100007F:1F90", "01", 91);
  const auto why_live = [&](const std::vector<int>& polled, std::uint64_t limit = 10) {
    put_text(kInnerCode + 0x800, "train");
    std::string epoll = "flags:\t02\n";
    for (const int number : polled) {
      constexpr std::array kInodes = {"5c", "5b", "5d"};
      epoll +=
          "tfd: " + std::to_string(number) + " events: 19 data: 0  pos:0 ino:" + kInodes.at(number - 3) + " sdev:8\n";
    }
    proc_.files["71/fdinfo/6"] = epoll;
    Sample sample{{waiting_thread(5), waiting_thread(5)}};
    sample.threads[0].tid = kPid;
    sample.threads[1].pid = sample.threads[1].tid = 71;
    sample.threads[1].call.number = SYS_epoll_pwait;
    sample.threads[1].call.arguments = {6, 0x5000, 64, limit, 0, 0};
    TreeBoundary boundary;
    boundary.assumptions.no_outside_peers = true;
    TreeSnapshot snapshot(&proc_, &sample, boundary);
    return decode_polled(sample.threads[1], 3, &snapshot).why_live;
  };
  EXPECT_EQ(why_live({3, 4, 5}), "");
  EXPECT_EQ(why_live({3, 5}), "") << "of one rank, or before it connects";
  EXPECT_EQ(why_live({3, 4}), "any process may connect") << "gloo polls a pipe, too";
  EXPECT_EQ(why_live({4, 5}), "any process may connect");
  EXPECT_EQ(why_live({3, 4, 5}, 1000), "any process may connect") << "a server of the user's own";
  proc_.files["71/maps"] = "7f0000000000-7f0000001000 r-xp 00000000 08:01 9 /lib/libc.so.6\n";
  EXPECT_EQ(why_live({3, 4, 5}), "any process may connect") << "any server";
}

TEST_F(RankImage, SleepsUntilOthersHaveComeIfThatIsAssumed) {
  Sample sample{{waiting_thread(5)}};
  sample.threads[0].call.number = SYS_clock_nanosleep;
  sample.threads[0].moved = true;
  const auto decoded = [&](const std::string& function, Nanos no_limit_from) {
    put_text(kInnerCode + 0x800, function);
    TreeBoundary boundary;
    boundary.assumptions.no_limit_from = no_limit_from;
    TreeSnapshot snapshot(&proc_, &sample, boundary);
    Wait found = decode_wait(sample.threads[0], &snapshot);
    assumed_ = snapshot.assumed();
    return found;
  };
  const Wait barrier = decoded("_store_based_barrier", 1);
  EXPECT_EQ(barrier.kind, WaitKind::kTimer);
  EXPECT_EQ(barrier.why_live, "");
  EXPECT_THAT(barrier.wakers, testing::ElementsAre(Waker{kPid, 0}));
  EXPECT_THAT(assumed_, testing::ElementsAre("thread 77 of process 70 sleeps and looks whether all ranks have come, "
                                             "which a process outside may bring about"));
  EXPECT_NE(decoded("_store_based_barrier", 0).why_live, "");
  EXPECT_NE(decoded("all_reduce", 1).why_live, "") << "it sleeps for another reason";
  EXPECT_THAT(assumed_, testing::IsEmpty());
}

class LoaderImage : public RankImage {
 protected:
  LoaderImage() {
    put_text(kFile, "/torch/utils/data/dataloader.py");
    put_text(kInnerCode + 0x800, "_MultiProcessingDataLoaderIter._try_get_data");
    put_defaults(2, {kValue});
    constexpr std::string_view kCode = architecture::kSystemCall;
    proc_.put_bytes(0x7f0000000102 - kCode.size(), std::string(kCode));
  }

  /// What thread kTid waits for.
  Wait wait_of_loader(std::vector<pid_t> ended = {}) {
    Sample sample{{waiting_thread(5), waiting_thread(5)}};
    sample.ended = std::move(ended);
    sample.threads[0].tid = kPid;
    for (ThreadSample& thread : sample.threads) {
      thread.call.stack_pointer = 0x7ffc00001000;
      thread.call.program_counter = 0x7f0000000102;
    }
    TreeSnapshot snapshot(&proc_, &sample, {});
    return decode_wait(sample.threads[1], &snapshot);
  }
};

TEST_F(LoaderImage, PollsWithTheLimitOfItsOwn) {
  put_argument(1, kValue);
  const Wait wait = wait_of_loader();
  EXPECT_EQ(wait.why_live, "");
  EXPECT_EQ(wait.kind, WaitKind::kFutex);
  EXPECT_THAT(wait.object, testing::HasSubstr("looking now and then whether its workers live"));
  EXPECT_THAT(wait.wakers, testing::ElementsAre(Waker{kPid, 0}));
}

// While the process that has ended is none of the loader's workers, the next look finds nothing.
TEST_F(LoaderImage, IsLiveIfAWorkerHasEnded) {
  constexpr pid_t kWorker = 91, kOther = 92;
  constexpr std::uint64_t kTypes = 0x570000, kLoader = 0x580000, kWorkers = 0x581000, kItems = 0x582000,
                          kProcess = 0x583000, kPopen = 0x584000, kNumber = 0x585000, kFlags = 0x586000,
                          kFlag = 0x587000, kFlagItems = 0x588000;
  std::uint64_t next_type = kTypes;
  const auto put_object = [&](std::uint64_t at, const std::string& type, bool has_attributes) {
    const std::uint64_t type_at = next_type, name_at = type_at + 0x400;
    next_type += 0x1000;
    proc_.map(at, 0x100);
    proc_.map(type_at, 0x800);
    proc_.put(at + 8, type_at);
    proc_.put(type_at + 24, name_at);
    proc_.put_bytes(name_at, std::string_view(type.c_str(), type.size() + 1));
    if (!has_attributes) return;
    constexpr std::uint64_t kBasicSize = 0x20;
    proc_.put(type_at + 32, kBasicSize);
    proc_.put<std::uint64_t>(type_at + 168, 1U << 2U | 1U << 4U | 1U << 9U);
    proc_.put(at + kBasicSize, std::array<std::uint8_t, 4>{30, 1, 1, 1});  // one attribute
  };
  const auto set_attribute = [&](std::uint64_t at, std::uint64_t value) { proc_.put(at + 0x20 + 8, value); };
  put_object(kLoader, "_MultiProcessingDataLoaderIter", true);
  put_object(kWorkers, "list", false);
  put_object(kProcess, "ForkProcess", true);
  put_object(kPopen, "Popen", true);
  put_object(kNumber, "int", false);
  proc_.map(kItems, 0x100);
  put_argument(0, kLoader);
  put_argument(1, kValue);
  set_attribute(kLoader, kWorkers);
  proc_.put(kWorkers + 16, std::uint64_t{1});
  proc_.put(kWorkers + 24, kItems);
  proc_.put(kItems, kProcess);
  set_attribute(kProcess, kPopen);
  set_attribute(kPopen, kNumber);
  proc_.put<std::uint64_t>(kNumber + 16, layout_.minor < 12 ? 1 : 1U << 3U);
  proc_.put<std::uint32_t>(kNumber + 24, kWorker);

  EXPECT_THAT(numbers_of_own_processes(&proc_, kPid, kTid, "_MultiProcessingDataLoaderIter._try_get_data"),
              testing::Optional(testing::ElementsAre(kWorker)));
  const auto why_live_after = [&](pid_t ended) {
    std::string stat = std::to_string(ended) + " (python3) Z " + std::to_string(kPid);
    for (int field = 5; field <= 52; ++field) stat += " 0";
    proc_.files[std::to_string(ended) + "/stat"] = stat + "\n";
    return wait_of_loader({ended}).why_live;
  };
  EXPECT_EQ(why_live_after(kOther), "");
  EXPECT_EQ(why_live_after(kWorker), "a child of its process has ended");
  put_object(kFlags, "list", false);
  put_object(kFlag, "bool", false);
  proc_.map(kFlagItems, 0x100);
  proc_.put(kLoader + 0x20, std::array<std::uint8_t, 4>{30, 2, 1, 1});
  proc_.put(kLoader + 0x20 + 16, kFlags);
  proc_.put(kFlags + 16, std::uint64_t{1});
  proc_.put(kFlags + 24, kFlagItems);
  proc_.put(kFlagItems, kFlag);
  proc_.put(kFlag + 24, std::uint32_t{1});
  EXPECT_EQ(why_live_after(kWorker), "a child of its process has ended");
  proc_.put(kItems, kNumber);
  EXPECT_EQ(why_live_after(kOther), "a child of its process has ended") << "its workers cannot be read";
}

// DataLoader(timeout=N): it then raises.
TEST_F(LoaderImage, IsLiveWithTheLimitOfItsCaller) {
  for (const bool is_known : {true, false}) {
    put_argument(1, is_known ? kOtherValue : kValue);
    if (!is_known) put_defaults(2, {});
    const Wait wait = wait_of_loader();
    EXPECT_EQ(wait.why_live, "a wait with a time limit") << is_known;
    EXPECT_TRUE(wait.timed);
  }
}

TEST_F(LoaderImage, OfOtherPollsHasNoLimitOfACaller) {
  put_text(kFile, "/torch/utils/data/_utils/pin_memory.py");
  put_text(kInnerCode + 0x800, "_pin_memory_loop");
  put_argument(1, kOtherValue);
  EXPECT_EQ(wait_of_loader().why_live, "");
}

TEST_F(PythonImage, OfAVersionThatIsNotKnownIsNotRead) {
  proc_.put<std::uint64_t>(kVersion, 0x030f01f0);
  const PythonStacks stacks = read();
  EXPECT_EQ(stacks.reason, "Python 3.15 is not known to mprun");
  EXPECT_TRUE(stacks.threads.empty() && stacks.gils.empty());
  proc_.put<std::uint64_t>(kVersion, 0x040000f0);
  EXPECT_EQ(read().reason, "Python 4.0.0 is not known to mprun");
  proc_.put<std::uint64_t>(kVersion, 0x030e00f0);
  proc_.put<std::uint64_t>(kRuntime + 16, 1);
  EXPECT_EQ(read().reason, "Python 3.14 is not known to mprun") << "no free-threaded one has such objects";
}

TEST_F(PythonImage, IsReadInAPidNamespaceOfItsOwn) {
  proc_.files["70/status"] = "Name:\tpython\nNSpid:\t70\t1\n";
  proc_.files["70/task/70/status"] = "Name:\tpython\nNSpid:\t70\t1\n";
  proc_.files["70/task/77/status"] = "Name:\tpython\nNSpid:\t77\t8\n";
  EXPECT_TRUE(read().threads.empty());
  proc_.put<std::uint64_t>(kThread + layout_.thread.native_id, 8);
  ASSERT_EQ(read().threads.size(), 1U);
  EXPECT_EQ(read().threads[0].tid, kTid);
}

TEST_F(PythonImage, OfCyclesEnds) {
  proc_.put(kOuter + layout_.frame.previous, kEntry);
  proc_.put(kLostThread + layout_.thread.next, kThread);
  proc_.put(kInterpreter + layout_.interpreter.next, kInterpreter);
  const PythonStacks stacks = read();
  ASSERT_EQ(stacks.threads.size(), 1U);
  EXPECT_FALSE(stacks.threads[0].whole);
  EXPECT_EQ(stacks.threads[0].frames.size(), 2U);
  EXPECT_EQ(stacks.gils.size(), 1U);
}

TEST_F(PythonImage, OfEndlessStacksIsCut) {
  constexpr std::uint64_t kFrames = 0x600000;
  for (std::uint64_t i = 0; i < 300; ++i) {
    put_frame(kFrames + i * 0x80, kFrames + (i + 1) * 0x80, 0, kInnerCode | 1U,
              kInnerCode + layout_.code.instructions + 8);
  }
  proc_.put(kThread + layout_.thread.frame, kFrames);
  const PythonStacks stacks = read();
  ASSERT_EQ(stacks.threads.size(), 1U);
  EXPECT_EQ(stacks.threads[0].frames.size(), 256U);
  EXPECT_FALSE(stacks.threads[0].whole);
}

TEST_F(PythonImage, TheShimThatCallsInitIsNoFrame) {
  proc_.put<std::uint64_t>(kInnerCode + 16, 3);
  proc_.put<std::int32_t>(kInnerCode + layout_.code.first_traceable, 4);
  proc_.put(kInner + layout_.frame.instruction, kInnerCode + layout_.code.instructions);
  const PythonThread thread = read().threads.at(0);
  EXPECT_TRUE(thread.whole);
  EXPECT_EQ(thread.frames.size(), 1U);
}

TEST_F(PythonImage, WhatDoesNotHoldTogetherIsLeftOut) {
  proc_.put<char>(kOuter + layout_.frame.owner, 17);
  EXPECT_THAT(frames(read().threads.at(0)), testing::ElementsAre("train.py:6 inner"));
  EXPECT_FALSE(read().threads[0].whole);
  proc_.put(kInner + layout_.frame.instruction, kInnerCode + layout_.code.instructions + 20);  // after its end
  EXPECT_TRUE(read().threads.at(0).frames.empty());
  EXPECT_FALSE(read().threads[0].whole);
  proc_.put<std::uint64_t>(kThread + layout_.thread.interpreter, 0x1234);
  EXPECT_TRUE(read().threads.empty());
  proc_.put<std::uint64_t>(kRuntime + layout_.runtime.interpreters, 0);
  EXPECT_EQ(read().reason, "its Python has not started, or has ended");
}

}  // namespace
}  // namespace mprun
