// Result<T>: a value or an Error, with the member names of std::expected (which g++ 12 lacks).
// Used by every module; owns what it holds. Library code returns errors, only cli/ prints them.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace mprun {

/// The kind of error, which says who has to act on it. Each is an exit code of mprun(1), EXIT STATUS.
enum class Fault {
  kUsage,     ///< the command line, the job spec or an input is wrong: nothing was launched (exit 2)
  kLaunch,    ///< interpreter, import, setup or fork failed (exit 3)
  kAccess,    ///< mprun may not look into a process that it was asked about (exit 4)
  kInternal,  ///< the machine or mprun itself failed (exit 125)
};

/// An error that a user can act on: `message` says what, where and what to do; it may have several lines.
struct Error {
  Fault fault = Fault::kInternal;
  std::string message;
};

[[nodiscard]] inline Error usage_error(std::string message) { return {Fault::kUsage, std::move(message)}; }
[[nodiscard]] inline Error launch_error(std::string message) { return {Fault::kLaunch, std::move(message)}; }
[[nodiscard]] inline Error access_error(std::string message) { return {Fault::kAccess, std::move(message)}; }
[[nodiscard]] inline Error internal_error(std::string message) { return {Fault::kInternal, std::move(message)}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  [[nodiscard]] T& value() & { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const& { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] Error& error() & { return *std::get_if<1>(&state_); }
  [[nodiscard]] const Error& error() const& { return *std::get_if<1>(&state_); }
  [[nodiscard]] Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  void value() const { assert(has_value()); }

  [[nodiscard]] Error& error() & { return error_; }
  [[nodiscard]] const Error& error() const& { return error_; }
  [[nodiscard]] Error&& error() && { return std::move(error_); }

 private:
  bool failed_ = false;
  Error error_;
};

}  // namespace mprun
