// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/place_lookup.h"

namespace rnic::transport {

place_lookup::place_lookup(sim::clocked_block& owner, const responder_config& cfg, const responder_registers& registers,
                           icm::translate_port& port, const flow_table& flows, slot_table& slots)
    : owner_(owner),
      registers_(registers),
      port_(port),
      flows_(flows),
      slots_(slots),
      most_reads_(cfg.read_translations) {}

void place_lookup::add(responder_slot& s, std::uint64_t va, std::uint32_t key, std::uint32_t length,
                       std::uint64_t check_length, icm::access access) {
  RNIC_ASSERT(s.place.pieces < responder_slot::max_pieces,
              owner_.name() + ": more pieces than a receive WQE has segments");
  s.place.list[s.place.pieces] = {va, key, length, check_length, access};
  s.place.segments[2 * s.place.pieces] = s.place.segments[2 * s.place.pieces + 1] = {};
  ++s.place.pieces;
  if (next_ == no_link) next_ = slots_.index_of(s);
}

void place_lookup::cancel(responder_slot& s) {
  s.place.pieces = s.place.issued;
  if (slots_.index_of(s) == next_) advance();
}

void place_lookup::issue(responder_slot& s) {
  if (slots_.index_of(s) == next_) work();
}

void place_lookup::work() {
  if (next_ != no_link && port_.request.claim()) ask(slots_[next_]);
}

/// Past packets that have nothing to ask for: they are found by a bit a slot.
void place_lookup::advance() {
  do next_ = slots_[next_].next;
  while (next_ != no_link && slots_[next_].place.issued == slots_[next_].place.pieces);
}

void place_lookup::ask(responder_slot& s) {
  slots_.access(slot_table::requests);
  const responder_flow& f = flows_[s.flow];
  const responder_slot::piece& piece = s.place.list[s.place.issued];
  const bool physical = s.place.of_receive && piece.key == registers_.reserved_lkey &&
                        (f.ctx->flags & icm::responder_flag_reserved_lkey) != 0;
  port_.request.push_made([&](icm::translate_request& r) {
    r = {};
    r.what = physical ? icm::translate_request::kind::reserved_key : icm::translate_request::kind::key;
    if (s.place.in_wqe) {
      r.what = icm::translate_request::kind::buffer;
      r.buffer_mtt = f.ctx->rq_address;
      r.log_page = f.ctx->log_page;
    }
    r.access = piece.access;
    r.key = piece.key;
    r.pd = s.place.of_receive ? s.place.receive_pd : s.pd;
    r.qpn = f.qpn;
    r.length = piece.length;
    r.va = piece.va;
    r.check_length = piece.check_length;
    r.tag = std::uint64_t{slots_.index_of(s)} << 8 | s.place.issued;
    r.span = s.frame->span;
  });
  if (s.fetches()) ++reads_;
  if (++s.place.issued == s.place.pieces) advance();
  if (next_ != no_link) owner_.wake_next();
}

void place_lookup::translated(const icm::translate_response& r) {
  responder_slot& s = slots_[static_cast<std::uint16_t>(r.tag >> 8)];
  const unsigned piece = r.tag & 0xff;
  slots_.access(slot_table::translations);
  ++s.place.translated;
  if (s.fetches()) --reads_;
  s.place.missed = s.place.missed || r.missed;
  s.place.segments[2 * piece] = r.count > 0 ? r.segments[0] : icm::translate_response::segment{};
  s.place.segments[2 * piece + 1] = r.count > 1 ? r.segments[1] : icm::translate_response::segment{};
  if (r.status != icm::translate_status::ok && s.place.status == icm::translate_status::ok) s.place.status = r.status;
}

}  // namespace rnic::transport
