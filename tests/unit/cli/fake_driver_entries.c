// SPDX-License-Identifier: Apache-2.0
// Every entry that liboffload stands before or calls, answering success. Weak: fake_driver.c
// overrides what it knows.
int fake_entry(void);
int fake_entry(void) {
  return 0;
}

#define ENTRY(symbol, ...) __asm__(".weak " #symbol "\n.set " #symbol ", fake_entry\n");
#define HOOK ENTRY
#define NEEDED ENTRY
#include "interpose/hooks.def"
