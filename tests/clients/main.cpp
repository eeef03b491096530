// SPDX-License-Identifier: Apache-2.0
// client ROAD SCENARIO: runs one scenario over the driver as that road finds it. Prints "ok";
// status 1 if a word is wrong.

#include <cstdio>
#include <cstring>

#include "tests/clients/client.h"

int main(int count, char** arguments) {
  using namespace clients;
  if (count != 3) {
    std::fprintf(stderr, "Usage: %s ROAD SCENARIO\n", arguments[0]);
    return 2;
  }
  for (const auto* group :
       {&kStashScenarios,        &kTableScenarios,    &kCopyScenarios,      &kMemoryScenarios,
        &kWaitScenarios,         &kLifeScenarios,     &kAccidentScenarios,  &kEndScenarios,
        &kCaptureScenarios,      &kGraphScenarios,    &kSharingScenarios,   &kShortageScenarios,
        &kSurroundingScenarios,  &kLibraryScenarios,  &kContextScenarios,   &kDeviceScenarios,
        &kDeviceCopyScenarios,   &kCrossingScenarios, &kEarlyFlagScenarios, &kMappingScenarios,
        &kForeignTableScenarios, &kMoreCopyScenarios, &kMoreWaitScenarios,  &kNodeScenarios,
        &kRoomScenarios,         &kCommandedScenarios}) {
    for (const Scenario& scenario : *group) {
      if (std::strcmp(scenario.name, arguments[2]) != 0) continue;
      Client client(take_road(arguments[1]));
      client.start();
      scenario.run(client);
      std::puts("ok");
      return 0;
    }
  }
  std::fprintf(stderr, "client: no scenario %s\n", arguments[2]);
  return 2;
}
