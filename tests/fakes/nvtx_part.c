/* A shared library with NVTX of its own, as many libraries of CUDA programs are. */
#ifdef NVTX_HEADER
#include NVTX_HEADER
#else
#include "nvtx_program.h"
#endif

void nvtx_part(void);
void nvtx_part(void)
{
	nvtxRangePushA("in the library");
	nvtxMarkA("library's mark");
	nvtxRangePop();
}
