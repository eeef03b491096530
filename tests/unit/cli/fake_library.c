// SPDX-License-Identifier: Apache-2.0
// Stands where liboffload.so would; loads and does nothing.
int fake_library_is_loaded(void);
int fake_library_is_loaded(void) {
  return 1;
}
