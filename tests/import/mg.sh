#!/bin/bash
TP=${TP:-2}
GBS=512
ARGS=(
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size 4
    --num-layers 32
    --num-layers-per-virtual-pipeline-stage 2
    --micro-batch-size 1
    --global-batch-size $GBS
    --seq-length 4096
    --use-distributed-optimizer
    --overlap-grad-reduce --overlap-param-gather
    --sequence-parallel
    --recompute-granularity selective
    --recompute-modules core_attn layernorm mla_up_proj shared_experts
    --cpu-offloading --cpu-offloading-num-layers 2
    --bf16  # not fp16
    --rampup-batch-size 32 32 1000
    --save-interval 500 \
    --async-save
)
if [ "${FSDP:-0}" = 1 ]; then
    ARGS+=( --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params )
fi
torchrun pretrain_gpt.py ${ARGS[@]}
