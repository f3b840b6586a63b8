// SPDX-License-Identifier: Apache-2.0
// From the axes of a sweep to its experiments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>

#include "host_driver/workloads/message_sizes.h"
#include "model/sim/check.h"
#include "testbenches/rnic/sweep/sweep_file.h"

namespace rnic::program {

namespace {

/// By axis, as a table without names: one value each.
using values = toml::array;

std::vector<values> grid(const sweep_file& f) {
  std::vector<values> all{values{}};
  for (const sweep_axis& a : f.axes) {
    std::vector<values> longer;
    for (const values& v : all)
      for (const toml::node& each : a.values) {
        longer.push_back(v);
        longer.back().push_back(each);
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<values> list(const sweep_file& f) {
  std::vector<values> all(f.axes.front().values.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const sweep_axis& a : f.axes) all[i].push_back(*a.values.get(i));
  return all;
}

/// The value of an axis at 0 <= x < 1.
void append_at(const sweep_axis& a, double x, values& to) {
  if (!a.is_range) {
    to.push_back(*a.values.get(static_cast<std::size_t>(x * static_cast<double>(a.values.size()))));
    return;
  }
  const toml::node &first = *a.values.get(0), &last = *a.values.get(a.values.size() - 1);
  // Of whole numbers the last one has as large a part as the others.
  const double low = *first.value<double>(), high = *last.value<double>(), end = first.is_integer() ? high + 1 : high;
  const double v = a.logarithmic ? low * std::pow(end / low, x) : low + (end - low) * x;
  if (first.is_integer())
    to.push_back(static_cast<std::int64_t>(std::clamp(std::floor(v), low, high)));
  else
    to.push_back(v);
}

/// Each axis is cut into as many parts as there are points, and each part has one (McKay, Beckman, Conover 1979).
std::vector<values> latin_hypercube(const sweep_file& f) {
  std::mt19937_64 random(f.seed);
  std::vector<values> all(f.count);
  std::vector<unsigned> part(f.count);
  std::iota(part.begin(), part.end(), 0u);
  for (const sweep_axis& a : f.axes) {
    for (std::size_t i = part.size() - 1; i != 0; --i) std::swap(part[i], part[random() % (i + 1)]);
    for (unsigned i = 0; i < f.count; ++i) append_at(a, (part[i] + workloads::uniform(random)) / f.count, all[i]);
  }
  return all;
}

/// Texts without their quotes, numbers as short as they can be.
std::string plain(const toml::node& n) {
  if (n.is_string()) return n.as_string()->get();
  if (n.is_floating_point()) return fmt::format("{}", n.as_floating_point()->get());
  std::ostringstream s;
  n.visit([&s](const auto& v) { s << v; });
  return s.str();
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// The element of a list of tables with this name or number, which begins at 1; nullptr: there is none.
toml::table* element(toml::array& list, const std::string& name) {
  for (toml::node& n : list)
    if (toml::table* t = n.as_table())
      if (const auto own = (*t)["name"].value<std::string>(); own && *own == name) return t;
  const std::size_t number = std::strtoul(name.c_str(), nullptr, 10);
  return number >= 1 && number <= list.size() ? list.get(number - 1)->as_table() : nullptr;
}

}  // namespace

/// Below [parameters] and [hosts.NAME] dots are part of a parameter's path, whose tables may not be there yet.
void assign(toml::table& root, const std::string& path, const toml::node& value, const std::string& name) {
  const std::vector<std::string> parts = split(path);
  const bool may_make = parts[0] == "parameters" || parts[0] == "hosts";
  toml::table* at = &root;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    toml::node* next = at->get(parts[i]);
    if (next == nullptr && may_make) next = &at->insert(parts[i], toml::table{}).first->second;
    if (next != nullptr && next->is_array_of_tables() && i + 2 < parts.size())
      at = element(*next->as_array(), parts[++i]);
    else
      at = next != nullptr ? next->as_table() : nullptr;
    if (at == nullptr) throw sim::config_error(name + ": axes: " + path + ": the experiment has no " + parts[i]);
  }
  at->insert_or_assign(parts.back(), value);
}

std::vector<sweep_point> points_of(const sweep_file& f, const std::string& name) {
  const toml::table experiment =
      sim::read_toml(name + ": experiment", [&] { return toml::parse(f.experiment, std::string("experiment")); });
  std::vector<sweep_point> all;
  for (const values& v : f.how == sweep_file::plan::grid   ? grid(f)
                         : f.how == sweep_file::plan::list ? list(f)
                                                           : latin_hypercube(f)) {
    toml::table own = experiment;
    sweep_point p;
    for (std::size_t i = 0; i < f.axes.size(); ++i) {
      const std::string& path = f.axes[i].path;
      const toml::node& value = *v.get(i);
      p.values.push_back(plain(value));
      if (path.rfind("set.", 0) == 0)
        p.set.push_back(path.substr(4) + "=" + plain(value));
      else
        assign(own, path, value, name);
    }
    std::ostringstream text;
    for (const std::string& s : p.set) text << "# --set " << s << '\n';
    text << own << '\n';
    p.text = text.str();
    all.push_back(std::move(p));
  }
  return all;
}

}  // namespace rnic::program
