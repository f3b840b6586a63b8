// SPDX-License-Identifier: Apache-2.0
// Every number of a run by name: profiles, files and --set change them, and the effective ones are written beside
// results.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/sim/parameter.h"

namespace rnic::sim {

/// Registry of parameters. Blocks declare them in their config structs (parameter.h); this binds their names
/// ("adapter.requester.wqe_cycles") to a configuration. Errors are sim::config_error with one line that names the
/// parameter and its legal range.
class parameter_set {
 public:
  struct info : field {
    std::string source;                   ///< where the value comes from
    std::vector<std::string> synonyms{};  ///< choice: understood as well, for 0, 1, ...
  };

  /// A parameter, or a config struct below the path. It must live as long as it is set through this.
  template <class Config>
  void add(const std::string& path, Config& config) {
    for (const field& f : fields_of(path, config)) insert(f);
  }
  /// A plain field, of software, which knows nothing of the ground floor.
  template <class T>
  void add(const std::string& path, T& plain, const declaration& d) {
    insert(field_of(path, plain, declaration_of(number_of(d))));
  }
  /// Other names of a choice's values 0, 1, ..., which older settings use.
  void add_synonyms(const std::string& path, std::vector<std::string> names);

  /// Sets one parameter from text: decimal or 0x hexadecimal number, true/false, a choice's name. An unknown path names
  /// the nearest known one of its section. `where` opens the error line: "--set" or the file's name.
  void set(const std::string& path, const std::string& value, const std::string& where = "--set");
  /// "path=value", or as to_toml() has it: "path = \"value\"".
  void set_assignment(const std::string& assignment, const std::string& where = "--set");
  /// TOML file: nested tables make the path.
  void load_toml(const std::string& file);

  /// Says anew where a known parameter's value comes from: what a profile sets has the profile's reason.
  void set_source(const std::string& path, std::string source);

  /// Throws config_error for the first value that is not legal: configurations may be made by hand.
  void check() const;

  const std::map<std::string, info>& all() const { return by_path_; }
  /// Those below a path, such as a block's ("adapter.requester", see adapter::adapter), in the order of their names.
  std::vector<const info*> of(const std::string& path) const;
  std::string value(const std::string& path) const;
  /// All values as TOML, one line each with unit and source as comment: can be loaded again.
  std::string to_toml() const;

 private:
  void insert(const field& f);
  const info& find(const std::string& path, const std::string& where) const;
  std::string nearest(const std::string& path) const;
  std::map<std::string, info> by_path_;
};

}  // namespace rnic::sim
