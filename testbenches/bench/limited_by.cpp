// SPDX-License-Identifier: Apache-2.0
// What limited a run: the rules, in the order of utilisation.h.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "host_driver/hosts/pair_if.h"
#include "testbenches/bench/run_facts.h"

namespace rnic::bench {

namespace {

/// Units in use, between grants: what feeds them alone would leave them more to wait for.
constexpr double fed = 0.95;
/// Of the time of all units, for one thing.
constexpr double queued = 0.85;
constexpr const char* window = "window (depth and latency)";
/// So few messages under way do not keep busy what is not in use all of the time: its queue is empty now and then.
constexpr std::uint64_t few = 32;
/// Of the time of units, for descriptors of queues that had been empty.
constexpr double few_empty = 0.1;
/// Of the time, for what happens beside what is waited for.
constexpr double now_and_then = 0.02;

class limit_finder : private run_facts {
 public:
  using run_facts::run_facts;

  std::string find() const {
    std::string name = find_first();
    // A single queue pair does nothing else while it stands still, and a processor that polls then waits for its end.
    if (load().qps != 1) return name;
    const auto was_in_use = [&](const share& s) { return s.busy >= evident && name.rfind(s.name, 0) == 0; };
    if (std::any_of(shares().begin(), shares().end(), was_in_use)) return name;
    const std::string stands = of_standstill(closely, [](const std::string& s) { return s.rfind("receive", 0) == 0; });
    if (stands.empty() || name.find(stands) != std::string::npos) return name;
    // Nor does a unit that waits for its next descriptor limit by its service.
    const bool in_vain = name == polling() + " and " + window || (is_units(name) && waits_for_descriptors(name));
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
    std::string by_units = of_units(saturated);
    if (!by_units.empty()) return is_units(by_units) ? with_window(by_units) : by_units;
    by_units = of_units(saturated_group);
    std::string reads = of_read_engine();
    if (!reads.empty()) return reads;
    if (!still().empty() || !by_units.empty()) return !still().empty() ? of_pauses() : by_units;
    for (const std::string& name : {of_descriptors(), of_turns(), of_contexts(0), of_shared_read_engine()})
      if (!name.empty()) return name;
    std::string engine = of_engine();
    if (!engine.empty()) return with_window(engine);
    if (!polling().empty()) return polling() + " and " + window;
    std::string small = of_small_buffer();
    if (!small.empty()) return small;
    const std::string stands = of_standstill(much, [](const std::string& s) { return s.rfind("pauses", 0) != 0; });
    return stands.empty() ? window : stands + " and " + window;
  }

  /// An engine that had so little time left is what limits when there is nothing else: what comes for it is not even.
  std::string of_engine() const {
    for (const share& s : shares())
      if (s.busy >= saturated_group && group_of(s.name).empty() && kind_of(s.name) != "processor") return s.name;
    return {};
  }

  /// What is not in use all of the time, where few messages are under way: it is as often the window.
  std::string with_window(std::string name) const {
    const bool named = name.find(window) != std::string::npos;
    if (std::uint64_t{load().qps} * load().depth > few || named || !group_of(name).empty()) return name;
    return name + " and " + window;
  }

  /// The responder's check is in use or waits for receive descriptors nearly all of the time. These may wait for the
  /// contexts of shared queues.
  std::string of_receives() const {
    for (unsigned i = 0; i < 2; ++i) {
      const double all = held("responder check", i, "receive descriptors"), own = held("responder check", i, "");
      if (all < saturated || all - own < much) continue;
      std::string fetched = of_places(much, adapter(i)).name;
      return is_fetched(fetched) ? fetched : "receives of host " + system().name(i);
    }
    return {};
  }

  /// Units are in use for queue pairs whose time has not come: the send engine had nothing else that it could start.
  std::string of_rate_limit() const {
    for (const share& s : shares())
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
    if (polling().empty()) return {};
    for (const share& s : shares())
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
    for (const share& s : shares()) {
      if (group_of(s.name) != group_of(busiest.name) || side_of(s.name) != side_of(busiest.name)) continue;
      busy += s.busy;
      ++engines;
      const double held = held_part(s, "lock");
      locked = locked || (held >= saturated && held - s.busy >= much);
    }
    if (busy >= least * engines) return busiest.name;
    if (least > saturated) return {};
    if (locked) return "atomic unit locks" + side_of(busiest.name);
    if (busy >= saturated * load().qps) return "order of a queue pair's atomics" + side_of(busiest.name);
    return busy >= saturated_group * engines ? busiest.name : std::string();
  }

  /// An engine whose operations wait for the host's memory comes behind what their way there is, when that has as
  /// little time left.
  candidate of_busiest() const {
    using step = std::pair<double, bool>;
    for (const auto& [least, several] :
         {step{evident, false}, step{evident, true}, step{saturated, false}, step{saturated, true}})
      for (const share& s : shares()) {
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
        std::any_of(shares().begin(), shares().end(), [&](const share& s) { return s.name == busiest.name; });
    const double least = busiest.part / (1 + closely);
    if (is_fetched(busiest.name)) return with_processor(busiest.name, least);
    if (!is_resource || !group_of(busiest.name).empty()) return busiest.name;
    // Lines of a network have rates of their own.
    const bool of_network = system().neighbour(0).rfind("switch", 0) == 0;
    const auto kind_in = [of_network](const std::string& name) {
      return of_network && name.rfind("wire", 0) == 0 ? name : kind_of(name);
    };
    std::vector<std::string> kinds{kind_in(busiest.name)};
    std::string all = busiest.name;
    for (const share& s : shares()) {
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
    const std::string room = of_egress(least);
    if (!room.empty()) return all + " and " + room;
    const std::string fed_units = of_fed_units(busiest);
    if (!fed_units.empty()) return all + " and " + fed_units;
    return all == polling() ? all + " and " + window : all;
  }

  /// The port has places for so few frames that their way to the line, which has time left, takes longer: the send
  /// engine is in use or waits for a place, and no payload is waited for.
  std::string of_egress(double least) const {
    for (const share& s : shares()) {
      if (s.busy < largely) break;
      if (kind_of(s.name) == "wire" || kind_of(s.name) == "datapath") return {};
    }
    for (unsigned i = 0; i < 2; ++i) {
      const double room = waits_for_room(i);
      if (is_paused(i) || room < mostly || held("requester send engine", i, "") + room < least) continue;
      if (held("gather leave", i, "payload") < much) return "egress buffer of " + adapter(i);
    }
    return {};
  }

  /// Entries that an engine stands still for, with a processor that has no more time left than that: posted faster,
  /// more messages go with each entry.
  std::string with_processor(const std::string& fetched, double least) const {
    for (const share& s : shares())
      if (s.busy >= least && kind_of(s.name) == "processor") return fetched + " and " + s.name;
    return fetched;
  }

  /// A processor feeds the units. When all of those are in use as well that so few queue pairs can occupy, they are as
  /// slow; many are in use for what waits for the processor's next message. So does a link that has time left, whose
  /// descriptors they wait for while others wait for them: with more units each fetch is of more messages.
  std::string of_fed_units(const candidate& feeder) const {
    for (unsigned i = 0; i < 2; ++i) {
      const bool by_processor = is_processor_of(feeder.name, i) && load().qps < units(i).all && units_in_use(i, fed);
      const bool by_link = feeder.name == "PCIe, host " + system().name(i) + " to adapter" && feeder.part < evident &&
                           units_in_use(i, evident) && held("scheduler arbiter", i, "processing units") >= saturated &&
                           waits_for_descriptors(units(i).name);
      if (!by_processor && !by_link) continue;
      const std::string limiting = of_units(fed);
      return is_units(limiting) ? limiting.substr(0, limiting.find(" and ")) : std::string();
    }
    return {};
  }

  /// Time-outs of one side, for what the other one had no room or no receive for.
  std::string of_losses() const {
    for (unsigned i = 0; i < 2; ++i)
      if (still() == "time-outs of " + adapter(1 - i) && dropped(i)) return "receive buffer of " + adapter(i);
    return still().rfind("receivers not ready", 0) == 0 ? still() : std::string();
  }

  /// Somebody waited for a place in it nearly all of the time: of one adapter, so it was full.
  std::string of_message_table() const {
    if (still().rfind("time-outs", 0) == 0) return {};  // messages are in it for as long
    return of_standstill(saturated, [](const std::string& s) { return s.rfind("message table", 0) == 0; });
  }

  /// Work waits for units while those wait for contexts. `part`: of the time that the units are in use for; 0: they
  /// are so in bursts, and all of them for half of the time.
  std::string of_contexts(double part) const {
    for (unsigned i = 0; i < 2; ++i) {
      if (part == 0 && held("scheduler arbiter", i, "processing units") < mostly) continue;
      if (!units_in_use(i, part)) continue;
      std::string missing = stall_of("requester send engine of " + adapter(i));
      if (!missing.empty()) return missing;
      const double all = part == 0 ? units(i).in_use : units(i).occupied;
      if (units(i).for_contexts >= mostly * all) return "contexts of " + adapter(i);
    }
    return {};
  }

  /// What the requests to either host waited for the longest.
  candidate of_pcie() const {
    candidate longest;
    for (unsigned i = 0; i < 2; ++i) {
      for (const auto& [by, name] :
           {std::pair<const char*, std::string>{"tags", "PCIe tags of " + adapter(i)},
            std::pair<const char*, std::string>{"credits", "PCIe credits of host " + system().name(i)}}) {
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
    return tags > credits ? "PCIe tags of " + adapter(i) : "PCIe credits of host " + system().name(i);
  }

  /// What queue pairs stood still for that had no room behind gather. Without pauses that is payload in front of them;
  /// else what the peer's responder, which takes nothing, waits for.
  std::string of_pauses() const {
    for (unsigned i = 0; i < 2; ++i) {
      if (still() != "pauses of " + system().neighbour(i)) continue;
      if (!is_paused(i)) return of_payload_reads(i);
      std::string fetched = of_places(much, adapter(1 - i)).name;
      if (held("icrc check engine", 1 - i, "responder") < mostly) continue;
      if (is_fetched(fetched)) return fetched;
      if (held("responder check", 1 - i, "receive descriptors") >= mostly)
        return "receives of host " + system().name(1 - i);
    }
    return still();
  }

  /// Queue pairs have as many READs under way as they may while both halves, which READ from each other, wait for the
  /// engine that they share: what these hold up comes for it in bursts, so it is not in use all of the time.
  std::string of_read_engine() const {
    if (still().rfind("READs under way", 0) != 0) return {};
    for (const share& s : shares()) {
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
      for (const share& s : shares()) {
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
      if (paused(i) < mostly) continue;
      const std::string pauses = system().neighbour(i);
      return pauses == "host " + system().name(1 - i) ? "receive buffer of " + adapter(1 - i) : "pauses of " + pauses;
    }
    return {};
  }

  /// No room in front of the port, and it is not the port that is waited for but payload.
  candidate of_payload() const {
    candidate longest;
    for (unsigned i = 0; i < 2; ++i) {
      if (is_paused(i)) continue;
      const double payload = held("gather leave", i, "payload");
      const bool stands = still() == "pauses of " + system().neighbour(i);
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
      const bool taken = units(i).lacks_grants && held("scheduler arbiter", i, "processing units") >= part;
      if ((!taken && !units_in_use(i, part)) || still() == "pauses of " + system().neighbour(i)) continue;
      const double descriptors = units(i).for_descriptors, all = units(i).in_use;
      // A unit that waits for what software has only just posted, or for the end of a queue.
      const double empty = units(i).for_empty;
      const bool others_wait = held("scheduler arbiter", i, "processing units") >= saturated;  // for a unit
      if (empty >= much * all && !others_wait) return window;
      // Whose queue pair stands still for a READ fetches its descriptors again.
      if (load().fetches && descriptors >= much * all) {
        std::string reads = of_reads(i);
        if (!reads.empty()) return reads;
      }
      // More units would wait for more descriptors at once.
      if (still().empty() && descriptors - empty >= (load().qps < units(i).all ? mostly : queued) * all)
        return "descriptor fetch of " + adapter(i);
      const double engine = held("requester send engine", i, ""), room = waits_for_room(i);
      if (engine >= saturated_group && units(i).service >= saturated_group)
        return "requester send engine of " + adapter(i) + " and " + units(i).name;
      if (engine >= saturated_group) return "requester send engine of " + adapter(i);
      std::string frames = of_egress(saturated);
      if (!frames.empty()) return frames;
      const double payload = held("gather leave", i, "payload");
      if ((room >= mostly && payload >= mostly) ||
          (room >= much && engine + room >= saturated && payload >= saturated_group))
        return of_payload_reads(i);
      const std::string& name = units(i).name;
      return empty >= few_empty * all && !others_wait ? name + " and " + window : name;
    }
    return {};
  }
  /// Queue pairs of which each has a unit, and waits in it for its next descriptor most of the time.
  std::string of_descriptors() const {
    for (unsigned i = 0; i < 2; ++i) {
      if (load().qps <= units(i).all && units(i).for_descriptors - units(i).for_empty >= mostly * units(i).occupied)
        return "descriptor fetch of " + adapter(i);
    }
    return {};
  }
  /// READs under way, where queue pairs stood still for them now and then.
  std::string of_reads(unsigned i) const {
    const std::string name = "READs under way of " + adapter(i);
    return of_standstill(now_and_then, [&](const std::string& s) { return s == name; });
  }
  /// Of few queue pairs that are served or stand still, in turn, all of the time: both.
  std::string of_turns() const {
    for (std::size_t k = 0; k < standstills(); ++k) {
      const double still = stood(k);
      const std::string& name = standstill(k);
      if (still < 1 - saturated_group || name.rfind("pauses", 0) == 0) continue;
      const unsigned i = host_of_standstill(k);
      const double served = units(i).in_use / units(i).occupied;
      if (load().qps > units(i).all || served < mostly || served + still < saturated) continue;
      // A unit's service of a READ goes on while others of its queue pair are under way.
      if (still >= much && name.rfind("READs", 0) == 0) return name;
      const std::string serving = of_units(served);
      return serving.empty() ? name : name + " and " + serving;
    }
    return {};
  }
};

}  // namespace

std::string limited_by(hosts::pair_if& system, const utilisation& before, const utilisation& after,
                       const offered_load& load) {
  return limit_finder(system, before, after, load).find();
}

}  // namespace rnic::bench
