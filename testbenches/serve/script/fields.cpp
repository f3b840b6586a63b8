// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/script/fields.h"

#include <fmt/format.h>

#include <utility>

namespace rnic::serve::script {

using nlohmann::json;

namespace {

/// As it stands in the command, cut where it is long.
std::string shown(const json& value) {
  constexpr std::size_t most = 40;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

fields::fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object())
    throw command_error(
        fmt::format("{}: expected an object, not {}", where_.empty() ? "command" : where_, shown(object)));
}

void fields::wrong(const char* name, const std::string& why) const {
  throw command_error(fmt::format("{}{}: {}", where_, name, why));
}

const json& fields::take(const char* name) {
  const auto at = object_.find(name);
  if (at == object_.end()) wrong(name, "is missing");
  taken_.insert(name);
  return *at;
}

std::uint64_t fields::number(const char* name, std::uint64_t least, std::uint64_t most) {
  const json& value = take(name);
  const std::string legal = fmt::format("expected an integer from {} to {}, not {}", least, most, shown(value));
  if (!value.is_number_unsigned()) wrong(name, legal);
  const auto n = value.get<std::uint64_t>();
  if (n < least || n > most) wrong(name, legal);
  return n;
}

std::uint64_t fields::number(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) {
  return has(name) ? number(name, least, most) : otherwise;
}

bool fields::flag(const char* name, bool otherwise) {
  if (!has(name)) return otherwise;
  const json& value = take(name);
  if (!value.is_boolean()) wrong(name, "expected true or false, not " + shown(value));
  return value.get<bool>();
}

std::string fields::text(const char* name, std::size_t longest) {
  const json& value = take(name);
  if (!value.is_string()) wrong(name, "expected a text, not " + shown(value));
  const auto& said = value.get_ref<const std::string&>();
  if (said.size() > longest)
    wrong(name, fmt::format("expected a text of at most {} bytes, not of {}", longest, said.size()));
  return said;
}

std::string fields::text(const char* name, std::size_t longest, const std::string& otherwise) {
  return has(name) ? text(name, longest) : otherwise;
}

int fields::value_of(const char* name, const std::string& said, const word_value* table, std::size_t count) const {
  std::string legal;
  for (std::size_t i = 0; i < count; ++i) {
    if (said == table[i].text) return table[i].value;
    legal += (i == 0 ? "" : ", ") + std::string(table[i].text);
  }
  wrong(name, fmt::format("expected one of {}, not {}", legal, shown(said)));
}

int fields::words_of(const char* name, const word_value* table, std::size_t count) {
  int all = 0;
  if (!has(name)) return all;
  const json& value = take(name);
  if (!value.is_array()) wrong(name, "expected a list of words, not " + shown(value));
  for (const json& w : value) {
    if (!w.is_string()) wrong(name, "expected a list of words, not of " + shown(w));
    all |= value_of(name, w.get<std::string>(), table, count);
  }
  return all;
}

std::vector<std::uint8_t> fields::bytes(const char* name, std::size_t most) {
  std::vector<std::uint8_t> bytes;
  if (!has(name)) return bytes;
  if (!from_hex(text(name, 2 * most), bytes)) wrong(name, "expected pairs of hexadecimal digits");
  return bytes;
}

fields fields::object(const char* name) { return fields(take(name), where_ + name + "."); }

std::vector<fields> fields::objects(const char* name, std::size_t least, std::size_t most) {
  const json& value = take(name);
  const std::string legal = fmt::format("expected a list of {} to {} objects, not ", least, most);
  if (!value.is_array()) wrong(name, legal + shown(value));
  if (value.size() < least || value.size() > most) wrong(name, legal + fmt::format("of {}", value.size()));
  std::vector<fields> all;
  for (std::size_t i = 0; i < value.size(); ++i) all.emplace_back(value[i], fmt::format("{}{}[{}].", where_, name, i));
  return all;
}

void fields::end() const {
  for (const auto& [name, value] : object_.items())
    if (taken_.count(name) == 0) throw command_error(fmt::format("{}{}: there is no such field here", where_, name));
}

bool from_hex(const std::string& text, std::vector<std::uint8_t>& bytes) {
  bytes.clear();
  if (text.size() % 2 != 0) return false;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes.push_back(static_cast<std::uint8_t>(high << 4 | low));
  }
  return true;
}

std::string to_hex(const std::uint8_t* bytes, std::size_t count) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    text.push_back(digits[bytes[i] >> 4]);
    text.push_back(digits[bytes[i] & 15]);
  }
  return text;
}

}  // namespace rnic::serve::script
