// How this program says that something went wrong with its input: a value or an Error.
//
// Our code throws nothing. A function that can fail on bad input returns Result<T>; TRY unwraps
// one or passes its Error on. Context is added on the way up with .in("where"), so a message reads
// "model.safetensors: tensor 'w': 8 bytes stored, but its shape needs 12".

#pragma once

#include <fmt/core.h>

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tensordiff {

class Error {
 public:
  template <class... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : message_(fmt::format(format, std::forward<Args>(args)...)) {}

  const std::string& message() const { return message_; }

  // Puts where it happened in front of what happened.
  Error in(std::string_view where) && {
    message_.insert(0, std::string(where) + ": ");
    return std::move(*this);
  }

 private:
  std::string message_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: meant to convert
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: the same

  bool ok() const { return state_.index() == 0; }

  const T& value() const& { return assert(ok()), *std::get_if<0>(&state_); }
  T& value() & { return assert(ok()), *std::get_if<0>(&state_); }
  T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&state_)); }

  const Error& error() const& { return assert(!ok()), *std::get_if<1>(&state_); }
  Error&& error() && { return assert(!ok()), std::move(*std::get_if<1>(&state_)); }

  // The same result, with where it happened in front of the message if it is an error.
  Result in(std::string_view where) && {
    if (!ok()) return std::move(*this).error().in(where);
    return std::move(*this);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE: meant to convert
  Result(Error error) : error_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return error_.index() == 0; }
  void value() const { assert(ok()); }
  const Error& error() const& { return assert(!ok()), *std::get_if<1>(&error_); }
  Error&& error() && { return assert(!ok()), std::move(*std::get_if<1>(&error_)); }

  Result in(std::string_view where) && {
    if (!ok()) return std::move(*this).error().in(where);
    return {};
  }

 private:
  std::variant<std::monostate, Error> error_;
};

}  // namespace tensordiff

// Unwraps a Result, or returns its Error from the enclosing function.
//
// Not beside other values in one list or call, as in Pair{TRY(a()), TRY(b())}: when b() fails, GCC
// forgets to destroy what a() gave.
#define TRY(expression)                                         \
  __extension__({                                               \
    auto try_result = (expression);                             \
    if (!try_result.ok()) return std::move(try_result).error(); \
    std::move(try_result).value();                              \
  })
