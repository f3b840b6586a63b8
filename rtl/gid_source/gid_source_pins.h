// SPDX-License-Identifier: Apache-2.0
// The pins of gid_source.sv, for the harness.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>

#include "model/gid/gid_source_if.h"
#include "rtl/harness/twin.h"

namespace rnic::rtl {

struct gid_source_pins {
  static constexpr const char* name = "gid_source";
  enum class table : std::uint8_t { gid, mac, vid };
  /// What firmware writes in one cycle; model and register bus do it between the edges.
  struct row_write {
    bool valid = false;
    table where = table::gid;
    std::uint8_t index = 0;
    bool row_valid = false;
    wire::gid data{};  ///< GID, MAC in the first 6 bytes, or VID in the first two, low byte first
    gid::roce_type type = gid::roce_type::v1;
    std::uint16_t function = 0;  ///< by window; of num_vfs virtual ones
    std::uint16_t num_vfs = 0;
    bool operator==(const row_write& o) const {
      return row_valid == o.row_valid && data == o.data && type == o.type && function == o.function &&
             num_vfs == o.num_vfs;
    }
  };
  struct inputs {
    gid::source_inputs look_up;
    row_write write;
    bool reset = false;
  };
  using outputs = gid::source_outputs;

  template <class F>
  static void each(const inputs& i, F&& f) {
    if (i.reset) f("reset", 1);
    f("valid", i.look_up.valid);
    if (i.look_up.valid) {
      const gid::source_request& r = i.look_up.request;
      f("entry", r.index);
      f("function", r.function);
      f("dmac", word(r.dmac.data(), r.dmac.size()));
    }
    if (i.write.valid) f("write", i.write.index);
  }
  template <class F>
  static void each(const outputs& o, F&& f) {
    f("ready", o.ready);
    f("result_valid", o.result_valid);
    if (!o.result_valid) return;
    f("why", static_cast<std::uint64_t>(o.found.why));
    if (o.found.why != gid::refusal::none) return;
    f("v2", o.found.type == gid::roce_type::v2);
    f("own", o.found.own_destination);
    f("vlan_valid", o.found.vlan_valid);
    f("vlan", o.found.vlan);
    f("id_high", word(o.found.id.data(), 8));
    f("id_low", word(o.found.id.data() + 8, 8));
    f("mac", word(o.found.mac.data(), o.found.mac.size()));
  }

  template <class Top>
  static void drive(Top& top, const inputs& i) {
    const gid::source_request& r = i.look_up.request;
    top.valid_i = i.look_up.valid;
    top.checked_i = r.checked;
    top.any_version_i = r.any_version;
    top.v2_i = r.type == gid::roce_type::v2;
    top.ipv4_i = r.ipv4;
    top.tagged_i = r.tagged;
    top.index_i = r.index % gid::table_size;
    top.mac_index_i = r.mac_index % gid::table_size;
    top.vlan_index_i = r.vlan_index % gid::table_size;
    top.function_i = r.function;
    std::uint64_t dmac = 0;
    std::memcpy(&dmac, r.dmac.data(), r.dmac.size());
    top.dmac_i = dmac;
    top.write_i = i.write.valid;
    top.write_table_i = static_cast<std::uint8_t>(i.write.where);
    top.write_index_i = i.write.index;
    top.write_valid_i = i.write.row_valid;
    std::memcpy(&top.write_data_i, i.write.data.data(), sizeof(wire::gid));
    top.write_v2_i = i.write.type == gid::roce_type::v2;
    top.write_function_i = static_cast<std::uint8_t>(i.write.function);
    top.write_shared_i = i.write.num_vfs == 0;
  }
  template <class Top>
  static outputs sample(const Top& top) {
    outputs o;
    o.ready = top.ready_o != 0;
    o.result_valid = top.result_valid_o != 0;
    o.found.why = static_cast<gid::refusal>(top.why_o);
    o.found.type = top.v2_o != 0 ? gid::roce_type::v2 : gid::roce_type::v1;
    o.found.own_destination = top.own_o != 0;
    o.found.vlan_valid = top.vlan_valid_o != 0;
    o.found.vlan = top.vlan_o;
    std::memcpy(o.found.id.data(), &top.id_o, sizeof(wire::gid));
    const std::uint64_t mac = top.mac_o;
    std::memcpy(o.found.mac.data(), &mac, sizeof(wire::mac_address));
    return o;
  }

  // For the stream driver of testbenches/cosim/harness. A beat is a write or a look-up; results are never held up.
  using beat = inputs;
  static void offer(inputs& i, const beat& b) {
    i.look_up = b.look_up;
    i.write = b.write;
  }
  static bool taken(const inputs& i, const outputs& o) { return i.write.valid || o.ready; }
  static void set_ready(inputs&, bool) {}
  /// All of it in one number.
  static std::optional<std::uint64_t> result(const outputs& o) {
    if (!o.result_valid) return std::nullopt;
    return digest(o.found);
  }
  static std::uint64_t digest(const gid::source& s);

  /// The look-ups whose results are due.
  class tracker {
   public:
    void note(const inputs& i, const outputs& o);
    /// Of the one whose result comes next.
    std::string text() const;

   private:
    std::deque<gid::source_request> open_;
    std::uint64_t done_ = 0;
  };

 private:
  static std::uint64_t word(const std::uint8_t* bytes, std::size_t n) {
    std::uint64_t w = 0;
    for (std::size_t i = 0; i < n; ++i) w = w << 8 | bytes[i];
    return w;
  }
};

/// The engine of gid_source.sv, after reset; `seed` sets the values that registers have before it.
twin_ptr<gid_source_pins> make_gid_source_rtl(std::uint32_t seed = 1);

}  // namespace rnic::rtl
