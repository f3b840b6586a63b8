// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/dma_engine.h"

#include <algorithm>

namespace rnic::pcie {

dma_engine::dma_engine(sim::clocked_block& owner, const dma_config& c, unsigned clients, transmit_path& path,
                       payload::tlp_pool& pool, functions& all, sim::span_recorder& spans)
    : owner_(owner),
      path_(path),
      functions_(all),
      bus_(all),
      clients_(owner, clients, c.reads_per_client),
      reads_(owner, c, clients, clients_, path, pool, all.physical(), bus_),
      writes_(owner, c, clients_, path, pool, all.physical(), bus_, spans),
      interrupts_(owner, all, bus_),
      interrupts_bit_(std::uint64_t{1} << clients) {}

void dma_engine::announce(const std::string& prefix, sim::statistics& stats) {
  const dma_reads::counters& r = reads_.counts();
  const dma_writes::counters& w = writes_.counts();
  const interrupts::counters& i = interrupts_.counts();
  stats.add(prefix + ".read_requests", r.requests);
  stats.add(prefix + ".write_requests", w.requests);
  stats.add(prefix + ".read_bytes", r.bytes);
  stats.add(prefix + ".write_bytes", w.bytes);
  stats.add(prefix + ".read_packets", r.packets);
  stats.add(prefix + ".write_packets", w.packets);
  stats.add(prefix + ".interrupts", i.sent);
  stats.add(prefix + ".interrupts_pended", i.pended);
  stats.add(prefix + ".interrupts_dropped", i.dropped);
  stats.add(prefix + ".refused_requests", refused_);
  stats.add(prefix + ".unexpected_completions", r.unexpected);
  stats.add(prefix + ".completion_timeouts", r.timeouts);
  stats.add(prefix + ".failed_reads", r.failed);
  stats.add(prefix + ".tags_used_up", r.tags_used_up);
}

void dma_engine::give_answers() {
  reads_.check_timeouts();
  clients_.work();
}

void dma_engine::enable(bool on) {
  bus_.enable(on);
  if (!on) {
    functions_.drop_pending();
    line_changed();
    owner_.domain().as_in_tick([this] { stop_started(); });  // answers go into channels
  }
}

void dma_engine::line_changed() {
  if (!functions_.line().moves(functions_.now())) return;
  interrupts_.changed();
  owner_.wake_next();
}

/// Packets that are under way are waited for: their answers come, or their time-out.
void dma_engine::stop_started() {
  if (writes_.stop()) ++refused_;
  refused_ += reads_.stop();
  owner_.wake_next();
}

// ---------------------------------------------------------------- start

void dma_engine::start() {
  if (writes_.active() || (!clients_.asking() && !interrupts_.asking())) return;
  if (owner_.edge() < writes_.sent_until()) return owner_.wake_at(writes_.sent_until());
  const std::uint64_t ready = clients_.startable(waiting());
  if (ready == 0) return;
  const auto winner = static_cast<unsigned>(start_order_.pick(ready));
  const std::uint64_t bit = std::uint64_t{1} << winner;
  if (bit != interrupts_bit_)
    start_request(winner);
  else if (const auto message = interrupts_.take())
    writes_.start(*message);
  if (!writes_.active() && (ready != bit || interrupts_.rechecks())) owner_.wake_next();
}

/// The function masters the bus, and the last byte has an address.
bool dma_engine::may_begin(const dma_request& r) const {
  return r.length != 0 && r.length - 1 <= ~r.address && bus_.allowed(r.function);
}

void dma_engine::start_request(unsigned client) {
  sim::fifo_in<dma_request>& in = clients_.at(client).request;
  dma_request& r = in.front();
  if (answered(r)) clients_.open(client);
  if (!may_begin(r))
    refuse(client, r);
  else if (r.op == dma_request::kind::read)
    reads_.start(client, r);
  else
    writes_.start(client, r);
  in.drop();
}

/// One of no bytes has been done.
void dma_engine::refuse(unsigned client, dma_request& r) {
  const bool refused = r.length != 0;
  if (refused) ++refused_;
  if (answered(r))
    clients_.give(client, r.tag, refused ? dma_status::unsupported_request : dma_status::ok, owner_.edge() + 1);
  r.keep.reset();
}

// ---------------------------------------------------------------- packets

void dma_engine::issue() {
  const bool reads = reads_.can_issue();
  if (!reads && !writes_.active()) return reads_.waiting() ? path_.blocked("tags") : path_.idle();
  if (owner_.edge() < writes_.sent_until()) return owner_.wake_at(writes_.sent_until());
  if (!path_.ready() || !issue_one(reads)) return;
  // The next tick is when a request can be started, or when there is room for another packet.
  const sim::cycle_t next = std::max(owner_.edge() + 1, writes_.sent_until());
  if (!writes_.active() && waiting() != 0) owner_.wake_at(next);
  if (writes_.active() || reads_.can_issue())
    path_.await_room(next);
  else if (reads_.waiting())
    path_.blocked("tags");
}

/// A packet of the write or of a read: whose turn it is, or else the other one.
bool dma_engine::issue_one(bool reads) {
  const bool write_first = writes_.active() && (prefer_write_ || !reads);
  const char* by = "link";
  for (const bool write : {write_first, !write_first}) {
    if (write ? !writes_.active() : !reads) continue;
    if (path_.can_send(write ? credit_class::posted : credit_class::non_posted, write ? writes_.packet_bytes() : 0)) {
      write ? writes_.issue(!reads_.waiting()) : reads_.issue();
      prefer_write_ = !write;
      return true;
    }
    if (!path_.refused_for_credit()) continue;
    by = "credits";
    if (write) writes_.wait_for_credit();
  }
  path_.blocked(by);
  return false;
}

}  // namespace rnic::pcie
