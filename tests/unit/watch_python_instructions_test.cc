// The instructions of a real Python, in the one form that all versions have here.
#include "watch/stacks/python_instructions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>

#include "procfs/proc_source.h"
#include "python_program.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

// By the names that they have in all versions, or in some.
const std::map<std::string, PythonOp> kByName = {
    {"LOAD_CONST", kLoadConst},
    {"LOAD_GLOBAL", kLoadGlobal},
    {"LOAD_FAST", kLoadFast},
    {"LOAD_FAST_BORROW", kLoadFast},
    {"LOAD_FAST_LOAD_FAST", kLoadFast},
    {"LOAD_FAST_BORROW_LOAD_FAST_BORROW", kLoadFast},
    {"STORE_FAST", kStoreFast},
    {"STORE_FAST_LOAD_FAST", kStoreFast},
    {"STORE_ATTR", kStoreAttribute},
    {"STORE_GLOBAL", kStoreGlobal},
    {"STORE_SUBSCR", kStoreSubscript},
    {"COMPARE_OP", kCompare},
    {"CONTAINS_OP", kContains},
    {"FOR_ITER", kForIter},
    {"JUMP_BACKWARD", kJump},
    {"JUMP_FORWARD", kJump},
    {"POP_JUMP_IF_FALSE", kJumpIfFalse},
    {"POP_JUMP_FORWARD_IF_FALSE", kJumpIfFalse},
    {"POP_JUMP_IF_TRUE", kJumpIfTrue},
    {"CALL", kCall},
    {"POP_TOP", kPopTop},
    {"CHECK_EXC_MATCH", kMatchException},
    {"RAISE_VARARGS", kRaise},
    {"RERAISE", kReraise},
    {"RETURN_VALUE", kReturn},
    {"YIELD_VALUE", kYield},
    {"WITH_EXCEPT_START", kWithException},
    {"MAKE_FUNCTION", kHarmless},
    {"BUILD_MAP", kMakesObject},
    {"UNPACK_EX", kMakesObject},
};

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16));
  }
  return bytes;
}

unsigned minor_of(pid_t pid) {
  const auto proc = live_proc();
  return static_cast<unsigned>(
      std::strtoul(read_python_stacks(proc.get(), pid).version.substr(2).c_str(), nullptr, 10));
}

TEST(PythonInstructions, AreThoseThatPythonsDisassemblerNames) {
  PythonProgram program("", "python_instructions.py");
  const Json functions = program.report().at("functions");
  const unsigned minor = minor_of(program.pid());
  if (!knows_instructions(minor)) GTEST_SKIP() << "not read in this version";
  std::size_t checked = 0;
  for (const Json& function : functions) {
    const auto found = decode_instructions(bytes_of(function.at("bytes")), minor);
    std::map<std::size_t, std::string> names;
    for (const Json& one : function.at("instructions")) {
      const auto unit = one.at(0).get<std::size_t>();
      const auto name = one.at(1).get<std::string>();
      names[unit] = name;
      const auto known = kByName.find(name);
      if (known == kByName.end()) continue;
      const auto ours = std::find_if(found.begin(), found.end(), [&](const PythonInstruction& instruction) {
        return instruction.at == unit && instruction.op == known->second;
      });
      ASSERT_NE(ours, found.end()) << name << " at " << unit;
      const auto target = one.at(2).is_null() ? ours->target : one.at(2).get<std::size_t>();
      EXPECT_EQ(ours->target, target) << name << " at " << unit;
      ++checked;
    }
    for (const PythonInstruction& instruction : found) {
      EXPECT_TRUE(names.contains(instruction.at)) << "nothing begins at " << instruction.at;
    }
  }
  EXPECT_GT(checked, 200U);
}

std::vector<PythonOp> ops_of(const std::string& bytes, unsigned minor) {
  std::vector<PythonOp> ops;
  for (const PythonInstruction& one : decode_instructions(bytes, minor)) ops.push_back(one.op);
  return ops;
}

TEST(PythonInstructions, PushTheNullBeforeWhatIsCalledIsLoaded) {
  // LOAD_FAST, LOAD_ATTR and nine caches, PUSH_NULL, CALL and three caches; as 3.13 has them.
  const std::string caches(18, '\0');
  const std::string call = std::string("\x35\0", 2) + std::string(6, '\0');
  const std::string attribute = std::string("\x55\0\x52\2", 4) + caches + std::string("\x22\0", 2) + call;
  EXPECT_THAT(ops_of(attribute, 13), testing::ElementsAre(kPushNull, kLoadFast, kLoadAttribute, kPrecall, kCall));
  const std::string computed = std::string("\x55\0\x05\0\0\0\x22\0", 8) + call;  // LOAD_FAST, BINARY_SUBSCR
  EXPECT_THAT(ops_of(computed, 13), testing::ElementsAre(kLoadFast, kSubscript, kOtherOp, kPrecall, kCall));
  EXPECT_THAT(ops_of(std::string("\x52\3", 2) + caches, 13), testing::ElementsAre(kLoadMethod));
}

TEST(PythonInstructions, AreNotKnownOnceAToolHasReplacedSome) {
  EXPECT_THAT(ops_of(std::string("\x20\0\xfe\0", 4), 13), testing::IsEmpty());  // POP_TOP, INSTRUMENTED_LINE
  EXPECT_THAT(ops_of(std::string("\x1f\0\xff\0", 4), 14), testing::IsEmpty());  // POP_TOP, ENTER_EXECUTOR
  EXPECT_THAT(ops_of(std::string("\x20\0", 2), 10), testing::IsEmpty()) << "a version that is not known";
}

}  // namespace
}  // namespace mprun
