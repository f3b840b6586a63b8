// SPDX-License-Identifier: Apache-2.0
// The SystemC library asks for this function, for its own main(). Here that of libFuzzer is the program's.
extern "C" int sc_main(int, char**) { return 1; }
