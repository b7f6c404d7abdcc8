// refused: race, line 21 or 23: the edge is filled with zeros that the copy may overwrite

#include <cuda_pipeline.h>

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH], Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y, last = Width * Width - 1;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        int m = ph * TILE_WIDTH + tx, n = ph * TILE_WIDTH + ty;
        __pipeline_memcpy_async(&Mds[ty][tx], &M[min(Row * Width + m, last)], 4);
        __pipeline_memcpy_async(&Nds[ty][tx], &N[min(n * Width + Col, last)], 4);
        __pipeline_commit();
        if (Row >= Width || m >= Width)
            Mds[ty][tx] = 0.0f;
        if (n >= Width || Col >= Width)
            Nds[ty][tx] = 0.0f;
        __pipeline_wait_prior(0);
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
