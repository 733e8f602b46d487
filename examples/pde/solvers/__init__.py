"""Three equations with solvers whose order of convergence is known, and tested."""
