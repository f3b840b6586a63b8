// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/wave_merge.h"

#include <gtkwave/fstapi.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "testbenches/bench/usage_error.h"

namespace rnic::bench {

namespace {

/// Changes of all parts in a piece of time, which are put in order.
class merged_piece {
 public:
  void add(sim::time_ps at, wave_file::signal of, std::string_view bits) {
    all_.push_back({at, all_.size(), of, bits_.size(), bits.size()});
    bits_.append(bits);
  }
  void write(wave_file& to, std::vector<std::string>& written) {
    std::sort(all_.begin(), all_.end(),
              [](const change& a, const change& b) { return a.at != b.at ? a.at < b.at : a.told < b.told; });
    for (const change& c : all_) {
      const std::string_view bits(bits_.data() + c.first, c.count);
      std::string& last = written[c.of];
      if (last == bits) continue;  // a reader begins each piece with what there was
      last = bits;
      to.change(c.at, c.of, bits);
    }
    all_.clear();
    bits_.clear();
  }

 private:
  struct change {
    sim::time_ps at;
    std::size_t told;
    wave_file::signal of;
    std::size_t first, count;  // of bits_
  };
  std::vector<change> all_;
  std::string bits_;
};

class merged_part {
 public:
  merged_part(const wave_part& part, wave_file& to) : reader_(fstReaderOpen(part.file.c_str())) {
    if (reader_ == nullptr) throw usage_error(part.file + ": cannot be read");
    fstReaderSetFacProcessMaskAll(reader_);
    fstReaderIterBlocksSetNativeDoublesOnCallback(reader_, 0);
    signals_.resize(std::size_t{fstReaderGetMaxHandle(reader_)} + 1, none);
    bits_.resize(signals_.size());
    add_signals(part.scope, to);
  }
  ~merged_part() { fstReaderClose(reader_); }
  merged_part(const merged_part&) = delete;
  merged_part& operator=(const merged_part&) = delete;

  std::uint64_t blocks() const { return fstReaderGetValueChangeSectionCount(reader_); }
  sim::time_ps end() const { return fstReaderGetEndTime(reader_); }
  /// Changes from `begin` to `end`, and what there was at `begin`. The reader has all changes of a block of the file.
  void read(sim::time_ps begin, sim::time_ps end, merged_piece& into) {
    into_ = &into;
    begin_ = begin;
    end_ = end;
    before_.assign(signals_.size(), {});
    fstReaderSetLimitTimeRange(reader_, begin, end);
    fstReaderIterBlocks(reader_, &take, this, nullptr);
    begin_with_before();
  }

 private:
  static constexpr wave_file::signal none = ~wave_file::signal{0};

  void add_signals(std::string scope, wave_file& to) {
    std::vector<std::string> above;
    for (const fstHier* h = fstReaderIterateHier(reader_); h != nullptr; h = fstReaderIterateHier(reader_)) {
      if (h->htyp == FST_HT_SCOPE) {
        above.push_back(scope);
        scope += (scope.empty() ? "" : ".") + std::string(h->u.scope.name);
      } else if (h->htyp == FST_HT_UPSCOPE) {
        scope = above.back();
        above.pop_back();
      } else if (h->htyp == FST_HT_VAR && h->u.var.typ != FST_VT_VCD_REAL && h->u.var.length != 0) {
        wave_file::signal& s = signals_[h->u.var.handle];
        const std::string path = scope + "." + h->u.var.name;
        if (s != none)
          to.add_alias(path, s);
        else
          s = to.add(path, h->u.var.length);
        if (h->u.var.typ == FST_VT_VCD_PARAMETER) to.make_constant(s);
        bits_[h->u.var.handle] = h->u.var.length;
      }
    }
  }
  static void take(void* self, std::uint64_t at, fstHandle of, const unsigned char* value) {
    auto& p = *static_cast<merged_part*>(self);
    if (p.signals_[of] == none || at > p.end_) return;
    const std::string_view bits(reinterpret_cast<const char*>(value), p.bits_[of]);
    if (at < p.begin_) {
      p.before_[of] = bits;
      return;
    }
    if (at > p.begin_) p.begin_with_before();
    if (at == p.begin_ && !p.before_.empty()) p.before_[of].clear();
    p.into_->add(at, p.signals_[of], bits);
  }
  void begin_with_before() {
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (!before_[i].empty()) into_->add(begin_, signals_[i], before_[i]);
    before_.clear();
  }

  void* reader_;
  std::vector<wave_file::signal> signals_;  // by the reader's handle
  std::vector<std::uint32_t> bits_;
  std::vector<std::string> before_;  // by handle: what it is at begin_, until that is told
  merged_piece* into_ = nullptr;
  sim::time_ps begin_ = 0, end_ = 0;
};

}  // namespace

void merge(const std::vector<wave_part>& parts, wave_file& to, sim::time_ps from, sim::time_ps until,
           std::uint64_t pieces) {
  std::vector<std::unique_ptr<merged_part>> all;
  sim::time_ps end = 0;
  std::uint64_t blocks = 1;
  for (const wave_part& p : parts) {
    all.push_back(std::make_unique<merged_part>(p, to));
    end = std::max(end, all.back()->end());
    blocks += all.back()->blocks();
  }
  if (pieces == 0) pieces = blocks;
  end = std::max(from, std::min(end, until - 1));
  std::vector<std::string> written(to.signals());
  const sim::time_ps length = (end - from) / pieces + 1;
  merged_piece piece;
  for (sim::time_ps begin = from; begin <= end; begin += length) {
    for (const auto& p : all) p->read(begin, std::min(end, begin + length - 1), piece);
    piece.write(to, written);
  }
}

}  // namespace rnic::bench
