// SPDX-License-Identifier: Apache-2.0
// A sweep, as a TOML file says it: an experiment, and what of it takes which values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/toml_text.h"

namespace rnic::program {

struct sweep_axis {
  std::string path;       ///< of a field of the experiment, "workload.rpc.rate_mpps", or of a parameter, "set.host.x"
  toml::array values;     ///< of a list, and of a range its steps
  bool is_range = false;  ///< any number between the first and the last value
  bool logarithmic = false;
};

struct sweep_file {
  std::string text;
  std::string experiment;  ///< the experiment's text,
  std::string folder;      ///< and where its file is
  enum class plan : std::uint8_t {
    grid,            ///< every value of each axis with every one of the others
    list,            ///< the first values of all, the second ones, ...
    latin_hypercube  ///< `count` points by chance, each axis evenly covered
  } how = plan::grid;
  unsigned count = 0;
  std::uint64_t seed = 1;
  std::vector<sweep_axis> axes;
  std::vector<std::string> columns;  ///< patterns of result fields
  bool has_columns = false;          ///< they are the file's: each is meant to be there
};

/// Throws sim::config_error: one line with file, line, field and what is legal.
sweep_file load_sweep(const std::string& file);

/// One experiment of a sweep.
struct sweep_point {
  std::vector<std::string> values;  ///< by axis, as in TOML
  std::vector<std::string> set;     ///< "path=value" of parameters
  std::string text;                 ///< the experiment's file
};

/// Puts a value at a path of an experiment, as an axis does. Throws sim::config_error for a path that it has not.
void assign(toml::table& experiment, const std::string& path, const toml::node& value, const std::string& name);

/// All of them, in an order that depends on the file alone. Throws sim::config_error for a path that the experiment has
/// not.
std::vector<sweep_point> points_of(const sweep_file& f, const std::string& name);

}  // namespace rnic::program
