// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/responder/random/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "testbenches/block/responder/random/reference_codes.h"

namespace rnic::transport::random_test {

std::string hex(std::uint64_t value) {
  std::ostringstream o;
  o << "0x" << std::hex << value;
  return o.str();
}

std::string name_of(const queue_pair& q) {
  static constexpr const char* names[] = {
      "RC", "RC with a shared queue", "XRC", "UC", "UC with a shared queue", "UD", "Ethernet"};
  return "queue pair " + hex(q.qpn) + " (" + names[static_cast<unsigned>(q.kind)] + "): ";
}

namespace {

std::string describe(std::uint8_t opcode, std::uint8_t syndrome, const std::string& index, std::uint32_t bytes,
                     std::uint32_t immediate) {
  return "opcode " + hex(opcode) + ", syndrome " + hex(syndrome) + ", index " + index + ", " + std::to_string(bytes) +
         " bytes, immediate " + hex(immediate);
}

class checker {
 public:
  checker(const system& s, const setup& with, const reference& expected) : s_(s), with_(with), expected_(expected) {}

  std::vector<std::string> run() {
    for (const queue_pair& q : with_.queue_pairs) {
      const expectation& must = expected_.of(q).must;
      completions(q, must);
      check_answers(s_, q, must, out_);
      events(q, must);
      memory(q);
    }
    if (expected_.counts_exactly()) counters();
    return out_;
  }

 private:
  void say(const queue_pair& q, const std::string& what) { out_.push_back(name_of(q) + what); }

  void completions(const queue_pair& q, const expectation& must) {
    std::vector<completion::cqe_request> seen;
    for (const queues::completed& c : s_.software.completions)
      if ((c.entry.qpn & 0xffffff) == q.qpn) {
        seen.push_back(c.entry);
        no_payload_behind(q, c);
      }
    for (std::size_t i = 0; i < std::max(seen.size(), must.completions.size()); ++i) {
      const std::string number = "completion " + std::to_string(i) + " ";
      if (i >= seen.size()) return say(q, number + "is missing: " + text(must.completions[i]));
      if (i < must.completions.size()) {
        if (!is(seen[i], must.completions[i]))
          say(q, number + "is " + text(seen[i]) + ", expected " + text(must.completions[i]));
        else if (!q.has_own_queue())
          shared_receive(q, seen[i], must.completions[i]);
        continue;
      }
      // Packets behind the one that ended it may have taken receives of a shared queue, which come back.
      const bool flushed =
          seen[i].opcode == abi::cqe::opcode_error && seen[i].syndrome == code(abi::cqe::error::flushed);
      if (q.has_own_queue() || !must.ended_behind_check || !flushed)
        return say(q, number + "is one too many: " + text(seen[i]));
    }
  }

  /// When a receive completes, software has it back: nothing is written to it any more.
  void no_payload_behind(const queue_pair& q, const queues::completed& c) {
    const std::uint32_t srqn = srqn_of(q, c.entry);
    if (q.has_own_queue())
      nothing_written(q, c, with_.receive_of(q, c.entry.wqe_index));
    else if (srqn != 0 && srqn <= with_.last_shared())
      nothing_written(q, c, with_.shared_receive(srqn, c.entry.wqe_index));
  }
  void nothing_written(const queue_pair& q, const queues::completed& c, const receive& to) {
    for (const payload_write& w : s_.memory.payload)
      for (const receive::segment& segment : to.segments)
        if (w.at > c.at && w.bus < segment.bus + segment.length && segment.bus < w.bus + w.length)
          return say(q, "payload is written in cycle " + std::to_string(w.at) + " to receive " +
                            std::to_string(c.entry.wqe_index) + ", which has completed in cycle " +
                            std::to_string(c.at));
  }
  static std::uint32_t srqn_of(const queue_pair& q, const completion::cqe_request& c) {
    return q.kind == service::xrc ? c.remote_qpn : q.srqn;
  }

  static bool is(const completion::cqe_request& seen, const expectation::completion& must) {
    if (seen.opcode != must.opcode || seen.syndrome != must.syndrome) return false;
    if (must.index && seen.wqe_index != *must.index) return false;
    return must.opcode == abi::cqe::opcode_error || (seen.byte_count == must.bytes && seen.immediate == must.immediate);
  }
  static std::string text(const completion::cqe_request& c) {
    return describe(c.opcode, c.syndrome, std::to_string(c.wqe_index), c.byte_count, c.immediate);
  }
  static std::string text(const expectation::completion& c) {
    return describe(c.opcode, c.syndrome, c.index ? std::to_string(*c.index) : "any", c.bytes, c.immediate);
  }

  /// Each receive of a shared queue completes once, and holds its message.
  void shared_receive(const queue_pair& q, const completion::cqe_request& seen, const expectation::completion& must) {
    const std::uint32_t srqn = srqn_of(q, seen);
    const std::string which = "receive " + std::to_string(seen.wqe_index) + " of shared queue " + std::to_string(srqn);
    if (srqn == 0 || srqn > with_.last_shared()) return say(q, which + " does not exist");
    if (!completed_.insert({srqn, seen.wqe_index}).second) say(q, which + " completes twice");
    if (!must.payload) return;
    std::size_t i = 0;
    for (const receive::segment& segment : with_.shared_receive(srqn, seen.wqe_index).segments)
      for (std::uint32_t b = 0; b < segment.length && i < must.payload->size(); ++b, ++i)
        if (s_.memory.bytes[segment.bus + b] != (*must.payload)[i])
          return say(q, which + " holds another byte " + std::to_string(i) + " than was sent");
  }

  void events(const queue_pair& q, const expectation& must) {
    std::multiset<unsigned> seen, expected(must.events.begin(), must.events.end());
    for (const completion::event_request& e : s_.software.events)
      if (e.type != static_cast<std::uint8_t>(abi::eqe::event::srq_limit) && queues::number_of(e) == q.qpn)
        seen.insert(e.type);
    // Whether a packet behind the one that ended it has established communication depends on cycles.
    if (seen != expected && !(must.ended_behind_check && q.ready_to_receive))
      say(q, "events are " + list(seen) + ", expected " + list(expected));
    const auto told = std::count(s_.software.errors.begin(), s_.software.errors.end(), q.qpn);
    if (told != static_cast<std::ptrdiff_t>(must.errors))
      say(q, std::to_string(told) + " errors are told, expected " + std::to_string(must.errors));
  }
  static std::string list(const std::multiset<unsigned>& types) {
    std::string all = "{";
    for (const unsigned t : types) all += " " + hex(t);
    return all + " }";
  }

  void memory(const queue_pair& q) {
    same_bytes(q, data_of(q.index), data_bytes, "its data");
    if (q.has_own_queue()) same_bytes(q, receive_queue_at(q.index), own_entries * entry_bytes, "its receive queue");
  }
  void same_bytes(const queue_pair& q, std::uint64_t from, std::uint64_t bytes, const char* what) {
    for (std::uint64_t i = from; i < from + bytes; ++i) {
      const unsigned is = s_.memory.bytes[i], must = expected_.memory()[i];
      if (is == must || expected_.is_open(i)) continue;
      return say(q, "byte " + hex(i - from) + " of " + what + " is " + hex(is) + ", expected " + hex(must));
    }
  }

  void counters() {
    for (const auto& [name, must] : expected_.counters()) {
      const std::uint64_t is = s_.tested.stats.value("responder." + name);
      if (is != must)
        out_.push_back("counter " + name + " is " + std::to_string(is) + ", expected " + std::to_string(must));
    }
  }

  const system& s_;
  const setup& with_;
  const reference& expected_;
  std::set<std::pair<std::uint32_t, std::uint16_t>> completed_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> differences(const system& s, const setup& with, const reference& expected) {
  return checker(s, with, expected).run();
}

}  // namespace rnic::transport::random_test
