// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/pytorch.h"

#include <gtest/gtest.h>

#include <string>

namespace offload {
namespace {

struct Case {
  const char* what;
  PytorchAlloc wanted;
  PytorchVariables now;  // CUDA_ALLOC_CONF, ALLOC_CONF, NO_CUDA_MEMORY_CACHING
  const char* conf;      // what it becomes; null: untouched
  bool set_no_caching;
  bool clear_no_caching = false;
};

constexpr PytorchAlloc kAsync = PytorchAlloc::kAsync;

const Case kCases[] = {
    {"nothing set", kAsync, {nullptr, nullptr, nullptr}, "backend:cudaMallocAsync", true},
    {"other keys stay",
     kAsync,
     {"max_split_size_mb:128", nullptr, nullptr},
     "backend:cudaMallocAsync,max_split_size_mb:128",
     true},
    {"keys under the new name stay",
     kAsync,
     {nullptr, "expandable_segments:True", nullptr},
     "backend:cudaMallocAsync,expandable_segments:True",
     true},
    {"the old name wins, as in PyTorch",
     kAsync,
     {"a:1", "b:2", nullptr},
     "backend:cudaMallocAsync,a:1",
     true},
    {"empty is nothing", kAsync, {"", nullptr, nullptr}, "backend:cudaMallocAsync", true},
    {"the same backend stays",
     kAsync,
     {"backend:cudaMallocAsync", nullptr, nullptr},
     nullptr,
     true},
    {"inherited from a parent with us",
     kAsync,
     {"backend:cudaMallocAsync", nullptr, "1"},
     nullptr,
     false},
    {"a user's own backend wins",
     kAsync,
     {"x:1, backend : native ,y:2", nullptr, nullptr},
     nullptr,
     false},
    {"under the new name too", kAsync, {nullptr, "backend:native", nullptr}, nullptr, false},
    {"and with a cache, if we had forbidden it",
     kAsync,
     {"backend:native", nullptr, "1", true},
     nullptr,
     false,
     true},
    {"with uncached too",
     PytorchAlloc::kUncached,
     {"x:1,backend:native", nullptr, "1", true},
     nullptr,
     false,
     true},
    {"but not if the user had", kAsync, {"backend:native", nullptr, "1"}, nullptr, false},
    {"ours stays beside other keys",
     kAsync,
     {"a:1", nullptr, "1", true},
     "backend:cudaMallocAsync,a:1",
     false},
    {"not a backend",
     kAsync,
     {"my_backend:native", nullptr, nullptr},
     "backend:cudaMallocAsync,my_backend:native",
     true},
    {"the user wants caching", kAsync, {nullptr, nullptr, "0"}, "backend:cudaMallocAsync", false},
    {"uncached", PytorchAlloc::kUncached, {"a:1", nullptr, nullptr}, nullptr, true},
    {"native", PytorchAlloc::kNative, {nullptr, nullptr, nullptr}, nullptr, false},
};

TEST(Pytorch, Variables) {
  for (const Case& it : kCases) {
    char conf[256] = "untouched";
    const PytorchChanges changes = plan_pytorch_variables(it.wanted, it.now, conf);
    EXPECT_EQ(changes.set_cuda_alloc_conf, it.conf != nullptr) << it.what;
    EXPECT_STREQ(conf, it.conf != nullptr ? it.conf : "untouched") << it.what;
    EXPECT_EQ(changes.set_no_memory_caching, it.set_no_caching) << it.what;
    EXPECT_EQ(changes.clear_no_memory_caching, it.clear_no_caching) << it.what;
  }
}

TEST(Pytorch, NothingIsSetThatDoesNotFit) {
  char conf[32];
  const std::string keys(40, 'k');
  EXPECT_FALSE(
      plan_pytorch_variables(kAsync, {keys.c_str(), nullptr, nullptr}, conf).set_cuda_alloc_conf);
}

TEST(Pytorch, NamesOfTheVariables) {
  for (const char* name :
       {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"})
    EXPECT_STREQ(name_of(pytorch_variable(name)), name);
  for (const char* name : {"", "PATH", "PYTORCH_", "PYTORCH_ALLOC_CON", "PYTORCH_ALLOC_CONF2"})
    EXPECT_EQ(pytorch_variable(name), PytorchVariable::kNone) << name;
}

TEST(Pytorch, WhetherTheUncachedOneIsOurs) {
  const auto ours = [](PytorchAlloc wanted, const char* conf, const char* caching) {
    unsetenv("PYTORCH_ALLOC_CONF");
    conf != nullptr ? setenv("PYTORCH_CUDA_ALLOC_CONF", conf, 1)
                    : unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    caching != nullptr ? setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", caching, 1)
                       : unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    return set_pytorch_variables(wanted);
  };
  EXPECT_TRUE(ours(kAsync, nullptr, nullptr));
  EXPECT_TRUE(ours(PytorchAlloc::kUncached, "a:1", nullptr));
  EXPECT_TRUE(ours(kAsync, "backend:cudaMallocAsync,a:1", "1"));  // a parent's
  EXPECT_FALSE(ours(kAsync, nullptr, "1"));
  EXPECT_FALSE(ours(kAsync, nullptr, "0"));
  EXPECT_FALSE(ours(kAsync, "backend:cudaMallocAsync", "0"));
  EXPECT_FALSE(ours(PytorchAlloc::kNative, nullptr, nullptr));
}

TEST(Pytorch, WhichAllocatorItTakes) {
  const auto with = [](const char* conf, const char* new_conf, const char* caching) {
    conf != nullptr ? setenv("PYTORCH_CUDA_ALLOC_CONF", conf, 1)
                    : unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    new_conf != nullptr ? setenv("PYTORCH_ALLOC_CONF", new_conf, 1)
                        : unsetenv("PYTORCH_ALLOC_CONF");
    caching != nullptr ? setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", caching, 1)
                       : unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    return pytorch_allocator();
  };
  EXPECT_EQ(with("backend:cudaMallocAsync", nullptr, "1"), PytorchAlloc::kAsync);
  EXPECT_EQ(with("backend:native", nullptr, "1"),
            PytorchAlloc::kUncached);  // a script that set it before import
  EXPECT_EQ(with(nullptr, "backend:cudaMallocAsync", nullptr), PytorchAlloc::kAsync);
  EXPECT_EQ(with("a:1", "backend:cudaMallocAsync", nullptr), PytorchAlloc::kNative);
  EXPECT_EQ(with(nullptr, nullptr, "0"), PytorchAlloc::kNative);
  EXPECT_FALSE(is_pytorch());
}

}  // namespace
}  // namespace offload
