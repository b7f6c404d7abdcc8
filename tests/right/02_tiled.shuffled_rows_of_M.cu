// accepted: only N has a tile: a warp keeps its row of M in registers and shuffles it round

constexpr int TILE_WIDTH = 32;  // so a warp is one row of the block

extern "C" __global__ void __launch_bounds__(TILE_WIDTH * TILE_WIDTH)
matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        int m = ph * TILE_WIDTH + tx;
        int n = ph * TILE_WIDTH + ty;
        float mine = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
        Nds[ty][tx] = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += __shfl_sync(0xffffffffu, mine, k) * Nds[k][tx];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
