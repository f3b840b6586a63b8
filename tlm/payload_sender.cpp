// SPDX-License-Identifier: Apache-2.0
#include "tlm/payload_sender.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"

namespace rnic::tlm {

payload_sender::payload_sender(std::function<forward&()> socket, bool non_blocking)
    : socket_(std::move(socket)), non_blocking_(non_blocking) {}
payload_sender::~payload_sender() = default;

/// The last one who held it has let it go.
void payload_sender::free(generic_payload* p) {
  p->reset();
  for (const auto& f : flights_)
    if (&f->transaction == p) idle_.push_back(f.get());
}

payload_sender::flight& payload_sender::take() {
  if (idle_.empty()) {
    flights_.push_back(std::make_unique<flight>());
    flights_.back()->transaction.set_mm(this);
    idle_.push_back(flights_.back().get());
  }
  flight& f = *idle_.back();
  idle_.pop_back();
  f.begun = f.responded = f.ended = false;
  return f;
}

::tlm::tlm_response_status payload_sender::send(::tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                                                std::uint32_t bytes) {
  flight& f = take();
  generic_payload& p = f.transaction;
  p.acquire();
  p.set_command(command);
  p.set_address(address);
  p.set_data_ptr(data);
  p.set_data_length(bytes);
  p.set_streaming_width(bytes);
  p.set_byte_enable_ptr(nullptr);
  p.set_dmi_allowed(false);
  p.set_response_status(::tlm::TLM_INCOMPLETE_RESPONSE);
  if (non_blocking_) {
    four_phases(f);
  } else {
    sc_core::sc_time delay;
    socket_().b_transport(p, delay);
    if (delay != sc_core::SC_ZERO_TIME) sc_core::wait(delay);
  }
  const ::tlm::tlm_response_status status = p.get_response_status();
  p.release();
  return status;
}

void payload_sender::four_phases(flight& f) {
  while (requesting_ || sc_core::sc_time_stamp() < request_free_at_) {
    if (requesting_)
      sc_core::wait(request_ended_);
    else
      sc_core::wait(request_free_at_ - sc_core::sc_time_stamp());
  }
  requesting_ = f.begun = true;
  ::tlm::tlm_phase phase = ::tlm::BEGIN_REQ;
  sc_core::sc_time delay;
  const ::tlm::tlm_sync_enum result = socket_().nb_transport_fw(f.transaction, phase, delay);
  if (result == ::tlm::TLM_COMPLETED) {
    end_request(f, delay);
    f.responded = f.ended = true;
    f.response_at = sc_core::sc_time_stamp() + delay;
  } else if (result == ::tlm::TLM_UPDATED) {
    note(f, phase, delay);
  }
  while (!f.responded) sc_core::wait(f.changed);
  if (f.response_at > sc_core::sc_time_stamp()) sc_core::wait(f.response_at - sc_core::sc_time_stamp());
  if (f.ended) return;
  phase = ::tlm::END_RESP;
  delay = sc_core::SC_ZERO_TIME;
  socket_().nb_transport_fw(f.transaction, phase, delay);
}

::tlm::tlm_sync_enum payload_sender::backward(generic_payload& p, ::tlm::tlm_phase& phase, sc_core::sc_time& delay) {
  for (const auto& f : flights_)
    if (&f->transaction == &p) note(*f, phase, delay);
  return ::tlm::TLM_ACCEPTED;
}

void payload_sender::note(flight& f, const ::tlm::tlm_phase& phase, const sc_core::sc_time& delay) {
  if (phase != ::tlm::END_REQ && phase != ::tlm::BEGIN_RESP) return;  // phases that may be ignored
  end_request(f, delay);                                              // a response ends the request as well
  if (phase != ::tlm::BEGIN_RESP) return;
  f.responded = true;
  f.response_at = sc_core::sc_time_stamp() + delay;
  f.changed.notify(sc_core::SC_ZERO_TIME);
}

void payload_sender::end_request(flight& f, const sc_core::sc_time& delay) {
  if (!f.begun) return;
  f.begun = requesting_ = false;
  request_free_at_ = sc_core::sc_time_stamp() + delay;
  request_ended_.notify(sc_core::SC_ZERO_TIME);
}

}  // namespace rnic::tlm
