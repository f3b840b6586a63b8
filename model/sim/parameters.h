// SPDX-License-Identifier: Apache-2.0
// Every number of a run by name: profiles, files and --set change them, and the effective ones are written beside
// results.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rnic::sim {

/// Registry of parameters. Blocks keep plain config structs; this binds names ("adapter.transport.tx_pipeline_cycles")
/// to their fields. Errors are sim::config_error with one line that names the parameter and its legal range.
class parameter_set {
 public:
  struct info {
    std::string path;
    std::string unit;    ///< "cycles", "ns", "bytes", "" ...
    std::string source;  ///< where the value comes from
    std::uint64_t minimum = 0, maximum = 0;
    enum class kind { u8, u16, u32, u64, boolean, choice } type = kind::u32;
    void* target = nullptr;
    std::vector<std::string> names;       ///< choice: of the values 0, 1, ...
    std::vector<std::string> synonyms{};  ///< choice: understood as well
  };

  void add(std::string path, bool& target, std::string source);
  /// One of `names`, which are those of the values 0, 1, ... of a one-byte enumeration or integer.
  template <class Choice>
  void add_choice(std::string path, Choice& target, std::vector<std::string> names, std::string source) {
    static_assert(sizeof(Choice) == 1);
    const std::uint64_t last = names.size() - 1;
    insert({std::move(path), "", std::move(source), 0, last, info::kind::choice, &target, std::move(names)});
  }
  /// Other names of a choice's values 0, 1, ..., which older settings use.
  void add_synonyms(const std::string& path, std::vector<std::string> names);
  template <class Integer>
  void add(std::string path, Integer& target, std::uint64_t minimum, std::uint64_t maximum, std::string unit,
           std::string source) {
    static_assert(sizeof(Integer) <= 8 && !std::is_signed_v<Integer>);
    const auto type = sizeof(Integer) == 1   ? info::kind::u8
                      : sizeof(Integer) == 2 ? info::kind::u16
                      : sizeof(Integer) == 4 ? info::kind::u32
                                             : info::kind::u64;
    insert({std::move(path), std::move(unit), std::move(source), minimum, maximum, type, &target, {}});
  }

  /// Sets one parameter from text: decimal or 0x hexadecimal number, true/false, a choice's name. An unknown path names
  /// the nearest known one. `where` opens the error line: "--set" or the file's name.
  void set(const std::string& path, const std::string& value, const std::string& where = "--set");
  /// "path=value".
  void set_assignment(const std::string& assignment, const std::string& where = "--set");
  /// TOML file: nested tables make the path.
  void load_toml(const std::string& file);

  /// Says anew where a known parameter's value comes from: what a profile sets has the profile's reason.
  void set_source(const std::string& path, std::string source);

  const std::map<std::string, info>& all() const { return by_path_; }
  /// Those below a path, such as a block's ("adapter.requester", see adapter::adapter), in the order of their names.
  std::vector<const info*> of(const std::string& path) const;
  std::string value(const std::string& path) const;
  /// All values as TOML, one line each with unit and source as comment: can be loaded again.
  std::string to_toml() const;

 private:
  void insert(info&& i);
  const info& find(const std::string& path, const std::string& where) const;
  std::map<std::string, info> by_path_;
};

}  // namespace rnic::sim
