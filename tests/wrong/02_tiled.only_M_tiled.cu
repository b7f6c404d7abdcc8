// refused: traffic, line 19: N still comes from global memory in the inner loop

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        int m = ph * TILE_WIDTH + tx;
        Mds[ty][tx] = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
        __syncthreads();
        if (Col < Width)
            for (int k = 0; k < TILE_WIDTH && ph * TILE_WIDTH + k < Width; ++k)
                Pvalue += Mds[ty][k] * N[(ph * TILE_WIDTH + k) * Width + Col];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
