// SPDX-License-Identifier: Apache-2.0
// Commands to a half of the transport about a queue pair that goes on working.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "model/icm/context_cache.h"
#include "model/icm/context_change.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

/// Publishing and changing of contexts, one after the other as firmware asks (transport_cr.h), and the registers for
/// it.
template <class Context>
class live_command {
 public:
  static_assert(sizeof(Context) <= cr::settings_bytes);
  enum class step : std::uint8_t { none, publish, writing, change };

  bool idle() const { return step_ == step::none; }
  bool busy_with(std::uint32_t qpn) const { return !idle() && qpn_ == qpn; }
  bool refused() const { return refused_; }
  std::uint32_t qpn() const { return qpn_; }
  step at() const { return step_; }
  const icm::qp_change& how() const { return how_; }
  Context settings() const {
    Context c;
    std::memcpy(static_cast<void*>(&c), words_.data(), sizeof c);
    return c;
  }

  void begin(std::uint32_t qpn, step what) {
    qpn_ = qpn;
    step_ = what;
    refused_ = false;
  }
  void end(bool refused = false) {
    step_ = step::none;
    refused_ = refused;
  }
  /// A step of publishing.
  void publish(icm::context_cache<Context>& contexts) {
    if (step_ == step::publish && contexts.publish(qpn_)) step_ = step::writing;
    if (step_ == step::writing && !contexts.writing(qpn_)) end();
  }
  /// True: the register is one of these.
  bool write(std::uint32_t offset, std::uint32_t value) {
    if (offset == cr::change_from)
      how_.from = static_cast<std::uint16_t>(value);
    else if (offset == cr::change_to)
      how_.to = static_cast<std::uint8_t>(value);
    else if (offset - cr::settings < cr::settings_bytes)
      words_[(offset - cr::settings) / 4] = value;
    else
      return false;
    return true;
  }

 private:
  std::array<std::uint32_t, cr::settings_bytes / 4> words_{};
  icm::qp_change how_;
  std::uint32_t qpn_ = 0;
  step step_ = step::none;
  bool refused_ = false;
};

}  // namespace rnic::transport
