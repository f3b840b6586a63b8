// SPDX-License-Identifier: Apache-2.0
// What an onlooker sees of a channel: the handshake of a waveform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "model/sim/types.h"

namespace rnic::sim {

class clocked_block;

/// A channel behind an edge of its producer or of its consumer, as it is in the cycle that begins with the next one.
struct channel_state {
  std::uint64_t pushes = 0, pops = 0;  ///< so far
  std::size_t occupancy = 0;           ///< items, visible or not
  cycle_t valid_from = never;          ///< of the consumer: the item in front can be popped; never: there is none
  cycle_t ready_from = 0;              ///< of the producer: it may push; never: not before something is popped
};

class channel_reader_if {
 public:
  virtual ~channel_reader_if() = default;
  /// Blocks at both ends; nullptr: not bound.
  virtual void ends(const clocked_block* producer, const clocked_block* consumer) = 0;
  /// A field of an item, of so many bits: those of a channel are always the same ones in the same order. `group`: what
  /// of the item it belongs to, or nullptr.
  virtual void field(const char* group, const char* name, unsigned bits, std::uint64_t value) = 0;
};

/// Which fields of items say what passes, by the names that items of channels have for them. What else an item has is
/// not looked at. A handle of a frame, or an item that has one, shows the frame's fields; an empty handle shows those
/// of a new one.
class item_fields {
 public:
  template <class T>
  static void read(channel_reader_if& to, const T& item) {
    of_item(to, nullptr, item, 0);
  }

 private:
  template <class T>
  static std::enable_if_t<std::is_enum_v<T> || std::is_integral_v<T>, std::uint64_t> number(const T& v) {
    return static_cast<std::uint64_t>(v);
  }
  template <class T>
  static auto number(const T& v) -> decltype(std::uint64_t{v.value()}) {  // wire::psn_t
    return v.value();
  }
  template <class T>
  static void field(channel_reader_if& to, const char* group, const char* name, unsigned bits, const T& v) {
    constexpr unsigned bits_of_byte = 8, all = sizeof(T) * bits_of_byte;
    to.field(group, name, std::is_same_v<T, bool> ? 1 : bits != 0 && bits < all ? bits : all, number(v));
  }

  // Overloads with `int` are taken where the item has what they name, else those with `long`.
#define RNIC_ITEM_FIELD(NAME, BITS)                                                                              \
  template <class T>                                                                                             \
  static auto read_##NAME(channel_reader_if& to, const char* group, const T& i, int)->decltype(number(i.NAME)) { \
    field(to, group, #NAME, BITS, i.NAME);                                                                       \
    return 0;                                                                                                    \
  }                                                                                                              \
  template <class T>                                                                                             \
  static std::uint64_t read_##NAME(channel_reader_if&, const char*, const T&, long) {                            \
    return 0;                                                                                                    \
  }
  static constexpr unsigned number_bits = 24;  // of a queue pair, of a packet
  RNIC_ITEM_FIELD(what, 0)
  RNIC_ITEM_FIELD(op, 0)
  RNIC_ITEM_FIELD(type, 0)
  RNIC_ITEM_FIELD(opcode, 0)
  RNIC_ITEM_FIELD(qpn, number_bits)
  RNIC_ITEM_FIELD(dest_qp, number_bits)
  RNIC_ITEM_FIELD(psn, number_bits)
  RNIC_ITEM_FIELD(cqn, number_bits)
  RNIC_ITEM_FIELD(number, 0)
  RNIC_ITEM_FIELD(message, 0)
  RNIC_ITEM_FIELD(wqe_index, 0)
  RNIC_ITEM_FIELD(address, 0)
  RNIC_ITEM_FIELD(va, 0)
  RNIC_ITEM_FIELD(offset, 0)
  RNIC_ITEM_FIELD(length, 0)
  RNIC_ITEM_FIELD(bytes, 0)
  RNIC_ITEM_FIELD(byte_count, 0)
  RNIC_ITEM_FIELD(tag, 0)
  RNIC_ITEM_FIELD(key, 0)
  RNIC_ITEM_FIELD(port, 0)
  RNIC_ITEM_FIELD(priority, 0)
  RNIC_ITEM_FIELD(function, 0)
  RNIC_ITEM_FIELD(unit, 0)
  RNIC_ITEM_FIELD(job, 0)
  RNIC_ITEM_FIELD(status, 0)
  RNIC_ITEM_FIELD(syndrome, 0)
  RNIC_ITEM_FIELD(ok, 0)
#undef RNIC_ITEM_FIELD

  template <class T>
  static void numbers(channel_reader_if& to, const char* group, const T& i) {
    read_what(to, group, i, 0);
    read_op(to, group, i, 0);
    read_type(to, group, i, 0);
    read_opcode(to, group, i, 0);
    read_qpn(to, group, i, 0);
    read_dest_qp(to, group, i, 0);
    read_psn(to, group, i, 0);
    read_cqn(to, group, i, 0);
    read_number(to, group, i, 0);
    read_message(to, group, i, 0);
    read_wqe_index(to, group, i, 0);
    read_address(to, group, i, 0);
    read_va(to, group, i, 0);
    read_offset(to, group, i, 0);
    read_length(to, group, i, 0);
    read_bytes(to, group, i, 0);
    read_byte_count(to, group, i, 0);
    read_tag(to, group, i, 0);
    read_key(to, group, i, 0);
    read_port(to, group, i, 0);
    read_priority(to, group, i, 0);
    read_function(to, group, i, 0);
    read_unit(to, group, i, 0);
    read_job(to, group, i, 0);
    read_status(to, group, i, 0);
    read_syndrome(to, group, i, 0);
    read_ok(to, group, i, 0);
  }
  // A handle of something pooled, or the thing itself.
  template <class T>
  static auto of_item(channel_reader_if& to, const char* group, const T& i, int)
      -> decltype(static_cast<bool>(i), *i, i.operator->(), void()) {
    static const std::decay_t<decltype(*i)> none{};
    of_item(to, group, i ? *i : none, 0);
  }
  template <class T>
  static void of_item(channel_reader_if& to, const char* group, const T& i, long) {
    numbers(to, group, i);
    of_packet(to, group, i, 0);
    of_frame(to, i, 0);
  }
  // Headers of a frame, and the packet of PCI Express in what crosses to its core.
  template <class T>
  static auto of_packet(channel_reader_if& to, const char* group, const T& i, int) -> decltype(i.packet.bth, void()) {
    numbers(to, group, i.packet.bth);
  }
  template <class T>
  static auto of_packet(channel_reader_if& to, const char* group, const T& i, int) -> decltype(*i.packet, void()) {
    of_item(to, group, i.packet, 0);
  }
  template <class T>
  static void of_packet(channel_reader_if&, const char*, const T&, long) {}
  template <class T>
  static auto of_frame(channel_reader_if& to, const T& i, int) -> decltype(*i.frame, void()) {
    of_item(to, "frame", i.frame, 0);
  }
  template <class T>
  static void of_frame(channel_reader_if&, const T&, long) {}
};

}  // namespace rnic::sim
