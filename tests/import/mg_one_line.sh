#!/bin/bash
TP=2
PP=4
case $SIZE in 7b) PP=1;; *) PP=8;; esac
if [ -z "$MASTER_ADDR" ]; then MASTER_ADDR=localhost; fi
torchrun pretrain_gpt.py --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 \
  --global-batch-size 128 --use-distributed-optimizer --bf16
