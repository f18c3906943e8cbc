// The target of sources that are compiled for the processors that the whole build is made for. Included before all
// others, by one set of loops each (vector.h). Such sources stay out of unity batches (cmake/Components.cmake).
#pragma once

#define BRAID_ROWS baseline
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define BRAID_ROWS_REGISTER 32
#else
#define BRAID_ROWS_REGISTER 16
#endif
