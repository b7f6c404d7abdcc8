// accepted: two buffers for each tile, and one barrier a phase

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[2][TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[2][TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph * TILE_WIDTH < Width; ++ph) {
        int m = ph * TILE_WIDTH + tx;
        int n = ph * TILE_WIDTH + ty;
        int now = ph % 2;
        Mds[now][ty][tx] = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
        Nds[now][ty][tx] = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
        // Whoever passes has finished the phase before this one, so the other buffer is free again.
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[now][ty][k] * Nds[now][k][tx];
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
