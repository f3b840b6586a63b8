// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/run_facts.h"

#include <algorithm>
#include <cctype>

#include "host_driver/hosts/pair_if.h"

namespace rnic::bench {

namespace {

constexpr const char* granted = "scheduler grants of adapter ";
/// Of what a turn can take at most beyond one: it has gathered because turns are rare.
constexpr double full_turns = 0.5;

bool begins_with(const std::string& name, const char* begin) { return name.rfind(begin, 0) == 0; }

}  // namespace

std::string group_of(const std::string& resource) {
  const std::size_t engine = resource.find(" engine ");
  const bool numbered = engine != std::string::npos && std::isdigit(static_cast<unsigned char>(resource[engine + 8]));
  return numbered ? resource.substr(0, engine + 8) : std::string();
}

std::string side_of(const std::string& resource) { return resource.substr(resource.rfind(" of ")); }

bool is_read_engine(const std::string& name) {
  return begins_with(name, "read engine") || begins_with(name, "requester read engine");
}

bool is_fetched(const std::string& name) { return begins_with(name, "contexts") || begins_with(name, "histories"); }

std::string kind_of(const std::string& name) {
  for (const char* begin : {"icrc ", "parser ", "port "})
    if (begins_with(name, begin)) return "datapath";
  for (const char* begin : {"wire", "PCIe", "processor", "pcie core"})
    if (begins_with(name, begin)) return begin;
  if (is_read_engine(name)) return "requester send engine";  // whose turn a READ's request is as well
  return name.substr(0, name.rfind(" of "));
}

bool is_units(const std::string& name) { return begins_with(name, processing_units) || begins_with(name, granted); }

double held_part(const share& s, const char* by) {
  double part = s.busy;
  for (const auto& [name, p] : s.blocked)
    if (name == by) part += p;
  return part;
}

run_facts::run_facts(hosts::pair_if& system, const utilisation& before, const utilisation& after,
                     const offered_load& load)
    : system_(system),
      before_(before),
      after_(after),
      load_(load),
      measured_(shares_between(before, after)),
      shares_(measured_) {
  drop([](const share& s) { return begins_with(s.name, processing_units); });  // by what they wait for
  for (unsigned side = 0; side < 2; ++side) {
    know_units(side);
    take_spare_polls(side);
    drop_elastic(side);
  }
  std::stable_sort(shares_.begin(), shares_.end(), [](const share& x, const share& y) { return x.busy > y.busy; });
  for (std::size_t k = 0; still_.empty() && k < standstills(); ++k)
    if (stood(k) > mostly) still_ = standstill(k);
}

double run_facts::portion(std::uint64_t ps) const {
  return after_.at == before_.at ? 0 : static_cast<double>(ps) / static_cast<double>(after_.at - before_.at);
}

std::string run_facts::adapter(unsigned i) const { return "adapter " + system_.name(i); }

bool run_facts::is_processor_of(const std::string& name, unsigned side) const {
  const std::string own = system_.name(side), guest = ", " + own;
  return name == "processor " + own || (kind_of(name) == "processor" && name.size() > guest.size() &&
                                        name.compare(name.size() - guest.size(), guest.size(), guest) == 0);
}

template <class F>
void run_facts::drop(F is_such) {
  shares_.erase(std::remove_if(shares_.begin(), shares_.end(), is_such), shares_.end());
}

/// A processor that has time left polls more often, and finds less each time: it is in use for what it could not have
/// done with fewer polls.
void run_facts::take_spare_polls(unsigned side) {
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
void run_facts::drop_elastic(unsigned side) {
  const rnic::adapter::config& built = system_.built_from(side).adapter;
  const auto drop_unless_full = [&](const char* engine, std::uint64_t items, std::uint64_t turns, std::uint64_t most) {
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

double run_facts::held(const char* engine, unsigned i, const char* by) const {
  const auto at = std::find_if(measured_.begin(), measured_.end(),
                               [&](const share& s) { return s.name == std::string(engine) + " of " + adapter(i); });
  return at == measured_.end() ? 0 : held_part(*at, by);
}

double run_facts::waits(const char* engine, unsigned i, const char* by) const {
  return held(engine, i, "") >= saturated_group ? 0 : held(engine, i, by);
}

double run_facts::waits_for_room(unsigned i) const {
  return held("requester send engine", i, "egress credits") + held("requester send engine", i, "gather") -
         2 * held("requester send engine", i, "");
}

std::string run_facts::stall_of(const std::string& engine) const {
  std::uint64_t ps = 0;
  std::string of;
  for (std::size_t i = 0; i < after_.stalls.size(); ++i) {
    if (after_.stalls[i].engine != engine) continue;
    ps += after_.stalls[i].ps - before_.stalls[i].ps;
    of = after_.stalls[i].of;
  }
  return portion(ps) > noticeable ? of : std::string();
}

candidate run_facts::of_places(double least, const std::string& of) const {
  candidate longest;
  for (std::size_t i = 0; i < after_.taken.size(); ++i) {
    if (!of.empty() && side_of(after_.taken[i].first) != " of " + of) continue;
    const double part = portion(after_.taken[i].second - before_.taken[i].second);
    if (part >= least && part > longest.part) longest = {after_.taken[i].first, part};
  }
  return longest;
}

void run_facts::know_units(unsigned side) {
  const rnic::adapter::config& built = system_.built_from(side).adapter;
  unit_facts& u = units_[side];
  const auto more = [&](const std::array<std::uint64_t, 2> utilisation::*ps) {
    return portion((after_.*ps)[side] - (before_.*ps)[side]);
  };
  u.all = std::min<unsigned>(built.requester.processing_units, built.scheduler.grants);
  u.occupied = std::min(load_.qps, u.all);
  u.lacks_grants = u.all < std::min<unsigned>(built.requester.processing_units, load_.qps);
  u.name = (u.lacks_grants ? granted : processing_units) + system_.name(side);
  u.in_use = more(&utilisation::units_ps);
  u.for_contexts = more(&utilisation::unit_contexts_ps);
  u.for_descriptors = more(&utilisation::unit_descriptors_ps);
  u.for_empty = more(&utilisation::unit_empty_ps);
  const std::uint64_t cycles = (after_.wqes[side] - before_.wqes[side]) *
                               (load_.fetches ? built.requester.read_wqe_cycles : built.requester.wqe_cycles);
  u.service = portion(cycles * sim::ps_per_s / (std::uint64_t{built.clock_khz} * 1000)) / u.occupied;
}

bool run_facts::waits_for_descriptors(const std::string& name) const {
  const unit_facts& u = units_[name.find(" of " + adapter(0)) != std::string::npos ? 0 : 1];
  return u.for_descriptors - u.for_empty >= much * u.in_use;
}

}  // namespace rnic::bench
