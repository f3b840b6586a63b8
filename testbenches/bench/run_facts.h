// SPDX-License-Identifier: Apache-2.0
// What was measured of a run of two adapters, as the rules of limited_by() ask for it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "testbenches/bench/utilisation.h"

namespace rnic::bench {

// Parts of the time. Which scenarios hold them: testbenches/system/limits.
inline constexpr double saturated = 0.92, evident = 0.98, mostly = 0.5, largely = 0.7;
/// Of several engines one has nothing to do now and then: what comes for them is not even.
inline constexpr double saturated_group = 0.85;
/// With that much more of something alone what had as much less time left is the next one to limit: both are named.
inline constexpr double closely = 0.03;
/// Of the time that an engine or a queue pair needs, for one thing: without it that does a third more.
inline constexpr double much = 0.25;
/// Of the time of an engine, for one thing: without it that does a quarter more.
inline constexpr double noticeable = 0.2;

// Names of resources.

/// "atomic unit engine 3 of adapter b" is one of "atomic unit engine" of adapter b; nothing for what is no engine of
/// several.
std::string group_of(const std::string& resource);
/// " of adapter b".
std::string side_of(const std::string& resource);
/// That of the requester, which the responder may share.
bool is_read_engine(const std::string& name);
/// Entries of a cache, which come from the host's memory.
bool is_fetched(const std::string& name);
/// The resource without the side that it is of; lines, buses and processors have both sides in their names. Where bytes
/// of frames pass is the datapath: one part of it limits as all do.
std::string kind_of(const std::string& name);
/// Processing units or grants of them.
bool is_units(const std::string& name);

/// Part of the time in which it was in use, or blocked by that.
double held_part(const share& s, const char* by);

/// What took a part of the time.
struct candidate {
  std::string name;  ///< nothing: none
  double part = 0;   ///< in use, or waited for
};

/// Processing units of an adapter. A unit's time is a part of 1 each.
struct unit_facts {
  std::string name;           ///< "processing units of adapter a", or grants where those lack
  unsigned all = 0;           ///< that are there and may be granted
  unsigned occupied = 0;      ///< of these as many as there are queue pairs
  bool lacks_grants = false;  ///< queue pairs wait for a unit that is there, and that the scheduler does not grant
  double in_use = 0;
  double for_contexts = 0;     ///< of that, for contexts that were not on chip
  double for_descriptors = 0;  ///< of that, for descriptors
  double for_empty = 0;        ///< of that, in queues that software had emptied
  double service = 0;          ///< its own work on the messages, of those that are occupied
};

/// Parts of the time between two measurements. Adapters are 0 and 1. Keeps references to all but the load.
class run_facts {
 public:
  run_facts(hosts::pair_if& system, const utilisation& before, const utilisation& after, const offered_load& load);

  hosts::pair_if& system() const { return system_; }
  const offered_load& load() const { return load_; }
  /// The busiest first: of processors without spare polls, without engines whose turns take all that has gathered, and
  /// without processing units.
  const std::vector<share>& shares() const { return shares_; }
  /// A processor that was in use all of the time, but only with its spare polls; or nothing.
  const std::string& polling() const { return polling_; }
  /// The first of the standstills that lasted for most of the time, or nothing.
  const std::string& still() const { return still_; }

  std::string adapter(unsigned i) const;
  /// The host's own, or that of a guest.
  bool is_processor_of(const std::string& name, unsigned side) const;
  /// More frames were dropped at the adapter's ports for want of room.
  bool dropped(unsigned i) const { return after_.dropped[i] != before_.dropped[i]; }
  /// What goes out may not, for some of the time, and for which part of it.
  bool is_paused(unsigned i) const { return paused(i) >= 0.05; }
  double paused(unsigned i) const { return portion(after_.paused_ps[i] - before_.paused_ps[i]); }

  // Engines
  /// In use, or blocked by that; 0 for an engine that this configuration has not.
  double held(const char* engine, unsigned i, const char* by) const;
  /// The same for what an engine waits for: one that is in use for nearly all of the time is what limits itself.
  double waits(const char* engine, unsigned i, const char* by) const;
  /// The send engine had no place to put a packet.
  double waits_for_room(unsigned i) const;
  /// What the engine stood still for in much of the time, or nothing.
  std::string stall_of(const std::string& engine) const;
  /// What has places for several at once, which were all taken for at least that part; `of` that adapter alone.
  candidate of_places(double least, const std::string& of = {}) const;

  // Queue pairs
  std::size_t standstills() const { return after_.standstills.size(); }
  const std::string& standstill(std::size_t k) const { return after_.standstills[k].first; }
  double stood(std::size_t k) const { return portion(after_.standstills[k].second - before_.standstills[k].second); }
  /// Whose queue pairs stood so still.
  unsigned host_of_standstill(std::size_t k) const { return k < standstills() / 2 ? 0 : 1; }
  /// The first standstill of such a name that lasted for at least that part of the time, or nothing.
  template <class F>
  std::string of_standstill(double least, F is_such) const {
    for (std::size_t k = 0; k < standstills(); ++k)
      if (is_such(standstill(k)) && stood(k) >= least) return standstill(k);
    return {};
  }

  const unit_facts& units(unsigned i) const { return units_[i]; }
  /// So many units of those that its queue pairs can occupy were in use.
  bool units_in_use(unsigned i, double part = saturated) const { return units_[i].in_use >= part * units_[i].occupied; }
  /// The units of that name wait for descriptors in queues that go on, much of the time that they are in use.
  bool waits_for_descriptors(const std::string& name) const;

 private:
  double portion(std::uint64_t ps) const;
  void know_units(unsigned side);
  void take_spare_polls(unsigned side);
  void drop_elastic(unsigned side);
  template <class F>
  void drop(F is_such);

  hosts::pair_if& system_;
  const utilisation& before_;
  const utilisation& after_;
  offered_load load_;
  std::array<unit_facts, 2> units_;
  std::vector<share> measured_, shares_;  // all; those that may limit
  std::string polling_, still_;
};

}  // namespace rnic::bench
