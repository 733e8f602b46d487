"""What is proven, handed to TensorBoard, W&B, MLflow and SwanLab: as files, and nothing is sent."""
