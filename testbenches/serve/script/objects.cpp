// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/script/objects.h"

#include <cerrno>
#include <cstring>

namespace rnic::serve::script {

void failed(const char* verb, int code) { throw command_error(std::string(verb) + ": " + std::strerror(code), code); }

void require_verb(int result, const char* verb) {
  if (result < 0) failed(verb, -result);
}

namespace {

/// Destroys what can be destroyed; those that stay are counted.
template <class T, class Destroy>
std::size_t empty(shelf<T>& s, Destroy destroy) {
  std::size_t stay = 0;
  for (auto& [name, object] : s.all())
    if (destroy(object) != 0) ++stay;
  s.all().clear();
  return stay;
}

}  // namespace

session::~session() { clear(); }

std::size_t session::clear() {
  for (const std::uint64_t id : listening) service.manager().stop_listening(id);
  listening.clear();
  for (const cm_service::connection_id id : connections) service.manager().abandon(id, service.now_ps());
  connections.clear();
  service.clear();
  std::size_t stay = empty(ahs, [&](auto* o) { return device.destroy_ah(o); });
  stay += empty(qps, [&](auto* o) { return device.destroy_qp(o); });
  stay += empty(mws, [&](auto* o) { return device.dealloc_mw(o); });
  stay += empty(srqs, [&](auto* o) { return device.destroy_srq(o); });
  stay += empty(cqs, [&](auto* o) { return device.destroy_cq(o); });
  stay += empty(xrcds, [&](auto* o) { return device.close_xrcd(o); });
  stay += empty(mrs, [&](region& r) {
    const int error = device.dereg_mr(r.mr);
    if (error != 0) r.bytes->kept = true;
    return error;
  });
  stay += empty(pds, [&](auto* o) { return device.dealloc_pd(o); });
  return stay;
}

std::uint64_t session::memory_bytes() const {
  std::set<const memory*> counted;
  std::uint64_t bytes = 0;
  for (const auto& [name, r] : mrs.all())
    if (counted.insert(r.bytes.get()).second) bytes += r.bytes->dma.bytes;
  return bytes;
}

bool session::owns(std::uint64_t address, std::uint64_t length) const {
  for (const auto& [name, r] : mrs.all()) {
    const auto& m = r.bytes->dma;
    if (address >= m.bus_address && address - m.bus_address <= m.bytes && length <= m.bytes - (address - m.bus_address))
      return true;
  }
  return false;
}

}  // namespace rnic::serve::script
