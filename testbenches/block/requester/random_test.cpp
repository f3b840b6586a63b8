// SPDX-License-Identifier: Apache-2.0
// The requester with the blocks that work for it, among a memory, a port and peers of many seeds: messages are executed
// once and in order, completions tell of each, and sleep and the order of blocks cannot be seen.
// RNIC_RANDOM_FIRST_SEED and RNIC_RANDOM_SEEDS choose other seeds (bench/random_seeds.h).
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "model/scheduler/scheduler_cr.h"
#include "model/sim/simulation.h"
#include "model/transport/transport_cr.h"
#include "model/wire/bytes.h"
#include "testbenches/bench/random_seeds.h"
#include "testbenches/block/requester/bench.h"
#include "testbenches/block/requester/random_peer.h"

namespace {

using namespace rnic;
using ::bench::random_peer;
using ::bench::told_message;
using rnic::bench::dice;
using rnic::bench::mixed;
using wire::operation;

constexpr unsigned log_queue = ::bench::bench::log_sq, queue_wqes = 1u << log_queue, most_under_way = 8;
constexpr std::uint32_t mtu = 1024, slot_bytes = 0x4000;
constexpr std::uint64_t areas = 0x40000, area_bytes = most_under_way * slot_bytes;

/// What was seen, and when.
struct seen {
  sim::cycle_t at;
  const char* what;
  std::uint64_t value, more;
  friend bool operator==(const seen& a, const seen& b) {
    return a.at == b.at && a.what == b.what && a.value == b.value && a.more == b.more;
  }
};

std::string text(const told_message& m) {
  return "opcode " + std::to_string(static_cast<unsigned>(m.first)) + " of " + std::to_string(m.bytes) + " bytes, " +
         std::to_string(m.digest);
}

struct request {
  std::vector<std::uint32_t> words;
  bool signalled = true, known_bad = false;
  told_message expected{operation::send_only};
  std::uint64_t va = 0;           // of a READ
  std::uint64_t destination = 0;  // of a READ
  std::uint32_t bytes = 0;
  unsigned strides = 1;
  std::uint32_t index = 0;  // where it was posted
  sim::cycle_t not_before = 0;
};

struct queue_pair {
  std::uint32_t number = 0;
  std::uint64_t ring = 0;
  bool reliable = true;
  std::vector<request> script;
  std::size_t posted = 0, completed = 0;                   // of the script
  std::uint32_t next_index = 0;                            // strides
  bool failed = false, closed = false, discarded = false;  // closed: it is being discarded
  bool done() const { return discarded || completed == script.size(); }
};

struct drawn {
  ::bench::setup setup;
  ::bench::peer_manner peers;
  std::array<std::array<unsigned, 2>, 14> rests{};  // of a port: per cent of the windows, of the other cycles
  unsigned queue_pairs = 1;
  std::uint8_t log_reads = 0;
  bool commands = false;
};

drawn draw(bool chaos, dice& d, const sim::timebase::options& time) {
  drawn a;
  a.setup.time = time;
  a.setup.memory_cycles = d.one_of({3u, 40u, 200u});
  a.setup.ack_timeout = static_cast<std::uint8_t>(1 + d.below(2));  // 8 or 16 us
  a.setup.mtu_code = 3;
  transport::requester_config& c = a.setup.requester;
  const auto few = [&d](auto& of, std::initializer_list<unsigned> list) {
    if (d.percent(50)) of = d.one_of(list);
  };
  few(c.processing_units, {1, 2, 3});
  few(c.outstanding_entries, {2, 3, 8});
  few(c.scatter_lists, {1, 2, 4});
  few(c.scatter_jobs, {1, 2, 3});
  few(c.gather_depth, {1, 2, 3});
  few(c.turn_wqes, {1, 2, 5});
  few(c.turn_bytes, {1, 1500, 4000});
  few(c.prefetch_bytes, {64, 128});
  few(c.wqe_cycles, {1, 10});
  few(c.read_wqe_cycles, {1, 10});
  few(c.context_ports, {1});
  few(c.credit_wait_cycles, {1, 20});
  few(c.max_unacked_packets, {2, 5, 20});
  few(c.reads_after_loss, {1, 2, 128});
  few(c.miss_stall_cycles, {0, 10});
  if (d.percent(40)) c.contexts = {16, 4, 1, d.below(20), 1 + d.below(2), "drawn"};
  c.egress_frames = d.one_of({2u, 8u, 32u});
  a.setup.retry_limit = d.percent(70) ? 7 : static_cast<std::uint8_t>(1 + d.below(6));
  a.setup.rnr_limit = d.percent(80) ? 7 : static_cast<std::uint8_t>(d.below(6));
  a.peers.loss = d.percent(60) ? d.one_of({5u, 30u, 100u}) : 0;
  a.peers.not_ready = d.percent(40) ? d.one_of({20u, 200u}) : 0;
  a.peers.silent_acks = d.percent(40) ? d.one_of({20u, 70u}) : 0;
  a.peers.longest_delay = d.one_of({1u, 100u, 1500u});
  a.peers.refused = chaos && d.percent(40) ? 15 : 0;
  for (auto& port : a.rests)
    if (d.percent(30)) port = {d.percent(40) ? d.one_of({10u, 40u, 80u}) : 0u, d.one_of({0u, 20u, 60u})};
  a.queue_pairs = 1 + d.below(6);
  a.log_reads = static_cast<std::uint8_t>(d.below(4));
  a.commands = chaos;
  return a;
}

class experiment final : ::bench::neighbour_if {
 public:
  experiment(std::uint64_t seed, bool chaos, const sim::timebase::options& time)
      : seed_(seed), draws_(seed), drawn_(draw(chaos, draws_, time)), chaos_(chaos), b_(drawn_.setup) {
    for (unsigned i = 0; i < drawn_.queue_pairs; ++i) make(i);
    b_.w.neighbour = this;
    b_.w.keep_frames = false;
    b_.w.wake_next();
  }

  void run() {
    b_.run_ns(1);  // between the edges
    for (unsigned slice = 0; !is_done(); ++slice) {
      if (b_.core.now() > longest_run) return fault("there is no end" + who_waits());
      b_.run_ns(2 * (50 + draws_.below(1500)));
      if (drawn_.commands) work_of_firmware();
    }
    calm_ = true;
    b_.run_ns(2 * 60'000);
    for (std::size_t i = 0; i < qps_.size(); ++i) compare(i);
    if (!b_.w.to_rx.empty()) fault("an answer was not taken");
  }

  std::vector<seen> journal;
  std::vector<std::string> faults;
  std::vector<std::pair<std::string, std::uint64_t>> counters() const {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    for (const auto& [name, counter] : b_.stats.all()) all.emplace_back(name, *counter);
    return all;
  }

 private:
  static constexpr sim::cycle_t longest_run = 1'500'000, window = 256;

  void fault(const std::string& what) { faults.push_back(what); }
  std::string who_waits() const {
    std::string all;
    for (const queue_pair& q : qps_)
      if (!q.done())
        all += ", QP " + std::to_string(q.number) + " " + std::to_string(q.completed) + "/" + std::to_string(q.posted) +
               "/" + std::to_string(q.script.size());
    return all;
  }
  bool is_done() const {
    return command_.empty() && std::all_of(qps_.begin(), qps_.end(), [](const queue_pair& q) { return q.done(); });
  }

  void make(unsigned i) {
    queue_pair q;
    q.number = ::bench::qpn + i * (1 + draws_.below(3));
    while (std::any_of(qps_.begin(), qps_.end(), [&q](const queue_pair& x) { return x.number == q.number; }))
      ++q.number;
    q.ring = ::bench::ring + i * queue_wqes * 64;
    q.reliable = !draws_.percent(20);
    for (unsigned n = 0; n < queue_wqes; ++n) b_.w.memory[q.ring + n * 64] = 0x80;
    icm::requester_context& c = b_.context;
    c.type = q.reliable ? icm::service::rc : icm::service::uc;
    c.remote_qpn = ::bench::remote_qpn + i;
    c.sq_address = q.ring;
    c.next_psn = c.unacked_psn = draws_.percent(50) ? 0xfffff0 : draws_.below(1000);
    c.log_max_rd_atomic = drawn_.log_reads;
    b_.make_qp(q.number);
    peers_.emplace_back(drawn_.peers, mixed(seed_ * 64 + i), c.next_psn, q.reliable, mtu);
    sim::cycle_t at = 0;
    const unsigned many = 5 + draws_.below(30);
    for (unsigned n = 0; n < many; ++n) {
      q.script.push_back(draw_request(q, i, n, n + 1 == many));
      q.script.back().not_before = at += draws_.percent(60) ? 0 : draws_.below(3000);
    }
    qps_.push_back(std::move(q));
  }

  request draw_request(const queue_pair& q, unsigned number, unsigned n, bool last) {
    request r;
    r.signalled = last || n % 3 == 2 || draws_.percent(50);
    const std::uint32_t flags = r.signalled ? 0xc : 0;
    const std::uint32_t key = chaos_ && draws_.below(1000) < 8 ? ::bench::bad_key : ::bench::good_key;
    r.known_bad = key == ::bench::bad_key;
    const std::uint32_t kind = q.reliable ? draws_.below(100) : draws_.below(60);
    r.bytes = draws_.percent(20) ? draws_.below(3) : draws_.percent(50) ? draws_.below(200) : draws_.below(5000);
    r.destination = areas + number * area_bytes + n % most_under_way * slot_bytes;
    const std::uint64_t remote = (std::uint64_t{0x7f00} << 32) + draws_.below(1 << 20);
    const auto remote_low = static_cast<std::uint32_t>(remote);
    if (kind < 60) {  // SEND, WRITE
      const bool send = kind < 30;
      r.words = {send ? 0x0au : 0x08u, 0, flags, 0};
      if (!send) r.words.insert(r.words.end(), {0x7f00, remote_low, 0xabcd, 0});
      add_payload(r, key, send ? operation::send_only : operation::write_only);
    } else if (kind < 85) {  // READ
      r.va = remote;
      r.expected = {operation::read_request, r.bytes, remote};
      r.words = {0x10, 0, flags, 0, 0x7f00, remote_low, 0xabcd, 0};
      r.words.insert(r.words.end(), {r.bytes, key, 0, static_cast<std::uint32_t>(r.destination)});
    } else {
      const bool swap = draws_.percent(50);
      r.bytes = 8;
      r.expected = {operation::fetch_add, 8, remote & ~std::uint64_t{7}};
      r.words = {swap ? 0x11u : 0x12u, 0, flags, 0, 0x7f00, remote_low & ~7u, 0xabcd, 0, 0, 1, 0, 2};
      r.words.insert(r.words.end(), {8, key, 0, static_cast<std::uint32_t>(r.destination)});
    }
    r.known_bad = r.known_bad && r.bytes != 0;
    r.words[1] = static_cast<std::uint32_t>(r.words.size() / 4);
    r.strides = static_cast<unsigned>((r.words.size() * 4 + 63) / 64);
    return r;
  }

  /// In one to four pieces of the memory that the bench has filled.
  void add_payload(request& r, std::uint32_t key, operation first) {
    std::uint32_t left = r.bytes;
    std::uint64_t digest = ::bench::digest_start;
    for (unsigned pieces = 1 + draws_.below(4); pieces != 0 && left != 0; --pieces) {
      const std::uint32_t n = pieces == 1 ? left : 1 + draws_.below(left);
      const std::uint64_t from = ::bench::data + draws_.below(0x8000);
      digest = ::bench::digest_on(digest, b_.w.memory.data() + from, n);
      r.words.insert(r.words.end(), {n, key, 0, static_cast<std::uint32_t>(from)});
      left -= n;
    }
    r.expected = {first, r.bytes, digest};
  }

  // ---- at each edge
  void step() override {
    take_completions();
    for (std::size_t i = 0; i < qps_.size(); ++i) {
      post(qps_[i]);
      for (; !peers_[i].answers.empty() && peers_[i].answers.front().due <= now(); peers_[i].answers.pop_front())
        deliver(qps_[i].number, peers_[i].answers.front());
    }
  }
  bool rests(unsigned port) override {
    if (calm_) return false;
    const auto& [windows, cycles] = drawn_.rests[port];
    const auto decision = [&](unsigned about, std::uint64_t n) {
      return mixed(mixed(seed_ * 64 + port * 2 + about) ^ n);
    };
    return decision(0, now() / window) % 100 < windows || decision(1, now()) % 100 < cycles;
  }
  void asked(unsigned port, std::uint64_t address, std::uint32_t bytes) override {
    static constexpr std::array<const char*, 7> names{"descriptor read", "context access", "payload read",
                                                      "scatter write",   "ring address",   "payload address",
                                                      "scatter address"};
    journal.push_back({now(), names[port], address, bytes});
  }
  void sent(const payload::frame& f) override {
    wire::packet p;
    const bool good = wire::decode(f.data(), f.length, p) == wire::decode_error::none;
    journal.push_back(
        {now(), "frame", ::bench::digest_on(::bench::digest_start, f.data(), f.length), p.bth.psn.value()});
    const std::uint32_t i = p.bth.dest_qp - ::bench::remote_qpn;
    if (!good || i >= qps_.size()) return fault("a frame that is none");
    peers_[i].take(p, f.data() + p.payload_offset, now());
  }

  sim::cycle_t now() const { return b_.w.now(); }

  void post(queue_pair& q) {
    bool rings = false;
    while (!q.closed && q.posted != q.script.size() && q.script[q.posted].not_before <= now() &&
           q.posted - q.completed < most_under_way) {
      request& r = q.script[q.posted];
      const std::uint32_t oldest = q.completed == q.posted ? q.next_index : q.script[q.completed].index;
      if (q.next_index + r.strides - oldest > queue_wqes - 1) break;
      r.index = q.next_index;
      write(q, r);
      ++q.posted;
      rings = true;
    }
    if (!rings) return;
    scheduler::send_doorbell d;
    d.qpn = q.number;
    d.uar = ::bench::own_uar;
    b_.w.to_ring.push_back(d);
  }

  /// What comes behind it is software's before it is the hardware's.
  void write(queue_pair& q, request& r) {
    std::vector<std::uint32_t> words = r.words;
    if ((r.index >> log_queue & 1) != 0) words[0] |= 0x80000000;
    const auto at = [&](std::uint32_t index) { return b_.w.memory.data() + q.ring + (index % queue_wqes) * 64; };
    q.next_index += r.strides;
    at(q.next_index)[0] = (q.next_index >> log_queue & 1) != 0 ? 0 : 0x80;
    for (std::size_t i = words.size(); i-- != 0;) {
      std::uint8_t* const stride = at(r.index + static_cast<std::uint32_t>(i / 16));
      wire::store_be32(stride + i % 16 * 4, words[i]);
    }
  }

  void take_completions() {
    for (; taken_ != b_.w.cqes.size(); ++taken_) {
      const auto& [at, c] = b_.w.cqes[taken_];
      journal.push_back({at, "completion", std::uint64_t{c.qpn} << 32 | c.wqe_index,
                         std::uint64_t{c.opcode} << 40 | std::uint64_t{c.syndrome} << 32 | c.byte_count});
      const auto q = std::find_if(qps_.begin(), qps_.end(),
                                  [&c = c](const queue_pair& x) { return x.number == (c.qpn & 0xffffff); });
      if (q == qps_.end()) return fault("a completion of nobody");
      complete(*q, c);
    }
    for (; told_ != b_.w.errors.size(); ++told_) journal.push_back({now(), "error", b_.w.errors[told_], 0});
  }

  void complete(queue_pair& q, const completion::cqe_request& c) {
    const std::string who = "QP " + std::to_string(q.number) + ", WQE " + std::to_string(c.wqe_index) + ": ";
    if (q.discarded) return;  // it was on its way
    const bool bad = c.syndrome != 0;
    while (q.completed != q.posted) {
      const request& r = q.script[q.completed++];
      const bool this_one = static_cast<std::uint16_t>(r.index) == c.wqe_index;
      if (!this_one && (r.signalled || q.failed)) return fault(who + "the one before it was left out");
      if (!this_one || !bad) check_read(q, r);
      if (r.known_bad && !q.failed && !(this_one && bad)) return fault(who + "memory was read under a wrong key");
      if (!this_one) continue;
      if (!bad && q.failed) fault(who + "it has succeeded behind an error");
      if (!bad && !r.signalled) fault(who + "nobody asked for it");
      q.failed = q.failed || bad;
      return;
    }
    fault(who + "it has completed already, or was never posted");
  }

  void check_read(const queue_pair& q, const request& r) {
    if (r.expected.first != operation::read_request || r.known_bad || q.failed) return;
    for (std::uint32_t i = 0; i < r.bytes; ++i)
      if (b_.w.memory[r.destination + i] != ::bench::remote_byte(r.va + i))
        return fault("QP " + std::to_string(q.number) + ", WQE " + std::to_string(r.index) + ": byte " +
                     std::to_string(i) + " of " + std::to_string(r.bytes) + " is wrong");
  }

  void deliver(std::uint32_t number, const random_peer::answer& a) {
    b_.respond(a.op, a.psn, a.syndrome, a.payload, number, a.original);
  }

  // ---- between the edges
  /// One queue pair at a time: halted for a while, or discarded for ever; or its other half has failed.
  void work_of_firmware() {
    namespace cr = transport::cr;
    const auto command = [this](std::uint32_t what) {
      b_.dut.cr_write(cr::qp_select, qps_[of_].number);
      b_.dut.cr_write(cr::qp_command, what);
    };
    if (command_.empty()) {
      if (!draws_.percent(8)) return;
      of_ = draws_.below(static_cast<std::uint32_t>(qps_.size()));
      if (qps_[of_].closed) return;
      if (draws_.percent(15)) {
        b_.w.to_error.push_back(qps_[of_].number);
        return;
      }
      const bool discards = draws_.percent(15);
      command_ = discards ? "discard" : "halt";
      qps_[of_].closed = discards;
      since_ = b_.core.now();
      return command(discards ? cr::qp_command_discard : cr::qp_command_halt);
    }
    b_.dut.cr_write(cr::qp_select, qps_[of_].number);
    if ((b_.dut.cr_read(cr::qp_status) & cr::qp_status_busy) != 0) {
      if (b_.core.now() > since_ + 200'000) {
        fault("a " + command_ + " does not end");
        command_.clear();
      }
      return;
    }
    if (qps_[of_].closed && !std::exchange(qps_[of_].discarded, true)) forget(qps_[of_].number);
    if (draws_.percent(50)) return;  // it rests a while
    command(cr::qp_command_release);
    command_.clear();
  }

  /// As firmware leaves a queue pair in RESET.
  void forget(std::uint32_t number) {
    std::memset(b_.w.memory.data() + ::bench::qpc_at + number * 256, 0, sizeof(icm::requester_context));
    b_.sched.cr_write(scheduler::cr::qp_select, number);
    b_.sched.cr_write(scheduler::cr::owner, scheduler::no_owner);
  }

  /// What the peer has executed is what was posted; behind an error, the first of it.
  void compare(std::size_t i) {
    const queue_pair& q = qps_[i];
    const std::vector<told_message>& executed = peers_[i].executed;
    if (!q.reliable && drawn_.peers.loss != 0) return;
    const std::string who = "QP " + std::to_string(q.number) + (q.reliable ? ": " : " (UC): ");
    if (executed.size() > q.posted) return fault(who + "more was executed than posted");
    for (std::size_t n = 0; n < executed.size(); ++n)
      if (!(executed[n] == q.script[n].expected))
        return fault(who + "message " + std::to_string(n) + " was executed as " + text(executed[n]) + ", posted was " +
                     text(q.script[n].expected));
    if (!q.failed && !q.discarded && executed.size() != q.script.size())
      fault(who + std::to_string(executed.size()) + " of " + std::to_string(q.script.size()) + " were executed");
  }

  const std::uint64_t seed_;
  dice draws_;
  const drawn drawn_;
  const bool chaos_;
  ::bench::bench b_;
  std::vector<queue_pair> qps_;
  std::vector<random_peer> peers_;
  std::size_t taken_ = 0, told_ = 0;
  bool calm_ = false;
  std::string command_;  // of firmware, that has not ended
  std::uint32_t of_ = 0;
  sim::cycle_t since_ = 0;
};

struct outcome {
  std::vector<seen> journal;
  std::vector<std::string> faults;
  std::vector<std::pair<std::string, std::uint64_t>> counters;
};

outcome run(std::uint64_t seed, bool chaos, const sim::timebase::options& time) {
  const sim::simulation kernel;
  outcome o;
  try {
    experiment e(seed, chaos, time);
    e.run();
    o = {std::move(e.journal), std::move(e.faults), e.counters()};
  } catch (const std::exception& e) {
    o.faults.emplace_back(e.what());
  }
  return o;
}

std::string first_difference(const outcome& a, const outcome& b) {
  const auto text = [](const seen& s) {
    return std::string(s.what) + " at " + std::to_string(s.at) + " of " + std::to_string(s.value) + ", " +
           std::to_string(s.more);
  };
  for (std::size_t i = 0; i < std::min(a.journal.size(), b.journal.size()); ++i)
    if (!(a.journal[i] == b.journal[i])) return text(a.journal[i]) + " became " + text(b.journal[i]);
  if (a.journal.size() != b.journal.size()) return "one has seen more";
  for (std::size_t i = 0; i < a.counters.size(); ++i)
    if (a.counters[i] != b.counters[i])
      return a.counters[i].first + ": " + std::to_string(a.counters[i].second) + " became " +
             std::to_string(b.counters[i].second);
  return b.faults.empty() ? "" : b.faults.front();
}

std::string fault_in_any_mode(std::uint64_t seed, bool chaos) {
  return rnic::bench::fault_in_any_mode(
      seed, [&](const sim::timebase::options& time) { return run(seed, chaos, time); }, first_difference);
}

TEST(requester_random, messages_are_executed_once_and_in_order_whoever_sleeps) {
  rnic::bench::for_seeds(40, {}, [](std::uint64_t seed) { return fault_in_any_mode(seed, false); });
}

TEST(requester_random, errors_and_commands_of_firmware_end_whoever_sleeps) {
  // A unit that waited for room of the port was looked at before its time: what was held before it was due already.
  rnic::bench::for_seeds(60, {288, 379, 496}, [](std::uint64_t seed) { return fault_in_any_mode(seed, true); });
}

}  // namespace
