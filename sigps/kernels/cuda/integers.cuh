// Integers of a known width, where there is no <cstdint>.

#pragma once

#if defined(__CUDACC_RTC__)
// Of the widths that CUDA's atomics and shuffles take.
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
#else
#include <cstdint>
#endif
