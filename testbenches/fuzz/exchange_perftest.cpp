// SPDX-License-Identifier: Apache-2.0
// A peer of the perftest tools that says anything: both sides' steps end with an agreement that makes sense, or with
// one line on the peer.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "testbenches/fuzz/input.h"
#include "testbenches/fuzz/property.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/perftest/exchange.h"

namespace rnic::fuzz {
namespace {

using namespace serve::perftest;

/// Says what the input says, and is gone at its end.
class scripted final : public conversation {
 public:
  scripted(input& in, bool text) : in_(in), text_(text) {}
  bool send(const std::string&) override { return true; }
  std::optional<std::string> receive(std::size_t bytes, sim::time_ps, const std::function<void()>&) override {
    if (in_.left() < bytes) return std::nullopt;
    return in_.text(bytes);
  }
  bool peer_closed() override { return in_.left() == 0; }
  bool is_text() const override { return text_; }

 private:
  input& in_;
  bool text_;
};

bool same(const destination& a, const destination& b) {
  return a.lid == b.lid && a.reads == b.reads && a.qpn == b.qpn && a.psn == b.psn && a.rkey == b.rkey &&
         a.address == b.address && a.gid == b.gid && a.srqn == b.srqn;
}

void check(const destination& d) {
  demand(d.qpn <= 0xffffff && d.psn <= 0xffffff, "24 bits");
  demand(same(destination_of(to_bytes(d)), d), "the structure says the same again");
  if (d.reads > 0xffff) return;  // the text has four digits
  const auto text = parse_destination(to_text(d));
  demand(text && same(*text, d), "the text says the same again");
}

void talk(input& in) {
  const std::uint8_t how = in.u8();
  exchange e(std::make_unique<scripted>(in, (how & 1) != 0), (how & 2) != 0);
  exchange::agreement own;
  own.mtu = 256u << (how >> 2) % 5;
  const exchange::agreement both = e.agree(own);
  demand(both.mtu >= 256 && both.mtu <= own.mtu, "the smaller MTU is taken");
  demand(both.cycle_bytes >= own.cycle_bytes && both.cycle_bytes <= 1u << 24, "pages of a likely size");
  demand(both.line_bytes >= own.line_bytes && both.line_bytes <= 4096, "cache lines of a likely size");
  const destination mine{0, 1, 0x48, 0x123456, 0x1000, 0x7f0000001000, {}, 0};
  check(e.tell(mine));
  check(e.tell(mine, true));
  e.tell(report{64, 1000, 1.0, 1.0, 1.0});
  e.end(mine);
  e.close();
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rnic::fuzz::input in(data, size);
  if (size != 0 && (data[0] & 0x80) != 0) {  // straight to the parser: five steps need not be found for it
    in.u8();
    if (const auto d = rnic::serve::perftest::parse_destination(in.text(size))) rnic::fuzz::check(*d);
    return 0;
  }
  try {
    rnic::fuzz::talk(in);
  } catch (const rnic::serve::peer_failure& e) {
    rnic::fuzz::demand_one_line(e.what());
  }
  return 0;
}
