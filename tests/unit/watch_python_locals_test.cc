// The variables of Python frames, from made-up memory.
#include "watch/stacks/python_locals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_process.h"
#include "python_descriptions.h"
#include "watch/stacks/python_object.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kFrameAt = 0x10000, kNumberAt = 0x20000, kOtherAt = 0x21000, kIteratorAt = 0x22000,
                        kTimeAt = 0x23000;
constexpr std::uint64_t kGlobalsAt = 0x30000, kKeysAt = 0x31000;
constexpr std::uint64_t kIntClass = 0x100, kFloatClass = 0x200, kIteratorClass = 0x300;

/// A frame with two variables, a number and a time, and one value on its stack, an iterator.
class PythonLocalsReading : public testing::Test {
 protected:
  FakeProcess proc_;
  PythonLayout layout_ = *known_python_layout(11);
  PythonTypes types_{0x400, 0x500, 0x600, kFloatClass};
  PythonFrameWords frame_{kFrameAt, kGlobalsAt, 0, false};
  PythonCode code_;

  PythonLocalsReading() {
    code_.local_count = 2;
    put_object(kNumberAt, kIntClass, 1, 5);
    put_object(kOtherAt, kIntClass, 1, 6);
    put_object(kIteratorAt, kIteratorClass, 3, kNumberAt);
    put_object(kTimeAt, kFloatClass, 0, 0);
    proc_.put(kTimeAt + 16, 2.5);
    proc_.map(kFrameAt, 0x100);
    put_slot(0, kNumberAt);
    put_slot(1, kTimeAt);
    put_slot(2, kIteratorAt);
  }
  void put_object(std::uint64_t at, std::uint64_t type, std::uint64_t first, std::uint64_t second) {
    proc_.map(at, 0x40);
    proc_.put<std::uint64_t>(at, 1);  // references to it
    proc_.put(at + 8, type);
    proc_.put(at + 16, first);
    proc_.put(at + 24, second);
  }
  void put_slot(std::uint64_t index, std::uint64_t object) {
    proc_.put(kFrameAt + layout_.frame.locals + index * 8, object);
  }
  /// A dict of two, the first of which has no value; its entries are of `words` words.
  void put_globals(unsigned char kind, std::uint64_t words, std::uint64_t value) {
    proc_.map(kGlobalsAt, 0x40);
    proc_.put(kGlobalsAt + 32, kKeysAt);
    proc_.map(kKeysAt, 0x100);
    proc_.put<unsigned char>(kKeysAt + 9, 3);  // 8 bytes of indices
    proc_.put(kKeysAt + 10, kind);
    proc_.put<std::uint64_t>(kKeysAt + 24, 2);
    proc_.put(kKeysAt + 32 + 8 + (2 * words - 1) * 8, value);
  }
  [[nodiscard]] PythonLocals read() {
    ProcessMemory memory(&proc_, 1, std::size_t{1} << 24U);
    PythonLocals locals;
    add_locals(frame_, code_, layout_, types_, &memory, &locals);
    return locals;
  }
  [[nodiscard]] std::uint64_t fingerprint() { return read().fingerprint; }
};

TEST_F(PythonLocalsReading, OfTheSameValuesIsTheSame) {
  const std::uint64_t before = fingerprint();
  EXPECT_NE(before, 0U);
  EXPECT_EQ(fingerprint(), before);
}

// Of 3.11: their values are where the fourth word before the object points to, with their number two bytes before.
TEST_F(PythonLocalsReading, SeesAttributesOfAValue) {
  constexpr std::uint64_t kObjectAt = 0x40100, kClass = 0x41000, kValuesAt = 0x42010;
  proc_.map(kObjectAt - 0x20, 0x60);
  proc_.put(kObjectAt + 8, kClass);
  proc_.put(kObjectAt - 0x20, kValuesAt);
  proc_.map(kClass, 0x200);
  proc_.put<std::uint64_t>(kClass + 168, 1U << 9U | 1U << 4U);  // Py_TPFLAGS_HEAPTYPE, _MANAGED_DICT
  proc_.map(kValuesAt - 0x10, 0x40);
  proc_.put<std::uint8_t>(kValuesAt - 2, 2);
  proc_.put(kValuesAt, kNumberAt);
  put_slot(0, kObjectAt);
  const std::uint64_t before = fingerprint();
  EXPECT_THAT(read().floats, ElementsAre(2.5));  // the variable
  proc_.put(kValuesAt, kOtherAt);
  EXPECT_NE(fingerprint(), before);
  proc_.put(kValuesAt + 8, kTimeAt);
  EXPECT_THAT(read().floats, ElementsAre(2.5, 2.5));
  const std::uint64_t with_time = fingerprint();
  proc_.put<std::uint64_t>(kOtherAt + 16, 77);  // of an object that is no number
  EXPECT_EQ(fingerprint(), with_time);
  proc_.map(kIntClass, 0x200);
  proc_.put<std::uint64_t>(kIntClass + 168, 1U << 24U);  // Py_TPFLAGS_LONG_SUBCLASS
  const std::uint64_t as_number = fingerprint();
  proc_.put<std::uint64_t>(kOtherAt + 24, 7);
  EXPECT_NE(fingerprint(), as_number);
  proc_.put<std::uint64_t>(kClass + 168, 1U << 4U);  // a type in C
  EXPECT_THAT(read().floats, ElementsAre(2.5));
}

TEST_F(PythonLocalsReading, SeesAnotherValue) {
  const std::uint64_t before = fingerprint();
  put_slot(0, kOtherAt);
  EXPECT_NE(fingerprint(), before);
  put_slot(0, 0);
  EXPECT_NE(fingerprint(), before);
  put_slot(0, kNumberAt);
  EXPECT_EQ(fingerprint(), before);
}

// The memory of a freed number is reused for the next.
TEST_F(PythonLocalsReading, SeesAnotherNumberAtTheSameAddress) {
  const std::uint64_t before = fingerprint();
  proc_.put<std::uint64_t>(kNumberAt + 24, 6);
  EXPECT_NE(fingerprint(), before);
}

TEST_F(PythonLocalsReading, DoesNotCountReferences) {
  const std::uint64_t before = fingerprint();
  proc_.put<std::uint64_t>(kNumberAt, 9);
  EXPECT_EQ(fingerprint(), before);
}

// Up to 3.13 the frame says how many values it has; the memory after them holds something else.
TEST_F(PythonLocalsReading, SeesTheStackByItsIndex) {
  for (const std::uint32_t top : {3U, 2U, 0U, 0xffffffffU}) {  // -1: not known
    frame_.stack_top = std::uint64_t{0x1000300} << 32U | top;
    const std::uint64_t before = fingerprint();
    proc_.put<std::uint64_t>(kIteratorAt + 16, 100 + top);
    EXPECT_EQ(fingerprint() != before, top == 3) << top;
  }
}

// Since 3.14 it has a pointer, and references have flags.
TEST_F(PythonLocalsReading, SeesTheStackByItsPointer) {
  layout_ = described_python_layout(14, description(words_of_314())).value();
  put_slot(0, kNumberAt | 1U);
  put_slot(1, kTimeAt | 1U);
  put_slot(2, kIteratorAt | 1U);
  const std::uint64_t begin = kFrameAt + layout_.frame.locals;
  for (const std::uint64_t top : {begin + 24, begin + 16, begin, std::uint64_t{0}}) {
    frame_.stack_top = top;
    const std::uint64_t before = fingerprint();
    proc_.put(kIteratorAt + 16, 100 + top);
    EXPECT_EQ(fingerprint() != before, top == begin + 24) << top;
    EXPECT_THAT(read().floats, ElementsAre(2.5)) << top;
  }
}

TEST_F(PythonLocalsReading, OfAModuleAreItsGlobals) {
  const std::pair<unsigned char, std::uint64_t> kinds[] = {{0, 3}, {1, 2}};  // general, strings only
  for (const auto& [kind, words] : kinds) {
    put_globals(kind, words, kOtherAt);
    frame_.is_module = true;
    const std::uint64_t before = fingerprint();
    put_globals(kind, words, kIteratorAt);
    EXPECT_NE(fingerprint(), before);
    put_globals(kind, words, kOtherAt);
    EXPECT_EQ(fingerprint(), before);
    proc_.put<std::uint64_t>(kOtherAt + 24, 100 + words);
    EXPECT_NE(fingerprint(), before);
    put_globals(kind, words, kTimeAt);
    EXPECT_THAT(read().floats, ElementsAre(2.5, 2.5));
    frame_.is_module = false;
    const std::uint64_t of_function = fingerprint();
    put_globals(kind, words, kOtherAt);
    EXPECT_EQ(fingerprint(), of_function) << "they are no variables of a function";
  }
}

// The header is longer, and no other one lies before an object.
TEST_F(PythonLocalsReading, OfAFreeThreadedPythonAreBehindALongerHeader) {
  constexpr std::uint64_t kOwnerAt = 0x900100, kOwnerClass = 0x901000, kOwnerDict = 0x902000, kOwnerKeys = 0x903000,
                          kAttributeAt = 0x904000;
  const PythonLayout layout = described_python_layout(13, description(words_of_free_threaded_313())).value();
  proc_.map(0x900000, 0x5000);
  proc_.put(kOwnerAt + 24, kOwnerClass);
  proc_.put<std::uint64_t>(kOwnerClass + 184, 1U << 9U | 1U << 4U);  // Py_TPFLAGS_HEAPTYPE, _MANAGED_DICT
  proc_.put(kOwnerAt - 8, kOwnerDict);
  proc_.put(kOwnerDict + 48, kOwnerKeys);
  proc_.put<std::uint8_t>(kOwnerKeys + 9, 3);   // eight bytes of indices
  proc_.put<std::uint8_t>(kOwnerKeys + 10, 1);  // keys are strings: no hashes
  proc_.put<std::uint64_t>(kOwnerKeys + 24, 1);
  proc_.put(kOwnerKeys + 32 + 8 + 8, kAttributeAt);
  ProcessMemory memory(&proc_, 1, std::size_t{1} << 24U);
  EXPECT_THAT(attribute_values(kOwnerAt, 64, layout, &memory), ElementsAre(kAttributeAt));
  proc_.put(kAttributeAt + 24, kOwnerClass);
  proc_.put(kOwnerClass + 40, kOwnerClass + 0x200);
  proc_.put_bytes(kOwnerClass + 0x200, std::string_view("int", sizeof "int"));
  proc_.put<std::uint64_t>(kAttributeAt + 32, 1U << 3U);
  proc_.put<std::uint32_t>(kAttributeAt + 40, 7);
  ProcessMemory again(&proc_, 1, std::size_t{1} << 24U);
  EXPECT_EQ(PythonObjects(layout, &again).number_of(kAttributeAt), 7U);
}

TEST_F(PythonLocalsReading, CollectsFloats) {
  EXPECT_THAT(read().floats, ElementsAre(2.5));
  put_slot(0, kTimeAt);
  EXPECT_THAT(read().floats, ElementsAre(2.5, 2.5));
  types_.floating = 0;
  EXPECT_THAT(read().floats, IsEmpty()) << "their type is not known";
}

TEST_F(PythonLocalsReading, OfSeveralFramesIsOne) {
  ProcessMemory memory(&proc_, 1, std::size_t{1} << 24U);
  PythonLocals locals;
  add_locals(frame_, code_, layout_, types_, &memory, &locals);
  const std::uint64_t of_one = locals.fingerprint;
  add_locals(frame_, code_, layout_, types_, &memory, &locals);
  EXPECT_NE(locals.fingerprint, of_one);
  EXPECT_THAT(locals.floats, ElementsAre(2.5, 2.5));
}

TEST_F(PythonLocalsReading, SurvivesGarbage) {
  const std::uint64_t before = fingerprint();
  put_slot(0, 0x777000);  // nothing is mapped there
  put_slot(1, ~std::uint64_t{0});
  EXPECT_NE(fingerprint(), before);
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0x777000}, ~std::uint64_t{0}}) {
    frame_ = {address, address, address, true};
    EXPECT_EQ(fingerprint(), 0U) << address;
  }
  frame_ = {kFrameAt, kGlobalsAt, 0x7fffffff, false};
  EXPECT_EQ(fingerprint(), 0U) << "more values than memory";
  code_.local_count = 0xffffffff;
  frame_.stack_top = 0;
  EXPECT_EQ(fingerprint(), 0U);
}

TEST_F(PythonLocalsReading, SurvivesGarbageInADict) {
  code_.local_count = 0;
  frame_.is_module = true;
  EXPECT_EQ(fingerprint(), 0U) << "there is no dict";
  put_globals(1, 2, kOtherAt);
  const std::uint64_t before = fingerprint();
  EXPECT_NE(before, 0U);
  proc_.put<unsigned char>(kKeysAt + 9, 0xff);
  EXPECT_EQ(fingerprint(), 0U) << "so many indices are none";
  proc_.put<unsigned char>(kKeysAt + 9, 24);
  EXPECT_EQ(fingerprint(), 0U) << "its entries are not there";
  proc_.put<unsigned char>(kKeysAt + 9, 3);
  proc_.put(kKeysAt + 24, ~std::uint64_t{0});
  EXPECT_EQ(fingerprint(), 0U) << "nor are so many";
  proc_.put(kKeysAt + 24, std::uint64_t{2});
  EXPECT_EQ(fingerprint(), before);
  proc_.put(kGlobalsAt + 32, ~std::uint64_t{0});
  EXPECT_EQ(fingerprint(), 0U);
}

}  // namespace
}  // namespace mprun
