#include "watch/stacks/python_functions.h"

#include <algorithm>
#include <array>

#include "watch/stacks/python_object.h"

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
  auto known = found_.find(code);
  if (known == found_.end()) known = found_.emplace(code, look_for(code, module_of(globals), 0)).first;
  return known->second ? &*known->second : nullptr;
}

PythonFunctionFinder::Module* PythonFunctionFinder::module_of(std::uint64_t globals) {
  const auto [module, is_new] = modules_.try_emplace(globals);
  if (is_new) {
    for (const std::uint64_t value : values_of(globals)) add_value(value, &module->second);
  }
  return &module->second;
}

std::optional<PythonFunction> PythonFunctionFinder::look_for(std::uint64_t code, Module* module, int depth) {
  if (const auto own = module->functions.find(code); own != module->functions.end()) {
    const auto name = codes_->text(word(own->second + layout_.function.qualified_name), kLongestFunctionName);
    return name ? std::optional(PythonFunction{*name, own->second}) : std::nullopt;
  }
  if (!module->knows_enclosing) {
    module->knows_enclosing = true;
    for (const auto& [outer, function] : module->functions) add_nested(outer, 0, module);
  }
  const auto enclosing = module->enclosing.find(code);
  if (enclosing == module->enclosing.end() || depth > kDeepest) return std::nullopt;
  const auto outer = look_for(enclosing->second, module, depth + 1);
  const auto name = codes_->text(word(code + layout_.code.qualified_name), kLongestFunctionName);
  if (!outer || !name) return std::nullopt;
  return PythonFunction{outer->name + ".<locals>." + *name, 0};
}

void PythonFunctionFinder::add_value(std::uint64_t value, Module* module) {
  const auto add_function = [&](std::uint64_t function) {
    if (module->functions.size() >= kMostFunctions) return;
    module->functions.emplace(word(function + layout_.function.code), function);
  };
  const std::uint64_t type = value == 0 ? 0 : word(value + kObjectType);
  if (type == 0) return;
  if (type == types_.function) return add_function(value);
  if ((word(type + kFlagsOfType) & kTypeSubclass) == 0) return;
  for (const std::uint64_t member : values_of(word(value + kDictOfType))) {
    const std::uint64_t kind = member == 0 ? 0 : word(member + kObjectType);
    const bool is_wrapped = std::find(types_.wrappers.begin(), types_.wrappers.end(), kind) != types_.wrappers.end();
    const std::uint64_t function = is_wrapped ? word(member + kCallable) : member;
    const std::uint64_t kind_of_function = is_wrapped ? word(function + kObjectType) : kind;
    if (kind_of_function != 0 && kind_of_function == types_.function) add_function(function);
  }
}

// The code of a function within another one is among the constants of that.
void PythonFunctionFinder::add_nested(std::uint64_t code, int depth, Module* module) {
  const std::uint64_t constants = word(code + kCodeConstants);
  const std::uint64_t count = std::min(word(constants + kObjectSize), kMostConstants);
  for (std::uint64_t i = 0; i < count && module->enclosing.size() < kMostFunctions; ++i) {
    const std::uint64_t constant = word(constants + layout_.tuple_items + i * sizeof(std::uint64_t));
    if (constant == 0 || constant == code || word(constant + kObjectType) != types_.code) continue;
    if (module->enclosing.emplace(constant, code).second && depth < kDeepest) add_nested(constant, depth + 1, module);
  }
}

std::uint64_t PythonFunctionFinder::word(std::uint64_t address) {
  return memory_->read<std::uint64_t>(address).value_or(0);
}

std::vector<std::uint64_t> PythonFunctionFinder::values_of(std::uint64_t dictionary) {
  return dictionary_values(dictionary, kMostFunctions, layout_, memory_);
}

}  // namespace mprun
