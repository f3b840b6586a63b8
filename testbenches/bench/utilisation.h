// SPDX-License-Identifier: Apache-2.0
// How busy was each resource, and which of them limited a run?
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/types.h"

namespace rnic::hosts {
class network;
class pair_if;
}  // namespace rnic::hosts

namespace rnic::bench {

/// What the name of all processing units of an adapter begins with.
constexpr const char* processing_units = "processing units of adapter ";

/// Time for which each resource has been in use since the start of the simulation.
struct utilisation {
  struct resource {
    std::string name;  ///< "wire, a to b", "requester send engine of adapter a"
    std::uint64_t busy_ps = 0;
    /// Engines: by whom (sim::server::blocked). Memories: which user was kept waiting (sim::memory_ports).
    std::vector<std::pair<std::string, std::uint64_t>> blocked_ps{};
    bool memory = false;
  };
  std::vector<resource> resources;          ///< the same ones in the same order in every measurement of a system
  std::array<std::uint64_t, 2> units_ps{};  ///< processing units of both adapters, summed over the units
  std::array<std::uint64_t, 2> unit_contexts_ps{};     ///< of these, for contexts that were not on chip,
  std::array<std::uint64_t, 2> unit_descriptors_ps{};  ///< and for descriptors
  std::array<std::uint64_t, 2> unit_empty_ps{};        ///< of those, while software had nothing else posted
  std::array<std::uint64_t, 2> wqes{};                 ///< that the units have executed,
  std::array<std::uint64_t, 2> grants{};               ///< and grants of their queue pairs
  std::array<std::uint64_t, 2> acks{};                 ///< that the responders sent
  std::array<std::uint64_t, 2> spare_ps{};             ///< processors, for polls that found little (stream::spare_ps)
  std::array<std::uint64_t, 2> paused_ps{};            ///< their ports, of the priority that was so for longest
  std::array<std::uint64_t, 2> dropped{};              ///< frames for which their ports had no room
  /// Time in which as many were under way at once as can be: "payload reads of adapter a". Several may have one name.
  std::vector<std::pair<std::string, std::uint64_t>> taken;
  /// Time of an engine in which it stood still for contexts that were not on chip.
  struct stall {
    std::string engine;  ///< name of the resource
    std::string of;      ///< "contexts of adapter a"
    std::uint64_t ps = 0;
  };
  std::vector<stall> stalls;
  /// Time in which at least one queue pair stood still for this, and had no unit: "receives of host b".
  std::vector<std::pair<std::string, std::uint64_t>> standstills;
  /// Of the hosts of `standstills`, in the same order: "adapter a", and for how long it was paused (as paused_ps).
  std::vector<std::pair<std::string, std::uint64_t>> pauses;
  sim::time_ps at = 0;
};

/// Wire, PCIe, processors (of a guest with a virtual function its own), and every engine and every memory with counted
/// ports of both adapters (sim::server, sim::memory_ports). A memory is in use for the cycles in which all of its ports
/// would have made its accesses. The processing units of an adapter are one resource: in use for their own work,
/// blocked while they wait for contexts or descriptors, each of them for its part.
utilisation measure_utilisation(hosts::pair_if& system);
/// The same of all lines, hosts and adapters of a network.
utilisation measure_utilisation(hosts::network& system);

/// How much of the time between two measurements a resource was in use, 0 to 1 in steps of 0.0001, the most busy first.
/// An engine was blocked while work waited for it that could not start; the rest of the time it was idle.
struct share {
  std::string name;
  double busy = 0;
  std::vector<std::pair<std::string, double>> blocked{};  ///< by whom, the longest first; none that is 0;
  bool memory = false;                                    ///< of a memory: who was kept waiting
};
std::vector<share> shares_between(const utilisation& before, const utilisation& after);

/// What queue pairs stood still for between two measurements, 0 to 1, the longest first; none that is 0. Where nobody
/// paused the port, what had no room behind gather is no matter of pauses: "the port of adapter a" (other priorities go
/// first, or what is in front waits for its payload).
std::vector<std::pair<std::string, double>> standstills_between(const utilisation& before, const utilisation& after);

/// What each sender of a run did.
struct offered_load {
  unsigned qps = 1;      ///< queue pairs
  unsigned depth = 1;    ///< messages under way of each
  bool fetches = false;  ///< READs or atomics
};

/// Name of what limited a run in which each sender had this load:
/// 1. the busiest resource when it was in use for at least 92 % of the time; its contexts where a send or READ engine
///    stood still for them for more than a fifth of it. Of the engines of an atomic unit that must be all of them (85
///    % on average); where it is as many as there are queue pairs, it is the order of each one's atomics, and where the
///    next one waits for a lock in a quarter of it, the locks. They come behind what was in use as long and has no more
///    time left (98 %). Those of other kinds that have at most 3 % more time left are named with it ("A and B"): more
///    of one of them alone gives no more. So are processing units that a processor feeds, where there are more of them
///    than queue pairs and these had theirs for 95 %, or a link below 98 % whose descriptors they wait for while all of
///    them are taken, and contexts or histories with the link that they are fetched
///    over, where nothing else has as little time left. Below 98 %, what was waited for in more of the time (4 to 6)
///    comes before it. A processor that has time left polls more often: it is in use for what is not spare in its polls
///    (spare_ps). Where that is more than 3 %, the window is named with it, and what was taken (5) or in use (atomics)
///    for 85 % comes before it. The engine of acknowledgements and the scheduler's arbiter, of which one turn takes all
///    that has gathered, count where their turns take half of what they may;
/// 2. the receive buffer, when queue pairs stood still for time-outs and it had no room for frames; receivers that were
///    not ready;
/// 3. the contexts, when the processing units that so many queue pairs can occupy were in use, and waited for them for
///    half of the time or the send engine stood still for them;
/// 4. tags or credits of PCIe, when what went to a host waited for nothing else: what was waited for the longest. An
///    engine that was itself in use for 85 % waits for nothing else than itself. With contexts or histories that are
///    fetched with them all of the time;
/// 5. what has places for several at once that were all taken: fetches of contexts or histories, reads of payload;
/// 6. the reads of payload, when gather or the READ generator waited for nothing else, there was no room behind it
///    (egress credits, gathers), and the port was not paused; where these wait for tags or credits in 70 %, those. So
///    it is wherever the reads of payload are meant;
/// 7. the message table, when queue pairs stood still for it in 92 % of the time, and not for time-outs;
///    The receives, when the responder's check was in use or waited for their descriptors in 92 %, a quarter of it so;
/// 8. when the processing units were in use, or work waited all of the time for units that are not granted, and the
///    port was not paused: of these for a quarter of the time for descriptors of a queue that had been empty,
///    or for its end, the window, unless queue pairs wait for a unit; the READs under way, where a quarter is for
///    descriptors and queue pairs stand still for READs (2 % of the time), behind which they fetch them again; the
///    fetch of descriptors, where they wait for those of queues that go on in half of the time (85 % where there are as
///    many queue pairs as units); the send engine in use for 85 %, with the units where their own service takes as
///    long; the egress buffer, when the send engine is in use or waits for room nearly all of the time, no line or
///    datapath is in use for 70 %, and gather waits for payload in less than a quarter (it is named with 1 as well);
///    the reads of payload, when the send engine waits for room, and gather for payload, in half of the time;
///    else the service of a queue pair, or the grants of the scheduler;
/// 9. what queue pairs stood still for in more than half of the time: time-outs before receives, pauses and READs. No
///    room behind gather without a pause is a lack of payload; with one, it is the contexts of the peer's responder
///    where that is held up for half of the time and they were all being fetched for a quarter, or the receives for
///    whose descriptors it waits in half of the time;
/// 10. processing units that were in use for 85 %;
/// 11. of queue pairs that have a unit each, the fetch of descriptors that they wait for in half of the time; of few
///    queue pairs that either are served or stand still, together for 92 %: both;
/// 12. contexts, when units that waited for them were all taken for half of the time; the READ engine, in use for 70 %,
///    when units were taken and the send engine waited for it in half of the time, with contexts of which so many as
///    can be were fetched in a fifth; an engine or a line in use for 85 %; the receive buffer of a peer that paused for
///    half of the time with time left in all that it has; or the window (with a processor that polled in all the time
///    that it had left, else with what queue pairs stood still for in a quarter).
/// Units that wait for descriptors of queues that had been empty in a tenth of that are named with the window. Receives
/// for which a single queue pair stood still in 3 % of the time are named with what else was not in use for 98 %, and
/// alone with a processor that polled meanwhile: it does nothing else then.
/// Where at most 32 messages are under way, a resource or the units that had more than 2 % of the time left are named
/// with the window: their queue is empty now and then.
/// Of 4, 5, 6, descriptors, atomic engines and what stands still by number, READs under way and window among them, so
/// many are under way for as long as each takes: what shortens that gives something as well.
std::string limited_by(hosts::pair_if& system, const utilisation& before, const utilisation& after,
                       const offered_load& load);

}  // namespace rnic::bench
