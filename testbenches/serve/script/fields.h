// SPDX-License-Identifier: Apache-2.0
// The fields of a command: taken by name, type and range, and none of them unread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbenches/serve/script/words.h"

namespace rnic::serve::script {

/// What is wrong with a command, in a line for its sender: the field and what would be legal, or the verb that failed.
class command_error : public std::runtime_error {
 public:
  explicit command_error(const std::string& what, int code = 0) : std::runtime_error(what), code_(code) {}
  /// An errno; 0: the command was not tried.
  int code() const { return code_; }

 private:
  int code_;
};

/// Reads one JSON object. Every function throws command_error with the field's name, what it is, and what is legal; the
/// functions with a default do so only for a field that is there.
class fields {
 public:
  static constexpr std::uint64_t any64 = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t any32 = std::numeric_limits<std::uint32_t>::max();

  /// `where`: in front of names in errors, such as "requests[2]."; the object must live longer than this.
  explicit fields(const nlohmann::json& object, std::string where = "");

  bool has(const char* name) const { return object_.contains(name); }
  std::uint64_t number(const char* name, std::uint64_t least, std::uint64_t most);
  std::uint64_t number(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise);
  bool flag(const char* name, bool otherwise);
  std::string text(const char* name, std::size_t longest);
  std::string text(const char* name, std::size_t longest, const std::string& otherwise);
  /// One of a table's words, or a list of them ored together.
  template <std::size_t N>
  int word(const char* name, const vocabulary<N>& table) {
    return value_of(name, text(name, longest_word), table.data(), N);
  }
  template <std::size_t N>
  int word(const char* name, const vocabulary<N>& table, int otherwise) {
    return has(name) ? word(name, table) : otherwise;
  }
  template <std::size_t N>
  int words(const char* name, const vocabulary<N>& table) {
    return words_of(name, table.data(), N);
  }
  /// Bytes written as pairs of hexadecimal digits.
  std::vector<std::uint8_t> bytes(const char* name, std::size_t most);
  /// An object, or a list of `least` to `most` objects.
  fields object(const char* name);
  std::vector<fields> objects(const char* name, std::size_t least, std::size_t most);

  /// The field is known and was looked at elsewhere.
  void ignore(const char* name) { taken_.insert(name); }
  /// The last thing before a command does anything: throws when there is a field that nobody asked for.
  void end() const;
  [[noreturn]] void wrong(const char* name, const std::string& why) const;

 private:
  static constexpr std::size_t longest_word = 40;
  const nlohmann::json& take(const char* name);
  int value_of(const char* name, const std::string& said, const word_value* table, std::size_t count) const;
  int words_of(const char* name, const word_value* table, std::size_t count);

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> taken_;
};

/// The bytes that `text` has as pairs of hexadecimal digits; false when it is none.
bool from_hex(const std::string& text, std::vector<std::uint8_t>& bytes);
std::string to_hex(const std::uint8_t* bytes, std::size_t count);

}  // namespace rnic::serve::script
