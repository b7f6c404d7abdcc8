// refused: barrier, line 25 or 28: both branches call a function with a barrier: two barriers

constexpr int TILE_WIDTH = 16;

__device__ __forceinline__ void tiles_are_ready()
{
    __syncthreads();
}

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        int m = ph * TILE_WIDTH + tx;
        int n = ph * TILE_WIDTH + ty;
        Nds[ty][tx] = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
        if (Row < Width) {
            Mds[ty][tx] = m < Width ? M[Row * Width + m] : 0.0f;
            tiles_are_ready();
        } else {
            Mds[ty][tx] = 0.0f;
            tiles_are_ready();
            Pvalue = 0.0f;
        }
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
