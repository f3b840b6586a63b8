// SPDX-License-Identifier: Apache-2.0
// `rnic compare`: two results, field by field.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "testbenches/rnic/compare/result_fields.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/whole_file.h"

namespace rnic::program {

namespace {

/// How far a field may be from its reference.
struct tolerance {
  std::string pattern;
  double percent = 0;
};

/// What a run is called, what it was made from and single events of it: these may differ.
constexpr const char* usually_left_out[] = {"command",        "version*",          "seed",           "set.*",
                                            "file",           "profile",           "parameters",     "counters.*",
                                            "use.*",          "host_parameters.*", "*.counters.*",   "statistics.*",
                                            "*.statistics.*", "*.histogram.*",     "experiment.seed"};

/// What is a fault when the reference has none.
constexpr const char* never_to_come[] = {"standstills*", "*.failure"};

struct difference {
  std::string field, reference, other;
  double percent = 0, allowed = 0;
  enum class verdict : std::uint8_t { within, beyond, only_in_reference, only_in_other } is = verdict::within;
  bool is_fault() const {
    const auto fits = [this](const char* pattern) { return matches(pattern, field); };
    return is == verdict::only_in_other ? std::any_of(std::begin(never_to_come), std::end(never_to_come), fits)
                                        : is != verdict::within;
  }
};

class comparison {
 public:
  explicit comparison(const compare_options& o) : options_(o) {
    for (const std::string& t : o.tolerances) tolerances_.push_back(tolerance_from(t));
  }

  std::vector<difference> run(const nlohmann::json& reference, const nlohmann::json& other) const {
    const named_fields ours = fields_of(reference), all_theirs = fields_of(other);
    check_fields(ours, all_theirs);
    std::vector<difference> all;
    std::map<std::string, nlohmann::json> theirs;
    for (const auto& [name, value] : all_theirs)
      if (is_compared(name)) theirs.emplace(name, value);
    for (const auto& [name, value] : ours) {
      if (!is_compared(name)) continue;
      const auto at = theirs.find(name);
      if (at == theirs.end()) {
        all.push_back({name, value.dump(), "", 0, 0, difference::verdict::only_in_reference});
        continue;
      }
      all.push_back(compare(name, value, at->second));
      theirs.erase(at);
    }
    for (const auto& [name, value] : theirs)
      all.push_back({name, "", value.dump(), 0, 0, difference::verdict::only_in_other});
    return all;
  }

 private:
  static tolerance tolerance_from(const std::string& text) {
    const auto equals = text.rfind('=');
    const std::string number = equals == std::string::npos ? text : text.substr(equals + 1);
    char* end = nullptr;
    const double percent = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != 0 || !(percent >= 0))
      throw usage_error(fmt::format("--tolerance: '{}': expected PERCENT or FIELD=PERCENT, from 0", text));
    return {equals == std::string::npos ? "*" : text.substr(0, equals), percent};
  }

  /// A field that is named and is in neither file is a mistake in its name: what it was to guard is not guarded.
  void check_fields(const named_fields& reference, const named_fields& other) const {
    const auto check = [&](const char* option, const std::string& pattern) {
      const auto is_there = [&pattern](const auto& field) { return matches(pattern, field.first); };
      if (std::none_of(reference.begin(), reference.end(), is_there) &&
          std::none_of(other.begin(), other.end(), is_there))
        throw usage_error(fmt::format("{}: there is no such field in either file: {}", option, pattern));
    };
    for (const std::string& pattern : options_.fields) check("--field", pattern);
    for (const std::string& pattern : options_.without) check("--without", pattern);
    for (const tolerance& t : tolerances_) check("--tolerance", t.pattern);
  }

  bool is_compared(const std::string& name) const {
    const auto any = [&](const auto& patterns) {
      for (const auto& p : patterns)
        if (matches(p, name)) return true;
      return false;
    };
    if (any(options_.without)) return false;
    return options_.fields.empty() ? !any(usually_left_out) : any(options_.fields);
  }

  /// The last one that is said of the field.
  double allowed(const std::string& name) const {
    double percent = 0;
    for (const tolerance& t : tolerances_)
      if (matches(t.pattern, name)) percent = t.percent;
    return percent;
  }

  difference compare(const std::string& name, const nlohmann::json& reference, const nlohmann::json& other) const {
    difference d{name, reference.dump(), other.dump(), 0, 0, difference::verdict::within};
    if (!reference.is_number() || !other.is_number()) {
      if (reference != other) d.is = difference::verdict::beyond;
      return d;
    }
    d.allowed = allowed(name);
    if (reference.is_number_integer() && other.is_number_integer() && reference != other && d.allowed == 0)
      d.is = difference::verdict::beyond;  // a double has no room for all of their digits
    const double a = reference.get<double>(), b = other.get<double>();
    d.percent = a == b ? 0 : a == 0 ? std::copysign(HUGE_VAL, b) : 100 * (b - a) / std::abs(a);
    // Of numbers that are equal but for their last digit in text.
    constexpr double rounding = 1e-9;
    if (std::abs(d.percent) > d.allowed + rounding) d.is = difference::verdict::beyond;
    return d;
  }

  const compare_options& options_;
  std::vector<tolerance> tolerances_;
};

std::string words_of(const difference& d) {
  switch (d.is) {
    case difference::verdict::only_in_reference:
      return "is only in the reference";
    case difference::verdict::only_in_other:
      return d.is_fault() ? "is new, and a fault" : "is new";
    case difference::verdict::beyond:
      if (d.percent != 0) return fmt::format("{:+.3f} %, allowed {:g} %", d.percent, d.allowed);
      return "differs";
    case difference::verdict::within:
      break;
  }
  return "within";
}

std::string as_xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

/// As test runners of CI services read it: a case for each field.
void write_junit(std::ostream& out, const compare_options& o, const std::vector<difference>& all, std::size_t faults) {
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      << fmt::format("<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n",
                     as_xml("rnic compare " + o.reference + " " + o.other), all.size(), faults);
  for (const difference& d : all) {
    out << fmt::format("  <testcase classname=\"{}\" name=\"{}\"", as_xml(o.other), as_xml(d.field));
    if (!d.is_fault())
      out << "/>\n";
    else
      out << fmt::format("><failure message=\"{}\">{} in {}, {} in {}</failure></testcase>\n", as_xml(words_of(d)),
                         as_xml(d.reference), as_xml(o.reference), as_xml(d.other.empty() ? "nothing" : d.other),
                         as_xml(o.other));
  }
  out << "</testsuite>\n";
}

}  // namespace

int run_compare(const compare_options& o) {
  common_options written;
  written.overwrite = o.overwrite;
  check_writable(written, o.json_file);
  check_writable(written, o.junit_file);
  const std::vector<difference> all = comparison(o).run(read_result(o.reference), read_result(o.other));
  const auto is_in_both = [](const difference& d) {
    return d.is == difference::verdict::within || d.is == difference::verdict::beyond;
  };
  if (std::none_of(all.begin(), all.end(), is_in_both))
    throw usage_error(o.reference + " and " + o.other + ": have no field in common that is to be compared");
  std::size_t faults = 0, new_faults = 0, new_ones = 0;
  nlohmann::json differing = nlohmann::json::array();
  for (const difference& d : all) {
    if (d.is == difference::verdict::within) continue;
    if (!d.is_fault())
      ++new_ones;
    else if (++faults; d.is == difference::verdict::only_in_other)
      ++new_faults;
    fmt::print("{:<48} {:>16} {:>16}  {}\n", d.field, d.reference, d.other, words_of(d));
    differing.push_back({{"field", d.field}, {"reference", d.reference}, {"other", d.other}, {"what", words_of(d)}});
  }
  fmt::print("{} fields compared, {} beyond tolerance or missing, {} new{}\n", all.size(), faults - new_faults,
             new_ones + new_faults, new_faults == 0 ? "" : fmt::format(", of which {} are faults", new_faults));
  if (!o.json_file.empty())
    write_json(o.json_file, {{"command", "compare"},
                             {"reference", o.reference},
                             {"other", o.other},
                             {"compared", all.size()},
                             {"faults", faults},
                             {"differences", differing}});
  if (!o.junit_file.empty()) write_whole(o.junit_file, [&](std::ostream& out) { write_junit(out, o, all, faults); });
  return faults == 0 ? 0 : 1;
}

}  // namespace rnic::program
