// SPDX-License-Identifier: Apache-2.0
// A table of a user's TOML file, read field by field: what is wrong is one line with file, line, field and legal range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/toml_text.h"

namespace rnic::sim {

/// A table of the file, with what errors about it are called.
class toml_section {
 public:
  toml_section(const std::string& file, std::string title, const toml::table& table)
      : file_(file), title_(std::move(title)), table_(table) {}

  [[noreturn]] void fail(const toml::node& at, const std::string& what) const {
    throw config_error(file_ + ":" + std::to_string(at.source().begin.line) + ": " + title_ + what);
  }

  /// Every key must be one of these.
  void allow(std::initializer_list<const char*> keys) const { allow(std::vector<const char*>(keys)); }
  void allow(const std::vector<const char*>& keys) const {
    for (const auto& [key, node] : table_)
      if (std::none_of(keys.begin(), keys.end(), [&k = key](const char* legal) { return k.str() == legal; }))
        fail(node, "no field " + std::string(key.str()) + ", expected one of " + joined(keys));
  }

  bool has(const char* key) const { return table_.contains(key); }
  const toml::node* find(const char* key) const { return table_.get(key); }

  bool number(const char* key, std::uint64_t minimum, std::uint64_t maximum, std::uint64_t& out) const {
    const toml::node* n = find(key);
    if (n == nullptr) return false;
    const auto* v = n->as_integer();
    if (v == nullptr || v->get() < 0 || static_cast<std::uint64_t>(v->get()) < minimum ||
        static_cast<std::uint64_t>(v->get()) > maximum)
      fail(*n, std::string(key) + ": " + shown(*n) + " is not legal, expected " + std::to_string(minimum) + " to " +
                   std::to_string(maximum));
    out = static_cast<std::uint64_t>(v->get());
    return true;
  }
  template <class T>
  bool number(const char* key, std::uint64_t minimum, std::uint64_t maximum, T& out) const {
    std::uint64_t v = 0;
    if (!number(key, minimum, maximum, v)) return false;
    out = static_cast<T>(v);
    return true;
  }

  bool percent(const char* key, double& out) const {
    const toml::node* n = find(key);
    if (n == nullptr) return false;
    const auto v = n->value<double>();
    if (!n->is_number() || !v || !(*v >= 0 && *v <= 100))
      fail(*n, std::string(key) + ": " + shown(*n) + " is not legal, expected 0 to 100 (percent)");
    out = *v;
    return true;
  }

  bool boolean(const char* key, bool& out) const {
    const toml::node* n = find(key);
    if (n == nullptr) return false;
    if (!n->is_boolean()) fail(*n, std::string(key) + ": " + shown(*n) + " is not legal, expected true or false");
    out = n->as_boolean()->get();
    return true;
  }

  bool text(const char* key, std::string& out) const {
    const toml::node* n = find(key);
    if (n == nullptr) return false;
    if (!n->is_string()) fail(*n, std::string(key) + ": " + shown(*n) + " is not legal, expected text");
    out = n->as_string()->get();
    return true;
  }

  /// Index in `words` of the text at `key`, which must be one of them.
  bool word(const char* key, std::initializer_list<const char*> words, unsigned& out) const {
    const toml::node* n = find(key);
    if (n == nullptr) return false;
    unsigned i = 0;
    for (const char* w : words) {
      if (n->is_string() && n->as_string()->get() == w) {
        out = i;
        return true;
      }
      ++i;
    }
    fail(*n, std::string(key) + ": " + shown(*n) + " is not legal, expected one of " + joined(words));
  }

  template <class Words>
  static std::string joined(const Words& words) {
    std::string text;
    for (const char* w : words) text += (text.empty() ? "" : ", ") + std::string(w);
    return text;
  }
  static std::string shown(const toml::node& n) {
    std::ostringstream s;
    n.visit([&s](const auto& v) { s << v; });
    std::string text = s.str();
    return text.substr(0, text.find('\n'));
  }

 private:
  const std::string& file_;
  std::string title_;
  const toml::table& table_;
};

}  // namespace rnic::sim
