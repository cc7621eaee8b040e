__global__ void nvfuser_pointwise_f0_c1_r0_g0(Tensor<float, 2, 2> T0, Tensor<float, 2, 2> T1, Tensor<float, 2, 2> T6, Tensor<float, 2, 2> T3) {
  nvfuser_index_t i0;
  i0 = ((nvfuser_index_t)threadIdx.x) + (128 * ((nvfuser_index_t)blockIdx.x));
  if ((i0 < (T0.logical_size[0LL] * T0.logical_size[1LL]))) {
    Array<float, 1, 1> T5;
    T5[0] = 0;
    T5[0]
       = T1[i0];
    Array<float, 1, 1> T4;
    T4[0] = 0;
    T4[0]
       = T0[i0];
    Array<float, 1, 1> T2;
    T2[0]
      = T4[0]
      + T5[0];
    Array<float, 1, 1> T7;
    T7[0]
       = T2[0];
    T6[i0]
       = T7[0];
    Array<float, 1, 1> T8;
    T8[0]
      = T2[0]
      * T5[0];
    T3[i0]
       = T8[0];
  }
}
