// accepted: threads over the edge return, after the last barrier; no barrier after the last phase

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;
    int phases = (Width + TILE_WIDTH - 1) / TILE_WIDTH;

    float Pvalue = 0.0f;
    for (int ph = 0;; ++ph) {
        int m = ph * TILE_WIDTH + tx;
        int n = ph * TILE_WIDTH + ty;
        Mds[ty][tx] = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
        Nds[ty][tx] = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
        __syncthreads();
        if (ph == phases - 1) {  // the same for all threads, so none is left alone at a barrier
            if (Row >= Width || Col >= Width)
                return;
            for (int k = 0; k < Width - ph * TILE_WIDTH; ++k)
                Pvalue += Mds[ty][k] * Nds[k][tx];
            P[Row * Width + Col] = Pvalue;
            return;
        }
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        __syncthreads();
    }
}
