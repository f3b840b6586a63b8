// SPDX-License-Identifier: Apache-2.0
// What the peer of a verbs ping-pong may say of itself.
#include <string>

#include "testbenches/fuzz/property.h"
#include "testbenches/serve/pingpong/address_exchange.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnic;
  // On the line a message has a fixed length.
  const std::string text(data, data + size);
  const auto peer = serve::parse_peer(text);
  if (!peer) return 0;
  fuzz::demand(peer->qpn <= 0xffffff && peer->psn <= 0xffffff, "24 bits");
  fuzz::demand_one_line(serve::to_line(*peer));
  const std::string own = serve::to_text(*peer);
  fuzz::demand(own.size() + 1 == serve::address_exchange::message_bytes, "a message has its length");
  const auto again = serve::parse_peer(own);
  fuzz::demand(
      again && again->lid == peer->lid && again->qpn == peer->qpn && again->psn == peer->psn && again->gid == peer->gid,
      "what was understood can be said again");
  return 0;
}
