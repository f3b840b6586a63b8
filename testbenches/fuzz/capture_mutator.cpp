// SPDX-License-Identifier: Apache-2.0
// New captures out of old ones: of classic pcap files records are doubled, dropped and exchanged, headers get other
// values, and the ICRC is made right again, or nothing behind that check would ever be reached.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "model/wire/icrc.h"
#include "model/wire/packet.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace rnic::fuzz {
namespace {

constexpr std::size_t file_header = 24, record_header = 16, length_at = 8, wire_length_at = 12;
constexpr std::size_t longest_frame = 2048;

struct record {
  std::uint8_t head[record_header] = {};
  std::vector<std::uint8_t> frame;
};

std::vector<record> split(const std::uint8_t* data, std::size_t size) {
  std::vector<record> all;
  for (std::size_t at = file_header; at + record_header <= size;) {
    record r;
    std::memcpy(r.head, data + at, record_header);
    std::uint32_t length = 0;
    std::memcpy(&length, r.head + length_at, 4);
    at += record_header;
    if (length > size - at) break;
    r.frame.assign(data + at, data + at + length);
    at += length;
    all.push_back(std::move(r));
  }
  return all;
}

std::size_t join(const std::vector<record>& all, std::uint8_t* data, std::size_t most) {
  std::size_t at = file_header;
  for (const record& r : all) {
    if (at + record_header + r.frame.size() > most) break;
    const auto length = static_cast<std::uint32_t>(r.frame.size());
    std::memcpy(data + at, r.head, record_header);
    std::memcpy(data + at + length_at, &length, 4);
    std::memcpy(data + at + wire_length_at, &length, 4);
    std::copy(r.frame.begin(), r.frame.end(), data + at + record_header);
    at += record_header + r.frame.size();
  }
  return at;
}

void make_right(std::vector<std::uint8_t>& frame) {
  wire::packet p;
  if (wire::decode(frame.data(), frame.size(), p) != wire::decode_error::none) return;
  const std::uint32_t crc = wire::icrc(frame.data(), p);
  for (unsigned i = 0; i < 4; ++i) frame[p.icrc_offset + i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

/// Another value in the headers behind the addresses: near the old one, far from it, or that of another frame.
void change_headers(std::vector<std::uint8_t>& frame, const std::vector<std::uint8_t>& other, std::mt19937& random) {
  wire::packet p;
  if (wire::decode(frame.data(), frame.size(), p) != wire::decode_error::none) return;
  const std::size_t count = p.payload_offset - p.bth_offset, at = p.bth_offset + random() % count;
  switch (random() % 4) {
    case 0:
      frame[at] = static_cast<std::uint8_t>(frame[at] + random() % 5 - 2);
      break;
    case 1:
      frame[at] = static_cast<std::uint8_t>(random());
      break;
    case 2:
      for (std::size_t i = at; i < at + 8 && i < frame.size() && i < other.size(); ++i) frame[i] = other[i];
      break;
    default:
      std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(at),
                  std::min<std::size_t>(1 + random() % 8, p.icrc_offset - at),
                  random() % 2 == 0 ? std::uint8_t{0xff} : std::uint8_t{0});
  }
}

void change_record(std::vector<record>& all, std::mt19937& random) {
  const std::size_t i = random() % all.size(), j = random() % all.size();
  switch (random() % 8) {
    case 0:
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(i), record(all[j]));
      return;
    case 1:
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    case 2:
      std::swap(all[i].frame, all[j].frame);
      return;
    case 3: {  // any change of one frame
      std::vector<std::uint8_t>& f = all[i].frame;
      const std::size_t size = f.size();
      f.resize(std::max(size, longest_frame));
      f.resize(LLVMFuzzerMutate(f.data(), size, f.size()));
      break;
    }
    default:
      change_headers(all[i].frame, all[j].frame, random);
  }
  make_right(all[i].frame);
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  using namespace rnic::fuzz;
  std::mt19937 random(seed);
  if (size < file_header || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  std::vector<record> all = split(data, size);
  if (all.empty()) return LLVMFuzzerMutate(data, size, most);
  for (auto n = 1 + random() % 3; n != 0 && !all.empty(); --n) change_record(all, random);
  return join(all, data, most);
}
