// SPDX-License-Identifier: Apache-2.0
// Which of the programs of a host goes on first in the same picosecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "model/sim/timebase.h"
#include "model/sim/types.h"

namespace rnic::host_driver {

/// The order of the programs (SC_THREADs) of one host that go on at the same time: the one that began to wait first is
/// the first, and edges of that instant come before them all. The SystemC kernel has an order of its own, which depends
/// on all that it has been asked for so far; what programs see must not, or it would not be the same without
/// timebase::options::run_ahead. They wait in the kernel, or apart from it where partitions are (sim::windows), and
/// then go on at the time of their host, to which the kernel has not come yet.
class program_turns : private sim::program_list {
 public:
  class turn;
  static constexpr sim::time_ps no_time = ~sim::time_ps{0};

  /// Of the partition of `base` that is under construction.
  explicit program_turns(sim::timebase& base) : base_(base), partition_(base.apart().add(*this)) {}
  ~program_turns() override { base_.apart().remove(*this); }
  program_turns(const program_turns&) = delete;
  program_turns& operator=(const program_turns&) = delete;

  /// What ends waits, besides time.
  class alarm {
   public:
    /// By a tick or a process: the waits for it end at `when` (at present if that has passed).
    void ring(sim::timebase& base, sim::time_ps when = 0);

   private:
    friend class turn;
    sc_core::sc_event event_;
    std::vector<turn*> waiting_;
  };

  /// A wait of the calling process, from construction to destruction.
  class turn {
   public:
    enum class rank : std::uint8_t {
      own,     ///< of a program of this host
      visitor  ///< of one of another host, which is about to act on programs of this one: it goes last
    };
    /// With an alarm: for it as well as for a time.
    explicit turn(program_turns& among, alarm* until_rung = nullptr, rank r = rank::own);
    ~turn();
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    /// Returns at `until` (no_time: never), or when the alarm rings, if that is earlier; behind those that are due then
    /// and have an earlier turn. Once it has returned it may be called again: the turn is the same. The process must
    /// not be ahead of the kernel (timebase::leave).
    void wait(sim::time_ps until);

   private:
    friend class program_turns;
    friend class alarm;
    void wait_in_kernel();
    void wait_apart(sim::time_ps until);
    program_turns& among_;
    alarm* alarm_;
    std::uint64_t number_;
    sim::time_ps due_ = no_time;
    std::size_t place_;
    sc_core::sc_event* goes_on_ = nullptr;  // while it waits outside of the kernel
  };

 private:
  sim::time_ps go_on(sim::time_ps now) override;
  bool is_first(const turn& t, sim::time_ps now) const;

  sim::timebase& base_;
  std::size_t partition_;
  std::vector<turn*> waiting_;
  std::vector<std::unique_ptr<sc_core::sc_event>> events_;  // of turns that wait apart
  std::vector<sc_core::sc_event*> unused_;                  // of these
  std::uint64_t begun_ = 0;
};

}  // namespace rnic::host_driver
