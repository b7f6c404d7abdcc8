// accepted: two pointers walk, and the loads go through the read-only cache

static const int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *__restrict__ M, const float *__restrict__ N,
                                        float *__restrict__ P, int Width)
{
    unsigned Row = blockIdx.y * TILE_WIDTH + threadIdx.y, Col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    if (Row >= Width || Col >= Width)
        return;
    const float *a = M + Row * Width, *b = N + Col;
    float Pvalue = 0.0f;
    for (const float *end = a + Width; a != end; ++a, b += Width)
        Pvalue += __ldg(a) * __ldg(b);
    P[Row * Width + Col] = Pvalue;
}
