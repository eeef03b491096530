// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dialect on the CPU: a group is one call, Lanes is as many of the machine's vectors as hold
// kLanes floats.

#define KERNEL(name, ...) static inline void name([[maybe_unused]] const Place place, __VA_ARGS__)
#define LANE_FUNCTION [[gnu::always_inline]] static inline
#define LANE_MEMBER [[gnu::always_inline]]
#define UNROLL _Pragma("GCC unroll 32")
#define UNROLL_THREAD
#define group_x() (place.x)
#define group_y() (place.y)
#define group_z() (place.z)

// Where a call stands in the grid of groups.
struct Place {
  int x, y, z;
};

#if defined(__AVX512F__)
constexpr int kVectorFloats = 16;
constexpr bool kManyVectorRegisters = true;
#elif defined(__AVX__)
constexpr int kVectorFloats = 8;
constexpr bool kManyVectorRegisters = false;
#else
constexpr int kVectorFloats = 4;
constexpr bool kManyVectorRegisters = false;
#endif
constexpr int kParts = kLanes / kVectorFloats;

typedef float FloatVector __attribute__((vector_size(kVectorFloats * sizeof(float))));
typedef int32_t IntVector __attribute__((vector_size(kVectorFloats * sizeof(float))));

struct LaneMask {
  IntVector part[kParts];
};

struct Lanes {
  FloatVector part[kParts];

#define LANE_OPERATOR(op)                                                       \
  LANE_MEMBER friend inline Lanes operator op(Lanes a, Lanes b) {               \
    UNROLL for (int i = 0; i < kParts; ++i) a.part[i] = a.part[i] op b.part[i]; \
    return a;                                                                   \
  }                                                                             \
  LANE_MEMBER friend inline Lanes operator op(Lanes a, float b) {               \
    UNROLL for (int i = 0; i < kParts; ++i) a.part[i] = a.part[i] op b;         \
    return a;                                                                   \
  }                                                                             \
  LANE_MEMBER friend inline Lanes operator op(float a, Lanes b) {               \
    UNROLL for (int i = 0; i < kParts; ++i) b.part[i] = a op b.part[i];         \
    return b;                                                                   \
  }                                                                             \
  template <typename T>                                                         \
  LANE_MEMBER Lanes& operator op##=(T b) {                                      \
    return *this = *this op b;                                                  \
  }
  LANE_OPERATOR(+)
  LANE_OPERATOR(-)
  LANE_OPERATOR(*)
  LANE_OPERATOR(/)
#undef LANE_OPERATOR

#define LANE_COMPARISON(op)                                                        \
  LANE_MEMBER friend inline LaneMask operator op(Lanes a, Lanes b) {               \
    LaneMask mask;                                                                 \
    UNROLL for (int i = 0; i < kParts; ++i) mask.part[i] = a.part[i] op b.part[i]; \
    return mask;                                                                   \
  }                                                                                \
  LANE_MEMBER friend inline LaneMask operator op(Lanes a, float b) {               \
    LaneMask mask;                                                                 \
    UNROLL for (int i = 0; i < kParts; ++i) mask.part[i] = a.part[i] op b;         \
    return mask;                                                                   \
  }
  LANE_COMPARISON(<)
  LANE_COMPARISON(<=)
  LANE_COMPARISON(>)
  LANE_COMPARISON(>=)
#undef LANE_COMPARISON
};

LANE_FUNCTION Lanes load(const float* p) {
  Lanes x;
  UNROLL for (int i = 0; i < kParts; ++i) {
    __builtin_memcpy(&x.part[i], p + i * kVectorFloats, sizeof(x.part[i]));
  }
  return x;
}
LANE_FUNCTION void store(float* p, Lanes x) {
  UNROLL for (int i = 0; i < kParts; ++i) {
    __builtin_memcpy(p + i * kVectorFloats, &x.part[i], sizeof(x.part[i]));
  }
}
LANE_FUNCTION Lanes broadcast(float x) {
  return Lanes{} + x;
}
LANE_FUNCTION Lanes lane_numbers() {
  alignas(64) static constexpr float kNumbers[kLanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                         8, 9, 10, 11, 12, 13, 14, 15};
  return load(kNumbers);
}
// Not inlined: called many times outside the loops that matter, it would only be more code.
[[gnu::noinline]] static Lanes gather(const float* p, size_t stride, int count) {
  float lane[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) lane[i] = p[size_t(i) * stride];
  }
  return load(lane);
}
[[gnu::noinline]] static void scatter(float* p, size_t stride, int count, Lanes x) {
  float lane[kLanes];
  store(lane, x);
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) p[size_t(i) * stride] = lane[i];
  }
}
LANE_FUNCTION Lanes load_some(const float* p, int count) {
  return count >= kLanes ? load(p) : gather(p, 1, count);
}
LANE_FUNCTION void store_some(float* p, int count, Lanes x) {
  if (count >= kLanes) {
    store(p, x);
  } else {
    scatter(p, 1, count, x);
  }
}
LANE_FUNCTION void store_one(float* p, float x) {
  *p = x;
}

LANE_FUNCTION Lanes select(LaneMask mask, Lanes yes, Lanes no) {
  UNROLL for (int i = 0; i < kParts; ++i) {
    yes.part[i] = mask.part[i] ? yes.part[i] : no.part[i];
  }
  return yes;
}
LANE_FUNCTION Lanes larger(Lanes a, Lanes b) {
  return select(a > b, a, b);
}

// Halves are folded onto each other: lane i with lane i + 8, then 4, 2, 1, as the CUDA side's
// shuffles do.
LANE_FUNCTION float sum_lanes(Lanes x) {
  float lane[kLanes];
  store(lane, x);
  UNROLL for (int step = kLanes / 2; step > 0; step /= 2) {
    UNROLL for (int i = 0; i < step; ++i) lane[i] += lane[i + step];
  }
  return lane[0];
}
LANE_FUNCTION float max_lanes(Lanes x) {
  float lane[kLanes];
  store(lane, x);
  UNROLL for (int step = kLanes / 2; step > 0; step /= 2) {
    UNROLL for (int i = 0; i < step; ++i) {
      lane[i] = lane[i] > lane[i + step] ? lane[i] : lane[i + step];
    }
  }
  return lane[0];
}

LANE_FUNCTION Lanes square_root(Lanes x) {
  UNROLL for (int p = 0; p < kParts; ++p) {
    for (int i = 0; i < kVectorFloats; ++i) x.part[p][i] = __builtin_sqrtf(x.part[p][i]);
  }
  return x;
}
LANE_FUNCTION Lanes logarithm(Lanes x) {
  float lane[kLanes];
  store(lane, x);
  for (int i = 0; i < kLanes; ++i) lane[i] = __builtin_logf(lane[i]);
  return load(lane);
}
LANE_FUNCTION float scalar_square_root(float x) {
  return __builtin_sqrtf(x);
}
LANE_FUNCTION float scalar_logarithm(float x) {
  return __builtin_logf(x);
}

// e^x as 2^n * e^f with |f| <= ln(2)/2, to about 2 units in the last place; x is held to [-87, 88],
// where the result is a normal number. Adding 1.5 * 2^23 rounds to the nearest integer and leaves
// it in the low bits. Coefficients: Cephes, expf.
LANE_FUNCTION Lanes exponential(Lanes x) {
  x = larger(x, broadcast(-87.0f));
  x = select(x < 88.0f, x, broadcast(88.0f));
  constexpr float kRound = 12582912.0f;
  const Lanes rounded = x * 1.44269504f + kRound;
  const Lanes n = rounded - kRound;
  const Lanes f = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes p = f * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * (f * f) + f + 1.0f;
  UNROLL for (int i = 0; i < kParts; ++i) {
    // A cast between vector types keeps the bits.
    p.part[i] *= FloatVector(((IntVector(rounded.part[i]) << 23) + (127 << 23)));
  }
  return p;
}
