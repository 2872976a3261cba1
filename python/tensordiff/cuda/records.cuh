// The largest differences of a thread. They are rare events: a kernel holds what it sees against
// the largest so far of its warp, and only what may be a record comes here, with divisions.

struct Records {
  double max_abs, max_rel, rtol_needed;       // Of this thread.
  double bound_abs, bound_rel, bound_needed;  // What a value has to exceed to be a record.
  u64 max_at;
};

__device__ inline Records no_records() {
  Records none = {-1, 0, 0, -1, 0, 0, 0};
  return none;
}

// Whether a pair is one, exactly.
__device__ inline bool is_record(const Records& r, float fa, float fb, double atol) {
  const double size = fabs(static_cast<double>(fb) - fa), size_a = fabsf(fa);
  const double larger = fmaxf(fabsf(fa), fabsf(fb));
  return (size > r.bound_abs) | (fma(-r.bound_rel, larger, size) > 0) |
         (size > fma(r.bound_needed, size_a, atol));
}

// Takes a pair in. Returns whether it was a record.
__device__ inline bool look(Records& r, float fa, float fb, u64 at, double atol) {
  const double a = fa, b = fb, size = fabs(b - a), size_a = fabs(a);
  bool record = size > r.max_abs;
  if (record) r.max_abs = size, r.max_at = at;
  if (size == 0) return record;
  const double larger = fmax(size_a, fabs(b));
  // Bounds are rounded up, so that the same quotient is no record again.
  if (fma(-r.bound_rel, larger, size) > 0) {
    r.max_rel = fmax(r.max_rel, size / larger);
    r.bound_rel = fmax(r.bound_rel, __ddiv_ru(size, larger));
    record = true;
  }
  if (size > atol && size > fma(r.bound_needed, size_a, atol)) {
    r.rtol_needed = fmax(r.rtol_needed, (size - atol) / size_a);
    r.bound_needed = fmax(r.bound_needed, __ddiv_ru(size - atol, size_a));
    record = true;
  }
  return record;
}

// All lanes of a warp share their bounds. Another lane's largest difference counts as a little
// less, since the same at an earlier place is still wanted.
__device__ inline void share(Records& r) {
  const double all = most_of_warp(r.max_abs);
  r.bound_abs = r.max_abs == all || all <= 0
                    ? r.max_abs
                    : __longlong_as_double(__double_as_longlong(all) - 1);
  r.bound_rel = most_of_warp(r.bound_rel);
  r.bound_needed = most_of_warp(r.bound_needed);
}
