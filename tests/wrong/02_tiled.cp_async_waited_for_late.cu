// refused: race, line 25: each thread waits for its own copies, and nobody after that for the others

#include <cuda_pipeline.h>

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        int m = ph * TILE_WIDTH + tx, n = ph * TILE_WIDTH + ty;
        bool in_M = Row < Width && m < Width, in_N = n < Width && Col < Width;
        __pipeline_memcpy_async(&Mds[ty][tx], in_M ? &M[Row * Width + m] : M, 4, in_M ? 0 : 4);
        __pipeline_memcpy_async(&Nds[ty][tx], in_N ? &N[n * Width + Col] : N, 4, in_N ? 0 : 4);
        __pipeline_commit();
        __syncthreads();
        __pipeline_wait_prior(0);
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
