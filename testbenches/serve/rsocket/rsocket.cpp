// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/rsocket/rsocket.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "host_driver/hosts/connection.h"
#include "model/abi/endian.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

// The word of a message: what it is above, a number below.
enum class word_kind : std::uint32_t { data = 0, places = 4, control = 7 };
constexpr unsigned kind_shift = 29;
constexpr std::uint32_t number_mask = (1u << kind_shift) - 1, control_end = 0;
constexpr std::uint32_t word(word_kind kind, std::uint32_t number) {
  return static_cast<std::uint32_t>(kind) << kind_shift | (number & number_mask);
}

constexpr std::uint64_t of_receive = std::uint64_t{1} << 63, of_control = std::uint64_t{1} << 62;
constexpr std::uint8_t version = 1, flag_network_order = 1;
/// What each side tells in its private data (rs_conn_data): numbers in network order.
constexpr std::size_t told_bytes = 40, told_credits = 2, told_targets = 8, told_room = 24;
constexpr unsigned target_slots = 2;

template <class T>
T load_native(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

rsocket_stream::rsocket_stream(served_host& host, cm_service& service, const rdma_route& route)
    : device_(host.device()), objects_(device_), connection_(host, service, route) {
  cq_ = objects_.cq(4 * queue);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = queue;
  init.cap.max_recv_wr = queue + controls;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  qp_ = objects_.qp(init);
  constexpr int written = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  out_ = objects_.buffer(ring);
  in_ = objects_.buffer(ring, written);
  targets_ = objects_.buffer(target_slots * place_bytes, written);
  control_ = objects_.buffer(controls * place_bytes);
  connection_.prepare(qp_);
  for (unsigned i = 0; i < queue + controls; ++i) post_receive(device_, qp_, of_receive, in_.sge(0));
  std::array<std::uint8_t, told_bytes> told{};
  told[0] = version;
  abi::store16(told.data(), told_credits, queue);
  abi::store64(told.data(), told_targets, targets_.region->iova);
  abi::store32(told.data(), told_targets + 8, targets_.region->rkey);
  abi::store32(told.data(), told_targets + 12, target_slots);
  abi::store64(told.data(), told_room, in_.region->iova);
  abi::store32(told.data(), told_room + 8, in_.region->rkey);
  abi::store32(told.data(), told_room + 12, half);
  connection_.set_private(told.data(), told.size());
}

void rsocket_stream::open() {
  const std::uint8_t* told = connection_.peer_private();
  if (told[0] != version) throw peer_failure("the peer is no rsocket of version 1");
  if ((told[1] & flag_network_order) != 0) throw peer_failure("the peer's byte order is another one");
  allowed_ = abi::load16(told, told_credits);
  peer_targets_ = {abi::load64(told, told_targets), abi::load32(told, told_targets + 8),
                   abi::load32(told, told_targets + 12)};
  if (peer_targets_.length == 0 || peer_targets_.length > 1u << 16)
    throw peer_failure("the peer tells no places for its room");
  set_target(0, {abi::load64(told, told_room), abi::load32(told, told_room + 8), abi::load32(told, told_room + 12)});
}

// The peer writes a place in the byte order of both hosts.
rsocket_stream::place rsocket_stream::target(unsigned slot) const {
  const std::uint8_t* at = targets_.at(slot * place_bytes);
  return {load_native<std::uint64_t>(at), load_native<std::uint32_t>(at + 8), load_native<std::uint32_t>(at + 12)};
}

void rsocket_stream::set_target(unsigned slot, const place& p) const {
  std::uint8_t* at = targets_.at(slot * place_bytes);
  std::memcpy(at, &p.address, sizeof p.address);
  std::memcpy(at + 8, &p.key, sizeof p.key);
  std::memcpy(at + 12, &p.length, sizeof p.length);
}

void rsocket_stream::post_message(std::uint64_t id, std::uint32_t word, std::uint64_t to, std::uint32_t key,
                                  const ibv_sge& from) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = __builtin_bswap32(word);
  wr.wr.rdma.remote_addr = to;
  wr.wr.rdma.rkey = key;
  post(device_, qp_, wr, from);
}

bool rsocket_stream::can_send() const {
  return room_ != 0 && out_free_ != 0 && sent_ != allowed_ && target(slot_).length != 0;
}

void rsocket_stream::heard(const ibv_wc& wc) {
  const std::uint32_t said = __builtin_bswap32(wc.imm_data), number = said & number_mask;
  post_receive(device_, qp_, of_receive, in_.sge(0));
  switch (static_cast<word_kind>(said >> kind_shift)) {
    case word_kind::data:
      if (number == 0 || number > half || in_there_ + number > ring)
        throw peer_failure("the peer sends more than there is room for");
      messages_.push_back(number);
      in_there_ += number;
      break;
    case word_kind::places:
      allowed_ = static_cast<std::uint16_t>(number);
      break;
    case word_kind::control:
      if (number == control_end) ended_ = true;
      break;
    default:
      throw peer_failure("a message of the peer makes no sense");
  }
}

/// Takes what has come, or waits a little for it.
void rsocket_stream::look() {
  give_credits();
  const auto wc = connection_.next(cq_);
  if (!wc && !leaving_) throw peer_failure("the peer released the connection before the end: is it the same test?");
  if (!wc) {
    ended_ = true;
    return;
  }
  if (wc->wr_id == of_receive) return heard(*wc);
  if (wc->wr_id == of_control) {
    ++controls_;
    return;
  }
  ++room_;
  out_free_ += static_cast<std::uint32_t>(wc->wr_id);
}

/// Tells the peer of a free half, or of receives alone.
void rsocket_stream::give_credits() {
  const bool receives = static_cast<std::int16_t>(taken_ - credits_at_) >= 0;
  if ((freed_ < half && !receives) || controls_ == 0 || ended_) return;
  --controls_;
  credits_at_ = static_cast<std::uint16_t>(taken_ + queue / 2);
  const std::uint32_t said = word(word_kind::places, static_cast<std::uint16_t>(taken_ + queue));
  if (freed_ < half) return post_message(of_control, said, 0, 0, {});
  const std::uint64_t offset = std::uint64_t{next_control_++ % controls} * place_bytes;
  const std::uint64_t address = in_.region->iova + free_at_;
  std::memcpy(control_.at(offset), &address, sizeof address);
  std::memcpy(control_.at(offset + 8), &in_.region->rkey, 4);
  std::memcpy(control_.at(offset + 12), &half, 4);
  post_message(of_control, said, peer_targets_.address + std::uint64_t{peer_slot_} * place_bytes, peer_targets_.key,
               control_.sge(place_bytes, offset));
  freed_ -= half;
  free_at_ = (free_at_ + half) % ring;
  peer_slot_ = (peer_slot_ + 1) % peer_targets_.length;
}

void rsocket_stream::send(const std::uint8_t* data, std::size_t bytes) {
  while (bytes != 0) {
    if (ended_) throw peer_failure("the peer has ended the stream: is it the same test?");
    if (!can_send()) {
      look();
      continue;
    }
    place p = target(slot_);
    const auto n =
        static_cast<std::uint32_t>(std::min<std::size_t>({bytes, p.length, out_free_, ring - out_at_, half}));
    std::memcpy(out_.at(out_at_), data, n);
    post_message(n, word(word_kind::data, n), p.address, p.key, out_.sge(n, out_at_));
    p.address += n;
    p.length -= n;
    set_target(slot_, p);
    if (p.length == 0) slot_ = (slot_ + 1) % target_slots;
    out_at_ = (out_at_ + n) % ring;
    out_free_ -= n;
    --room_;
    ++sent_;
    data += n;
    bytes -= n;
  }
}

void rsocket_stream::consumed(std::uint32_t bytes) {
  in_at_ = (in_at_ + bytes) % ring;
  in_there_ -= bytes;
  freed_ += bytes;
  while (bytes != 0) {
    const std::uint32_t n = std::min(bytes, messages_.front());
    bytes -= n;
    messages_.front() -= n;
    if (messages_.front() != 0) continue;
    messages_.pop_front();
    ++taken_;
  }
}

void rsocket_stream::receive(std::uint8_t* data, std::size_t bytes) {
  while (bytes != 0) {
    if (in_there_ == 0) {
      if (ended_) throw peer_failure("the peer has ended the stream: is it the same test?");
      look();
      continue;
    }
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>({bytes, in_there_, ring - in_at_}));
    std::memcpy(data, in_.at(in_at_), n);
    consumed(n);
    data += n;
    bytes -= n;
  }
}

void rsocket_stream::shut_down() {
  leaving_ = true;
  while (controls_ == 0 && !ended_) look();
  if (!ended_) {
    --controls_;
    post_message(of_control, word(word_kind::control, control_end), 0, 0, {});
  }
  while (!ended_ && (room_ != queue - controls || controls_ != controls)) look();
  connection_.disconnect();
}

}  // namespace rnic::serve
