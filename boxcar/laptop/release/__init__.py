"""What is shipped: wrappers, code, agent, training layer, named by its content."""
