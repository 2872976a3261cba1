#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/limb_sums.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "compare/kernels/limb_sums.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns how many of the values it took.
std::size_t add_limbs([[maybe_unused]] const uint32_t* values, [[maybe_unused]] std::size_t count,
                      [[maybe_unused]] const LimbedPowers& powers, [[maybe_unused]] LimbSums& out) {
#if HWY_TARGET == HWY_SCALAR
  return 0;
#else
  const hn::ScalableTag<uint64_t> wide;
  const hn::Repartition<uint32_t, decltype(wide)> halves;
  const hn::Rebind<uint32_t, decltype(wide)> narrow;
  const std::size_t lanes = hn::Lanes(wide);
  auto x0 = hn::Zero(wide), x1 = x0, x2 = x0, y0 = x0, y1 = x0, y2 = x0;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::LoadU(narrow, values + i);
    const auto size = hn::ShiftLeft<1>(bits);
    const auto nan = hn::Gt(size, hn::Set(narrow, 0xff000000U));
    const auto number = hn::IfThenElse(nan, hn::Set(narrow, 0x7fc00000U), bits);
    const auto counted = hn::IfThenZeroElse(hn::Eq(size, hn::Zero(narrow)), number);
    const auto value = hn::BitCast(halves, hn::PromoteTo(wide, counted));
    const auto product = [&](const uint64_t(&limb)[LimbedPowers::kCount]) HWY_ATTR {
      return hn::MulEven(value, hn::BitCast(halves, hn::LoadU(wide, limb + i)));
    };
    x0 = hn::Add(x0, product(powers.limbs[0][0]));
    x1 = hn::Add(x1, product(powers.limbs[0][1]));
    x2 = hn::Add(x2, product(powers.limbs[0][2]));
    y0 = hn::Add(y0, product(powers.limbs[1][0]));
    y1 = hn::Add(y1, product(powers.limbs[1][1]));
    y2 = hn::Add(y2, product(powers.limbs[1][2]));
  }
  const auto sum = [&](auto v) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(wide, v)); };
  out = {{{sum(x0), sum(x1), sum(x2)}, {sum(y0), sum(y1), sum(y2)}}};
  return i;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {
namespace {

void add_rest(const uint32_t* values, std::size_t first, std::size_t end,
              const LimbedPowers& powers, LimbSums& sums) {
  for (std::size_t i = first; i < end; ++i)
    for (std::size_t lane = 0; lane < 2; ++lane)
      for (std::size_t limb = 0; limb < LimbedPowers::kLimbs; ++limb)
        sums.of[lane][limb] += powers.limbs[lane][limb][i] * digest_bits(values[i]);
}

}  // namespace

HWY_EXPORT(add_limbs);

LimbSums sum_limbs(const uint32_t* values, std::size_t count, const LimbedPowers& powers) {
  LimbSums sums;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(add_limbs)(values, count, powers, sums);
  add_rest(values, done, count, powers, sums);
  return sums;
}

LimbSums reference::sum_limbs(const uint32_t* values, std::size_t count,
                              const LimbedPowers& powers) {
  LimbSums sums;
  add_rest(values, 0, count, powers, sums);
  return sums;
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
