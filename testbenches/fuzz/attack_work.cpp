// SPDX-License-Identifier: Apache-2.0
// What a process with a page of doorbells can do to an adapter.
#include <algorithm>
#include <array>

#include "model/abi/bar_layout.h"
#include "model/abi/endian.h"
#include "model/abi/queue_entries.h"
#include "testbenches/fuzz/attack.h"

namespace rnic::fuzz {

using namespace conformance;
using host_driver::queue_pair;

/// A request through verbs.
void attack::post_verb(actor& a) {
  static constexpr ibv_wr_opcode opcodes[] = {
      IBV_WR_SEND,          IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,
      IBV_WR_RDMA_READ,     IBV_WR_RDMA_READ,     IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
      IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV};
  const ibv_wr_opcode opcode = opcodes[in_.below(std::size(opcodes))];
  const bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  work w(opcode, atomic ? 8 : length());
  w.with(key());
  const std::uint8_t more = in_.u8();
  if ((more & 1) != 0) w.unsignalled();
  if ((more & 6) == 6) w.flags |= IBV_SEND_FENCE;
  if ((more & 8) != 0) w.flags |= IBV_SEND_SOLICITED;
  if ((more & 0x30) == 0x30) w.at(in_.u16() % 9000);
  if ((more & 0xc0) == 0xc0) w.without_vector();
  a.qp->post(w);
}

void attack::step_of_process(unsigned what) {
  actor& a = pick();
  switch (what) {
    case 0:
    case 1:
      return post_words(a);
    case 2:
      return ring(a);
    case 3:
      return blue_flame(a);
    default:
      in_.bit() ? write_receive(a) : queue_doorbell(a);
  }
}

namespace {

void put64(std::vector<std::uint32_t>& words, std::uint64_t v) {
  words.push_back(static_cast<std::uint32_t>(v >> 32));
  words.push_back(static_cast<std::uint32_t>(v));
}

constexpr std::uint8_t opcodes[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x10, 0x10,
                                    0x10, 0x11, 0x12, 0x14, 0x15, 0x18, 0x19, 0x1b, 0x1f};

}  // namespace

/// A descriptor with the segments that its opcode has, of any lengths and keys, and then perhaps other words in it.
void attack::post_words(actor& a) {
  const std::uint8_t which = in_.u8(), how = in_.u8();
  const std::uint32_t opcode = which < 0xf0 ? opcodes[which % std::size(opcodes)] : in_.below(32);
  std::vector<std::uint32_t> words = {opcode, 0, (how & 1) != 0 ? 0u : abi::wqe::control::cq_update, 0x11223344};
  if ((how & 2) != 0) words[2] |= abi::wqe::control::solicited;
  const estate& e = estate::instance();
  if (a.qp->on() == service::ud && opcode >= 0x08) {  // an address vector: zeroes, or what the input says
    for (unsigned i = 0; i < abi::wqe::datagram::bytes / 4; ++i) words.push_back((how & 4) != 0 ? in_.u32() : 0);
  } else if (opcode >= 0x08 && opcode <= 0x15 && opcode != 0x0a && opcode != 0x0b && opcode != 0x0e) {
    put64(words, e.target.address((how & 8) != 0 ? in_.u16() : 0));
    words.push_back(a.qp->key_of(key()));
    words.push_back(0);
    if (opcode >= 0x11) {
      for (unsigned i = 0; i < (opcode >= 0x14 ? 8u : 4u); ++i) words.push_back(in_.u8());
    }
  } else if (opcode >= 0x18) {  // binding, registration, invalidation
    for (unsigned i = 0; i < 12; ++i) words.push_back(in_.below(4) == 0 ? a.qp->key_of(key()) : in_.u8());
  }
  put_segments(words);
  const std::uint32_t units = static_cast<std::uint32_t>(words.size() / 4);
  words[1] = (how & 0x30) == 0x30 ? in_.u8() : units;
  if ((how & 0x40) != 0) words[1] |= abi::wqe::control::fence_bit;
  for (unsigned i = (how & 0x80) != 0 ? 1 + in_.below(4) : 0; i != 0; --i) words[in_.u8() % words.size()] = in_.u32();
  // The ring has entries of so many bytes; longer descriptors take several.
  const queue_pair& qp = *a.qp->qp();
  if (qp.sq.count == 0) return;
  words.resize(std::min<std::size_t>(words.size(), (std::size_t{1} << qp.sq.log_stride) / 4));
  a.qp->post(work(std::move(words)));
}

/// Up to seven data segments, short or long, mostly of memory that may be used.
void attack::put_segments(std::vector<std::uint32_t>& words) {
  const estate& e = estate::instance();
  for (unsigned i = in_.below(8); i != 0; --i) {
    const std::uint8_t how = in_.u8();
    std::uint32_t bytes = (how & 3) == 0 ? length() : in_.u8() % 64;
    if ((how & 0x1c) == 0x1c) bytes |= 1u << 31;
    words.push_back(bytes);
    // All keys but the good one are of the memory that peers reach.
    const conformance::key k = (how & 0x60) == 0x60 ? attack::key() : conformance::key::good;
    words.push_back(e.lkey(k));
    const std::uint64_t base = k == conformance::key::good ? e.origin.address() : e.target.address();
    put64(words, (how & 0x80) != 0 ? in_.u64() : base + in_.u8());
  }
}

/// Rings for a queue pair that there is or is not, with a number of requests that there are or are not.
void attack::ring(actor& a) {
  const std::uint8_t how = in_.u8();
  if ((how & 1) != 0) a.qp->qp()->sq.head += in_.below(4);
  const std::uint32_t qpn = (how & 0x30) == 0x30 ? in_.u32() & 0xffffff : a.qp->qp()->qp_num;
  const std::uint64_t page = estate::instance().doorbell - abi::uar::send_doorbell;
  const std::uint64_t at = (how & 0xc0) == 0xc0 ? in_.u16() & 0xffcu : abi::uar::send_doorbell;
  r_.at().bus->mmio_write32(2, page + at, abi::uar::send_doorbell_value(qpn));
}

/// A descriptor as a store to the BlueFlame page, whole or in part.
void attack::blue_flame(actor& a) {
  constexpr std::uint64_t uars = (8u << 20) >> abi::uar::log_page;
  const std::uint64_t page = estate::instance().doorbell - abi::uar::send_doorbell;
  const std::uint8_t how = in_.u8();
  std::array<std::uint8_t, 256> wqe{};
  const auto content = in_.bytes(in_.u8());
  std::copy(content.begin(), content.end(), wqe.begin());
  const queue_pair& qp = *a.qp->qp();
  if ((how & 1) == 0) {
    abi::store32(wqe.data(), 0, (abi::load32(wqe.data(), 0) & 0xff00001f) | (qp.sq.head & 0xffff) << 8);
    abi::store32(wqe.data(), 4, (abi::load32(wqe.data(), 4) & 0xff) | qp.qp_num << 8);
  }
  const std::uint64_t half = (how & 2) != 0 ? 256 : 0;
  for (unsigned at = 0, end = 64 * (1 + (how >> 2) % 4); at < end; at += 64)
    r_.at().bus->mmio_write_combined(2, (uars << abi::uar::log_page) + page + half + at, wqe.data() + at, 64);
}

/// Indices and requests for events, of completion queues that there are or are not, in registers and in memory.
void attack::queue_doorbell(actor& a) {
  const std::uint8_t how = in_.u8();
  const queue_pair& qp = *a.qp->qp();
  const host_driver::completion_queue& cq = *((how & 1) != 0 ? qp.send_queue : qp.receive_queue);
  const std::uint64_t page = estate::instance().doorbell - abi::uar::send_doorbell;
  const std::uint32_t value = in_.u32();
  switch ((how >> 1) % 4) {
    case 0:
      r_.at().bus->mmio_write64(
          2, page + abi::uar::cq_doorbell,
          std::uint64_t{(value & 0x37000000) | ((how & 8) != 0 ? value & 0xffffff : cq.cqn)} << 32 | in_.u16());
      break;
    case 1:
      abi::store32(cq.record.pointer, (how & 8) != 0 ? 4 : 0, value);
      break;
    case 2:
      if (qp.record.pointer != nullptr) abi::store32(qp.record.pointer, 0, value);
      break;
    default:
      r_.at().bus->mmio_write64(2, page + (value & 0xff8), std::uint64_t{in_.u32()} << 32 | value);
  }
}

/// A receive descriptor of any words where the next ones are taken from.
void attack::write_receive(actor& a) {
  const queue_pair& qp = *a.qp->qp();
  std::uint8_t* entry = nullptr;
  std::size_t bytes = 0;
  if (qp.shared != nullptr && qp.shared->count != 0) {
    entry = qp.shared->entry(in_.below(qp.shared->count < 256 ? qp.shared->count : 256));
    bytes = std::size_t{1} << qp.shared->log_stride;
  } else if (qp.rq.count != 0) {
    entry = qp.receive_entry(in_.u8());
    bytes = std::size_t{1} << qp.rq.log_stride;
  }
  const auto content = in_.bytes(bytes);
  if (entry != nullptr) std::copy(content.begin(), content.end(), entry);
}

}  // namespace rnic::fuzz
