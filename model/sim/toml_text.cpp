// SPDX-License-Identifier: Apache-2.0
// The code of the TOML library, with the assertions of toml_text.h.
#define TOML_IMPLEMENTATION
#include "model/sim/toml_text.h"

namespace rnic::sim {

std::vector<std::pair<std::string, std::string>> settings_in(const toml::table& root, const std::string& name) {
  std::vector<std::pair<std::string, std::string>> found;
  std::vector<std::pair<std::string, const toml::table*>> open{{"", &root}};
  while (!open.empty()) {
    const auto [prefix, table] = open.back();
    open.pop_back();
    for (const auto& [key, node] : *table) {
      const std::string path = prefix + std::string(key.str());
      if (const toml::table* inner = node.as_table())
        open.emplace_back(path + ".", inner);
      else if (node.is_boolean())
        found.emplace_back(path, node.as_boolean()->get() ? "true" : "false");
      else if (node.is_integer())
        found.emplace_back(path, std::to_string(node.as_integer()->get()));
      else if (node.is_string())
        found.emplace_back(path, node.as_string()->get());
      else
        throw config_error(name + ": " + path + ": expected a whole number, true/false or a name in quotes");
    }
  }
  return found;
}

}  // namespace rnic::sim
