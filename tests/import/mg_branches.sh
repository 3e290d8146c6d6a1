#!/bin/bash
if [ -z "$MASTER_ADDR" ]; then MASTER_ADDR=localhost; fi
TP=2
case $SIZE in
  7b) TP=1 ;;
  70b) TP=8 ;;
esac
for PP in 1 2 4; do
torchrun pretrain_gpt.py --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 \
  --global-batch-size 128 --use-distributed-optimizer --bf16
done
