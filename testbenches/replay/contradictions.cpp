// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/contradictions.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <memory>

namespace rnic::replay {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::size_t most_pages = 16384;     // 64 MiB that are remembered
constexpr std::size_t most_looked_at = 4096;  // changes that may be under way together

/// What WRITEs left under one key, as far as it is known.
class written_bytes {
 public:
  explicit written_bytes(std::size_t& pages) : pages_(pages) {}

  /// `bytes` nullptr: something unknown.
  void change(std::uint64_t address, std::uint64_t length, const std::uint8_t* bytes, std::uint64_t known) {
    for (std::uint64_t i = 0; i < length;) {
      const std::uint64_t at = (address + i) % page_bytes, n = std::min(page_bytes - at, length - i);
      page* p = page_at(address + i, bytes != nullptr && i < known);
      for (std::uint64_t k = 0; p != nullptr && k < n; ++k) {
        const bool is_known = bytes != nullptr && i + k < known;
        p->known[at + k] = is_known;
        if (is_known) p->bytes[at + k] = bytes[i + k];
      }
      i += n;
    }
  }

  bool contradicts(std::uint64_t address, const std::uint8_t* bytes, std::uint64_t length) {
    for (std::uint64_t i = 0; i < length;) {
      const std::uint64_t at = (address + i) % page_bytes, n = std::min(page_bytes - at, length - i);
      const page* p = page_at(address + i, false);
      for (std::uint64_t k = 0; p != nullptr && k < n; ++k)
        if (p->known[at + k] && p->bytes[at + k] != bytes[i + k]) return true;
      i += n;
    }
    return false;
  }

  void forget() {
    pages_ -= of_.size();
    of_.clear();
  }

 private:
  struct page {
    std::uint8_t bytes[page_bytes];
    std::bitset<page_bytes> known;
  };
  page* page_at(std::uint64_t address, bool make) {
    const auto at = of_.find(address / page_bytes);
    if (at != of_.end()) return at->second.get();
    if (!make || pages_ == most_pages) return nullptr;
    ++pages_;
    return (of_[address / page_bytes] = std::make_unique<page>()).get();
  }

  std::size_t& pages_;
  std::map<std::uint64_t, std::unique_ptr<page>> of_;
};

bool overlap(const memory_change& m, std::uint64_t address, std::uint64_t length) {
  return m.address < address + length && address < m.address + m.length;
}

/// Whether a change of these bytes may have come before or behind the READ, which was under way from `asked` to its
/// answer, or before or behind the last one of them.
bool under_way(const std::vector<memory_change>& changes, const memory_content& c, std::uint64_t length,
               std::size_t asked, int connection) {
  auto m = std::lower_bound(changes.begin(), changes.end(), c.answer,
                            [](const memory_change& x, std::size_t frame) { return x.from < frame; });
  const memory_change* last = nullptr;
  for (std::size_t looked = 0; m != changes.begin() && looked < most_looked_at; ++looked) {
    --m;
    if (m->rkey != c.rkey || (!m->ends_key && !overlap(*m, c.address, length))) continue;
    if (m->to >= asked && (m->connection != connection || m->from >= asked)) return true;
    if (last != nullptr && m->connection != last->connection && m->to >= last->from) return true;
    if (last == nullptr) last = &*m;
  }
  return false;
}

const std::uint8_t* payload_of(const captured_frame& f) { return f.bytes.data() + f.packet.payload_offset; }

}  // namespace

void find_contradictions(plan& p, std::vector<memory_change> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const memory_change& a, const memory_change& b) { return a.from < b.from; });
  std::size_t pages = 0;
  std::map<std::uint32_t, written_bytes> by_key;
  const auto key = [&](std::uint32_t rkey) -> written_bytes& { return by_key.try_emplace(rkey, pages).first->second; };
  auto next = changes.begin();
  for (const auto& [asked, contents] : p.contents) {  // in the order of the capture, what was made up last
    if (asked >= p.frames.size()) break;
    for (; next != changes.end() && next->from < asked; ++next) {
      const captured_frame* f = next->content == no_frame ? nullptr : &p.frames[next->content];
      if (next->ends_key)
        key(next->rkey).forget();
      else
        key(next->rkey)
            .change(next->address, next->length, f == nullptr ? nullptr : payload_of(*f),
                    f == nullptr ? 0 : f->known_payload());
    }
    for (const memory_content& c : contents) {
      if (c.is_counter) continue;
      const captured_frame& f = p.frames[c.answer];
      const std::uint32_t known = f.known_payload();
      if (key(c.rkey).contradicts(c.address, payload_of(f), known) &&
          !under_way(changes, c, known, asked, f.connection))
        p.contradictions.insert(c.answer);
    }
  }
}

}  // namespace rnic::replay
