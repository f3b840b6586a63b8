// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/wave_file.h"

#include <gtkwave/fstapi.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "testbenches/bench/link_target.h"
#include "testbenches/bench/usage_error.h"

namespace rnic::bench {

struct wave_file::scope {
  struct leaf {
    std::string name;
    signal of = 0;
  };
  std::string name;
  std::vector<std::unique_ptr<scope>> parts;
  std::vector<leaf> leaves;
};

namespace {

/// The writer removes what has the name, and begins anew: a device would be gone, and a link would not lead anywhere.
std::string regular_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path path = link_target(name);
  if (fs::is_symlink(path, ignored) || (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)))
    throw usage_error(name + ": must be a regular file, since a waveform is not written in one go");
  return path.string();
}

}  // namespace

wave_file::wave_file(const std::string& name)
    : name_(name), writer_(fstWriterCreate(regular_file(name).c_str(), 1)), top_(std::make_unique<scope>()) {
  if (writer_ == nullptr) throw usage_error(name + ": cannot be written");
  constexpr int picoseconds = -12;
  fstWriterSetTimescale(writer_, picoseconds);
  fstWriterSetPackType(writer_, FST_WR_PT_LZ4);
  fstWriterSetVersion(writer_, "rnic");
  fstWriterSetDate(writer_, "");  // the same run gives the same file
}

wave_file::~wave_file() {
  if (writer_ != nullptr) fstWriterClose(writer_);
}

wave_file::scope& wave_file::scope_of(const std::string& path, std::size_t dot) {
  scope* at = top_.get();
  for (std::size_t from = 0; dot != std::string::npos && from <= dot;) {
    const std::size_t to = std::min(path.find('.', from), dot);
    const std::string name = path.substr(from, to - from);
    const auto is_it = [&name](const auto& part) { return part->name == name; };
    auto found = std::find_if(at->parts.begin(), at->parts.end(), is_it);
    if (found == at->parts.end()) {
      found = at->parts.insert(at->parts.end(), std::make_unique<scope>());
      (*found)->name = name;
    }
    at = found->get();
    from = to + 1;
  }
  return *at;
}

wave_file::signal wave_file::add(const std::string& path, unsigned bits) {
  signals_.emplace_back();
  signals_.back().bits = bits;
  add_alias(path, static_cast<signal>(signals_.size() - 1));
  return static_cast<signal>(signals_.size() - 1);
}

void wave_file::add_constant(const std::string& path, std::uint64_t value) {
  constexpr unsigned bits_of_parameter = 32;
  const signal s = add(path, bits_of_parameter);
  make_constant(s);
  signals_[s].first = value;
}

void wave_file::add_alias(const std::string& path, signal of) {
  ++paths_;
  const std::size_t dot = path.rfind('.', path.find(' '));
  scope_of(path, dot).leaves.push_back({dot == std::string::npos ? path : path.substr(dot + 1), of});
}

void wave_file::declare(const scope& s) {
  if (!s.name.empty()) fstWriterSetScope(writer_, FST_ST_VCD_MODULE, s.name.c_str(), nullptr);
  for (const scope::leaf& leaf : s.leaves) {
    wire& w = signals_[leaf.of];
    std::string name = leaf.name;
    if (w.bits > 1 && name.find('[') == std::string::npos) name += " [" + std::to_string(w.bits - 1) + ":0]";
    const fstVarType type = w.constant ? FST_VT_VCD_PARAMETER : FST_VT_VCD_WIRE;
    const fstHandle handle = fstWriterCreateVar(writer_, type, FST_VD_IMPLICIT, w.bits, name.c_str(), w.handle);
    if (w.handle == 0) w.handle = handle;
  }
  for (const auto& part : s.parts) declare(*part);
  if (!s.name.empty()) fstWriterSetUpscope(writer_);
}

void wave_file::declare_all() {
  declare(*top_);
  fstWriterEmitTimeChange(writer_, now_);
  began_ = true;
}

void wave_file::go_to(sim::time_ps at) {
  if (!began_) declare_all();
  if (at == now_) return;
  now_ = at;
  fstWriterEmitTimeChange(writer_, at);
}

void wave_file::change(sim::time_ps at, signal s, std::uint64_t value) {
  text_.resize(signals_[s].bits);
  for (auto bit = text_.rbegin(); bit != text_.rend(); ++bit, value >>= 1) *bit = (value & 1) != 0 ? '1' : '0';
  change(at, s, text_);
}

void wave_file::change(sim::time_ps at, signal s, std::string_view bits) {
  go_to(at);
  fstWriterEmitValueChange(writer_, signals_[s].handle, bits.data());
  ++changes_;
}

void wave_file::close(sim::time_ps end) {
  go_to(std::max(end, now_));
  const bool failed = fstWriterGetFseekFailed(writer_) != 0;
  fstWriterClose(writer_);
  writer_ = nullptr;
  std::error_code unknown;
  if (failed || std::filesystem::file_size(name_, unknown) == 0 || unknown)
    throw usage_error(name_ + ": writing failed");
}

}  // namespace rnic::bench
