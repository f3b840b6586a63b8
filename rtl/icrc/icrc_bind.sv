// SPDX-License-Identifier: Apache-2.0
// Puts the stream checkers onto both streams of every ICRC engine.

bind icrc_engine prim_stream_checker #(
  .Width(BeatBits + KeepBits + 1 + 1 + 2)
) u_in_checker (
  .clk_i    (clk_i),
  .rst_ni   (rst_ni),
  .valid_i  (in_valid_i),
  .ready_i  (in_ready_o),
  .payload_i({in_data_i, in_keep_i, in_first_i, in_last_i, in_encap_i})
);

bind icrc_engine prim_stream_checker #(
  .Width(32)
) u_result_checker (
  .clk_i    (clk_i),
  .rst_ni   (rst_ni),
  .valid_i  (result_valid_o),
  .ready_i  (result_ready_i),
  .payload_i(result_crc_o)
);
