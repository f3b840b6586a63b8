// SPDX-License-Identifier: Apache-2.0
// Parameters of a system with sides a and b, as the user gives them: PATH is of both, a.PATH and b.PATH are of one.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host_driver/hosts/network.h"
#include "host_driver/hosts/node.h"
#include "model/sim/parameters.h"

namespace rnic::program {

/// Of each side why it cannot have a parameter of its own here, and what would be right; nullptr: it can.
using side_refusals = std::array<const char*, 2>;
inline constexpr side_refusals two_sides{};
inline constexpr side_refusals one_adapter{nullptr, "there is one adapter here, which is a"};
inline constexpr side_refusals no_sides{"there are no sides a and b here, expected it in [hosts.NAME] of the file",
                                        "there are no sides a and b here, expected it in [hosts.NAME] of the file"};

/// Later ones win: PATH behind a.PATH is of both again. Of a file PATH comes first, whatever its order. Errors are
/// sim::config_error, as those of sim::parameter_set; a line says so for what sides cannot differ in: parameters of
/// what is between them, of the simulation, and of the cable's two ends.
class side_parameters {
 public:
  using setting = std::pair<std::string, std::string>;  ///< path and value

  /// `all`: parameters of the system, of them those of `both`, what each side's host is made from. Both outlive this.
  /// Refused is also a.rtl.*, which hosts::node_config has, but for its default.
  side_parameters(sim::parameter_set& all, hosts::node_config& both, const side_refusals& refused = two_sides);
  ~side_parameters();

  /// "PATH=VALUE" of the command line.
  void set_assignment(const std::string& assignment);
  /// Of a TOML file, `where`: its name.
  void set(const std::vector<setting>& settings, const std::string& where);
  void load_toml(const std::string& file);

  bool differ() const { return !said_[0].empty() || !said_[1].empty(); }
  /// What the host of a side is made from.
  const hosts::node_config& of(unsigned side) const;
  /// What was said of one side and stands, for the measured hosts of a network.
  std::vector<hosts::network_config::host_setting> settings(const std::array<unsigned, 2>& hosts) const;
  /// Every parameter, and below them those of one side; can be loaded again.
  std::string to_toml() const;

 private:
  struct one_side;
  void set_one(const std::string& path, const std::string& assignment, const std::string& where);
  void check_side(unsigned side, const std::string& path, const std::string& where) const;
  void set_of_side(unsigned side, const std::string& path, const std::string& assignment, const std::string& where);
  void set_of_both(const std::string& path, const std::string& assignment, const std::string& where);
  one_side& make(unsigned number);
  sim::parameter_set* parameters_of(unsigned number);

  sim::parameter_set& all_;
  hosts::node_config& both_;
  side_refusals refused_;
  std::array<std::unique_ptr<one_side>, 2> sides_;  // from the first a.PATH or b.PATH on
  std::array<std::set<std::string>, 2> said_;       // paths
};

}  // namespace rnic::program
