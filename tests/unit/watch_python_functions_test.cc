// The names of functions of Python 3.10, from a made-up module.
#include "watch/stacks/python_functions.h"

#include <gtest/gtest.h>

#include "fake_process.h"

namespace mprun {
namespace {

class PythonFunctions : public testing::Test {
 protected:
  FakeProcess proc_;
  ProcessMemory memory_{&proc_, 1, std::size_t{1} << 24U};
  const PythonLayout& layout_ = *known_python_layout(10);
  PythonTypes types_{0x100, 0x200, 0x300, 0, 0x400, {0x500, 0x600, 0x700}};
  PythonCodeReader codes_{&memory_, layout_, types_};
  PythonFunctionFinder finder_{&memory_, layout_, types_, &codes_};
  std::uint64_t next_ = 0x10000;

  std::uint64_t put_object(std::uint64_t type, std::size_t size = 0x200) {
    const std::uint64_t at = next_;
    next_ += 0x1000;
    proc_.map(at, size);
    proc_.put(at + 8, type);
    return at;
  }
  std::uint64_t put_text(std::string_view text) {
    const std::uint64_t at = put_object(types_.unicode);
    proc_.put<std::uint64_t>(at + layout_.text.length, text.size());
    proc_.put<std::uint32_t>(at + layout_.text.state, 1U << 2U | 32U | 64U);
    proc_.put_bytes(at + layout_.text.ascii_data, text);
    return at;
  }
  std::uint64_t put_code(std::string_view name, const std::vector<std::uint64_t>& constants = {}) {
    const std::uint64_t at = put_object(types_.code), lines = put_object(types_.bytes);
    proc_.put(at + layout_.code.filename, put_text("train.py"));
    proc_.put(at + layout_.code.qualified_name, put_text(name));
    proc_.put(at + layout_.code.line_table, lines);
    const std::uint64_t tuple = put_object(0x800);
    proc_.put<std::uint64_t>(tuple + 16, constants.size());
    for (std::size_t i = 0; i < constants.size(); ++i) proc_.put(tuple + layout_.tuple_items + 8 * i, constants[i]);
    proc_.put(at + 56, tuple);
    return at;
  }
  std::uint64_t put_function(std::uint64_t code, std::string_view name) {
    const std::uint64_t at = put_object(types_.function);
    proc_.put(at + layout_.function.code, code);
    proc_.put(at + layout_.function.qualified_name, put_text(name));
    return at;
  }
  std::uint64_t put_wrapper(std::uint64_t type, std::uint64_t function) {
    const std::uint64_t at = put_object(type);
    proc_.put(at + 16, function);
    return at;
  }
  /// With room for 8 entries, the first of which was removed.
  std::uint64_t put_dict(const std::vector<std::uint64_t>& values) {
    const std::uint64_t at = put_object(0x900), keys = put_object(0);
    proc_.put(at + 32, keys);
    proc_.put<std::uint64_t>(keys + 8, 8);
    proc_.put<std::uint64_t>(keys + 32, values.size() + 1);
    for (std::size_t i = 0; i < values.size(); ++i) proc_.put(keys + 40 + 8 + 24 * (i + 1) + 16, values[i]);
    return at;
  }
  std::uint64_t put_class(const std::vector<std::uint64_t>& members) {
    const std::uint64_t meta = put_object(0), at = put_object(meta, 0x400);
    proc_.put<std::uint64_t>(meta + 168, std::uint64_t{1} << 31U);
    proc_.put(at + 264, put_dict(members));
    return at;
  }
  std::string name_of(std::uint64_t code, std::uint64_t globals) {
    const PythonFunction* function = finder_.find(code, globals);
    return function == nullptr ? "" : function->name;
  }
};

TEST_F(PythonFunctions, OfAModuleAndItsClassesAreFoundByTheirCode) {
  const std::uint64_t plain = put_code("run"), method = put_code("get"), fixed = put_code("make"),
                      of_class = put_code("load"), shown = put_code("size"), other = put_code("other");
  const std::uint64_t run = put_function(plain, "run");
  const std::uint64_t type =
      put_class({put_function(method, "Queue.get"), put_wrapper(types_.wrappers[0], put_function(fixed, "Queue.make")),
                 put_wrapper(types_.wrappers[1], put_function(of_class, "Queue.load")),
                 put_wrapper(types_.wrappers[2], put_function(shown, "Queue.size"))});
  const std::uint64_t globals = put_dict({run, type, put_text("a string")});
  EXPECT_EQ(name_of(plain, globals), "run");
  EXPECT_EQ(finder_.find(plain, globals)->address, run);
  EXPECT_EQ(name_of(method, globals), "Queue.get");
  EXPECT_EQ(name_of(fixed, globals), "Queue.make");
  EXPECT_EQ(name_of(of_class, globals), "Queue.load");
  EXPECT_EQ(name_of(shown, globals), "Queue.size");
  EXPECT_EQ(name_of(other, globals), "");
}

TEST_F(PythonFunctions, WithinOthersAreNamedAfterThem) {
  const std::uint64_t inner = put_code("step"), middle = put_code("loop", {0, inner}),
                      outer = put_code("fit", {middle});
  const std::uint64_t globals = put_dict({put_function(outer, "Model.fit")});
  EXPECT_EQ(name_of(middle, globals), "Model.fit.<locals>.loop");
  EXPECT_EQ(name_of(inner, globals), "Model.fit.<locals>.loop.<locals>.step");
  EXPECT_EQ(finder_.find(inner, globals)->address, 0U);
}

TEST_F(PythonFunctions, OfGarbageAreNone) {
  const std::uint64_t code = put_code("run", {put_code("run")});
  proc_.put(code + 56, code);  // its constants are itself
  const std::uint64_t function = put_function(code, "run");
  const std::uint64_t globals = put_dict({function, 0x77, put_class({0, function})});
  EXPECT_EQ(name_of(code, globals), "run");
  EXPECT_EQ(name_of(put_code("other"), globals), "");
  EXPECT_EQ(name_of(put_code("other"), 0x77), "");
}

}  // namespace
}  // namespace mprun
