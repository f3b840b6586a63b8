// SPDX-License-Identifier: Apache-2.0
#include "model/sim/parameter.h"

#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "model/sim/check.h"

namespace rnic::sim {

namespace {

constexpr std::string_view between_names = ", ";

/// All declarations of the program. Texts are literals, so the address of one says which it is.
class declarations {
 public:
  std::uint16_t number_of(const declaration& d) {
    const std::lock_guard<std::mutex> one(mutex_);
    const auto [place, fresh] =
        numbers_.try_emplace({d.lowest, d.highest, d.unit, d.names, d.source}, static_cast<std::uint16_t>(all_.size()));
    if (fresh) {
      RNIC_ASSERT(all_.size() <= std::numeric_limits<std::uint16_t>::max(), "more declarations than numbers");
      all_.push_back(d);
    }
    return place->second;
  }
  const declaration& at(std::uint16_t number) {
    const std::lock_guard<std::mutex> one(mutex_);
    return all_[number];  // stays where it is
  }

 private:
  std::mutex mutex_;
  std::deque<declaration> all_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, const char*, const char*, const char*>, std::uint16_t> numbers_;
};

declarations& known() {
  static declarations all;
  return all;
}

}  // namespace

std::uint16_t number_of(const declaration& d) { return known().number_of(d); }

const declaration& declaration_of(std::uint16_t number) { return known().at(number); }

std::uint64_t declaration::last_of(const char* names) {
  std::uint64_t commas = 0;
  for (const char* n = names; *n != 0; ++n) commas += *n == ',' ? 1 : 0;
  return commas;
}

std::uint64_t field::load() const {
  switch (type) {
    case kind::u8:
    case kind::choice:
      return *static_cast<const std::uint8_t*>(value);
    case kind::u16:
      return *static_cast<const std::uint16_t*>(value);
    case kind::u32:
      return *static_cast<const std::uint32_t*>(value);
    case kind::u64:
      return *static_cast<const std::uint64_t*>(value);
    case kind::boolean:
      return *static_cast<const bool*>(value) ? 1 : 0;
  }
  return 0;
}

void field::store(std::uint64_t v) const {
  switch (type) {
    case kind::u8:
    case kind::choice:
      *static_cast<std::uint8_t*>(value) = static_cast<std::uint8_t>(v);
      break;
    case kind::u16:
      *static_cast<std::uint16_t*>(value) = static_cast<std::uint16_t>(v);
      break;
    case kind::u32:
      *static_cast<std::uint32_t*>(value) = static_cast<std::uint32_t>(v);
      break;
    case kind::u64:
      *static_cast<std::uint64_t*>(value) = v;
      break;
    case kind::boolean:
      *static_cast<bool*>(value) = v != 0;
      break;
  }
}

std::vector<std::string> field::names() const {
  std::vector<std::string> all;
  for (std::string_view rest = declared->names;;) {
    const std::size_t end = rest.find(between_names);
    all.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return all;
    rest.remove_prefix(end + between_names.size());
  }
}

std::string field::text(std::uint64_t v) const {
  if (type == kind::boolean) return v != 0 ? "true" : "false";
  return type == kind::choice && legal(v) ? names()[v] : std::to_string(v);
}

std::string field::expected() const {
  if (type == kind::boolean) return "true or false";
  if (type == kind::choice) {
    const std::vector<std::string> all = names();
    std::string text = all.front();
    for (std::size_t n = 1; n < all.size(); ++n) text += (n + 1 == all.size() ? " or " : ", ") + all[n];
    return text;
  }
  const std::string unit = declared->unit;
  return std::to_string(declared->lowest) + " to " + std::to_string(declared->highest) +
         (unit.empty() ? "" : " " + unit);
}

std::string field::refusal(const std::string& text) const {
  return path + ": '" + text + "' is not legal, expected " + expected();
}

void check(const std::vector<field>& all) {
  for (const field& f : all)
    if (const std::uint64_t v = f.load(); !f.legal(v)) throw config_error(f.refusal(f.text(v)));
}

}  // namespace rnic::sim
