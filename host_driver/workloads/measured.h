// SPDX-License-Identifier: Apache-2.0
// What a run says of its workloads.
#pragma once

#include <cstdint>

#include "host_driver/workloads/latency_record.h"
#include "host_driver/workloads/workload.h"

namespace rnic::workloads {

/// Of one workload between two hosts, or of several. Rates are over the measured part of the time in which the workload
/// may send; where the number of its messages ends it, up to its last completion. Those of several are over the time in
/// which any of them is measured: what workloads do one after the other does not add up.
struct measured {
  std::uint64_t offered = 0, unfinished = 0, completed = 0;
  std::uint64_t lost = 0;                 ///< where receives tell: UC and UD
  std::uint64_t messages = 0, bytes = 0;  ///< of those that rates are of; bytes of their payload
  sim::time_ps begin = 0, end = 0;        ///< the time that is measured; none where they are equal

  void add(const measured& m);
  double mpps() const;  ///< millions of messages in a second
  double gbps() const;  ///< 10^9 bits of payload in a second
};

/// Its receives, and not its completions, tell what has come of what was sent.
bool is_told_by_receives(const workload& w);
measured measure(const workload& w, const workload_result& r, const workload_times& t);
/// Between all pairs of hosts.
measured measure(const workload& w, const workload_times& t);
latency_record latencies_of(const workload& w);

}  // namespace rnic::workloads
