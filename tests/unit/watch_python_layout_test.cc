// Where CPython keeps things: our tables against the installed headers, and the descriptions in newer versions.
#include "watch/stacks/python_layout.h"

#include <gtest/gtest.h>

#include <map>

#include "python_descriptions.h"
#include "python_header_offsets.h"

namespace mprun {
namespace {

std::map<std::string, unsigned long> flat(const PythonLayout& of) {
  return {{"runtime.finalizing", of.runtime.finalizing},
          {"runtime.interpreters", of.runtime.interpreters},
          {"runtime.gil", of.runtime.gil},
          {"interpreter.gil", of.interpreter.gil},
          {"interpreter.next", of.interpreter.next},
          {"interpreter.threads", of.interpreter.threads},
          {"gil.last_holder", of.gil.last_holder},
          {"gil.locked", of.gil.locked},
          {"gil.switch_number", of.gil.switch_number},
          {"gil.condition", of.gil.condition},
          {"thread.next", of.thread.next},
          {"thread.interpreter", of.thread.interpreter},
          {"thread.pthread", of.thread.pthread},
          {"thread.native_id", of.thread.native_id},
          {"thread.frame", of.thread.frame},
          {"cframe_frame", of.cframe_frame},
          {"frame.function", of.frame.function},
          {"function_defaults", of.function_defaults},
          {"tuple_items", of.tuple_items},
          {"frame.globals", of.frame.globals},
          {"frame.stack_top", of.frame.stack_top},
          {"frame.locals", of.frame.locals},
          {"frame.code", of.frame.code},
          {"frame.previous", of.frame.previous},
          {"frame.instruction", of.frame.instruction},
          {"frame.owner", of.frame.owner},
          {"code.first_line", of.code.first_line},
          {"code.argument_count", of.code.argument_count},
          {"code.local_count", of.code.local_count},
          {"code.filename", of.code.filename},
          {"code.qualified_name", of.code.qualified_name},
          {"code.line_table", of.code.line_table},
          {"code.first_traceable", of.code.first_traceable},
          {"code.instructions", of.code.instructions},
          {"text.length", of.text.length},
          {"text.state", of.text.state},
          {"text.ascii_data", of.text.ascii_data},
          {"text.compact_data", of.text.compact_data},
          {"text.bytes_data", of.text.bytes_data}};
}

TEST(PythonLayout, IsThatOfTheInstalledHeaders) {
  const PythonLayout* layout = known_python_layout(python_header_minor);
  if (layout == nullptr) GTEST_SKIP() << "Python 3." << python_header_minor << " describes itself";
  const auto ours = flat(*layout);
  int compared = 0;
  for (const auto* entry = python_header_offsets; entry->name != nullptr; ++entry, ++compared) {
    ASSERT_EQ(ours.count(entry->name), 1U) << entry->name;
    EXPECT_EQ(ours.at(entry->name), entry->offset) << entry->name;
  }
  EXPECT_GE(compared, 36);
}

TEST(PythonLayout, IsReadFromTheDescriptionOf313) {
  const auto layout = described_python_layout(13, description(words_of_313()));
  ASSERT_TRUE(layout);
  EXPECT_FALSE(is_free_threaded(*layout));
  const auto found = flat(*layout);
  const std::map<std::string, unsigned long> expected = {{"runtime.finalizing", 608},
                                                         {"runtime.interpreters", 632},
                                                         {"runtime.gil", 0},
                                                         {"interpreter.gil", 16},
                                                         {"interpreter.next", 7264},
                                                         {"interpreter.threads", 7344},
                                                         {"gil.last_holder", 8},
                                                         {"gil.locked", 16},
                                                         {"gil.switch_number", 24},
                                                         {"gil.condition", 32},
                                                         {"thread.next", 8},
                                                         {"thread.interpreter", 16},
                                                         {"thread.pthread", 152},
                                                         {"thread.native_id", 160},
                                                         {"thread.frame", 72},
                                                         {"cframe_frame", 0},
                                                         {"frame.function", 16},
                                                         {"function_defaults", 56},
                                                         {"tuple_items", 24},
                                                         {"frame.globals", 24},
                                                         {"frame.stack_top", 64},
                                                         {"frame.locals", 72},
                                                         {"frame.code", 0},
                                                         {"frame.previous", 8},
                                                         {"frame.instruction", 56},
                                                         {"frame.owner", 70},
                                                         {"code.first_line", 68},
                                                         {"code.argument_count", 52},
                                                         {"code.local_count", 72},
                                                         {"code.filename", 112},
                                                         {"code.qualified_name", 128},
                                                         {"code.line_table", 136},
                                                         {"code.first_traceable", 184},
                                                         {"code.instructions", 200},
                                                         {"text.length", 16},
                                                         {"text.state", 32},
                                                         {"text.ascii_data", 40},
                                                         {"text.compact_data", 56},
                                                         {"text.bytes_data", 32}};
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(layout->gil_of_interpreter);
  EXPECT_FALSE(layout->frame_of_cframe);
  EXPECT_FALSE(layout->code_tagged);
}

TEST(PythonLayout, IsReadFromTheDescriptionsOf314And315) {
  const std::map<unsigned, std::vector<std::uint64_t>> descriptions = {{14, words_of_314()}, {15, words_of_315()}};
  for (const auto& [minor, words] : descriptions) {
    const auto layout = described_python_layout(minor, description(words));
    ASSERT_TRUE(layout) << minor;
    EXPECT_EQ(layout->interpreter.gil, 16U);
    EXPECT_EQ(layout->gil.locked, 16U);
    EXPECT_EQ(layout->thread.frame, 72U);
    EXPECT_EQ(layout->thread.native_id, minor == 14 ? 160U : 184U);
    EXPECT_EQ(layout->frame.owner, 74U);
    EXPECT_EQ(layout->code.instructions, 208U);
    EXPECT_EQ(layout->tuple_items, 32U);
    EXPECT_EQ(layout->text.state, 32U);
    EXPECT_TRUE(layout->code_tagged);
  }
}

TEST(PythonLayout, IsReadFromTheDescriptionsOfFreeThreadedPythons) {
  const auto layout = described_python_layout(13, description(words_of_free_threaded_313()));
  ASSERT_TRUE(layout);
  EXPECT_TRUE(is_free_threaded(*layout));
  EXPECT_EQ(layout->object_size, 32U);
  EXPECT_EQ(layout->gil.enabled, 0U);
  EXPECT_EQ(layout->gil.last_holder, 16U);
  EXPECT_EQ(layout->gil.locked, 24U);
  EXPECT_EQ(layout->thread.native_id, 160U);
  EXPECT_EQ(layout->frame.owner, 70U);
  EXPECT_EQ(layout->code.instructions, 216U);
  EXPECT_EQ(layout->code.first_traceable, 200U);
  EXPECT_EQ(layout->code.copies, 0U);
  EXPECT_EQ(layout->text.bytes_data, 48U);
  EXPECT_EQ(layout->text.compact_data, 72U);
  EXPECT_EQ(layout->text.interned_bits, 2U);
  const auto newer = described_python_layout(14, description(words_of_free_threaded_314()));
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->frame.owner, 78U);
  EXPECT_EQ(newer->frame.copy, 72U);
  EXPECT_EQ(newer->code.copies, 224U);
  EXPECT_EQ(newer->code.first_traceable, 208U);
  EXPECT_EQ(newer->text.interned_bits, 8U);
}

TEST(PythonLayout, RefusesDescriptionsItDoesNotKnow) {
  const auto refused = [](unsigned minor, const std::string& text) { return !described_python_layout(minor, text); };
  EXPECT_TRUE(refused(12, description(words_of_313())));
  EXPECT_TRUE(refused(15, description(words_of_314())));
  EXPECT_TRUE(refused(16, description(words_of_315())));
  EXPECT_TRUE(refused(13, description(words_of_314())));  // the fields are not where 3.13 has them
  EXPECT_TRUE(refused(14, description(words_of_313())));
  EXPECT_TRUE(refused(13, description(words_of_313()).substr(0, 300)));
  EXPECT_TRUE(refused(13, "xdebugpz" + description(words_of_313()).substr(8)));
  auto words = words_of_313();
  words[22] = 1U << 20U;  // an offset no thread state has
  EXPECT_TRUE(refused(13, description(words)));
  words = words_of_313();
  words[1] = 1;  // free-threaded, with the objects of one that is not
  EXPECT_TRUE(refused(13, description(words)));
}

}  // namespace
}  // namespace mprun
