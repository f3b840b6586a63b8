// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/qperf/words.h"

namespace rnic::serve::qperf {

namespace {

constexpr unsigned clocks = 9;  // real time, and times of the processors
constexpr std::uint32_t ticks_per_second = 1000;

/// Puts integers one behind the other.
class writer {
 public:
  writer& put(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) text_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return *this;
  }
  writer& put(const transfer& t) { return put(t.bytes, 8).put(t.messages, 8).put(t.errors, 8); }
  /// Zeros up to its length.
  std::string filled(std::size_t bytes) {
    text_.resize(bytes, '\0');
    return text_;
  }

 private:
  std::string text_;
};

/// Takes them again; zeros behind the end.
class reader {
 public:
  explicit reader(const std::string& text) : text_(text) {}
  std::uint64_t get(unsigned size) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i, ++at_)
      if (at_ < text_.size()) value |= std::uint64_t{static_cast<std::uint8_t>(text_[at_])} << (8 * i);
    return value;
  }
  std::uint32_t get32() { return static_cast<std::uint32_t>(get(4)); }
  transfer get_transfer() {
    transfer t;
    t.bytes = get(8);
    t.messages = get(8);
    t.errors = get(8);
    return t;
  }
  void skip(unsigned size) { at_ += size; }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string request::text() const {
  writer w;
  w.put(major, 2).put(minor, 2).put(version_increment, 2).put(test, 2);
  w.put(0, 4).put(0, 4).put(0, 4).put(0, 4);  // access to the data, affinity, alternate port, direction
  w.put(message_bytes, 4).put(0, 4).put(messages, 4);
  w.put(1, 4).put(0, 4);                          // polls; port
  w.put(reads, 4).put(0, 4).put(0, 4).put(0, 4);  // service level, socket buffers, path bits
  w.put(seconds, 4).put(timeout_s, 4).put(manager ? 1 : 0, 4);
  return w.filled(bytes);
}

request request::parse(const std::string& text) {
  reader r(text);
  request q;
  q.major = static_cast<std::uint16_t>(r.get(2));
  q.minor = static_cast<std::uint16_t>(r.get(2));
  r.skip(2);
  q.test = static_cast<std::uint16_t>(r.get(2));
  r.skip(16);
  q.message_bytes = r.get32();
  r.skip(4);
  q.messages = r.get32();
  r.skip(8);
  q.reads = r.get32();
  r.skip(12);
  q.seconds = r.get32();
  q.timeout_s = r.get32();
  q.manager = r.get32() != 0;
  return q;
}

std::string node::text() const {
  writer w;
  w.put(address, 8).put(0, 4).put(0, 4).put(0, 4).put(0, 4).put(rkey, 4);  // LID, QPN, PSN, shared receive queue
  return w.filled(bytes);
}

node node::parse(const std::string& text) {
  reader r(text);
  node n;
  n.address = r.get(8);
  r.skip(16);
  n.rkey = r.get32();
  return n;
}

std::string statistics::text() const {
  writer w;
  w.put(1, 4).put(ticks_per_second, 4).put(0, 4);  // processors; most completions at a time
  for (unsigned i = 0; i < clocks; ++i) w.put(0, 8);
  for (unsigned i = 0; i < clocks; ++i) w.put(i == 0 ? took_ms : 0, 8);
  w.put(sent).put(received).put(transfer{}).put(transfer{});
  return w.filled(bytes);
}

statistics statistics::parse(const std::string& text) {
  reader r(text);
  statistics s;
  r.skip(4);
  const std::uint64_t ticks = r.get32();
  r.skip(4);
  const std::uint64_t begin = r.get(8);
  r.skip(8 * (clocks - 1));
  const std::uint64_t end = r.get(8);
  r.skip(8 * (clocks - 1));
  s.took_ms = ticks == 0 || end < begin ? 0 : (end - begin) * 1000 / ticks;
  s.sent = r.get_transfer();
  s.received = r.get_transfer();
  return s;
}

std::string number_text(std::uint32_t n) { return writer().put(n, 4).filled(4); }
std::uint32_t parse_number(const std::string& text) { return reader(text).get32(); }

}  // namespace rnic::serve::qperf
