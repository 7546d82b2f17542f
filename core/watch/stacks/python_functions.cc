#include "watch/stacks/python_functions.h"

#include <algorithm>
#include <array>

#include "watch/stacks/python_dict.h"

namespace mprun {
namespace {

constexpr std::size_t kMostFunctions = 10'000;  ///< of a module
constexpr std::uint64_t kMostConstants = 4096;
constexpr int kDeepest = 4;  ///< functions within functions
constexpr std::size_t kLongestFunctionName = 512;
constexpr std::uint64_t kObjectType = 8;   ///< PyObject.ob_type
constexpr std::uint64_t kObjectSize = 16;  ///< PyVarObject.ob_size
constexpr std::uint64_t kCallable = 16;    ///< of staticmethod and classmethod; of property, the function that gets
constexpr std::uint64_t kFlagsOfType = 168, kDictOfType = 264;
constexpr std::uint64_t kTypeSubclass = std::uint64_t{1} << 31U;  ///< Py_TPFLAGS_TYPE_SUBCLASS
constexpr std::uint64_t kCodeConstants = 56;                      ///< PyCodeObject.co_consts, 3.8 to 3.10

}  // namespace

const PythonFunction* PythonFunctionFinder::find(std::uint64_t code, std::uint64_t globals) {
  const auto [module, is_new] = modules_.try_emplace(globals);
  Functions& functions = module->second;
  if (is_new) {
    for (const std::uint64_t value : values_of(globals)) add_value(value, &functions);
    const Functions outer = functions;
    for (const auto& [of, function] : outer) add_nested(of, function.name, 0, &functions);
  }
  const auto found = functions.find(code);
  return found == functions.end() ? nullptr : &found->second;
}

void PythonFunctionFinder::add_value(std::uint64_t value, Functions* functions) {
  if (value == 0 || functions->size() >= kMostFunctions) return;
  const std::uint64_t type = word(value + kObjectType);
  if (type == types_.function) return add_function(value, functions);
  if (type == 0 || (word(type + kFlagsOfType) & kTypeSubclass) == 0) return;
  for (const std::uint64_t member : values_of(word(value + kDictOfType))) {
    const std::uint64_t kind = word(member + kObjectType);
    const bool is_wrapped = std::find(types_.wrappers.begin(), types_.wrappers.end(), kind) != types_.wrappers.end();
    const std::uint64_t function = is_wrapped ? word(member + kCallable) : member;
    if (kind == types_.function || (is_wrapped && word(function + kObjectType) == types_.function)) {
      add_function(function, functions);
    }
  }
}

void PythonFunctionFinder::add_function(std::uint64_t function, Functions* functions) {
  if (functions->size() >= kMostFunctions) return;
  const std::uint64_t code = word(function + layout_.function.code);
  if (functions->count(code) != 0) return;
  const auto name = codes_->text(word(function + layout_.function.qualified_name), kLongestFunctionName);
  if (name) functions->emplace(code, PythonFunction{*name, function});
}

// The code of a function within another one is among the constants of that.
void PythonFunctionFinder::add_nested(std::uint64_t code, const std::string& name, int depth, Functions* functions) {
  const std::uint64_t constants = word(code + kCodeConstants);
  const std::uint64_t count = std::min(word(constants + kObjectSize), kMostConstants);
  for (std::uint64_t i = 0; i < count && functions->size() < kMostFunctions; ++i) {
    const std::uint64_t constant = word(constants + layout_.tuple_items + i * sizeof(std::uint64_t));
    if (constant == 0 || word(constant + kObjectType) != types_.code) continue;
    const PythonCode* inner = codes_->read(constant);
    if (inner == nullptr) continue;
    const std::string full = name + ".<locals>." + inner->function;
    functions->emplace(constant, PythonFunction{full, 0});
    if (depth < kDeepest) add_nested(constant, full, depth + 1, functions);
  }
}

std::vector<std::uint64_t> PythonFunctionFinder::values_of(std::uint64_t dictionary) {
  return dictionary_values(dictionary, kMostFunctions, layout_, memory_);
}

std::uint64_t PythonFunctionFinder::word(std::uint64_t address) {
  return memory_->read<std::uint64_t>(address).value_or(0);
}

}  // namespace mprun
