// SPDX-License-Identifier: Apache-2.0
// What goes over the connection in each of qperf's tests. Like the tool, each side ends by its own clock, in real time.
#include <algorithm>
#include <cstring>

#include "host_driver/hosts/connection.h"
#include "testbenches/serve/qperf/session.h"

namespace rnic::serve::qperf {

using namespace host_driver;

namespace {

constexpr std::uint64_t id_receive = 1, id_request = 2;
constexpr int most_completions = 64;
constexpr sim::time_ps look_every = 1000 * sim::ps_per_us;  // for the end of the test, and of the connection
constexpr sim::time_ps patience_ps = 30 * sim::ps_per_s;    // without anything of the peer's
constexpr std::uint8_t client_byte = 0x55, server_byte = 0xaa;

/// ver_rc_compare_swap: what the peer's memory holds before request `n`, which leaves the next one's.
std::uint64_t swapped(std::uint64_t n) {
  constexpr std::uint64_t magic = 0x0123456789abcdef;
  return n == 0 ? 0 : magic + n - 1;
}

ibv_wr_opcode opcode_of(verb v) {
  switch (v) {
    case verb::send:
      return IBV_WR_SEND;
    case verb::write_with_immediate:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case verb::write:
      return IBV_WR_RDMA_WRITE;
    case verb::read:
      return IBV_WR_RDMA_READ;
    case verb::compare_swap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case verb::fetch_add:
      break;
  }
  return IBV_WR_ATOMIC_FETCH_AND_ADD;
}

}  // namespace

/// Request number posted_. An answer of a checked atomic has the place in memory that its number says.
void session::post_one() {
  ibv_send_wr wr{};
  wr.wr_id = id_request;
  wr.opcode = opcode_of(kind_->what);
  wr.send_flags = IBV_SEND_SIGNALED;
  const bool checked = kind_->how == form::checked;
  if (kind_->is_atomic()) {
    const bool swap = kind_->what == verb::compare_swap;
    wr.wr.atomic.remote_addr = theirs_.address;
    wr.wr.atomic.rkey = theirs_.rkey;
    wr.wr.atomic.compare_add = !checked ? 0 : swap ? swapped(posted_) : 1;
    wr.wr.atomic.swap = checked && swap ? swapped(posted_ + 1) : 0;
  } else {
    wr.wr.rdma.remote_addr = theirs_.address;
    wr.wr.rdma.rkey = theirs_.rkey;
  }
  const std::uint32_t bytes = kind_->is_atomic() ? sizeof(std::uint64_t) : size();
  const std::uint64_t slots = std::clamp<std::uint64_t>(size() / sizeof(std::uint64_t), 1, lane::depth);
  post(device_, lane_->qp(), wr, lane_->memory().sge(bytes, checked ? posted_ % slots * sizeof(std::uint64_t) : 0));
  ++posted_;
}

void session::post_receives(unsigned n) {
  for (unsigned i = 0; i < n; ++i) post_receive(device_, lane_->qp(), id_receive, lane_->memory().sge(size()));
}

void session::begin() {
  began_ = clock::now();
  end_ = began_ + std::chrono::seconds(request_.seconds);
  began_ps_ = service_.now_ps();
  watch_.emplace(
      device_, [this] { return socket_.peer_closed(); }, patience_ps);
  watch_->add(lane_->qp());
}

bool session::over() const { return request_.seconds != 0 && clock::now() >= end_; }

/// Some, or none after a while.
std::vector<ibv_wc> session::completions() {
  std::vector<ibv_wc> done(most_completions);
  const int n = device_.wait_cq(lane_->cq(), most_completions, done.data(), look_every);
  hosts::require(n, "poll_cq");
  done.resize(static_cast<std::size_t>(n));
  for (const ibv_wc& wc : done) require_success(wc, false);
  if (n != 0)
    watch_->progress();
  else
    look_at_peer();
  return done;
}

void session::look_at_peer() {
  if (lane_->connection().released()) throw peer_failure("the peer released the connection before the end of the test");
  watch_->look();
}

/// Of a stream of atomics the answer is zero, of a checked one the number that belongs to it.
void session::check_answer() {
  if (!kind_->is_atomic()) return;
  const bool checked = kind_->how == form::checked;
  const std::uint64_t slots = std::clamp<std::uint64_t>(size() / sizeof(std::uint64_t), 1, lane::depth);
  std::uint64_t value = 0, expected = 0;
  std::memcpy(&value, lane_->memory().at(checked ? completed_ % slots * sizeof value : 0), sizeof value);
  if (checked) expected = kind_->what == verb::compare_swap ? swapped(completed_) : completed_;
  if (value != expected) wrong_ += sizeof value;
}

void session::take(const ibv_wc& wc, bool sends, bool receives) {
  if (receives && wc.wr_id == id_receive) {
    if (wc.byte_len != size()) throw peer_failure("a message has another length than was agreed");
    ++received_;
    post_receives(1);
  } else if (sends && wc.wr_id == id_request) {
    check_answer();
    ++completed_;
    if (kind_->what == verb::read) ++received_;
  }
}

void session::exchange_messages(bool sends, bool receives, unsigned depth) {
  const std::uint64_t most = request_.messages != 0 ? request_.messages : ~std::uint64_t{0};
  while (!over() && completed_ < most && received_ < most) {
    while (sends && posted_ - completed_ < depth && posted_ < most) post_one();
    for (const ibv_wc& wc : completions()) take(wc, sends, receives);
  }
}

/// The client begins; whoever has the other's message and is done with its own sends the next one.
void session::in_turns() {
  bool may_send = o_.client;
  bool heard = false, said = true;
  while (!over()) {
    if (may_send) {
      post_one();
      may_send = heard = said = false;
    }
    for (const ibv_wc& wc : completions()) {
      const bool receive = wc.wr_id == id_receive;
      take(wc, true, true);
      (receive ? heard : said) = true;
    }
    may_send = heard && said;
  }
}

/// False: the test ended before.
bool session::wait_for_bytes(std::uint8_t value) {
  const app_buffer& b = lane_->memory();
  const std::uint32_t last = size() - 1;
  while (*b.at() != value || *b.at(last) != value) {
    if (over()) return false;
    if (host_.bus().wait_for_write(b.memory.bus_address + last, 1, look_every))
      watch_->progress();
    else
      look_at_peer();
  }
  return true;
}

/// The first and the last byte tell whose message it is. Source and destination are the same memory, as in the tool.
void session::mark_own() {
  const app_buffer& b = lane_->memory();
  *b.at() = *b.at(size() - 1) = o_.client ? client_byte : server_byte;
}

void session::poke() {
  bool sends = o_.client;
  while (!over()) {
    if (sends) {
      post_one();
      for (const ibv_wc& wc : completions()) take(wc, true, false);
    }
    if (!wait_for_bytes(o_.client ? server_byte : client_byte)) return;
    ++received_;
    mark_own();
    sends = true;
  }
}

/// The adapter answers READs and atomics by itself.
void session::idle() {
  while (!over()) (void)completions();
}

void session::test() {
  begin();
  const bool polls = kind_->what == verb::write;
  if (polls)
    poke();
  else if (kind_->how == form::in_turns)
    in_turns();
  else if (kind_->how == form::both_ways)
    exchange_messages(true, true, lane::depth);
  else if (o_.client)
    exchange_messages(true, false, kind_->how == form::one_by_one ? 1 : lane::depth);
  else if (kind_->takes_receives())
    exchange_messages(false, true, 0);
  else
    idle();
  end_ = clock::now();
  took_ps_ = service_.now_ps() - began_ps_;
}

}  // namespace rnic::serve::qperf
