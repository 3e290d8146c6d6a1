python pretrain_gpt.py --tensor-model-parallel-size ${TP} --micro-batch-size 1 --global-batch-size many
