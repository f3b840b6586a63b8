// SPDX-License-Identifier: Apache-2.0
// Where everything lies in host memory, and the numbers of queue pairs, queues and keys.
#pragma once

#include <cstdint>

namespace rnic::transport::random_test {

inline constexpr unsigned most_queue_pairs = 6, most_shared_queues = 2;
inline constexpr std::uint32_t first_qpn = 0x40, first_peer = 0x1000, nobodys_qpn = 0x90;

/// Bus addresses.
inline constexpr std::uint64_t contexts_at = 0x10000, histories_at = 0x40000, shared_contexts_at = 0x60000,
                               records_at = 0x70000, records_end = 0x71000, receive_queues_at = 0x80000,
                               shared_queues_at = 0xa0000, read_only_at = 0x180000, data_at = 0x200000,
                               shared_data_at = 0x300000, memory_bytes = 0x500000;
inline constexpr std::uint64_t read_only_bytes = 0x10000, data_bytes = 0x20000, shared_data_bytes = 0x100000;
/// Within the data of a queue pair: what is written, words for atomics, regions that are invalidated, what is received.
inline constexpr std::uint64_t written_bytes = 0x8000, words_at = 0x8000, words_bytes = 64, invalidated_at = 0x9000,
                               invalidated_bytes = 0x100, received_at = 0x10000, received_bytes = 0x10000;
inline constexpr unsigned invalidated_regions = 8;
inline constexpr std::uint32_t history_bytes = 1024;  // of a queue pair

/// Virtual addresses are those of the bus, moved.
inline constexpr std::uint64_t virtual_base = 0x7f00'0000'0000;
constexpr std::uint64_t virtual_of(std::uint64_t bus) { return bus + virtual_base; }
constexpr std::uint64_t bus_of(std::uint64_t va) { return va - virtual_base; }

/// Receive queues have 16 entries of 64 bytes, shared ones (numbers from 1 on) 256.
inline constexpr std::uint32_t entry_bytes = 64, own_entries = 16, shared_entries = 256, receive_bytes = 4096;
constexpr std::uint64_t receive_queue_at(unsigned index) { return receive_queues_at + index * 0x1000; }
constexpr std::uint64_t shared_queue_at(std::uint32_t srqn) { return shared_queues_at + (srqn - 1) * 0x8000; }
constexpr std::uint64_t record_at(unsigned index) { return records_at + index * 8; }
constexpr std::uint64_t shared_record_at(std::uint32_t srqn) { return records_at + 0x100 + srqn * 8; }
constexpr std::uint64_t data_of(unsigned index) { return data_at + index * data_bytes; }
constexpr std::uint64_t shared_data_of(std::uint32_t srqn) { return shared_data_at + (srqn - 1) * shared_data_bytes; }

inline constexpr std::uint32_t protection_domain = 7, domain_of_xrc = 9;
inline constexpr std::uint16_t xrc_domain = 5;
inline constexpr std::uint32_t qkey = 0x1111, foreign_qkey = 3;
inline constexpr std::uint16_t pkey = 0xffff, foreign_pkey = 0x1234;

inline constexpr std::uint32_t no_key = 0xbad00, read_key = 0x500, read_key_of_xrc = 0x600;
constexpr std::uint32_t write_key(unsigned index) { return 0x10000 + index * 0x100; }
constexpr std::uint32_t atomic_key(unsigned index) { return 0x20000 + index * 0x100; }
constexpr std::uint32_t receive_key(unsigned index) { return 0x30000 + index * 0x100; }
constexpr std::uint32_t shared_receive_key(std::uint32_t srqn) { return 0x40000 + srqn * 0x100; }
/// Only keys with this tag may be invalidated by the peer.
inline constexpr std::uint32_t invalidated_tag = 0x77;
constexpr std::uint32_t invalidated_key(unsigned index, unsigned i) {
  return 0x50000 + index * 0x1000 + i * 0x100 + invalidated_tag;
}

}  // namespace rnic::transport::random_test
