// SPDX-License-Identifier: Apache-2.0
// What limited a run.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "host_driver/hosts/pair_if.h"
#include "testbenches/bench/utilisation.h"

namespace rnic::bench {

namespace {

constexpr double saturated = 0.92, evident = 0.98, mostly = 0.5;
/// Of several engines one has nothing to do now and then: what comes for them is not even.
constexpr double saturated_group = 0.85;
/// Of an engine's busy time, for contexts: without it the engine does a third more.
constexpr double much = 0.25;

/// "atomic unit engine 3 of adapter b" is one of "atomic unit engine" of adapter b; nothing for what is no engine of
/// several.
std::string group_of(const std::string& resource) {
  const std::size_t engine = resource.find(" engine ");
  const bool numbered = engine != std::string::npos && std::isdigit(static_cast<unsigned char>(resource[engine + 8]));
  return numbered ? resource.substr(0, engine + 8) : std::string();
}
std::string side_of(const std::string& resource) { return resource.substr(resource.rfind(" of ")); }

/// In use, or blocked by that.
double held_part(const share& s, const char* by) {
  double part = s.busy;
  for (const auto& [name, p] : s.blocked)
    if (name == by) part += p;
  return part;
}

/// What does nothing but let a frame's bytes pass: one of them limits as all do.
bool is_datapath(const std::string& name) {
  for (const char* begin : {"icrc ", "parser ", "port "})
    if (name.rfind(begin, 0) == 0) return true;
  return false;
}
/// The resource without the side that it is of; lines, buses and processors have both sides in their names.
std::string kind_of(const std::string& name) {
  if (is_datapath(name)) return "datapath";
  for (const char* begin : {"wire", "PCIe", "processor"})
    if (name.rfind(begin, 0) == 0) return begin;
  const std::size_t side = name.rfind(" of ");
  return name.substr(0, side);
}

class limit_finder {
 public:
  limit_finder(hosts::pair_if& system, const utilisation& before, const utilisation& after, unsigned qps)
      : system_(system), before_(before), after_(after), qps_(qps), shares_(shares_between(before, after)) {
    units_ = std::min<unsigned>(qps, system.built_from(0).adapter.requester.processing_units);
    for (std::size_t i = 0; still_.empty() && i < after.standstills.size(); ++i)
      if (portion(after.standstills[i].second - before.standstills[i].second) > mostly)
        still_ = after.standstills[i].first;
  }

  std::string find() const {
    const candidate busiest = of_busiest();
    // An engine that has some time left is not what limits when something was waited for in all of that as well.
    if (!busiest.name.empty() && busiest.part >= evident) return with_equals(busiest);
    candidate held = of_pcie();
    if (held.name.empty()) held = of_payload();
    if (!busiest.name.empty() && busiest.part + 0.01 >= held.part) return busiest.name;
    for (const std::string& name : {of_losses(), of_contexts(), held.name, of_units()})
      if (!name.empty()) return name;
    return still_.empty() ? "window (depth and latency)" : still_;
  }

 private:
  struct candidate {
    std::string name;  // nothing: none
    double part = 0;   // of the time: in use, or waited for
  };

  /// Of the time between the measurements.
  double portion(std::uint64_t ps) const {
    return after_.at == before_.at ? 0 : static_cast<double>(ps) / static_cast<double>(after_.at - before_.at);
  }
  std::string adapter(unsigned i) const { return "adapter " + system_.name(i); }

  /// What the busiest of several engines, which take the same work, says of what limits; nothing where there is one
  /// that has nothing to do.
  std::string of_several(const share& busiest) const {
    double busy = 0;
    unsigned engines = 0;
    bool locked = false;
    for (const share& s : shares_) {
      if (group_of(s.name) != group_of(busiest.name) || side_of(s.name) != side_of(busiest.name)) continue;
      busy += s.busy;
      ++engines;
      locked = locked || (s.busy < saturated && held_part(s, "lock") >= saturated);
    }
    if (busy >= saturated * engines) return busiest.name;
    if (locked) return "atomic unit locks" + side_of(busiest.name);
    if (busy >= saturated * qps_) return "order of a queue pair's atomics" + side_of(busiest.name);
    return busy >= saturated_group * engines ? busiest.name : std::string();
  }

  /// An engine whose operations wait for the host's memory comes behind what their way there is.
  candidate of_busiest() const {
    for (const bool several : {false, true})
      for (const share& s : shares_) {
        if (s.busy < saturated) break;
        if (group_of(s.name).empty() == several) continue;
        const std::string name = several ? of_several(s) : s.name;
        if (name.empty()) continue;
        const std::string missing = stall_of(name);
        return {missing.empty() ? name : missing, s.busy};
      }
    return {};
  }

  /// With the first one of another kind that had no more time left: more of one of them alone gives nothing.
  std::string with_equals(const candidate& busiest) const {
    const auto equal = std::find_if(shares_.begin(), shares_.end(), [&](const share& s) {
      return s.busy >= evident && s.busy + 0.01 >= busiest.part && group_of(s.name).empty() &&
             kind_of(s.name) != kind_of(busiest.name);
    });
    const bool is_resource =
        std::any_of(shares_.begin(), shares_.end(), [&](const share& s) { return s.name == busiest.name; });
    return equal == shares_.end() || !is_resource || !group_of(busiest.name).empty()
               ? busiest.name
               : busiest.name + " and " + equal->name;
  }

  /// What the engine stood still for in much of the time, or nothing.
  std::string stall_of(const std::string& engine) const {
    std::uint64_t ps = 0;
    std::string of;
    for (std::size_t i = 0; i < after_.stalls.size(); ++i) {
      if (after_.stalls[i].engine != engine) continue;
      ps += after_.stalls[i].ps - before_.stalls[i].ps;
      of = after_.stalls[i].of;
    }
    return portion(ps) > much ? of : std::string();
  }

  /// Time-outs of one side, for what the other one had no room for.
  std::string of_losses() const {
    for (unsigned i = 0; i < 2; ++i)
      if (still_ == "time-outs of " + adapter(1 - i) && after_.dropped[i] != before_.dropped[i])
        return "receive buffer of " + adapter(i);
    return {};
  }

  bool units_in_use(unsigned i) const {
    return portion(after_.units_ps[i] - before_.units_ps[i]) >= saturated * units_;
  }

  std::string of_contexts() const {
    for (unsigned i = 0; i < 2; ++i) {
      if (!units_in_use(i)) continue;
      const std::string missing = stall_of("requester send engine of " + adapter(i));
      if (!missing.empty()) return missing;
    }
    return {};
  }

  /// 0 for an engine that this configuration has not.
  double held(const char* engine, unsigned i, const char* by) const {
    const auto at = std::find_if(shares_.begin(), shares_.end(),
                                 [&](const share& s) { return s.name == std::string(engine) + " of " + adapter(i); });
    return at == shares_.end() ? 0 : held_part(*at, by);
  }

  /// What the requests to either host waited for the longest.
  candidate of_pcie() const {
    candidate longest;
    for (unsigned i = 0; i < 2; ++i) {
      for (const auto& [by, name] :
           {std::pair<const char*, std::string>{"tags", "PCIe tags of " + adapter(i)},
            std::pair<const char*, std::string>{"credits", "PCIe credits of host " + system_.name(i)}}) {
        const double part = std::max(held("pcie interface", i, by), held("pcie issue", i, by));
        // What is behind a port that is paused waits for that in the first place.
        if (part >= saturated && part > longest.part + (is_paused(i) ? 0.02 : 0)) longest = {name, part};
      }
    }
    return longest;
  }

  /// What goes out may not, for some of the time.
  bool is_paused(unsigned i) const { return portion(after_.paused_ps[i] - before_.paused_ps[i]) >= 0.05; }

  /// No room in front of the port, and it is not the port that is waited for but payload.
  candidate of_payload() const {
    candidate longest;
    for (unsigned i = 0; i < 2; ++i) {
      if (is_paused(i)) continue;
      const double payload = held("gather leave", i, "payload");
      const bool stands = still_ == "pauses of " + system_.neighbour(i);
      const double out = stands ? payload : std::min(payload, held("requester send engine", i, "egress credits"));
      if (out >= saturated && out > longest.part) longest = {"payload reads of " + adapter(i), out};
    }
    return longest;
  }

  std::string of_units() const {
    for (unsigned i = 0; i < 2; ++i)
      if (units_in_use(i) && still_ != "pauses of " + system_.neighbour(i)) return "processing units of " + adapter(i);
    return {};
  }

  hosts::pair_if& system_;
  const utilisation& before_;
  const utilisation& after_;
  unsigned qps_, units_ = 0;  // of one adapter: units that so many queue pairs can occupy
  std::vector<share> shares_;
  std::string still_;  // the first of the standstills that lasted for most of the time
};

}  // namespace

std::string limited_by(hosts::pair_if& system, const utilisation& before, const utilisation& after, unsigned qps) {
  return limit_finder(system, before, after, qps).find();
}

}  // namespace rnic::bench
