// SPDX-License-Identifier: Apache-2.0
#include "model/sim/hierarchy.h"

#include <sysc/kernel/sc_simcontext.h>

#include <algorithm>

namespace rnic::sim {

#if RNIC_SYSTEMC_HAS_SCOPES
namespace {
/// SystemC lets a module open the scope of itself only; here the modules above are opened for what says that it
/// belongs there.
struct scope_of : sc_core::sc_module {
  static constexpr auto get = &scope_of::get_hierarchy_scope;
};
}  // namespace
#endif

hierarchy_place::hierarchy_place(const std::string& full_name) : leaf_(full_name) {
  const std::size_t dot = full_name.rfind('.');
  if (dot == std::string::npos) return;
  auto* const above = dynamic_cast<sc_core::sc_module*>(sc_core::sc_find_object(full_name.substr(0, dot).c_str()));
  if (above == nullptr) {
    std::replace(leaf_.begin(), leaf_.end(), '.', '_');
    return;
  }
  leaf_.erase(0, dot + 1);
#if RNIC_SYSTEMC_HAS_SCOPES
  inside_.emplace((above->*scope_of::get)());
#else
  sc_core::sc_get_curr_simcontext()->hierarchy_push(above);
  inside_ = true;
#endif
}

#if RNIC_SYSTEMC_HAS_SCOPES
hierarchy_place::~hierarchy_place() = default;
#else
hierarchy_place::~hierarchy_place() {
  if (inside_) sc_core::sc_get_curr_simcontext()->hierarchy_pop();
}
#endif

std::string hierarchy_place::name_of(const sc_core::sc_object& object, const std::string& given) {
  const std::size_t dot = given.rfind('.');
  if (dot == std::string::npos) return object.name();
  const sc_core::sc_object* const above = object.get_parent_object();
  const bool missed = above == nullptr || given.compare(0, dot, above->name()) != 0;
  return missed ? given : object.name();
}

}  // namespace rnic::sim
