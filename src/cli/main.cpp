#include <cstdio>

int main() {
  std::puts("tensordiff " TENSORDIFF_VERSION);
  return 0;
}
