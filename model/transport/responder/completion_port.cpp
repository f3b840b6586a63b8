// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/completion_port.h"

#include "model/sim/seldom.h"

namespace rnic::transport {
namespace {

constexpr std::uint8_t vendor_error = 0x88;  // A.5.3: the one value seen on a real responder; only reported upward

}  // namespace

completion_port::completion_port(sim::clocked_block& owner, const responder_config& cfg,
                                 sim::fifo_out<completion::cqe_request>& cqe,
                                 sim::fifo_out<completion::event_request>& event, payload_writes& writes,
                                 sim::span_recorder& spans)
    : owner_(owner), cqe_(cqe), event_(event), writes_(writes), spans_(spans), waiting_(cfg.cqe_queue) {}

void completion_port::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".error.local_length", errors.local_length.all);
  to.add(name + ".error.local_operation", errors.local_operation.all);
  to.add(name + ".error.local_protection", errors.local_protection.all);
  to.add(name + ".error.flushed", errors.flushed.all);
  to.add(name + ".error.remote_invalid", errors.remote_invalid.all);
  to.add(name + ".error.remote_access", errors.remote_access.all);
}

void completion_port::push(const completion::cqe_request& cqe, bool behind_others) {
  entry& e = waiting_.extend();
  e.cqe = cqe;
  e.after = behind_others || cqe.syndrome != 0 ? writes_.behind_all() : writes_.asked();
  e.since = owner_.now();
  e.marked = false;
  if (sim::seldom(e.after > writes_.asked())) owner_.wake_next();  // who pushes may be behind work() in the cycle
}

void completion_port::fail(const receive& r, std::uint8_t syndrome) {
  completion::cqe_request c;
  c.cqn = r.cqn;
  c.qpn = r.qpn;
  c.function = r.function;
  c.wqe_index = r.index;
  c.remote_qpn = r.srqn;
  c.opcode = abi::cqe::opcode_error;
  c.syndrome = syndrome;
  c.vendor_error = syndrome == cqe_flushed ? std::uint8_t{0} : vendor_error;
  c.solicited = true;
  push(c);
  switch (syndrome) {
    case cqe_local_length:
      errors.local_length.count(r.port);
      break;
    case cqe_local_operation:
      errors.local_operation.count(r.port);
      break;
    case cqe_local_protection:
      errors.local_protection.count(r.port);
      break;
    case cqe_flushed:
      errors.flushed.count(r.port);
      break;
    default:
      break;
  }
}

void completion_port::work() {
  if (waiting_.empty()) return;
  if (waiting_.front().after > writes_.done()) {
    if (sim::seldom(waiting_.front().after > writes_.asked()) && writes_.claim()) writes_.flush();
    return;
  }
  entry& front = waiting_.front();
  if (front.since != owner_.now() && !front.marked) {  // else it has not waited for it, or this was seen before
    spans_.leave(front.cqe.span, owner_.name(), "payload write", owner_.now_ps(), sim::wait::pcie);
    front.marked = true;
  }
  if (!cqe_.claim()) return;
  if (waiting_.full() || awaited_) owner_.wake_next();  // somebody may wait for the room, or for it
  awaited_ = false;
  cqe_.push(waiting_.front().cqe);
  waiting_.drop();
  if (!waiting_.empty() && front_moves()) owner_.wake_next();
}

bool completion_port::holds(std::uint32_t qpn) const {
  for (std::size_t n = 0; n < waiting_.size(); ++n)
    if ((waiting_[n].cqe.qpn & 0xffffff) == qpn) return true;
  return false;
}

bool completion_port::raise(std::uint8_t event, std::uint32_t number, std::uint16_t function) {
  if (!event_.bound()) return true;
  if (!event_.claim()) return false;
  completion::event_request e;
  e.type = event;
  e.function = function;
  e.set(abi::eqe::number, number);
  event_.push(e);
  return true;
}

}  // namespace rnic::transport
