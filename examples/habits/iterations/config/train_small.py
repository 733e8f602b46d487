device = "cpu"
learning_rate = 1e-2
