// SPDX-License-Identifier: Apache-2.0
// A parameter where it stands, in the config struct of its block: its value, and what is declared of it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rnic::sim {

/// Highest value where nothing but patience sets a limit.
inline constexpr std::uint64_t many = 1'000'000;

// What stands behind a parameter's default; of what is true or false the source alone. All texts are literals; a source
// begins with a key of model/bibliography.md.
/// Of a number.
struct range {
  std::uint64_t lowest, highest;
  const char* unit;
  const char* source;
};
/// Of an enumeration: "lru, fifo, random" are the names of 0, 1 and 2.
struct choice {
  const char* names;
  const char* source;
};

/// Any of the three.
struct declaration {
  declaration(const range& r) : lowest(r.lowest), highest(r.highest), unit(r.unit), source(r.source) {}
  declaration(const choice& c) : highest(last_of(c.names)), names(c.names), source(c.source) {}
  declaration(const char* of_a_flag) : source(of_a_flag) {}

  std::uint64_t lowest = 0, highest = 1;
  const char* unit = "";
  const char* names = nullptr;  ///< of a choice
  const char* source;

 private:
  static std::uint64_t last_of(const char* names);
};

/// Each declaration is kept once, whatever number of configurations has it: a parameter holds its number only.
std::uint16_t number_of(const declaration& d);
const declaration& declaration_of(std::uint16_t number);

/// Reads as its value, is assigned values, and takes nothing but the value from another one: the declaration belongs to
/// the place.
///
///   sim::parameter<unsigned> grants{8, {1, 32, "queue pairs", "calibration 5: processing units"}};  ///< in service
template <class T>
class parameter {
  static_assert(sizeof(T) <= 8 && (std::is_enum_v<T> || std::is_unsigned_v<T>));

 public:
  parameter(T value, const range& r) : value_(value), number_(number_of(r)) {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>, "a number has a range");
  }
  parameter(T value, const choice& c) : value_(value), number_(number_of(c)) {
    static_assert(sizeof(T) == 1 && !std::is_same_v<T, bool>, "an enumeration of one byte has names");
  }
  parameter(T value, const char* source) : value_(value), number_(number_of(source)) {
    static_assert(std::is_same_v<T, bool>, "what is true or false has a source only");
  }
  parameter(const parameter&) = default;
  parameter& operator=(const parameter& other) { return *this = other.value_; }
  parameter& operator=(T value) {
    value_ = value;
    return *this;
  }

  operator const T&() const { return value_; }
  const declaration& declared() const { return declaration_of(number_); }

 private:
  friend class fields;
  T value_;
  std::uint16_t number_;
};

/// A parameter by name.
struct field {
  enum class kind : std::uint8_t { u8, u16, u32, u64, boolean, choice };

  std::string path;
  kind type;
  void* value;
  const declaration* declared;

  std::uint64_t load() const;
  void store(std::uint64_t v) const;
  bool legal(std::uint64_t v) const { return v >= declared->lowest && v <= declared->highest; }
  /// As it is written in files: 5, true, lru.
  std::string text(std::uint64_t v) const;
  /// Names of a choice, of the values 0, 1, ...
  std::vector<std::string> names() const;
  /// The legal values in words: "1 to 32 queue pairs", "lru, fifo or random".
  std::string expected() const;
  /// "<path>: 'text' is not legal, expected <the legal values>".
  std::string refusal(const std::string& text) const;
};

/// A field of which `d`, which is kept, is declared.
template <class T>
field field_of(std::string path, T& value, const declaration& d) {
  constexpr auto by_size = sizeof(T) == 1   ? field::kind::u8
                           : sizeof(T) == 2 ? field::kind::u16
                           : sizeof(T) == 4 ? field::kind::u32
                                            : field::kind::u64;
  const auto type = d.names != nullptr ? field::kind::choice : std::is_same_v<T, bool> ? field::kind::boolean : by_size;
  return {std::move(path), type, &value, &d};
}

/// The parameters of a config struct, which names each of its fields once, in a function of its own:
///
///   void list(sim::fields& are) {
///     are("grants", grants);
///     are("cache", cache);
///   }
///
/// What is below another struct has the path "cache.entries"; `are("", cache)` puts its names beside the others.
class fields {
 public:
  template <class T>
  void operator()(const std::string& name, parameter<T>& p) {
    all_.push_back(field_of(prefix_ + name, p.value_, p.declared()));
  }
  template <class Config>
  void operator()(const std::string& name, Config& below) {
    const std::string above = prefix_;
    if (!name.empty()) prefix_ += name + ".";
    below.list(*this);
    prefix_ = above;
  }

 private:
  template <class Config>
  friend std::vector<field> fields_of(const std::string& path, Config& config);
  std::string prefix_;
  std::vector<field> all_;
};

/// A parameter, or those of a config struct, which the fields point to.
template <class Config>
std::vector<field> fields_of(const std::string& path, Config& config) {
  fields found;
  found(path, config);
  return std::move(found.all_);
}

/// Throws config_error for the first value that is not legal.
void check(const std::vector<field>& all);

/// What a constructor does with its configuration, which may have been made by hand: config_error when a value is not
/// legal, naming `name`.field and the range as parameter_set::set does; else the configuration.
template <class Config>
const Config& checked(const Config& config, const std::string& name) {
  Config copy = config;  // who has a list may change what is on it
  check(fields_of(name, copy));
  return config;
}

}  // namespace rnic::sim
