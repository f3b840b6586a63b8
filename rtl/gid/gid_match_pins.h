// SPDX-License-Identifier: Apache-2.0
// The pins of gid_match.sv, for the harness.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>

#include "model/gid/gid_match_if.h"
#include "rtl/harness/twin.h"

namespace rnic::rtl {

struct gid_match_pins {
  static constexpr const char* name = "gid_match";
  /// What firmware writes in one cycle; model and register bus do it between the edges.
  struct entry_write {
    bool valid = false;
    std::uint8_t index = 0;
    wire::gid id{};
    gid::roce_type type = gid::roce_type::v1;
    bool entry_valid = false;
  };
  struct inputs {
    gid::match_inputs look_up;
    entry_write write;
    bool reset = false;
  };
  using outputs = gid::match_outputs;

  template <class F>
  static void each(const inputs& i, F&& f) {
    if (i.reset) f("reset", 1);
    f("valid", i.look_up.valid);
    if (i.look_up.valid) {
      f("dgid_high", word(i.look_up.dgid, 0));
      f("dgid_low", word(i.look_up.dgid, 8));
      f("v2", i.look_up.type == gid::roce_type::v2);
    }
    if (i.write.valid) f("write", i.write.index);
  }
  template <class F>
  static void each(const outputs& o, F&& f) {
    f("ready", o.ready);
    f("result_valid", o.result_valid);
    if (!o.result_valid) return;
    f("hit", o.hit);
    if (o.hit) f("index", o.index);
  }

  template <class Top>
  static void drive(Top& top, const inputs& i) {
    top.valid_i = i.look_up.valid;
    std::memcpy(&top.dgid_i, i.look_up.dgid.data(), sizeof(wire::gid));
    top.v2_i = i.look_up.type == gid::roce_type::v2;
    top.write_i = i.write.valid;
    top.write_index_i = i.write.index;
    std::memcpy(&top.write_id_i, i.write.id.data(), sizeof(wire::gid));
    top.write_v2_i = i.write.type == gid::roce_type::v2;
    top.write_valid_i = i.write.entry_valid;
  }
  template <class Top>
  static outputs sample(const Top& top) {
    return {top.ready_o != 0, top.result_valid_o != 0, top.hit_o != 0, top.index_o};
  }

  // For the stream driver of testbenches/cosim/harness. A beat is a write or a look-up; results are never held up.
  using beat = inputs;
  static void offer(inputs& i, const beat& b) {
    i.look_up = b.look_up;
    i.write = b.write;
  }
  static bool taken(const inputs& i, const outputs& o) { return i.write.valid || o.ready; }
  static void set_ready(inputs&, bool) {}
  static std::optional<std::uint64_t> result(const outputs& o) {
    if (!o.result_valid) return std::nullopt;
    return o.hit ? std::uint64_t{o.index} : no_entry;
  }
  static constexpr std::uint64_t no_entry = ~std::uint64_t{0};

  /// The look-ups whose results are due.
  class tracker {
   public:
    void note(const inputs& i, const outputs& o);
    /// Of the one whose result comes next.
    std::string text() const;

   private:
    std::deque<gid::match_inputs> open_;
    std::uint64_t done_ = 0;
  };

 private:
  static std::uint64_t word(const wire::gid& id, unsigned from) {
    std::uint64_t w = 0;
    for (unsigned i = 0; i < 8; ++i) w = w << 8 | id[from + i];
    return w;
  }
};

/// The engine of gid_match.sv, after reset; `seed` sets the values that registers have before it.
twin_ptr<gid_match_pins> make_gid_match_rtl(std::uint32_t seed = 1);

}  // namespace rnic::rtl
