// SPDX-License-Identifier: Apache-2.0
// What limited a run.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "host_driver/hosts/pair_if.h"
#include "testbenches/bench/utilisation.h"

namespace rnic::bench {

namespace {

constexpr double saturated = 0.92, evident = 0.98, mostly = 0.5, largely = 0.7;
/// Of several engines one has nothing to do now and then: what comes for them is not even.
constexpr double saturated_group = 0.85;
/// Units in use, between grants: what feeds them alone would leave them more to wait for.
constexpr double fed = 0.95;
/// With that much more of something alone what had as much less time left is the next one to limit: both are named.
constexpr double closely = 0.03;
/// Of the time of all units, for one thing.
constexpr double queued = 0.85;
constexpr const char* window = "window (depth and latency)";
constexpr const char* granted = "scheduler grants of adapter ";
/// So few messages under way do not keep busy what is not in use all of the time: its queue is empty now and then.
constexpr std::uint64_t few = 32;
/// Of the time of units, for descriptors of queues that had been empty.
constexpr double few_empty = 0.1;
/// Of the time, for what happens beside what is waited for.
constexpr double now_and_then = 0.02;
/// Of the time that an engine or a queue pair needs, for one thing: without it that does a third more.
constexpr double much = 0.25;
/// Of what a turn can take at most beyond one: it has gathered because turns are rare.
constexpr double full_turns = 0.5;
/// Of the time of an engine, for one thing: without it that does a quarter more.
constexpr double noticeable = 0.2;

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
/// That of the requester, which the responder may share.
bool is_read_engine(const std::string& name) {
  return name.rfind("read engine", 0) == 0 || name.rfind("requester read engine", 0) == 0;
}
/// Entries of a cache, which come from the host's memory.
bool is_fetched(const std::string& name) { return name.rfind("contexts", 0) == 0 || name.rfind("histories", 0) == 0; }
/// The resource without the side that it is of; lines, buses and processors have both sides in their names.
std::string kind_of(const std::string& name) {
  if (is_datapath(name)) return "datapath";
  for (const char* begin : {"wire", "PCIe", "processor", "pcie core"})
    if (name.rfind(begin, 0) == 0) return begin;
  if (is_read_engine(name)) return "requester send engine";  // whose turn a READ's request is as well
  const std::size_t side = name.rfind(" of ");
  return name.substr(0, side);
}

class limit_finder {
 public:
  limit_finder(hosts::pair_if& system, const utilisation& before, const utilisation& after, const offered_load& load)
      : system_(system), before_(before), after_(after), load_(load), shares_(shares_between(before, after)) {
    drop([](const share& s) { return s.name.rfind(processing_units, 0) == 0; });  // by what they wait for: of_units
    for (unsigned side = 0; side < 2; ++side) {
      const rnic::adapter::config& built = system.built_from(side).adapter;
      all_units_[side] = std::min<unsigned>(built.requester.processing_units, built.scheduler.grants);
      units_[side] = std::min(load_.qps, all_units_[side]);
      take_spare_polls(side);
      drop_elastic(side);
    }
    std::stable_sort(shares_.begin(), shares_.end(), [](const share& x, const share& y) { return x.busy > y.busy; });
    for (std::size_t k = 0; still_.empty() && k < after.standstills.size(); ++k)
      if (stood(k) > mostly) still_ = after.standstills[k].first;
  }

  std::string find() const {
    std::string name = find_first();
    // A single queue pair does nothing else while it stands still, and a processor that polls then waits for its end.
    if (load_.qps != 1) return name;
    const auto was_in_use = [&](const share& s) { return s.busy >= evident && name.rfind(s.name, 0) == 0; };
    if (std::any_of(shares_.begin(), shares_.end(), was_in_use)) return name;
    const std::string stands = of_standstill(closely, [](const std::string& s) { return s.rfind("receive", 0) == 0; });
    if (stands.empty() || name.find(stands) != std::string::npos) return name;
    // Nor does a unit that waits for its next descriptor limit by its service.
    const bool in_vain = name == polling_ + " and " + window || (is_units(name) && waits_for_descriptors(name));
    return in_vain ? stands : name + " and " + stands;
  }

 private:
  std::string find_first() const {
    const candidate busiest = of_busiest();
    // An engine that has some time left is not what limits when something was waited for in all of that as well.
    if (!busiest.name.empty() && busiest.part >= evident) return with_equals(busiest);
    const candidate held = of_waiting();
    std::string instead = of_behind_processor();
    if (!instead.empty()) return instead;
    if (!busiest.name.empty() && busiest.part + 0.01 >= held.part) return with_window(with_equals(busiest));
    for (const std::string& name : {of_losses(), of_contexts(saturated), held.name, of_message_table(), of_receives(),
                                    of_rate_limit(), of_units(evident)})
      if (!name.empty()) return name;
    std::string units = of_units(saturated);
    if (!units.empty()) return is_units(units) ? with_window(units) : units;
    units = of_units(saturated_group);
    std::string reads = of_read_engine();
    if (!reads.empty()) return reads;
    if (!still_.empty() || !units.empty()) return !still_.empty() ? of_pauses() : units;
    for (const std::string& name : {of_descriptors(), of_turns(), of_contexts(0), of_shared_read_engine()})
      if (!name.empty()) return name;
    std::string engine = of_engine();
    if (!engine.empty()) return with_window(engine);
    if (!polling_.empty()) return polling_ + " and " + window;
    std::string small = of_small_buffer();
    if (!small.empty()) return small;
    const std::string stands = of_standstill(much, [](const std::string& s) { return s.rfind("pauses", 0) != 0; });
    return stands.empty() ? window : stands + " and " + window;
  }

  struct candidate {
    std::string name;  // nothing: none
    double part = 0;   // of the time: in use, or waited for
  };

  /// Of the time between the measurements.
  double portion(std::uint64_t ps) const {
    return after_.at == before_.at ? 0 : static_cast<double>(ps) / static_cast<double>(after_.at - before_.at);
  }
  std::string adapter(unsigned i) const { return "adapter " + system_.name(i); }
  /// Queue pairs wait for a unit that is there, and that the scheduler does not grant.
  bool lacks_grants(unsigned i) const {
    const unsigned all = system_.built_from(i).adapter.requester.processing_units;
    return all_units_[i] < all && all_units_[i] < load_.qps;
  }
  std::string units_name(unsigned i) const { return (lacks_grants(i) ? granted : processing_units) + system_.name(i); }
  static bool is_units(const std::string& name) {
    return name.rfind(processing_units, 0) == 0 || name.rfind(granted, 0) == 0;
  }

  /// A processor that has time left polls more often, and finds less each time: it is in use for what it could not have
  /// done with fewer polls.
  void take_spare_polls(unsigned side) {
    const double spare = portion(after_.spare_ps[side] - before_.spare_ps[side]);
    for (share& s : shares_) {
      if (!is_processor_of(s.name, side) || s.busy < spare) continue;
      if (s.busy >= saturated && spare > closely) polling_ = s.name;
      s.busy -= spare;
      return;  // the busiest one is the program's
    }
  }
  /// One answer takes all requests of a queue pair that have come meanwhile, one grant all that has been posted: in use
  /// all of the time such an engine holds up nobody, until each of its turns has as much as it takes.
  void drop_elastic(unsigned side) {
    const rnic::adapter::config& built = system_.built_from(side).adapter;
    const auto drop_unless_full = [&](const char* engine, std::uint64_t items, std::uint64_t turns,
                                      std::uint64_t most) {
      const double extra = static_cast<double>(std::min<std::uint64_t>(most, load_.depth)) - 1;
      if (extra == 0 || static_cast<double>(items) >= static_cast<double>(turns) * (1 + full_turns * extra)) return;
      const std::string name = engine + (" of " + adapter(side));
      drop([&name](const share& s) { return s.name == name; });
    };
    const auto more = [&](const std::array<std::uint64_t, 2> utilisation::*count, unsigned i) {
      return (after_.*count)[i] - (before_.*count)[i];
    };
    drop_unless_full("responder acknowledge", more(&utilisation::wqes, 1 - side), more(&utilisation::acks, side),
                     built.responder.ack_coalesce);
    drop_unless_full("scheduler arbiter", more(&utilisation::wqes, side), more(&utilisation::grants, side),
                     built.requester.turn_wqes);
  }
  template <class F>
  void drop(F is_such) {
    shares_.erase(std::remove_if(shares_.begin(), shares_.end(), is_such), shares_.end());
  }
  /// The host's own, or that of a guest.
  bool is_processor_of(const std::string& name, unsigned side) const {
    const std::string own = system_.name(side), guest = ", " + own;
    return name == "processor " + own || (kind_of(name) == "processor" && name.size() > guest.size() &&
                                          name.compare(name.size() - guest.size(), guest.size(), guest) == 0);
  }

  /// An engine that had so little time left is what limits when there is nothing else: what comes for it is not even.
  std::string of_engine() const {
    for (const share& s : shares_)
      if (s.busy >= saturated_group && group_of(s.name).empty() && kind_of(s.name) != "processor") return s.name;
    return {};
  }

  /// What is not in use all of the time, where few messages are under way: it is as often the window.
  std::string with_window(std::string name) const {
    const bool named = name.find(window) != std::string::npos;
    if (std::uint64_t{load_.qps} * load_.depth > few || named || !group_of(name).empty()) return name;
    return name + " and " + window;
  }

  /// Part of the time in which queue pairs stood still for the standstill of that number.
  double stood(std::size_t k) const { return portion(after_.standstills[k].second - before_.standstills[k].second); }
  /// The first standstill of such a name that lasted for at least that part of the time, or nothing.
  template <class F>
  std::string of_standstill(double least, F is_such) const {
    for (std::size_t k = 0; k < after_.standstills.size(); ++k)
      if (is_such(after_.standstills[k].first) && stood(k) >= least) return after_.standstills[k].first;
    return {};
  }

  /// The responder's check is in use or waits for receive descriptors nearly all of the time. These may wait for the
  /// contexts of shared queues.
  std::string of_receives() const {
    for (unsigned i = 0; i < 2; ++i) {
      const double all = held("responder check", i, "receive descriptors"), own = held("responder check", i, "");
      if (all < saturated || all - own < much) continue;
      std::string fetched = of_places(much, adapter(i)).name;
      return is_fetched(fetched) ? fetched : "receives of host " + system_.name(i);
    }
    return {};
  }

  /// Units are in use for queue pairs whose time has not come: the send engine had nothing else that it could start.
  std::string of_rate_limit() const {
    for (const share& s : shares_)
      if (s.name.rfind("requester send engine", 0) == 0 && held_part(s, "rate limit") - s.busy >= mostly)
        return "rate limit" + side_of(s.name);
    return {};
  }

  /// What was waited for nearly all of the time.
  candidate of_waiting() const {
    const candidate pcie = of_pcie();
    if (!pcie.name.empty()) return with_fetched(pcie);
    const candidate places = of_places(saturated), payload = of_payload();
    return payload.part > places.part ? payload : places;
  }

  /// A processor that had time left in its polls does not limit when something else was taken or in use for nearly as
  /// long.
  std::string of_behind_processor() const {
    if (polling_.empty()) return {};
    for (const share& s : shares_)
      if (!group_of(s.name).empty() && s.busy >= saturated_group) {
        std::string several = of_several(s, saturated_group);
        if (!several.empty()) return several;
      }
    return of_places(saturated_group).name;
  }

  /// What the busiest of several engines, which take the same work, says of what limits; nothing where there is one
  /// that has nothing to do. `least`: part of the time that all of them are in use for.
  std::string of_several(const share& busiest, double least) const {
    double busy = 0;
    unsigned engines = 0;
    bool locked = false;
    for (const share& s : shares_) {
      if (group_of(s.name) != group_of(busiest.name) || side_of(s.name) != side_of(busiest.name)) continue;
      busy += s.busy;
      ++engines;
      const double held = held_part(s, "lock");
      locked = locked || (held >= saturated && held - s.busy >= much);
    }
    if (busy >= least * engines) return busiest.name;
    if (least > saturated) return {};
    if (locked) return "atomic unit locks" + side_of(busiest.name);
    if (busy >= saturated * load_.qps) return "order of a queue pair's atomics" + side_of(busiest.name);
    return busy >= saturated_group * engines ? busiest.name : std::string();
  }

  /// An engine whose operations wait for the host's memory comes behind what their way there is, when that has as
  /// little time left.
  candidate of_busiest() const {
    using step = std::pair<double, bool>;
    for (const auto& [least, several] :
         {step{evident, false}, step{evident, true}, step{saturated, false}, step{saturated, true}})
      for (const share& s : shares_) {
        if (s.busy < least) break;
        if (group_of(s.name).empty() == several) continue;
        const std::string name = several ? of_several(s, least) : s.name;
        if (name.empty()) continue;
        const std::string missing = stall_of(name);
        return {missing.empty() ? name : missing, s.busy};
      }
    return {};
  }

  /// With those of other kinds that had no more time left: more of one of them alone gives nothing.
  std::string with_equals(const candidate& busiest) const {
    const bool is_resource =
        std::any_of(shares_.begin(), shares_.end(), [&](const share& s) { return s.name == busiest.name; });
    const double least = busiest.part / (1 + closely);
    if (is_fetched(busiest.name)) return with_processor(busiest.name, least);
    if (!is_resource || !group_of(busiest.name).empty()) return busiest.name;
    // Lines of a network have rates of their own.
    const bool of_network = system_.neighbour(0).rfind("switch", 0) == 0;
    const auto kind_in = [of_network](const std::string& name) {
      return of_network && name.rfind("wire", 0) == 0 ? name : kind_of(name);
    };
    std::vector<std::string> kinds{kind_in(busiest.name)};
    std::string all = busiest.name;
    for (const share& s : shares_) {
      if (s.busy < std::max(least, saturated)) break;
      const std::string kind = kind_in(s.name);
      if (is_read_engine(s.name) && kind == kinds.front() && side_of(s.name) == side_of(busiest.name))
        all = s.name + all.substr(busiest.name.size());
      if (!group_of(s.name).empty() || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
      kinds.push_back(kind);
      all += " and " + s.name;
    }
    // What is not on chip is fetched over the link: more of either leaves it time.
    const bool link_alone = kinds.front() == "PCIe" && kinds.size() == 1;
    const std::string fetched = link_alone ? of_places(saturated).name : std::string();
    if (is_fetched(fetched)) return all + " and " + fetched;
    const std::string units = of_fed_units(busiest);
    if (!units.empty()) return all + " and " + units;
    return all == polling_ ? all + " and " + window : all;
  }

  /// Entries that an engine stands still for, with a processor that has no more time left than that: posted faster,
  /// more messages go with each entry.
  std::string with_processor(const std::string& fetched, double least) const {
    for (const share& s : shares_)
      if (s.busy >= least && kind_of(s.name) == "processor") return fetched + " and " + s.name;
    return fetched;
  }

  /// A processor feeds the units. When all of those are in use as well that so few queue pairs can occupy, they are as
  /// slow; many are in use for what waits for the processor's next message. So does a link that has time left, whose
  /// descriptors they wait for while others wait for them: with more units each fetch is of more messages.
  std::string of_fed_units(const candidate& feeder) const {
    for (unsigned i = 0; i < 2; ++i) {
      const bool by_processor = is_processor_of(feeder.name, i) && load_.qps < all_units_[i] && units_in_use(i, fed);
      const bool by_link = feeder.name == "PCIe, host " + system_.name(i) + " to adapter" && feeder.part < evident &&
                           units_in_use(i, evident) && held("scheduler arbiter", i, "processing units") >= saturated &&
                           waits_for_descriptors(units_name(i));
      if (!by_processor && !by_link) continue;
      const std::string units = of_units(fed);
      return is_units(units) ? units.substr(0, units.find(" and ")) : std::string();
    }
    return {};
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
    return portion(ps) > noticeable ? of : std::string();
  }

  /// Time-outs of one side, for what the other one had no room or no receive for.
  std::string of_losses() const {
    for (unsigned i = 0; i < 2; ++i)
      if (still_ == "time-outs of " + adapter(1 - i) && after_.dropped[i] != before_.dropped[i])
        return "receive buffer of " + adapter(i);
    return still_.rfind("receivers not ready", 0) == 0 ? still_ : std::string();
  }

  /// Somebody waited for a place in it nearly all of the time: of one adapter, so it was full.
  std::string of_message_table() const {
    if (still_.rfind("time-outs", 0) == 0) return {};  // messages are in it for as long
    return of_standstill(saturated, [](const std::string& s) { return s.rfind("message table", 0) == 0; });
  }

  bool units_in_use(unsigned i, double part = saturated) const {
    return portion(after_.units_ps[i] - before_.units_ps[i]) >= part * units_[i];
  }

  /// Work waits for units while those wait for contexts. `part`: of the time that the units are in use for; 0: they
  /// are so in bursts, and all of them for half of the time.
  std::string of_contexts(double part) const {
    for (unsigned i = 0; i < 2; ++i) {
      if (part == 0 && held("scheduler arbiter", i, "processing units") < mostly) continue;
      if (!units_in_use(i, part)) continue;
      std::string missing = stall_of("requester send engine of " + adapter(i));
      if (!missing.empty()) return missing;
      const double all = part == 0 ? portion(after_.units_ps[i] - before_.units_ps[i]) : units_[i];
      if (portion(after_.unit_contexts_ps[i] - before_.unit_contexts_ps[i]) >= mostly * all)
        return "contexts of " + adapter(i);
    }
    return {};
  }

  /// 0 for an engine that this configuration has not.
  double held(const char* engine, unsigned i, const char* by) const {
    const auto at = std::find_if(shares_.begin(), shares_.end(),
                                 [&](const share& s) { return s.name == std::string(engine) + " of " + adapter(i); });
    return at == shares_.end() ? 0 : held_part(*at, by);
  }

  /// The same for what an engine waits for: one that is in use for nearly all of the time is what limits itself.
  double waits(const char* engine, unsigned i, const char* by) const {
    return held(engine, i, "") >= saturated_group ? 0 : held(engine, i, by);
  }

  /// What the requests to either host waited for the longest.
  candidate of_pcie() const {
    candidate longest;
    for (unsigned i = 0; i < 2; ++i) {
      for (const auto& [by, name] :
           {std::pair<const char*, std::string>{"tags", "PCIe tags of " + adapter(i)},
            std::pair<const char*, std::string>{"credits", "PCIe credits of host " + system_.name(i)}}) {
        const double part = std::max(waits("pcie interface", i, by), waits("pcie issue", i, by));
        // What is behind a port that is paused waits for that in the first place.
        const double own = part - (is_paused(i) ? 0.02 : 0);
        if (part >= saturated && own > longest.part) longest = {name, own};
      }
    }
    return longest;
  }

  /// Entries of a cache are fetched with tags and credits: more of either leaves the other.
  candidate with_fetched(candidate pcie) const {
    const std::string fetched = of_places(saturated).name;
    if (is_fetched(fetched)) pcie.name += " and " + fetched;
    return pcie;
  }

  /// Reads of payload of an adapter, or what these wait for themselves.
  std::string of_payload_reads(unsigned i) const {
    const double tags = std::max(waits("pcie interface", i, "tags"), waits("pcie issue", i, "tags"));
    const double credits = std::max(waits("pcie interface", i, "credits"), waits("pcie issue", i, "credits"));
    if (std::max(tags, credits) < largely) return "payload reads of " + adapter(i);
    return tags > credits ? "PCIe tags of " + adapter(i) : "PCIe credits of host " + system_.name(i);
  }

  /// What queue pairs stood still for that had no room behind gather. Without pauses that is payload in front of them;
  /// else what the peer's responder, which takes nothing, waits for.
  std::string of_pauses() const {
    for (unsigned i = 0; i < 2; ++i) {
      if (still_ != "pauses of " + system_.neighbour(i)) continue;
      if (!is_paused(i)) return of_payload_reads(i);
      std::string fetched = of_places(much, adapter(1 - i)).name;
      if (held("icrc check engine", 1 - i, "responder") < mostly) continue;
      if (is_fetched(fetched)) return fetched;
      if (held("responder check", 1 - i, "receive descriptors") >= mostly)
        return "receives of host " + system_.name(1 - i);
    }
    return still_;
  }

  /// Queue pairs have as many READs under way as they may while both halves, which READ from each other, wait for the
  /// engine that they share: what these hold up comes for it in bursts, so it is not in use all of the time.
  std::string of_read_engine() const {
    if (still_.rfind("READs under way", 0) != 0) return {};
    for (const share& s : shares_) {
      if (s.busy < largely) break;
      if (!is_read_engine(s.name)) continue;
      const unsigned i = side_of(s.name) == " of " + adapter(0) ? 0 : 1;
      const auto lost = [&](const char* user) { return held(user, i, "read engine") - held(user, i, ""); };
      if (std::min(lost("requester send engine"), lost("responder check")) >= noticeable) return s.name;
    }
    return {};
  }

  /// Units are taken while the send engine waits for the READ engine. That goes without work when the contexts of what
  /// comes for it are not on chip, so it is not in use all of the time.
  std::string of_shared_read_engine() const {
    for (unsigned i = 0; i < 2; ++i) {
      if (held("scheduler arbiter", i, "processing units") < mostly) continue;
      if (held("requester send engine", i, "read engine") < mostly) continue;
      for (const share& s : shares_) {
        if (s.busy < largely) break;
        if (!is_read_engine(s.name) || side_of(s.name) != " of " + adapter(i)) continue;
        const std::string fetched = of_places(noticeable, adapter(i)).name;
        return is_fetched(fetched) ? s.name + " and " + fetched : s.name;
      }
    }
    return {};
  }

  /// A peer that pauses, but has nothing that is in use all of the time: what it has room for is put away before the
  /// end of a pause lets more come.
  std::string of_small_buffer() const {
    for (unsigned i = 0; i < 2; ++i) {
      if (portion(after_.paused_ps[i] - before_.paused_ps[i]) < mostly) continue;
      const std::string pauses = system_.neighbour(i);
      return pauses == "host " + system_.name(1 - i) ? "receive buffer of " + adapter(1 - i) : "pauses of " + pauses;
    }
    return {};
  }

  /// What goes out may not, for some of the time.
  bool is_paused(unsigned i) const { return portion(after_.paused_ps[i] - before_.paused_ps[i]) >= 0.05; }

  /// What has places for several at once, which were all taken; `of` that adapter alone.
  candidate of_places(double least, const std::string& of = {}) const {
    candidate longest;
    for (std::size_t i = 0; i < after_.taken.size(); ++i) {
      if (!of.empty() && side_of(after_.taken[i].first) != " of " + of) continue;
      const double part = portion(after_.taken[i].second - before_.taken[i].second);
      if (part >= least && part > longest.part) longest = {after_.taken[i].first, part};
    }
    return longest;
  }

  /// No room in front of the port, and it is not the port that is waited for but payload.
  candidate of_payload() const {
    candidate longest;
    for (unsigned i = 0; i < 2; ++i) {
      if (is_paused(i)) continue;
      const double payload = held("gather leave", i, "payload");
      const bool stands = still_ == "pauses of " + system_.neighbour(i);
      const double out = stands ? payload : std::min(payload, waits("requester send engine", i, "egress credits"));
      const double part = std::max(out, held("read generator ask", i, "gathers"));
      if (part >= saturated && part > longest.part) longest = {of_payload_reads(i), part};
    }
    return longest;
  }

  /// What processing units that are in use for that part of the time wait for, or their service.
  std::string of_units(double part) const {
    for (unsigned i = 0; i < 2; ++i) {
      // Between a queue pair's end and the next one's grant its unit is free.
      const bool taken = lacks_grants(i) && held("scheduler arbiter", i, "processing units") >= part;
      if ((!taken && !units_in_use(i, part)) || still_ == "pauses of " + system_.neighbour(i)) continue;
      const double descriptors = portion(after_.unit_descriptors_ps[i] - before_.unit_descriptors_ps[i]);
      const double in_use = portion(after_.units_ps[i] - before_.units_ps[i]);
      // A unit that waits for what software has only just posted, or for the end of a queue.
      const double empty = portion(after_.unit_empty_ps[i] - before_.unit_empty_ps[i]);
      const bool others_wait = held("scheduler arbiter", i, "processing units") >= saturated;  // for a unit
      if (empty >= much * in_use && !others_wait) return window;
      // Whose queue pair stands still for a READ fetches its descriptors again.
      if (load_.fetches && descriptors >= much * in_use) {
        std::string reads = of_reads(i);
        if (!reads.empty()) return reads;
      }
      // More units would wait for more descriptors at once.
      if (still_.empty() && descriptors - empty >= (load_.qps < all_units_[i] ? mostly : queued) * in_use)
        return "descriptor fetch of " + adapter(i);
      const double engine = held("requester send engine", i, ""), room = waits_for_room(i);
      if (engine >= saturated_group && service_of(i) >= saturated_group)
        return "requester send engine of " + adapter(i) + " and " + units_name(i);
      if (engine >= saturated_group) return "requester send engine of " + adapter(i);
      const double payload = held("gather leave", i, "payload");
      if ((room >= mostly && payload >= mostly) ||
          (room >= much && engine + room >= saturated && payload >= saturated_group))
        return of_payload_reads(i);
      const std::string units = units_name(i);
      return empty >= few_empty * in_use && !others_wait ? units + " and " + window : units;
    }
    return {};
  }
  /// The units of that adapter, for much of the time that they are in use.
  bool waits_for_descriptors(const std::string& units) const {
    const unsigned i = units.find(" of " + adapter(0)) != std::string::npos ? 0 : 1;
    const double empty = portion(after_.unit_empty_ps[i] - before_.unit_empty_ps[i]);
    return portion(after_.unit_descriptors_ps[i] - before_.unit_descriptors_ps[i]) - empty >=
           much * portion(after_.units_ps[i] - before_.units_ps[i]);
  }
  /// Queue pairs of which each has a unit, and waits in it for its next descriptor most of the time.
  std::string of_descriptors() const {
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint64_t all = after_.unit_descriptors_ps[i] - before_.unit_descriptors_ps[i];
      const std::uint64_t empty = after_.unit_empty_ps[i] - before_.unit_empty_ps[i];
      if (load_.qps <= all_units_[i] && portion(all - std::min(all, empty)) >= mostly * units_[i])
        return "descriptor fetch of " + adapter(i);
    }
    return {};
  }
  /// READs under way, where queue pairs stood still for them now and then.
  std::string of_reads(unsigned i) const {
    const std::string name = "READs under way of " + adapter(i);
    return of_standstill(now_and_then, [&](const std::string& s) { return s == name; });
  }
  /// Part of the time that the units' own work on the messages takes, of the units that so many queue pairs can occupy.
  double service_of(unsigned i) const {
    const auto& adapter = system_.built_from(i).adapter;
    const std::uint64_t cycles = (after_.wqes[i] - before_.wqes[i]) *
                                 (load_.fetches ? adapter.requester.read_wqe_cycles : adapter.requester.wqe_cycles);
    return portion(cycles * sim::ps_per_s / (std::uint64_t{adapter.clock_khz} * 1000)) / units_[i];
  }
  /// Of few queue pairs that are served or stand still, in turn, all of the time: both.
  std::string of_turns() const {
    for (std::size_t k = 0; k < after_.standstills.size(); ++k) {
      const double still = stood(k);
      const std::string& name = after_.standstills[k].first;
      if (still < 1 - saturated_group || name.rfind("pauses", 0) == 0) continue;
      const unsigned i = k < after_.standstills.size() / 2 ? 0 : 1;  // whose queue pairs they are
      const double served = portion(after_.units_ps[i] - before_.units_ps[i]) / units_[i];
      if (load_.qps > all_units_[i] || served < mostly || served + still < saturated) continue;
      // A unit's service of a READ goes on while others of its queue pair are under way.
      if (still >= much && name.rfind("READs", 0) == 0) return name;
      const std::string units = of_units(served);
      return units.empty() ? name : name + " and " + units;
    }
    return {};
  }
  /// Part of the time in which the send engine had no place to put a packet.
  double waits_for_room(unsigned i) const {
    return held("requester send engine", i, "egress credits") + held("requester send engine", i, "gather") -
           2 * held("requester send engine", i, "");
  }

  hosts::pair_if& system_;
  const utilisation& before_;
  const utilisation& after_;
  offered_load load_;

  std::array<unsigned, 2> all_units_{}, units_{};  // of each adapter; those that so many queue pairs can occupy
  std::vector<share> shares_;
  std::string polling_;  // a processor that was in use all of the time, but only with its spare polls
  std::string still_;    // the first of the standstills that lasted for most of the time
};

}  // namespace

std::string limited_by(hosts::pair_if& system, const utilisation& before, const utilisation& after,
                       const offered_load& load) {
  return limit_finder(system, before, after, load).find();
}

}  // namespace rnic::bench
