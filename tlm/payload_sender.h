// SPDX-License-Identifier: Apache-2.0
// An initiator of TLM-2.0's base protocol: generic payloads through b_transport or through nb_transport's four phases.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

namespace rnic::tlm {

/// Sends transactions for processes that wait for the answer; several may be under way. Keeps the rules of the base
/// protocol (IEEE 1666-2011, 15.2): a request begins when the one before it has ended, each response is ended.
class payload_sender : private ::tlm::tlm_mm_interface {
 public:
  using generic_payload = ::tlm::tlm_generic_payload;
  using forward = ::tlm::tlm_fw_transport_if<>;

  /// `socket` gives the interface that a socket is bound to; asked when something is sent.
  payload_sender(std::function<forward&()> socket, bool non_blocking);
  ~payload_sender() override;
  payload_sender(const payload_sender&) = delete;
  payload_sender& operator=(const payload_sender&) = delete;

  /// Reads or writes; returns at the time of the response.
  ::tlm::tlm_response_status send(::tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                                  std::uint32_t bytes);
  /// nb_transport_bw of the socket.
  ::tlm::tlm_sync_enum backward(generic_payload& p, ::tlm::tlm_phase& phase, sc_core::sc_time& delay);

 private:
  struct flight {
    generic_payload transaction;
    sc_core::sc_event changed;
    bool begun = false;      // the request has, and has not ended
    bool responded = false;  // the response has begun
    bool ended = false;      // by TLM_COMPLETED: no END_RESP
    sc_core::sc_time response_at;
  };
  void free(generic_payload* p) override;
  flight& take();
  void four_phases(flight& f);
  void note(flight& f, const ::tlm::tlm_phase& phase, const sc_core::sc_time& delay);
  void end_request(flight& f, const sc_core::sc_time& delay);

  std::function<forward&()> socket_;
  bool non_blocking_;
  std::vector<std::unique_ptr<flight>> flights_;
  std::vector<flight*> idle_;
  bool requesting_ = false;
  sc_core::sc_time request_free_at_;  // the last request ends
  sc_core::sc_event request_ended_;
};

}  // namespace rnic::tlm
