learning_rate = 0.1
max_iters = 12
