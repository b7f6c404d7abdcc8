// accepted: a warp loads 32 elements of its row of M at once and passes them round by shuffles

constexpr int TILE_WIDTH = 32;  // so a warp is one row of the block

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int lane = threadIdx.x;
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + lane;
    float Pvalue = 0.0f;

    for (int first = 0; first < Width; first += 32) {  // every lane of a warp goes round equally often
        float mine = Row < Width && first + lane < Width ? M[Row * Width + first + lane] : 0.0f;
        for (int k = 0; k < 32; ++k) {
            float m = __shfl_sync(0xffffffffu, mine, k);
            if (Col < Width && first + k < Width)
                Pvalue += m * N[(first + k) * Width + Col];
        }
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
