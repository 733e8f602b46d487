"""Why a training failed and what follows: evidence in, verdict out. Pure, for box and laptop."""
